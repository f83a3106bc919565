package feature_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/lsp/feature"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

const twoFuncs = `func.func @f(%a: tensor<1024xf32>) -> tensor<1024xf32> {
  %e = dm.exp %a : tensor<1024xf32>
  %r = dm.relu %e : tensor<1024xf32>
  return %r : tensor<1024xf32>
}
func.func @g(%a: tensor<4096xf32>) -> tensor<4096xf32> {
  %e = dm.exp %a : tensor<4096xf32>
  return %e : tensor<4096xf32>
}
`

// typing is a document that someone edits.
type typing struct {
	p    *program.Program
	kept feature.Kept
}

// edit replaces the first old by text.
func (y *typing) edit(old, text string) {
	start := strings.Index(y.p.Src.Text(), old)
	c := parse.Change{Start: start, End: start + len(old), Length: len(text)}
	y.kept.Record(y.p, c.Start, c.End)
	src := y.p.Src.Edit(c.Start, c.End, text)
	if !y.p.Splice(src, c) {
		y.p = program.Load(src, program.Options{})
	}
	y.kept.Move(c.Start, c.End, c.Length)
}

// shows is the totals of each function and the hints of its lines.
func (y *typing) shows() string {
	var b strings.Builder
	for _, f := range y.p.Funcs {
		fmt.Fprintf(&b, "@%s %s\n", f.Func.Name, feature.Totals(y.p, &y.kept, f.Func.Name))
	}
	for _, h := range feature.Hints(y.p, nil, &y.kept, source.Span{End: y.p.Src.Len()}) {
		fmt.Fprintf(&b, "%d %s\n", y.p.Src.Pos(h.Offset).Line+1, h.Label)
	}
	return b.String()
}

// While an op is typed, its function shows the totals that it had before, and the
// line its last figure, both marked; everything else shows what it has now.
func TestKept(t *testing.T) {
	const good = `@f 2.80 µs on h200 · 16.4 kB moved · waste 8.19 kB
@g 1.41 µs on h200 · 32.8 kB moved
1 2.80µs 16kB
2 1.40µs 8.2kB
3 1.40µs 8.2kB
6 1.41µs 33kB
7 1.41µs 33kB
`
	broken := func(line int, old string) string {
		return fmt.Sprintf(`@f ≈ 2.80 µs on h200 · 16.4 kB moved · waste 8.19 kB · before the error in line %d
@g 1.41 µs on h200 · 32.8 kB moved
1 2.80µs≈16kB
2 1.40µs 8.2kB
%s6 1.41µs 33kB
7 1.41µs 33kB
`, line, old)
	}
	y := &typing{p: program.Load(source.New("f.dmir", twoFuncs), program.Options{})}
	expect := func(what, want string) {
		t.Helper()
		if got := y.shows(); got != want {
			t.Errorf("%s:\n%swant\n%s", what, got, want)
		}
	}
	expect("at first", good)
	y.edit("dm.relu %e", "dm.rel %e")
	expect("half a name", broken(3, "3 1.40µs≈8.2kB\n"))
	y.edit("dm.rel %e", "dm. ")
	expect("less of it", broken(3, "3 1.40µs≈8.2kB\n"))
	y.edit("dm. ", "dm.relu %e")
	expect("again", good)
	y.edit("%r = dm.relu %e : tensor<1024xf32>", "%r = dm.relu %e : tensor<1024xf32")
	expect("a bracket", broken(3, "3 1.40µs≈8.2kB\n"))
	y.edit("  %e", "  // a line above\n  %e")
	if got := y.shows(); !strings.Contains(got, "before the error in line 4") || !strings.Contains(got, "\n4 1.40µs≈8.2kB\n") {
		t.Errorf("lines move:\n%s", got)
	}
	y.edit("  // a line above\n", "")
	y.edit("tensor<1024xf32\n", "tensor<1024xf32>\n")
	expect("closed", good)
	y.edit("  %r = dm.relu %e : tensor<1024xf32>\n", "")
	if got := y.shows(); !strings.Contains(got, "@f ≈ 2.80") || strings.Contains(got, "3 1.40µs≈") {
		t.Errorf("a line that is gone:\n%s", got)
	}
}

// A text that never was without an error shows what is known of it.
func TestKeptOfBroken(t *testing.T) {
	y := &typing{p: program.Load(source.New("f.dmir", strings.Replace(twoFuncs, "dm.relu %e", "dm. ", 1)), program.Options{})}
	if got := y.shows(); strings.Contains(got, "≈") || !strings.Contains(got, "1 op not counted") {
		t.Errorf("%s", got)
	}
}
