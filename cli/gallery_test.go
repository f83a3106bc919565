package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/cli"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

const (
	gallery  = "../docs/GALLERY.md"
	pictures = "../docs/images/gallery"
	sizes    = pictures + ".flags" // of examples with symbols; scripts/pictures.sh reads it too
)

// steps are the training steps whose graphs are shown in two stages: the picture of the step as it is written, which for examples
// is that of the gallery, and as it is planned.
var steps = []struct{ name, title, written string }{
	{"bert_encoder_train", "A layer of BERT-large", "gallery/bert_encoder_train"},
	{"llama_layer_train", "A layer of Llama", "gallery/llama_layer_train"},
	{"gpt2_48_layers", "GPT-2 with 48 layers (`go run ./bench/depth -text 48`)", "steps/gpt2_48_layers-written"},
}

// galleryFlags are the flags that give the symbols of examples their sizes.
func galleryFlags(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(sizes)
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 {
			flags[words[0]] = words[1:]
		}
	}
	return flags
}

// Each example has a picture for light and for dark pages, and each picture an example.
func TestGalleryPictures(t *testing.T) {
	files, err := filepath.Glob("../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	shown := map[string]bool{}
	for _, file := range files {
		for _, theme := range []string{"light", "dark"} {
			picture := strings.TrimSuffix(filepath.Base(file), ".dmir") + "-" + theme + ".png"
			shown[picture] = true
			if _, err := os.Stat(filepath.Join(pictures, picture)); err != nil {
				t.Errorf("no picture %s: run scripts/pictures.sh", picture)
			}
		}
	}
	have, err := os.ReadDir(pictures)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range have {
		if !shown[f.Name()] {
			t.Errorf("%s is the picture of no example", f.Name())
		}
	}
}

// docs/GALLERY.md is what the examples are: their head comments, and what they
// compute and move as written and as planned.
func TestGallery(t *testing.T) {
	need.Long(t)
	files, err := filepath.Glob("../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	var b strings.Builder
	b.WriteString("# Gallery\n\nThe programs of [`examples/`](../examples), each with its movement graph and its figures: as written, which are those of `dmir cost`\n" +
		"of the function with its calls and gradients written out, and as planned by `dmir opt`. Times are predicted for an H200 SXM and for an\n" +
		"A100 of 80 GB.\n")
	flags := galleryFlags(t)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".dmir")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		written := galleryFigures(t, text, "h200", append([]string{"--passes", "inline,bind,gradient"}, flags[name]...))
		planned := galleryFigures(t, text, "h200", append([]string{"--emit", "schedule"}, flags[name]...))
		olderWritten := galleryFigures(t, text, "a100-80", append([]string{"--passes", "inline,bind,gradient"}, flags[name]...))
		older := galleryFigures(t, text, "a100-80", append([]string{"--emit", "schedule"}, flags[name]...))
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", name, headOf(string(text)))
		fmt.Fprintf(&b, "<picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"images/gallery/%[1]s-dark.png\"><img alt=\"Movement graph of %[1]s\" src=\"images/gallery/%[1]s-light.png\"></picture>\n\n", name)
		fmt.Fprintf(&b, "| [`%s.dmir`](../examples/%[1]s.dmir) | as written | as planned |\n|:--|--:|--:|\n", name)
		row := func(what, a, b2 string) { fmt.Fprintf(&b, "| %s | %s | %s |\n", what, a, b2) }
		row("ops, kernels", fmt.Sprint(written.runs()), fmt.Sprint(planned.runs()))
		row("computed", units.FLOP(written.FLOP), units.FLOP(planned.FLOP))
		row("moved", units.Bytes(written.Moved), units.Bytes(planned.Moved))
		row("minimum", units.Bytes(written.Minimum), units.Bytes(planned.Minimum))
		row("memory at the peak", units.Bytes(written.Peak), units.Bytes(planned.Peak))
		row("time on h200", units.Time(written.Time), units.Time(planned.Time))
		row("time on a100-80", units.Time(olderWritten.Time), units.Time(older.Time))
	}
	b.WriteString("\n## Training steps\n\nForward, backward and optimizer as one graph: as written, with the gradient open, and as planned. Equal layers are one node, the ops\n" +
		"that compute the derivative of one op are one (∂ softmax), and arguments and results are part of their ops.\n")
	for _, step := range steps {
		fmt.Fprintf(&b, "\n%s:\n", step.title)
		for _, stage := range [][2]string{{"written", step.written}, {"planned", "steps/" + step.name + "-planned"}} {
			fmt.Fprintf(&b, "\n<picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"images/%[3]s-dark.png\"><img alt=\"Movement graph of %[1]s as %[2]s\" src=\"images/%[3]s-light.png\"></picture>\n", step.name, stage[0], stage[1])
		}
	}
	b.WriteString("\n## Plans\n\nWhat `dmir plan --devices 64 --target dgx-h100 --top 5 --html plans.html` finds for a step of Llama 3.1 70B with 64 sequences of 8,192\n" +
		"tokens (`go run ./bench/plan -batch 64 text`): the plans, and the pipelines of two of them on one time axis. Each row of the picture is\n" +
		"a device, the numbers are micro-batches.\n\n" +
		"<picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"images/plans-dark.png\"><img alt=\"Plans for a training step and their pipelines\" src=\"images/plans-light.png\"></picture>\n")
	if *update {
		if err := os.WriteFile(gallery, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	is, err := os.ReadFile(gallery)
	if err != nil || string(is) != b.String() {
		t.Errorf("%s is not what the examples are (%v): run go test ./cli -run TestGallery -update", gallery, err)
	}
}

// headOf is the first paragraph of the comment at the head of a program.
func headOf(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		words, comment := strings.CutPrefix(strings.TrimSpace(line), "//")
		if words = strings.TrimSpace(words); !comment || words == "" {
			break
		}
		lines = append(lines, words)
	}
	head := strings.Join(lines, "\n")
	if end, list := strings.CutSuffix(head, ":"); list { // of commands, which do not follow here
		return end + "."
	}
	return head
}

// planFigures are the costs of a function, as `dmir cost` prints them as JSON.
type planFigures struct {
	Name    string  `json:"name"`
	FLOP    int64   `json:"flop"`
	Moved   int64   `json:"moved_bytes"`
	Minimum int64   `json:"minimum_bytes"`
	Peak    int64   `json:"peak_bytes"`
	Time    float64 `json:"time_ns"`
	Ops     []struct {
		Time float64 `json:"time_ns"`
	} `json:"ops"`
}

// runs is the number of ops that take time.
func (f planFigures) runs() int {
	n := 0
	for _, o := range f.Ops {
		if o.Time > 0 {
			n++
		}
	}
	return n
}

// galleryFigures are those of an example's main function, or its first one, after
// passes of the compiler. They are not those of the command cost, which would plan the function again.
func galleryFigures(t *testing.T, text []byte, target string, flags []string) planFigures {
	t.Helper()
	var after, errs bytes.Buffer
	if status := cli.Main(append(append([]string{"opt", "--target", target}, flags...), "-"), bytes.NewReader(text), &after, &errs); status != 0 {
		t.Fatal(errs.String())
	}
	m, ok := machine.Lookup(target)
	if !ok {
		t.Fatal("no machine", target)
	}
	p := program.Load(source.New("example.dmir", after.String()), program.Options{Target: m})
	if p.HasErrors() {
		t.Fatal(p.Diags)
	}
	report, err := json.Marshal(cost.JSON(m, p.Funcs))
	if err != nil {
		t.Fatal(err)
	}
	var of struct {
		Functions []planFigures `json:"functions"`
	}
	if err := json.Unmarshal(report, &of); err != nil || len(of.Functions) == 0 {
		t.Fatal(err, len(of.Functions))
	}
	if i := slices.IndexFunc(of.Functions, func(f planFigures) bool { return f.Name == "main" }); i >= 0 {
		return of.Functions[i]
	}
	return of.Functions[0]
}
