package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"dmir/analysis/program"
	"dmir/base/escape/escapetest"
	"dmir/cli"
	"dmir/compile/target"
	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/emulator"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// hostileText is a program in which everything that may hold any text is name.
func hostileText(name string) string {
	q := parse.Quote(name)
	return fmt.Sprintf(`func.func @%[1]s(%%x: tensor<64x64xf32> {dm.stddev = 0.5, note = %[1]s}) -> tensor<64x64xf32> attributes {note = %[1]s, dm.max_moved = "1 B"} {
  %%0 = dm.relu %%x {note = %[1]s} : tensor<64x64xf32> loc(%[1]s:3:4)
  %%k = dm.kernel {dm.name = %[1]s} -> tensor<64x64xf32> {
    %%1 = dm.exp %%0 : tensor<64x64xf32> loc(%[1]s)
    dm.yield %%1 : tensor<64x64xf32>
  }
  %%2 = dm.transpose %%k, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %%2 : tensor<64x64xf32>
}
`, q)
}

// dmir runs a command in this process.
func dmir(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = cli.Main(args, strings.NewReader(stdin), &out, &errs)
	return out.String(), errs.String(), status
}

// shown requires that output has no control sequences for a terminal.
func shown(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && (unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control)) {
			t.Errorf("%s holds %U:\n%q", what, r, text)
			return
		}
	}
}

var (
	mark     = regexp.MustCompile(`\b` + escapetest.Mark + `\b`) // not as a part of an identifier
	codeSpan = regexp.MustCompile("`[^`\n]+`|``[^\n]+?``")
)

// code requires that names in C++ are only in comments and literals.
func code(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(escapetest.Code(text)) {
		if mark.MatchString(line) {
			t.Errorf("%s: a name left its place: %q", what, line)
			return
		}
	}
	shown(t, what, text)
}

// mlir requires that text is a valid program with the functions of the hostile one.
func mlir(t *testing.T, what, text, name string) {
	t.Helper()
	for section := range strings.SplitSeq(text, "// -----\n") {
		p := program.Load(source.New("back.dmir", section), program.Options{})
		for _, d := range p.Diags {
			if d.Code[:3] == "DM0" {
				t.Errorf("%s: %s\n%s", what, d.Message, section)
				return
			}
		}
		for _, m := range p.Modules {
			for _, f := range m.Funcs {
				if f.Name != name {
					t.Errorf("%s has the function %q", what, f.Name)
				}
			}
		}
	}
	shown(t, what, text)
}

// annotation is a line that GitHub reads as a command.
var annotation = regexp.MustCompile(`^::(error|warning|notice) file=[^,:]*,line=\d+,col=\d+,endLine=\d+,endColumn=\d+,title=[^,:]*::.*$`)

