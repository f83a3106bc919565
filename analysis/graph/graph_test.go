package graph_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/analysis/cost"
	"dmir/analysis/graph"
	"dmir/analysis/program"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// check requires what package graph promises of g, made of a correct program.
func check(t *testing.T, g *graph.Graph) {
	t.Helper()
	structure(t, g)
	f := g.Func
	moved := map[int]dim.Dim{} // by the group with costs around nodes, what these move
	reads := make([]dim.Dim, len(g.Nodes))
	for i, n := range g.Nodes {
		if n.Entry != nil {
			moved[g.Around(i)] = moved[g.Around(i)].Add(n.Entry.Moved())
		}
	}
	if !moved[graph.None].Equal(f.Moved()) {
		t.Fatalf("@%s: the nodes move %s, the function %s", f.Func.Name, moved[graph.None], f.Moved())
	}
	for i, n := range g.Nodes {
		if n.Kind == graph.Call && g.IsGroup(i) && !moved[i].Equal(n.Entry.Moved()) {
			t.Fatalf("@%s: line %d: the nodes in the call move %s, the call %s", f.Func.Name, n.Entry.Line(), moved[i], n.Entry.Moved())
		}
	}
	for _, e := range g.Edges {
		reads[e.To] = reads[e.To].Add(e.Moved)
		if k, whole := g.Nodes[e.To].Kind, e.Size; k != graph.Loop && k != graph.Branch && k != graph.Call && !k.Section() && !whole.AtLeast(e.Moved) {
			t.Fatalf("@%s: %s of the %s bytes of %s move", f.Func.Name, e.Moved, whole, e.Value.Name)
		}
	}
	for i, n := range g.Nodes {
		switch n.Kind {
		case graph.Op, graph.Kernel:
			if !n.Entry.Read.Equal(reads[i]) {
				t.Fatalf("@%s: line %d: %s reads %s, its edges bring %s", f.Func.Name, n.Entry.Line(), n.Entry.Op.Name, n.Entry.Read, reads[i])
			}
		case graph.Result, graph.Argument:
			if !reads[i].IsZero() {
				t.Fatalf("an edge to %s moves %s", n.Value.Name, reads[i])
			}
		}
	}
}

// structure requires what holds of every graph, be the program correct or not:
// every entry is one node, groups stand before what is in them, edges join
// neighbours, and ranks go up along them.
func structure(t *testing.T, g *graph.Graph) {
	t.Helper()
	nodes := map[*cost.Entry]int{}
	for i, n := range g.Nodes {
		if n.Parent >= i || n.Parent < graph.None {
			t.Fatalf("node %d is in group %d", i, n.Parent)
		}
		if n.Entry != nil {
			nodes[n.Entry]++
		}
	}
	g.Func.Walk(func(e *cost.Entry) {
		n := nodes[e]
		if e.Op.Parent != nil && len(e.Inner) == 0 && n == 0 && inLeaf(e, g) {
			return
		}
		if n != 1 {
			t.Fatalf("@%s: line %d: %s is %d nodes", g.Func.Func.Name, e.Line(), e.Op.Name, n)
		}
	})
	type key struct {
		from, to int
		value    any
	}
	seen := map[key]bool{}
	for _, e := range g.Edges {
		from, to := g.Nodes[e.From], g.Nodes[e.To]
		if from.Parent != to.Parent && to.Parent != e.From && from.Parent != e.To {
			t.Fatalf("edge %d→%d leaps over a group", e.From, e.To)
		}
		if from.Parent == to.Parent && !e.Back && from.Rank >= to.Rank {
			t.Fatalf("edge %d→%d goes from rank %d to %d", e.From, e.To, from.Rank, to.Rank)
		}
		k := key{e.From, e.To, e.Value}
		if seen[k] {
			t.Fatalf("two edges %d→%d for %s", e.From, e.To, e.Value.Name)
		}
		seen[k] = true
	}
}

// inLeaf reports whether e lies in an op that is one node although it has
// regions: a map or a reduce.
func inLeaf(e *cost.Entry, g *graph.Graph) bool {
	for o := e.Op.Parent.Region.Op; o != nil && o.Parent != nil; o = o.Parent.Region.Op {
		for _, n := range g.Nodes {
			if n.Entry != nil && n.Entry.Op == o && n.Kind == graph.Op {
				return true
			}
		}
	}
	return false
}

func load(t *testing.T, text string) *program.Program {
	t.Helper()
	p := program.Load(source.New("in.dmir", text), program.Options{})
	if p.HasErrors() {
		t.Fatalf("%+v", p.Diags[0])
	}
	return p
}

func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(120) {
		p := load(t, randprog.Structure(seed, 8+int(seed), seed%3 == 2))
		for _, f := range p.Funcs {
			check(t, graph.Build(p, f))
		}
	}
}

// Every example of the registry and every file in examples/.
func TestExamples(t *testing.T) {
	paths, _ := filepath.Glob("../../examples/*.dmir")
	if len(paths) == 0 {
		t.Fatal("no examples")
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p := load(t, string(text))
		for _, f := range p.Funcs {
			check(t, graph.Build(p, f))
		}
	}
}

