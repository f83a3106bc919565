package feature_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/base/work"
	"dmir/lsp/feature"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// chain is a program of n ops in functions of size ops, with a mesh over which the first value is
// divided or without.
func chain(n, size int, mesh bool) string {
	var b strings.Builder
	const t, w = "tensor<8x512x1024xf16>", "tensor<1024xf16>"
	divided := ""
	if mesh {
		b.WriteString("dm.mesh @pod {data = 8}\n")
		divided = " {dm.sharding = #dm.at<split = @pod[{data}, {}, {}]>}"
	}
	for done := 0; done < n; done += size {
		fmt.Fprintf(&b, "func.func @f%d(%%v0: %s%s, %%w: %s) -> %s {\n", done, t, divided, w, t)
		for i := 1; i <= size; i++ {
			fmt.Fprintf(&b, "  %%v%d = \"dm.add\"(%%v%d, %%w) : (%s, %s) -> %s loc(\"layer.py\":%d:17)\n", i, i-1, t, w, t, i)
		}
		fmt.Fprintf(&b, "  return %%v%d : %s\n}\n", size, t)
	}
	return b.String()
}

// called is chain, in functions of 100 ops, and a function that calls each of them.
func called(n int) string {
	var b strings.Builder
	b.WriteString(chain(n, 100, false))
	const t, w = "tensor<8x512x1024xf16>", "tensor<1024xf16>"
	fmt.Fprintf(&b, "func.func @main(%%v0: %s, %%w: %s) -> %s {\n", t, w, t)
	for i := range n / 100 {
		fmt.Fprintf(&b, "  %%v%d = func.call @f%d(%%v%d, %%w) : (%s, %s) -> %s\n", i+1, 100*i, i, t, w, t)
	}
	fmt.Fprintf(&b, "  return %%v%d : %s\n}\n", n/100, t)
	return b.String()
}

// sized is called, whose functions have a symbol that the calls give a size.
func sized(n int) string {
	functions, main, _ := strings.Cut(called(n), "func.func @main")
	return strings.ReplaceAll(functions, "tensor<8x512x1024xf16>", "tensor<?x512x1024xf16, #dm.at<dims = [b]>>") + "func.func @main" + main
}

// typist edits a program as the editor's server does, and counts what that visits.
type typist struct {
	t    *testing.T
	src  *source.File
	prog *program.Program
	kept feature.Kept
	work *work.Counts
	most map[string]int // by what was counted, in any one edit
}

// edit replaces the bytes from at to end, and asks for the hints of the fifty lines around and the totals.
func (y *typist) edit(at, end int, text string) {
	y.t.Helper()
	next := y.src.Edit(at, end, text)
	y.kept.Record(y.prog, at, end)
	if !y.prog.Splice(next, parse.Change{Start: at, End: end, Length: len(text)}) {
		y.t.Fatalf("the text is read afresh after %q became %q", y.src.Slice(source.Span{Start: at, End: end}), text)
	}
	y.src = next
	y.kept.Move(at, end, len(text))
	line := next.Pos(at).Line
	view := source.Span{Start: next.LineStart(max(0, line-25)), End: next.LineStart(min(next.Lines()-1, line+25))}
	feature.Hints(y.prog, nil, &y.kept, view)
	feature.Undivided(y.prog.Funcs)
	for _, f := range y.prog.Funcs {
		if f.Func.Op.Span.Contains(at) {
			feature.Totals(y.prog, &y.kept, f.Func.Name)
		}
	}
	for what, n := range y.work.Take() {
		y.most[what] = max(y.most[what], n)
	}
}

// typed types text character by character, and takes it away again.
func (y *typist) typed(at int, text string) {
	for i := range text {
		y.edit(at+i, at+i, text[i:i+1])
	}
	y.edit(at, at+len(text), "")
}

// swap replaces bytes and restores them.
func (y *typist) swap(at, end int, text string) {
	old := strings.Clone(y.src.Slice(source.Span{Start: at, End: end}))
	y.edit(at, end, text)
	y.edit(at, at+len(text), old)
}

