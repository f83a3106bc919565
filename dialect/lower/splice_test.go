package lower

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"

	"github.com/google/go-cmp/cmp"
)

const names = `#l = loc("x")
func.func @f(%a: tensor<4xf32>, %b: tensor<?xf32>) -> tensor<4xf32> {
  %0 = dm.exp %a : tensor<4xf32>
  %1 = dm.add %0, %0 : tensor<4xf32>
  %2 = dm.kernel -> tensor<4xf32> {
    %3 = dm.exp %1 : tensor<4xf32>
    %4 = dm.neg %3 : tensor<4xf32>
    dm.yield %4 : tensor<4xf32>
  }
  %5:2 = "test.two"(%2, %b) : (tensor<4xf32>, tensor<?xf32>) -> (tensor<4xf32>, tensor<?xf32>)
  %6 = dm.add %5#0, %1 : tensor<4xf32>
  %7 = dm.neg %5#1 : tensor<?xf32>
  %8 = test.pretty %6, %7 {a = 1} : tensor<4xf32>
  %9 = dm.add %8, %6 : tensor<4xf32>
  %10 = "test.two"(%9) ({
    %11 = dm.exp %9 : tensor<4xf32>
    "test.end"(%11) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %12 = func.call @g(%10) : (tensor<4xf32>) -> tensor<4xf32>
  %13 = dm.add %12, %1 : tensor<4xf32>
  %14 = dm.add %13, %2 : tensor<4xf32>
  return %14 : tensor<4xf32>
}
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @h(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "test.two"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dm.exp %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
`

// TestSpliceEqualsOpen edits programs at random: where a unit can follow a
// change, it is what lowering the text afresh gives, down to the order of uses.
func TestSpliceEqualsOpen(t *testing.T) {
	need.Long(t)
	files := []*source.File{source.New("names", names), source.New("names", names), source.New("names", names)}
	paths, _ := filepath.Glob("../../examples/*.dmir")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, source.New(path, string(text)))
	}
	pieces := []string{
		"", "", "", "0", "1", "2", "3", "%0", "%1", "%4", "%x", "#1", ":2", " ", "\n", "f16", "f32", "dm.", "test.", "xx", "4", "?",
		"%1 = dm.exp %0 : tensor<4xf32>\n", "%5 = dm.exp %9 : tensor<4xf32>\n", "\n  %12 = dm.exp %13 : tensor<4xf32>\n", "\n  \"test.other\"(%1) : (tensor<4xf32>) -> ()\n",
		"\n  %2 = dm.kernel -> tensor<4xf32> {\n    %1 = dm.exp %0 : tensor<4xf32>\n    dm.yield %1 : tensor<4xf32>\n  }\n",
		"(", ")", ",", ": ", "tensor<?xf32>", "tensor<4xf16>", "\n  test.pretty %1, %9\n", "call @q() : () -> ()\n", "\"", "// ", "{a = 1}",
	}
	for seed := range uint64(rounds()) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		spliced, all := 0, 0
		for _, file := range files {
			src := file
			tree := parse.File(src)
			unit := Open(tree, nil)
			var done []string
			for range 150 {
				text := src.Text()
				at, cut, in := change(rnd, text, pieces)
				next := src.Edit(at, cut, in)
				done = append(done, fmt.Sprintf("[%d,%d) %q by %q", at, cut, text[at:cut], in))
				all++
				p, ok := parse.Replan(tree, next, parse.Change{Start: at, End: cut, Length: len(in)})
				if ok {
					p.Apply(tree)
					_, ok = unit.Splice(p, next)
				}
				if !ok {
					if rnd.IntN(3) > 0 { // mostly not lasting
						next = src
						done = done[:len(done)-1]
					}
					tree = parse.File(next)
					unit, src = Open(tree, nil), next
					continue
				}
				spliced++
				src = next
				fresh := Open(parse.File(src), nil)
				if diff := differ(unit, fresh); diff != "" {
					t.Fatalf("seed %d, %s: %s\nchanges:\n%s\n--- before\n%s\n--- after\n%s", seed, file.Path, diff, strings.Join(done, "\n"), text, src.Text())
				}
				if len(done)%40 == 0 {
					src = file
					tree = parse.File(src)
					unit = Open(tree, nil)
					done = nil
				}
			}
		}
		t.Logf("%d of %d changes were followed", spliced, all)
	}
}

// change is a random edit: mostly of a name, a type or a line.
func change(rnd *rand.Rand, text string, pieces []string) (at, cut int, in string) {
	at = rnd.IntN(len(text) + 1)
	cut = at
	switch rnd.IntN(5) {
	case 0:
		cut = min(len(text), at+1+rnd.IntN(3))
	case 1: // a word
		for cut < len(text) && !strings.ContainsRune(" ,:\n()#<>", rune(text[cut])) {
			cut++
		}
	case 2: // a line
		at = strings.LastIndexByte(text[:at], '\n') + 1
		cut = at + strings.IndexByte(text[at:]+"\n", '\n')
		cut = min(cut+1, len(text))
		if rnd.IntN(2) == 0 {
			return at, at, text[at:cut] // twice
		}
		return at, cut, ""
	}
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	return at, cut, pieces[rnd.IntN(len(pieces))]
}