// Whatever the modules of ops are, sections are sound and hold each op once.
func TestRandomScopes(t *testing.T) {
	for seed := range uint64(60) {
		p := load(t, randprog.Structure(seed, 30+int(seed), seed%3 == 2))
		r := rand.New(rand.NewPCG(seed, 1))
		path := []string{"jit(f)"}
		for _, f := range p.Funcs {
			ir.Walk([]*ir.Op{f.Func.Op}, func(o *ir.Op) bool {
				switch r.IntN(6) {
				case 0:
					path = append(path, fmt.Sprintf("transpose(jvp(m%d))", r.IntN(3)))
				case 1:
					path = path[:1+r.IntN(len(path))]
				case 2:
					o.Loc = nil
					return true
				}
				o.Loc = loc.Named(strings.Join(path, "/")+"/add", loc.At("m.py", 1+r.IntN(9), 1))
				if r.IntN(8) == 0 {
					o.Loc = loc.Fuse(o.Loc, loc.Named("jit(f)/m1/mul", nil))
				}
				return true
			})
			check(t, graph.Build(p, f))
		}
	}
}

// A function of thousands of nodes.
func TestLarge(t *testing.T) {
	p := load(t, randprog.Structure(3, 10_000, false))
	g := graph.Build(p, p.Func("f"))
	if len(g.Nodes) < 6_000 {
		t.Errorf("only %d nodes", len(g.Nodes))
	}
	check(t, g)
}

// Calls that call others twice: what they run is shown where it is not too much, and is not counted out where it is.
func TestManyCalls(t *testing.T) {
	var text strings.Builder
	const depth = 60
	text.WriteString("func.func @f0(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = dm.exp %x : tensor<4xf32>\n  return %y : tensor<4xf32>\n}\n")
	for i := range depth {
		fmt.Fprintf(&text, "func.func @f%d(%%x: tensor<4xf32>) -> tensor<4xf32> {\n", i+1)
		for j, of := range []string{"%x", "%y0"} {
			fmt.Fprintf(&text, "  %%y%d = func.call @f%d(%s) : (tensor<4xf32>) -> tensor<4xf32>\n", j, i, of)
		}
		text.WriteString("  return %y1 : tensor<4xf32>\n}\n")
	}
	p := load(t, text.String())
	for i, want := range map[int]int{0: 1, 1: 2, 10: 1 << 10, depth: 0} {
		g := graph.Build(p, p.Func(fmt.Sprintf("f%d", i)))
		structure(t, g)
		ops := 0
		for _, n := range g.Nodes {
			if n.Kind == graph.Op {
				ops++
			}
		}
		if ops != want {
			t.Errorf("@f%d shows %d ops, want %d", i, ops, want)
		}
	}
}

func TestGolden(t *testing.T) {
	paths, _ := filepath.Glob("testdata/*.txtar")
	if len(paths) == 0 {
		t.Fatal("no golden files")
	}
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var out []txtar.File
		for _, f := range ar.Files {
			name, isInput := strings.CutSuffix(f.Name, ".dmir")
			if !isInput {
				continue
			}
			t.Run(name, func(t *testing.T) {
				p := load(t, string(f.Data))
				g := graph.Build(p, p.Funcs[len(p.Funcs)-1])
				check(t, g)
				got := dump(g)
				out = append(out, f, txtar.File{Name: name + ".want", Data: []byte(got)})
				for _, want := range ar.Files {
					if want.Name == name+".want" && string(want.Data) != got && !*update {
						t.Errorf("got\n%s", got)
					}
				}
			})
		}
		if *update {
			ar.Files = out
			if err := os.WriteFile(path, txtar.Format(ar), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if len(out) != len(ar.Files) {
			t.Errorf("%s: run with -update", path)
		}
	}
}

// dump is a line for each node, indented by its group, and below it a line for
// each edge to it.
func dump(g *graph.Graph) string {
	var b strings.Builder
	depth := make([]int, len(g.Nodes))
	for i, n := range g.Nodes {
		if n.Parent >= 0 {
			depth[i] = depth[n.Parent] + 1
		}
		pad := strings.Repeat("    ", depth[i])
		fmt.Fprintf(&b, "%s%d %s", pad, i, n.Kind)
		if n.Value != nil {
			fmt.Fprintf(&b, " %s", n.Value.Name)
		}
		if n.Name != "" {
			fmt.Fprintf(&b, " %q", n.Name)
		}
		if e := n.Entry; e != nil {
			fmt.Fprintf(&b, " %s %s: %s FLOP, %s + %s B", e.Op.Name, e.Results(), e.FLOP, e.Read, e.Written)
		}
		if n.Region != "" {
			fmt.Fprintf(&b, ", %s", n.Region)
		}
		if n.Idle {
			b.WriteString(", idle")
		}
		fmt.Fprintf(&b, ", rank %d\n", n.Rank)
		for _, e := range g.Edges {
			if e.To == i {
				fmt.Fprintf(&b, "%s  ← %d %s: %s of %s B", pad, e.From, e.Value.Name, e.Moved, e.Size)
				if e.Back {
					b.WriteString(", back")
				}
				b.WriteString("\n")
			}
		}
	}
	return b.String()
}

// Whatever the text, there is a graph with a sound structure.
func FuzzBuild(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(randprog.Structure(seed, 2, seed == 3))
	}
	f.Add("func.func @f(%x: tensor<4xf32>) {\n  %y = dm.exp %z : tensor<4xf32>\n  %z = \"a.b\"(%y) ({\n    %w = dm.exp %y : tensor<4xf32>\n  }) : (tensor<4xf32>) -> tensor<4xf32>\n  return %z\n}")
	f.Fuzz(func(t *testing.T, text string) {
		p := program.Load(source.New("in.dmir", text), program.Options{})
		for _, fn := range p.Funcs {
			structure(t, graph.Build(p, fn))
		}
	})
}