// kinds are what people do to a line that begins at at.
var kinds = []struct {
	name string
	do   func(y *typist, at int)
}{
	{"type", func(y *typist, at int) { y.swap(y.last(at, "tensor<8"), y.last(at, "tensor<8")+1, "9") }},
	{"attribute", func(y *typist, at int) { y.swap(y.last(at, ":17"), y.last(at, ":17")+1, "8") }},
	{"rename", func(y *typist, at int) { y.typed(y.last(at, " =")-1, "_b") }},
	{"operand", func(y *typist, at int) { y.swap(y.last(at, "%w"), y.last(at, "%w")+1, "x") }},
	{"bracket", func(y *typist, at int) { y.swap(y.last(at, "f16>"), y.last(at, "f16>")+1, "") }},
	{"new line", func(y *typist, at int) { y.swap(at, at, "\n") }},
	{"comment", func(y *typist, at int) { y.typed(y.last(at, "17)")+1, " // why") }},
	{"line", func(y *typist, at int) { y.swap(at, y.after(at, 1), "") }},
	{"block", func(y *typist, at int) { y.swap(at, y.after(at, 20), "") }},
	{"typed op", func(y *typist, at int) { y.typed(at, "  %fresh = dm.neg %v0 : tensor<8x512x1024xf16>\n") }},
}

// last is the last byte of the last place of text in the line that begins at at.
func (y *typist) last(at int, text string) int {
	return at + strings.LastIndex(y.src.Line(y.src.Pos(at).Line), text) + len(text) - 1
}

// after is where the line begins that is so many lines further down.
func (y *typist) after(at, lines int) int { return y.src.LineStart(y.src.Pos(at).Line + lines) }

// TestWorkOfEdits holds what an edit visits to numbers that do not depend on the length of the text:
// a layer that looks at a whole function or module after an edit fails it. Counted apart is "moved", the
// places of ops behind the edit.
func TestWorkOfEdits(t *testing.T) {
	most := map[string]int{
		"parse": 64, "scope": 64, "lower": 128, "verify": 128, "cost": 192, "marks": 16,
		"hints": 2 * 128, // before the edit and after it
		"shard": 2 * 128, // a function of up to 256 ops is propagated at once
	}
	shapes := map[string]func(n int) string{
		"one function":              func(n int) string { return chain(n, n, false) },
		"one function and a mesh":   func(n int) string { return chain(n, n, true) },
		"functions":                 func(n int) string { return chain(n, 100, false) },
		"functions and a mesh":      func(n int) string { return chain(n, 100, true) },
		"functions that are called": called,
		"functions called in sizes": sized,
	}
	for _, n := range []int{1000, 10_000, 100_000} {
		for name, text := range shapes {
			t.Run(fmt.Sprintf("%d ops, %s", n, name), func(t *testing.T) {
				if n > 10_000 {
					need.Long(t)
				}
				counts := &work.Counts{}
				src := source.New("x.dmir", text(n))
				y := &typist{t: t, src: src, prog: program.Load(src, program.Options{Work: counts}), work: counts, most: map[string]int{}}
				if y.prog.HasErrors() {
					t.Fatal(y.prog.Diags[0].Message)
				}
				at := src.LineStart(src.Lines() / 2)
				for !strings.HasPrefix(src.Line(src.Pos(at).Line), "  %v40 ") && !strings.HasPrefix(src.Line(src.Pos(at).Line), fmt.Sprintf("  %%v%d ", n/2+40)) {
					at = y.after(at, 1)
				}
				y.swap(at, at, "\n") // what the first edits of a function build, the later ones use
				kinds[0].do(y, at)
				y.most = map[string]int{}
				for _, k := range kinds {
					before := maps.Clone(y.most)
					clear(y.most)
					k.do(y, at)
					if y.src.Text() != src.Text() {
						t.Fatalf("%s does not restore the text", k.name)
					}
					for what, n := range y.most {
						if limit, known := most[what]; what != "moved" && (!known || n > limit) {
							t.Errorf("%s: %s visits %d ops, and may visit %d", k.name, what, n, limit)
						}
						before[what] = max(before[what], n)
					}
					y.most = before
				}
				t.Log(work.String(y.most))
			})
		}
	}
}

// TestWorkOfWholeTexts holds what lint and fmt visit to a number for each op.
func TestWorkOfWholeTexts(t *testing.T) {
	for _, n := range []int{1000, 10_000} {
		for _, size := range []int{100, n} {
			counts := &work.Counts{}
			p := program.Load(source.New("x.dmir", chain(n, size, false)), program.Options{Work: counts})
			counts.Take()
			lint.Run(context.Background(), p, lint.Options{})
			format.File(p.Tree)
			sums := counts.Take()
			for what, most := range map[string]int{"lint": 23, "fmt": 1, "cost": 8, "shard": 2, "marks": 4} {
				if got := sums[what]; got > most*(n+4*n/size) {
					t.Errorf("%d ops in functions of %d: %s visits %d, more than %d for each", n, size, what, got, most)
				}
			}
			if sums["lint"] == 0 || sums["fmt"] == 0 {
				t.Errorf("not counted: %v", sums)
			}
		}
	}
}
