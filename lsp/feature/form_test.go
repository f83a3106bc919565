package feature_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/dialect/op"
	"dmir/lsp/feature"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

var (
	choice = regexp.MustCompile(`\$\{\d+\|((?:[^,|\\]|\\.)*)(?:[^|\\]|\\.)*\|\}`)
	filled = regexp.MustCompile(`\$\{\d+:((?:[^}\\]|\\.)*)\}`)
	empty  = regexp.MustCompile(`\$\d+`)
)

// What an editor inserts for an op is the op's form: with the holes filled in
// it reads without a syntax error, and it has all that the op needs.
func TestSnippets(t *testing.T) {
	p := program.Load(source.New("in.dmir", ""), program.Options{})
	offered := map[string]string{}
	for _, c := range feature.Complete(p, 0).Items {
		offered[c.Label] = c.Snippet
		if c.Op != "" && feature.Documentation(c.Op) == "" {
			t.Errorf("%s has no documentation", c.Op)
		}
	}
	for _, d := range op.All() {
		text, ok := offered[d.FullName()]
		if !ok {
			t.Errorf("%s is not offered", d.FullName())
			continue
		}
		for i := 1; i < 9; i++ {
			if strings.Contains(text, fmt.Sprintf("${%d", i+1)) && !strings.Contains(text, fmt.Sprintf("$%d", i)) && !strings.Contains(text, fmt.Sprintf("${%d", i)) {
				t.Errorf("%s: no hole %d", text, i)
			}
		}
		plain := empty.ReplaceAllString(filled.ReplaceAllString(choice.ReplaceAllString(text, "$1"), "$1"), "1")
		plain = strings.ReplaceAll(plain, "type", "tensor<4xf32>")
		plain = regexp.MustCompile(`\{\n  1\n\}`).ReplaceAllString(plain, "{\n  dm.yield %v : f32\n}")
		f := parse.File(source.New("in.dmir", plain))
		if len(f.Diags) > 0 || len(f.Items) != 1 || f.Items[0].Form != ast.Pretty {
			t.Errorf("%s\nreads as %+v", plain, f.Diags)
			continue
		}
		got := map[string]bool{}
		for _, c := range f.Items[0].Clauses {
			got[c.Name] = true
		}
		if d.FullName() == op.Mesh { // its dictionary is both
			got["axes"], got["sizes"] = !f.Items[0].Attrs.Empty(), !f.Items[0].Attrs.Empty()
		}
		for _, a := range d.Attrs {
			if needed := a.Default == nil && !a.Optional; needed && !a.Lead && !got[a.Name] {
				t.Errorf("%s has no %s", plain, a.Name)
			}
		}
		least := 0
		for _, r := range d.Regions {
			if !r.Optional {
				least++
			}
		}
		if len(f.Items[0].Regions) != least {
			t.Errorf("%s has %d regions, needs %d", plain, len(f.Items[0].Regions), least)
		}
	}
}

// Formatting line by line comes to the same as formatting the whole.
func TestFormatRange(t *testing.T) {
	text := "func.func   @f(%x :tensor<4xf32>) {\r\n\r\n\r\n%y=dm.exp %x:tensor<4xf32>   // kept\r\n   return\r\n}"
	src := source.New("in.dmir", text)
	whole := feature.Format(parse.File(src))
	n := 0
	for line := range src.Lines() {
		start := src.LineStart(line)
		for _, e := range feature.FormatRange(parse.File(src), source.Span{Start: start, End: start}) {
			if src.Pos(e.Span.Start).Line != line || src.Pos(e.Span.End).Line != line {
				t.Errorf("line %d: edit of %d to %d", line, e.Span.Start, e.Span.End)
			}
			n++
		}
	}
	all := feature.FormatRange(parse.File(src), source.Span{End: len(text)})
	if len(all) != len(whole) || n == 0 || n > len(whole) {
		t.Errorf("%d edits line by line, %d of the whole range, %d of the file", n, len(all), len(whole))
	}
}

func TestFindSymbols(t *testing.T) {
	f := parse.File(source.New("in.dmir", "module @Layers {\n  func.func private @Feed()\n  func.func @feedForward() {\n    return\n  }\n}\n"))
	for query, want := range map[string]string{"": "@Layers @Feed @feedForward", "FF": "@feedForward", "fd": "@Feed @feedForward", "dF": "@feedForward", "x": "", "@l": "@Layers"} {
		var got []string
		for _, it := range feature.FindSymbols(f, query) {
			if it.Children != nil {
				t.Errorf("%s comes with its children", it.Name)
			}
			got = append(got, it.Name)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q finds %q, want %q", query, s, want)
		}
	}
}

// The cost of a completion is that of the function it is in, not of the file.
func BenchmarkComplete(b *testing.B) {
	for _, size := range []struct {
		name           string
		functions, ops int
	}{{"one function of 10000 ops", 1, 10000}, {"200 functions of 50 ops", 200, 50}} {
		b.Run(size.name, func(b *testing.B) {
			var text strings.Builder
			for i := range size.functions {
				fmt.Fprintf(&text, "func.func @f%d(%%x: tensor<8x512xf16>) {\n", i)
				for j := range size.ops {
					fmt.Fprintf(&text, "  %%v%d = dm.exp %%x : tensor<8x512xf16>\n", j)
				}
				text.WriteString("  %y = dm.exp %\n}\n")
			}
			p := program.Load(source.New("in.dmir", text.String()), program.Options{})
			off := strings.LastIndexByte(text.String(), '%') + 1
			for b.Loop() {
				if c := feature.Complete(p, off); len(c.Items) < 50 {
					b.Fatal(len(c.Items))
				}
			}
		})
	}
}
