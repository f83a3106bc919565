package cost_test

import (
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// One op in a kernel of its own costs what it costs alone, but for sources and
// views, whose inside moves nothing, and numbers, which are part of the kernel's code: over the
// example of every op of the registry.
func TestKernelAroundOneOp(t *testing.T) {
	compared := 0
	for _, d := range op.All() {
		switch d.Name {
		case "kernel", "yield", "while", "scan", "if", "constant", "empty", "iota", "rng":
			continue
		}
		p := program.Load(source.New(d.Name, d.Example), program.Options{})
		if p.HasErrors() {
			continue // the registry's own tests cover them
		}
		for _, f := range p.Funcs {
			for _, e := range f.Entries {
				if e.Op.Name != "dm."+d.Name || len(e.Op.Results) == 0 {
					continue
				}
				k := wrap(e.Op)
				got := cost.Function(f.Func, p.Modules[0], nil).Find(k)
				if got == nil {
					t.Fatalf("%s: no entry for the kernel", d.Name)
				}
				if d.Is(op.View) || d.Kernel == op.Structure { // what no kernel is made of
					continue
				}
				read := e.Read
				for _, x := range cost.Explain(p.Modules[0], f.Func, nil, e).Read {
					if x.Value.Op != nil && x.Value.Op.Name == op.Constant && !op.IsData(x.Value.Op) && d.Kernel != op.Library {
						read = read.Sub(x.Bytes)
					}
				}
				if !got.FLOP.Equal(e.FLOP) || !got.Read.Equal(read) || !got.Written.Equal(e.Written) || got.Class != e.Class {
					t.Errorf("%s: alone %s FLOP, reads %s, writes %s, %s; in a kernel %s, %s, %s, %s",
						d.Name, e.FLOP, e.Read, e.Written, e.Class, got.FLOP, got.Read, got.Written, got.Class)
				}
				compared++
			}
		}
	}
	if compared < 60 {
		t.Errorf("only %d ops were compared", compared)
	}
}

// wrap puts o into a kernel of its own.
func wrap(o *ir.Op) *ir.Op {
	block := o.Parent
	k := &ir.Op{Name: "dm.kernel", Parent: block}
	r := &ir.Region{Op: k}
	inner := &ir.Block{Region: r}
	r.Blocks = []*ir.Block{inner}
	k.Regions = []*ir.Region{r}
	var ts []types.Type
	for _, v := range o.Results {
		ts = append(ts, v.Type)
	}
	for i, p := range block.Ops {
		if p == o {
			block.Ops[i] = k
		}
	}
	var outs []*ir.Value
	for i, ty := range ts {
		v := &ir.Value{Type: ty, Op: k, Index: i}
		ir.ReplaceUses(o.Results[i], v)
		outs = append(outs, v)
	}
	k.Results = outs
	o.Parent = inner
	inner.Ops = []*ir.Op{o}
	b := ir.Builder{Block: inner, Index: 1}
	b.Op("dm.yield", append([]*ir.Value(nil), o.Results...), nil)
	return k
}

// Totals are sums, waste is what is left of what moves, and binding symbols
// late or early gives the same.
func TestSumsAndBindings(t *testing.T) {
	for _, path := range []string{plain, fused, "../../examples/ffn.dmir", "../../examples/attention_symbolic.dmir"} {
		p := loadFile(t, path)
		bind := map[string]int64{"b": 8, "n": 512}
		late := map[string]dim.Dim{"b": dim.Const(8), "n": dim.Const(512)}
		early := load(t, path, p.Src.Text(), program.Options{Bind: bind})
		for i, f := range p.Funcs {
			var flop, moved dim.Dim
			for _, e := range f.Entries {
				flop, moved = flop.Add(e.FLOP), moved.Add(e.Moved())
				if f.Find(e.Op) != e {
					t.Errorf("%s: Find does not find line %d", path, e.Line())
				}
			}
			if !flop.Equal(f.FLOP) || !moved.Equal(f.Moved()) || !f.Waste().Add(f.Minimum()).Equal(f.Moved()) {
				t.Errorf("%s: totals are no sums", path)
			}
			g := early.Funcs[i]
			for _, pair := range [][2]dim.Dim{{f.FLOP, g.FLOP}, {f.Read, g.Read}, {f.Written, g.Written}, {f.Minimum(), g.Minimum()}} {
				if bound := pair[0].Subst(late); !bound.Equal(pair[1]) {
					t.Errorf("%s @%s: %s bound late is %s, early %s", path, f.Func.Name, pair[0], bound, pair[1])
				}
			}
			if len(g.Unbound()) != 0 || !g.Time(early.Target).Known {
				t.Errorf("%s @%s: still unbound: %s", path, f.Func.Name, strings.Join(g.Unbound(), ", "))
			}
			if len(g.Peaks()) != 1 {
				t.Errorf("%s @%s: %d peaks of numbers", path, f.Func.Name, len(g.Peaks()))
			}
		}
	}
}

// A call costs what its body costs, for the sizes it is called with.
func TestCallEqualsBody(t *testing.T) {
	p := load(t, "in.dmir", `
func.func private @f(%x: tensor<?x?xf16, #dm.at<dims = [a, b]>>) -> tensor<?x?xf16, #dm.at<dims = [b, a]>> {
  %0 = dm.transpose %x, dims = [1, 0] : (tensor<?x?xf16, #dm.at<dims = [a, b]>>) -> tensor<?x?xf16, #dm.at<dims = [b, a]>>
  %1 = dm.exp %0 : tensor<?x?xf16, #dm.at<dims = [b, a]>>
  return %1 : tensor<?x?xf16, #dm.at<dims = [b, a]>>
}
func.func @g(%x: tensor<?x7xf16, #dm.at<dims = [n]>>) -> tensor<7x?xf16, #dm.at<dims = [n]>> {
  %0 = func.call @f(%x) : (tensor<?x7xf16, #dm.at<dims = [n]>>) -> tensor<7x?xf16, #dm.at<dims = [n]>>
  return %0 : tensor<7x?xf16, #dm.at<dims = [n]>>
}
func.func @again(%x: tensor<7xf16>) -> tensor<7xf16> {
  %0 = func.call @again(%x) : (tensor<7xf16>) -> tensor<7xf16>
  return %0 : tensor<7xf16>
}`, program.Options{})
	f, g := p.Func("f"), p.Func("g")
	by := map[string]dim.Dim{"a": dim.Sym("n"), "b": dim.Const(7)}
	if want := f.Moved().Subst(by); !g.Moved().Equal(want) || g.Moved().String() != "56*n" {
		t.Errorf("call moves %s, want %s", g.Moved(), want)
	}
	if want := f.Peak().Subst(by); !g.Peak().Equal(want) {
		t.Errorf("call holds %s, want %s", g.Peak(), want)
	}
	if a := p.Func("again"); a.Unknown != 1 || a.Time(p.Target).Known {
		t.Error("a function that calls itself has no known cost")
	}
}

// A loop or a branch that hands on tuples costs what it costs with their members.
func TestTuplesEqualMembers(t *testing.T) {
	grouped := load(t, "in.dmir", `
!s = tuple<tensor<64xf32>, tuple<tensor<64x64xf32>>>
func.func @scan(%h: tensor<64xf32>, %w: tensor<64x64xf32>, %xs: tensor<5x64xf32>) -> !s {
  %r = dm.pack %w : (tensor<64x64xf32>) -> tuple<tensor<64x64xf32>>
  %s = dm.pack %h, %r : (tensor<64xf32>, tuple<tensor<64x64xf32>>) -> !s
  %y = dm.scan %s, %xs, carries = 1 : (!s, tensor<5x64xf32>) -> !s {
  ^bb0(%c: !s, %x: tensor<64xf32>):
    %a, %ws = dm.unpack %c : (!s) -> (tensor<64xf32>, tuple<tensor<64x64xf32>>)
    %m = dm.unpack %ws : (tuple<tensor<64x64xf32>>) -> tensor<64x64xf32>
    %b = dm.einsum "ij,j->i" %m, %a : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %n = dm.add %b, %x : tensor<64xf32>
    %next = dm.pack %n, %ws : (tensor<64xf32>, tuple<tensor<64x64xf32>>) -> !s
    dm.yield %next : !s
  }
  return %y : !s
}
func.func @if(%p: tensor<i1>, %s: !s) -> !s {
  %y = dm.if %p : (tensor<i1>) -> !s {
    %e = dm.exp %s : !s
    dm.yield %e : !s
  } else {
    dm.yield %s : !s
  }
  return %y : !s
}`, program.Options{})
	apart := load(t, "in.dmir", `
func.func @scan(%h: tensor<64xf32>, %w: tensor<64x64xf32>, %xs: tensor<5x64xf32>) -> (tensor<64xf32>, tensor<64x64xf32>) {
  %y, %z = dm.scan %h, %w, %xs, carries = 2 : (tensor<64xf32>, tensor<64x64xf32>, tensor<5x64xf32>) -> (tensor<64xf32>, tensor<64x64xf32>) {
  ^bb0(%a: tensor<64xf32>, %m: tensor<64x64xf32>, %x: tensor<64xf32>):
    %b = dm.einsum "ij,j->i" %m, %a : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %n = dm.add %b, %x : tensor<64xf32>
    dm.yield %n, %m : tensor<64xf32>, tensor<64x64xf32>
  }
  return %y, %z : tensor<64xf32>, tensor<64x64xf32>
}
func.func @if(%p: tensor<i1>, %s: tensor<64xf32>, %w: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64x64xf32>) {
  %y, %z = dm.if %p : (tensor<i1>) -> (tensor<64xf32>, tensor<64x64xf32>) {
    %e = dm.exp %s : tensor<64xf32>
    %f = dm.exp %w : tensor<64x64xf32>
    dm.yield %e, %f : tensor<64xf32>, tensor<64x64xf32>
  } else {
    dm.yield %s, %w : tensor<64xf32>, tensor<64x64xf32>
  }
  return %y, %z : tensor<64xf32>, tensor<64x64xf32>
}`, program.Options{})
	for _, name := range []string{"scan", "if"} {
		g, a := grouped.Func(name), apart.Func(name)
		if !g.Moved().Equal(a.Moved()) || g.Unknown != 0 || g.Moved().IsZero() {
			t.Errorf("%s moves %s with tuples, %d unknown, and %s with their members", name, g.Moved(), g.Unknown, a.Moved())
		}
	}
}

// A value that several operands touch is read once: what they touch together,
// at most all of it.
func TestValueReadOnce(t *testing.T) {
	for _, c := range []struct {
		line string
		read int64
	}{
		{`%r = dm.mul %x, %x : tensor<4x4xf32>`, 64},
		{`%r = dm.einsum "ii,ij,jk->ik" %x, %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>`, 64},
		{`%r = dm.einsum "ij,jk->ik" %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>`, 64},
		{`%r = dm.einsum "ii->i" %x : (tensor<4x4xf32>) -> tensor<4xf32>`, 16},
	} {
		p := load(t, "in.dmir", "func.func @f(%x: tensor<4x4xf32>) {\n  "+c.line+"\n  return\n}\n", program.Options{})
		if got, ok := p.Funcs[0].Entries[0].Read.Int(); !ok || got != c.read {
			t.Errorf("%s reads %d bytes, want %d", c.line, got, c.read)
		}
	}
}

// What an update copies it does not where its operand is donated.
func TestDonated(t *testing.T) {
	f := only(t, load(t, "f.dmir", `func.func @f(%x: tensor<64x64xf32>, %u: tensor<1x64xf32>, %i: tensor<i64>) -> tensor<64x64xf32> {
  %y = dm.dynamic_update_slice %x, %u, %i, %i : (tensor<64x64xf32>, tensor<1x64xf32>, tensor<i64>, tensor<i64>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}`, program.Options{}))
	e := f.Entries[0]
	given := cost.Donated(f.Func, f.Module(), nil, e.Op, f.Func.Args[0])
	if as, without := number(t, e.Moved()), number(t, given.Moved()); as-without != 2*4*63*64 {
		t.Errorf("%d bytes moved, %d where %%x is donated", as, without)
	}
}

// How many ops a call runs, those of calls in it among them.
func TestRuns(t *testing.T) {
	p := load(t, "f.dmir", `func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = dm.exp %x : tensor<4xf32>
  %b = func.call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = func.call @h(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = func.call @h(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func private @h(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = dm.exp %x : tensor<4xf32>
  %b = dm.tanh %a : tensor<4xf32>
  return %b : tensor<4xf32>
}`, program.Options{})
	es := p.Funcs[0].Entries
	if own, all, most := es[0].Runs(100), es[1].Runs(100), es[1].Runs(3); own != 0 || all != 6 || most <= 3 {
		t.Errorf("an op runs %d others, the call %d, at most 3: %d", own, all, most)
	}
}

// How long the loads of single elements take is known where sizes are.
func TestGather(t *testing.T) {
	for n, known := range map[string]bool{"2": true, "?": false} {
		at := map[bool]string{false: ", #dm.at<dims = [n]>"}[known]
		text := strings.NewReplacer("IN", "tensor<"+n+"x64x16x16xf16"+at+">", "OUT", "tensor<"+n+"x64x14x14xf16"+at+">").Replace(`func.func @f(%x: IN, %w: tensor<64x64x3x3xf16>) -> OUT {
  %y = dm.convolution %x, %w : (IN, tensor<64x64x3x3xf16>) -> OUT
  return %y : OUT
}`)
		f := only(t, load(t, "f.dmir", text, program.Options{}))
		if s := cost.Apart(lookup(t, "h200"), f.Entries[0].Op, 0); (s > 0) != known {
			t.Errorf("%s images: %g s", n, s)
		}
	}
}