func differ(got, want *Unit) string {
	if len(got.Modules) != len(want.Modules) {
		return "modules"
	}
	for i := range got.Modules {
		g, w := got.Modules[i], want.Modules[i]
		if d := cmp.Diff(sorted(w.Diags), sorted(g.Diags)); d != "" {
			return "diagnostics (-want +got):\n" + d
		}
		c := comparison{values: map[*ir.Value]*ir.Value{}}
		c.ops(g.Ops, w.Ops)
		for v, x := range c.values {
			c.uses(v, x)
		}
		if c.diff != "" {
			return c.diff
		}
	}
	return ""
}

func sorted(ds []diag.Diagnostic) []diag.Diagnostic {
	if len(ds) == 0 {
		return nil
	}
	ds = slices.Clone(ds)
	slices.SortFunc(ds, func(a, b diag.Diagnostic) int {
		return strings.Compare(fmt.Sprintf("%09d%09d%s%s", a.Span.Start, a.Span.End, a.Code, a.Message), fmt.Sprintf("%09d%09d%s%s", b.Span.Start, b.Span.End, b.Code, b.Message))
	})
	return ds
}

type comparison struct {
	values map[*ir.Value]*ir.Value
	diff   string
}

func (c *comparison) fail(format string, args ...any) {
	if c.diff == "" {
		c.diff = fmt.Sprintf(format, args...)
	}
}

func (c *comparison) ops(got, want []*ir.Op) {
	if len(got) != len(want) {
		c.fail("%d ops, want %d", len(got), len(want))
		return
	}
	for i := range got {
		c.op(got[i], want[i])
	}
}

func (c *comparison) op(g, w *ir.Op) {
	attrs := func(o *ir.Op) string { return fmt.Sprint(o.Attrs) }
	if g.Name != w.Name || g.Span != w.Span || g.Head != w.Head || g.Bad != w.Bad || attrs(g) != attrs(w) || len(g.Regions) != len(w.Regions) || len(g.Succs) != len(w.Succs) {
		c.fail("op %s %v bad=%v %s, want %s %v bad=%v %s", g.Name, g.Span, g.Bad, attrs(g), w.Name, w.Span, w.Bad, attrs(w))
		return
	}
	c.list(g, g.Results, w.Results)
	c.list(g, g.Operands, w.Operands)
	for i := range g.Regions {
		for j := range g.Regions[i].Blocks {
			a, b := g.Regions[i].Blocks[j], w.Regions[i].Blocks[j]
			c.list(g, a.Args, b.Args)
			c.ops(a.Ops, b.Ops)
		}
	}
}

func (c *comparison) list(o *ir.Op, got, want []*ir.Value) {
	if len(got) != len(want) {
		c.fail("%s at %v: %d values, want %d", o.Name, o.Span, len(got), len(want))
		return
	}
	for i, g := range got {
		w := want[i]
		if known := c.values[g]; known != nil && known != w {
			c.fail("%s at %v: value %d is %s at %v, want %s at %v", o.Name, o.Span, i, g.Name, g.Span, w.Name, w.Span)
		}
		c.values[g] = w
		if g.Name != w.Name || g.Span != w.Span || g.Index != w.Index || g.Guessed != w.Guessed || (g.Op == nil) != (w.Op == nil) || (g.Block == nil) != (w.Block == nil) {
			c.fail("%s at %v: value %d is %s at %v guessed=%v, want %s at %v guessed=%v", o.Name, o.Span, i, g.Name, g.Span, g.Guessed, w.Name, w.Span, w.Guessed)
		}
		if !types.Equal(g.Type, w.Type) && fmt.Sprint(g.Type) != fmt.Sprint(w.Type) {
			c.fail("%s at %v: value %s has type %s, want %s", o.Name, o.Span, g.Name, g.Type, w.Type)
		}
	}
}

func (c *comparison) uses(g, w *ir.Value) {
	same := slices.EqualFunc(g.Uses, w.Uses, func(a, b ir.Use) bool { return a.Index == b.Index && a.Op.Span == b.Op.Span && a.Op.Name == b.Op.Name })
	if !same {
		list := func(us []ir.Use) (s []string) {
			for _, u := range us {
				s = append(s, fmt.Sprintf("%d of %s %v", u.Index, u.Op.Name, u.Op.Span))
			}
			return s
		}
		c.fail("%s at %v has the uses %q, want %q", g.Name, g.Span, list(g.Uses), list(w.Uses))
	}
}

// rounds is how often the test starts again; DMIR_ROUNDS asks for more.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("DMIR_ROUNDS")); err == nil {
		return n
	}
	return 2
}
