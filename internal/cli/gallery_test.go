package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/units"
	"dmir/internal/cli"
	"dmir/internal/need"
)

// inGallery are the flags by which an example has one function and sizes in numbers.
var inGallery = map[string][]string{
	"attention_symbolic": {"--bind=b=8,n=512", "--func=attention"},
	"transformer_block":  {"--bind=b=1,n=2048"},
}

const (
	gallery  = "../../docs/GALLERY.md"
	pictures = "../../docs/images/gallery"
)

// docs/GALLERY.md is what the examples are: their head comments, and what they
// compute and move as written and as planned. Each has its pictures, which
// scripts/pictures.sh makes.
func TestGallery(t *testing.T) {
	need.Long(t)
	files, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	var b strings.Builder
	b.WriteString("# Gallery\n\nThe programs of [`examples/`](../examples), each with its movement graph and its figures: as written, which are those of `dmir cost`\n" +
		"of the function with its calls and gradients written out, and as planned by `dmir opt`. Times are predicted for an H200 SXM and for an\n" +
		"A100 of 80 GB.\n")
	shown := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".dmir")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		written := galleryFigures(t, name, text, "h200", "--passes", "inline,bind,gradient")
		planned := galleryFigures(t, name, text, "h200", "--emit", "schedule")
		older := galleryFigures(t, name, text, "a100-80", "--emit", "schedule")
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
		row("time on a100-80", "", units.Time(older.Time))
		for _, theme := range []string{"light", "dark"} {
			picture := name + "-" + theme + ".png"
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
	if *update {
		if err := os.WriteFile(gallery, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	is, err := os.ReadFile(gallery)
	if err != nil || string(is) != b.String() {
		t.Errorf("%s is not what the examples are (%v): run go test ./internal/cli -run TestGallery -update", gallery, err)
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
	return strings.Join(lines, "\n")
}

// planFigures is what `dmir cost` prints of a function as JSON.
type planFigures struct {
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

// galleryFigures are those of an example after passes of the compiler.
func galleryFigures(t *testing.T, name string, program []byte, target string, flags ...string) planFigures {
	t.Helper()
	run := func(in []byte, args ...string) []byte {
		var out, errs bytes.Buffer
		if status := cli.Main(append(args, "-"), bytes.NewReader(in), &out, &errs); status != 0 {
			t.Fatalf("%s: %s", name, &errs)
		}
		return out.Bytes()
	}
	after := run(program, append(append([]string{"opt", "--target", target}, inGallery[name]...), flags...)...)
	var of struct {
		Functions []planFigures `json:"functions"`
	}
	args := []string{"cost", "--target", target, "--output-format", "json"}
	if flags := inGallery[name]; flags != nil {
		args = append(args, flags[0])
	}
	if err := json.Unmarshal(run(after, args...), &of); err != nil || len(of.Functions) == 0 {
		t.Fatalf("%s: %v, %d functions", name, err, len(of.Functions))
	}
	return of.Functions[len(of.Functions)-1]
}