// TestHostileNames writes each hostile name, half of them in turn, in every kind of output.
func TestHostileNames(t *testing.T) {
	need.Long(t)
	ownCache(t)
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain.dmir")
	if err := os.WriteFile(plain, []byte(strings.Replace(hostileText("f"), "dm.relu", "dm.abs", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	page, _, _ := dmir(t, "", "report", "-o", "-", plain)
	elements := regexp.MustCompile(`(?i)<[a-z/!][^ >]*`)
	for i, name := range escapetest.Names {
		if !need.Turn(t, i, 2) {
			continue
		}
		text := hostileText(name)
		file := filepath.Join(dir, "program.dmir")
		if legal := strings.NewReplacer("/", "_", "\x00", "_").Replace(name); len(legal) < 200 && utf8.ValidString(name) {
			file = filepath.Join(dir, legal+".dmir") // the file is called like that too
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		run := func(check func(t *testing.T, what, text string), args ...string) {
			t.Helper()
			what := fmt.Sprintf("%q: dmir %s", name, strings.Join(args, " "))
			stdout, stderr, status := dmir(t, "", append(args, file)...)
			if status == 2 {
				t.Errorf("%s: %s", what, stderr)
				return
			}
			check(t, what, stdout)
			shown(t, what+", stderr", stderr)
		}
		isJSON := func(t *testing.T, what, text string) {
			t.Helper()
			if !json.Valid([]byte(text)) || strings.ContainsAny(text, "\x1b\r\x00\a\b") {
				t.Errorf("%s: %s", what, text)
			}
		}
		isMLIR := func(t *testing.T, what, text string) { t.Helper(); mlir(t, what, text, name) }
		lines := func(t *testing.T, what, text string) {
			t.Helper()
			for line := range strings.Lines(text) {
				if !annotation.MatchString(strings.TrimSuffix(line, "\n")) {
					t.Errorf("%s: %q", what, line)
				}
			}
			shown(t, what, text)
		}
		markdown := func(t *testing.T, what, text string) {
			t.Helper()
			if tags := elements.FindAllString(codeSpan.ReplaceAllString(text, ""), -1); len(tags) != 4 { // details and summary, and their ends
				t.Errorf("%s holds the elements %q:\n%s", what, tags, text)
			}
			shown(t, what, text)
		}
		html := func(t *testing.T, what, text string) {
			t.Helper()
			if got, want := len(elements.FindAllString(text, -1)), len(elements.FindAllString(page, -1)); got != want {
				t.Errorf("%s has %d elements, want %d", what, got, want)
			}
		}
		run(shown, "lint")
		run(shown, "lint", "--output-format", "concise")
		run(isJSON, "lint", "--output-format", "json")
		run(isJSON, "lint", "--output-format", "sarif")
		run(lines, "lint", "--output-format", "github")
		run(shown, "cost")
		run(isJSON, "cost", "--output-format", "json")
		run(shown, "diff", "--budget", plain)
		run(isJSON, "diff", "--output-format", "json", plain)
		run(lines, "diff", "--budget", "--output-format", "github", plain)
		run(html, "report", "-o", "-")
		run(isJSON, "report", "--kind", "all", "--output-format", "json")
		run(shown, "run", "--device", "reference")
		run(isJSON, "run", "--device", "reference", "--output-format", "json")
		run(shown, "compile", "--arch", "none")
		run(isJSON, "compile", "--arch", "none", "--output-format", "json")
		run(code, "compile", "--arch", "none", "--emit", "cuda")
		run(isMLIR, "opt")
		run(isMLIR, "opt", "--emit", "schedule", "--timings")
		run(isMLIR, "opt", "--print-after-all")
		run(isMLIR, "opt", "--emit", "mlir")

		// The same program under its older name, so that there is a difference.
		older := filepath.Join(dir, "older.dmir")
		if err := os.WriteFile(older, []byte(strings.Replace(text, "dm.exp %0", "dm.gelu %0", 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		run(markdown, "diff", "--output-format", "markdown", older)
		run(shown, "diff", older)
		run(html, "report", "--kind", "graph", "-o", "-")

		// Files.
		cu := filepath.Join(dir, "out.cu")
		run(code, "compile", "--arch", "none", "--emit", "cuda", "-o", cu)
		for _, path := range []string{cu, filepath.Join(dir, "out.h")} {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			code(t, fmt.Sprintf("%q: %s", name, filepath.Base(path)), string(b))
		}
		dmx := filepath.Join(dir, "out.dmx")
		run(shown, "compile", "--arch", "none", "-o", dmx)
		if p, err := artifact.ReadFile(dmx); err != nil || p.Foreign {
			t.Errorf("%q: the compiled file: %v", name, err)
		}

		// Errors use the names of the command line.
		for _, args := range [][]string{
			{"cost", filepath.Join(dir, "none", name)},
			{"cost", "--target=" + name, plain},
			{"run", "--func=" + name, plain},
			{"explain", "--", name},
			{"run", "--input=" + name, plain},
			{"run", "--device=" + name, plain},
			{"cost", "--bind=" + name, plain},
			{"opt", "--passes=" + name, plain},
			{"compile", "--arch=" + name, plain},
			{"fmt", "--check", filepath.Join(dir, "none", name)},
			{"--" + name},
			{name},
		} {
			stdout, stderr, status := dmir(t, "", args...)
			if status != 2 {
				t.Errorf("dmir %q ends with %d", args, status)
			}
			shown(t, fmt.Sprintf("dmir %q", args), stdout+stderr)
		}
	}
}

// TestHostileArtifacts runs a file whose names are hostile.
func TestHostileArtifacts(t *testing.T) {
	need.Long(t)
	need.OK(t, emulator.Check())
	ownCache(t)
	dir := t.TempDir()
	for _, name := range escapetest.Names {
		p := artifacttest.Program()
		p.Name, p.File = name, name
		p.Results = []string{name, "../" + name}
		for i := range p.Buffers {
			p.Buffers[i].Name = fmt.Sprint(name, i)
		}
		for i := range p.Steps {
			p.Steps[i].Name = fmt.Sprint(name, i)
		}
		for i := range p.Kernels {
			p.Kernels[i].Class = name
			for j := range p.Kernels[i].Params {
				p.Kernels[i].Params[j].Name = name
			}
		}
		path := filepath.Join(dir, "f.dmx")
		if err := p.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		results := filepath.Join(dir, "results")
		stdout, stderr, status := dmir(t, "", "run", "--device", "emulator", "--trust", "--output", results, path)
		if status != 0 {
			t.Fatalf("%q: %s", name, stderr)
		}
		shown(t, fmt.Sprintf("%q: the run", name), stdout+stderr)
		files, err := os.ReadDir(results)
		if err != nil || len(files) != 2 {
			t.Errorf("%q: the results are %v, %v", name, files, err)
		}
		for _, f := range files {
			shown(t, fmt.Sprintf("%q: a result's file", name), f.Name())
		}
		if err := os.RemoveAll(results); err != nil {
			t.Fatal(err)
		}
		if stdout, _, status = dmir(t, "", "run", "--device", "emulator", "--trust", "--output-format", "json", path); status != 0 || !json.Valid([]byte(stdout)) {
			t.Errorf("%q: %s", name, stdout)
		}
		p.Headers = []artifact.Header{{Name: "dm.cuh", Text: "#pragma once\n"}}
		var cu, h strings.Builder
		if err := target.For("").Export(p, &cu, &h); err != nil {
			t.Fatal(err)
		}
		code(t, fmt.Sprintf("%q: the export", name), cu.String())
		code(t, fmt.Sprintf("%q: its header", name), h.String())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("a run has written %v", left)
	}
}

// TestHostileOnEmulator compiles, for the host, a function with every hostile name,
// and with values named like macros and keywords of C++.
func TestHostileOnEmulator(t *testing.T) {
	need.Long(t)
	need.OK(t, emulator.Check())
	ownCache(t)
	var args, sums strings.Builder
	last := "%first"
	for i, name := range []string{"NULL", "errno", "DM_UNROLL", "DM_HOST", "EOF", "__asm__", "___asm___", "_Pragma", "_Float16", "asm", "nullptr", "char32_t", "stdin", "assert", "INFINITY", "SIGINT", "std", "unix"} {
		fmt.Fprintf(&args, ", %%%s: tensor<8xf32>", name)
		fmt.Fprintf(&sums, "  %%s%d = dm.add %s, %%%s : tensor<8xf32>\n", i, last, name)
		last = "%s" + strconv.Itoa(i)
	}
	text := fmt.Sprintf("func.func @%s(%%first: tensor<8xf32>%s) -> tensor<8xf32> {\n%s  return %s : tensor<8xf32>\n}\n",
		parse.Quote(strings.Join(escapetest.Names, "\n")), args.String(), sums.String(), last)
	stdout, stderr, status := dmir(t, text, "run", "--device", "emulator", "-")
	if status != 0 {
		t.Fatalf("%s", stderr)
	}
	shown(t, "the run", stdout+stderr)
}
