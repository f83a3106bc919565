package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dmir/analysis/attribution"
	"dmir/cli"
	"dmir/compile/checkpoint"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/cuda"
	"dmir/gpu/emulator"
	"dmir/gpu/native"
	"dmir/gpu/nvrtc"
	"dmir/lsp/server"
	"dmir/testkit/need"
)

// pages are those whose commands the tests run; paths below the repository.
var pages = []string{"README.md", "docs/COMMANDS.md", "docs/COMPILING.md", "docs/TRAINING.md", "docs/DEVICES.md", "docs/PLANNING.md", "docs/CI.md"}

// page is the text of one of them.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	must(t, err)
	return string(text)
}

// README.md is short, and its first screen shows the example as it is.
func TestReadme(t *testing.T) {
	text := page(t, "README.md")
	if n := len(strings.Fields(text)); n > 900 {
		t.Errorf("%d words; what is more than 900 belongs in docs", n)
	}
	_, program, _ := strings.Cut(page(t, "examples/ffn.dmir"), "!x")
	if !strings.Contains(text, "\n```mlir\n!x"+program+"```\n") {
		t.Error("README.md does not show examples/ffn.dmir")
	}
	before := page(t, "examples/ffn.dmir")
	if want := savings(t, before, "--fix"); !strings.Contains(prose(text), "The fix takes the layer "+want) {
		t.Errorf("README.md does not state that the fix takes the layer %s", want)
	}
}

// docs/VERSIONS.md states the versions that the code has.
func TestVersions(t *testing.T) {
	text := page(t, "docs/VERSIONS.md")
	header := page(t, "gpu/native/runtime/dmir.h")
	_, stated, _ := strings.Cut(header, "The version of this interface: ")
	var c int
	_, err := fmt.Sscan(strings.TrimRight(strings.Fields(stated)[0], "."), &c)
	must(t, err)
	for row, version := range map[string]int{
		"JSON of commands": cli.JSONVersion, "`.dmx` files": artifact.FormatVersion, "`dmir.h`": c, "requests, notifications": server.ProtocolVersion,
		"traces": attribution.TraceVersion, "checkpoints": checkpoint.Version,
	} {
		if !regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(row) + `[^|]*\| ` + strconv.Itoa(version) + ` \|`).MatchString(text) {
			t.Errorf("docs/VERSIONS.md has no row that begins with %q and says %d", row, version)
		}
	}
}

// TestDocsShown runs each command of the pages that is shown with its output, on a
// terminal of 100 columns, and compares; a line "…" replaces omitted lines.
func TestDocsShown(t *testing.T) {
	t.Setenv("COLUMNS", "100")
	shown := 0
	for _, name := range pages {
		text := page(t, name)
		t.Run(name, func(t *testing.T) {
			t.Chdir("..")
			for _, block := range regexp.MustCompile("(?s)\n```\n(\\$ dmir .*?)\n```\n").FindAllStringSubmatch(text, -1) {
				for _, part := range strings.Split("\n"+block[1], "\n$ dmir ")[1:] {
					command, want, _ := strings.Cut(part, "\n")
					shown++
					var out, errs bytes.Buffer
					cli.Main(strings.Fields(command), strings.NewReader(""), &out, &errs)
					if missing := leftOut("\n"+strings.TrimRight(want, "\n"), out.String()); missing != "" {
						t.Errorf("dmir %s: the page shows\n%s\nwhich is not there in\n%s%s", command, missing, &out, &errs)
					}
				}
			}
		})
	}
	if shown < 5 {
		t.Errorf("%d commands with their output", shown)
	}
}

// readmeCondition is what commands need, by a regular expression.
type readmeCondition struct {
	command, why string
	met          func() bool
}

// conditional are the commands of the pages that do not run everywhere.
var conditional = []readmeCondition{
	{`^make test$`, "it runs this test", never},
	{`^pip install`, "needs a release", never},
	{`--tune|^dmir run step\.dmx`, "needs a GPU", hasGPU},
	{`--arch sm_`, "needs NVRTC", func() bool { _, err := nvrtc.Find(); return err == nil }},
	{`step\.so|--emit llvm|\.o |\.h |x86-64-v3`, "needs clang", func() bool { _, err := native.Find(context.Background()); return err == nil }},
	{`^mpirun`, "needs MPI", func() bool { _, err := exec.LookPath("mpirun"); return err == nil }},
	{`train\.py`, "needs NumPy", func() bool { return exec.Command("python3", "-c", "import numpy").Run() == nil }},
	{`small\.dmx|--device emulator`, "needs a C++ compiler", func() bool { return emulator.Check() == nil }},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func never() bool { return false }

func hasGPU() bool {
	gpus, err := cuda.Devices()
	return err == nil && len(gpus) > 0
}

// TestDocsCommands runs the shell commands of the pages as they stand, in a folder
// with what they name: the examples, an array of tokens, and a repository with a branch
// origin/main. Those of which a condition is not met are left out.
func TestDocsCommands(t *testing.T) {
	need.Long(t)
	root, err := filepath.Abs("..")
	must(t, err)
	dir := docsFolder(t, root)
	var blocks [][]string
	for _, name := range pages {
		blocks = append(blocks, regexp.MustCompile("(?s)\n```sh\n(.*?)\n```\n").FindAllStringSubmatch(page(t, name), -1)...)
	}
	ran := 0
	for _, block := range blocks {
		for command := range strings.Lines(block[1]) {
			command, _, _ := strings.Cut(command, " # ")
			command = strings.TrimSpace(command)
			i := slices.IndexFunc(conditional, func(c readmeCondition) bool {
				return regexp.MustCompile(c.command).MatchString(command) && !c.met()
			})
			if i >= 0 {
				t.Logf("not run: %s: %s", command, conditional[i].why)
				continue
			}
			sh := exec.CommandContext(t.Context(), "sh", "-c", command)
			sh.Dir = dir
			sh.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1")
			if strings.HasPrefix(command, "go run . ") || command == "go install ." { // in the module, where it writes nothing
				sh.Dir = root
				sh.Env = append(sh.Env, "GOBIN="+t.TempDir())
			}
			if strings.Contains(command, " --install-") { // not in place of what other tests use
				sh.Env = append(sh.Env, "DMIR_CACHE="+t.TempDir())
			}
			if out, err := sh.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
			ran++
		}
	}
	if ran < 20 {
		t.Errorf("%d commands", ran)
	}
}

// docsFolder is a folder in which the commands of the pages find their files.
func docsFolder(t *testing.T, root string) string {
	dir := t.TempDir()
	for _, name := range []string{"examples", "testdata"} {
		must(t, os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)))
	}
	layer, err := os.ReadFile(filepath.Join(root, "examples/ffn.dmir"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "layer.dmir"), layer, 0o644))
	tokens := tensor.New(types.I32, 40, 9) // samples of examples/transformer_train.dmir
	for i := range tokens.Len() {
		tokens.SetFloat(i, float64(i*7%16))
	}
	must(t, tensor.SaveNPY(filepath.Join(dir, "text.npy"), tokens))
	for _, args := range []string{"init -q", "add layer.dmir", "-c user.name=a -c user.email=a@b commit -q -m layer", "update-ref refs/remotes/origin/main HEAD"} {
		git := exec.CommandContext(t.Context(), "git", strings.Fields(args)...)
		git.Dir = dir
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	return dir
}

// leftOut is the first run of lines of want, between lines "…", that is not in got
// after those before it; "" if all are.
func leftOut(want, got string) string {
	lines := strings.Split(got, "\n")
	for i, run := range strings.Split(want, "\n…") {
		run = strings.TrimPrefix(run, "\n")
		if run == "" {
			continue
		}
		parts := strings.Split(run, "\n")
		at := -1
		for k := 0; k+len(parts) <= len(lines) && at < 0; k++ {
			if slices.Equal(lines[k:k+len(parts)], parts) {
				at = k
			}
		}
		if at < 0 || i == 0 && at != 0 {
			return run
		}
		lines = lines[at+len(parts):]
	}
	return ""
}

// The statements in docs/COMMANDS.md about the fixes of the encoder layer are true.
func TestDocsFixes(t *testing.T) {
	if want := savings(t, page(t, "examples/bert_encoder.dmir"), "--fix", "--hints"); !strings.Contains(prose(page(t, "docs/COMMANDS.md")), "take the layer "+want) {
		t.Errorf("docs/COMMANDS.md does not state that the fixes take the layer %s", want)
	}
}

// savings is what dmir lint with these flags makes of a program, in the words of the pages.
func savings(t *testing.T, text string, flags ...string) string {
	t.Helper()
	var fixed, errs bytes.Buffer
	cli.Main(append(append([]string{"lint"}, flags...), "-"), strings.NewReader(text), &fixed, &errs)
	was, _, took := figures(t, text)
	is, _, takes := figures(t, fixed.String())
	return fmt.Sprintf("from %s moved to %s and from %s to %s predicted", was, is, took, takes)
}

// prose is a text with blanks in place of its line breaks.
func prose(text string) string { return strings.Join(strings.Fields(text), " ") }

// The table in docs/COMPILING.md of the plans of the examples is true.
func TestDocsPlans(t *testing.T) {
	need.Long(t)
	text := page(t, "docs/COMPILING.md")
	// Name, moved as written, as planned, minimum, time as written, as planned.
	rows := regexp.MustCompile("\\(`(\\w+\\.dmir)`\\) \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\| [^|]+ \\| ([0-9.]+)( [µm]s)? → ([^|]+) \\|").FindAllStringSubmatch(text, -1)
	if len(rows) < 6 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		program, err := os.ReadFile("../examples/" + r[1])
		if err != nil {
			t.Fatal(err)
		}
		behind := func(flags ...string) string {
			var out, errs bytes.Buffer
			if status := cli.Main(append(append([]string{"opt"}, flags...), "-"), bytes.NewReader(program), &out, &errs); status != 0 {
				t.Fatal(errs.String())
			}
			return out.String()
		}
		moved, minimum, time := figures(t, behind("--passes", "inline,bind,gradient")) // all ops, including those of gradients
		moves, _, takes := figures(t, behind("--emit", "schedule"))
		unit := r[6]
		if unit == "" { // both times have that of the second
			_, unit, _ = strings.Cut(r[7], " ")
			unit = " " + unit
		}
		if written, is := strings.Join([]string{r[2], r[3], r[4], r[5] + unit, r[7]}, ", "), strings.Join([]string{moved, moves, minimum, time, takes}, ", "); written != is {
			t.Errorf("docs/COMPILING.md has for %s: %s; it is: %s", r[1], written, is)
		}
	}
}

// figures are the totals that dmir cost prints of a program with one function.
func figures(t *testing.T, program string) (moved, minimum, time string) {
	t.Helper()
	var out, errs bytes.Buffer
	if status := cli.Main([]string{"cost", "-"}, strings.NewReader(program), &out, &errs); status != 0 {
		t.Fatal(errs.String())
	}
	m := regexp.MustCompile(`(?s)\n +total .*B +([0-9.]+ [µm]s) .*\n  moved +([0-9.]+ [kMGT]B)\n  minimum +([0-9.]+ [kMGT]?B) `).FindStringSubmatch(out.String())
	if m == nil {
		t.Fatalf("no totals in\n%s", &out)
	}
	return m[2], m[3], m[1]
}
