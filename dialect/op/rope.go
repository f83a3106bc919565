package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

var ropeDef = &Def{
	Name: "rope", Family: Elementwise, Class: ClassElementwise,
	Summary: "rotary position embedding: pairs of numbers along the last dimension, turned by angles",
	Foreign: []Foreign{{Names: "rotary_embedding apply_rotary_pos_emb rotary_position_embedding", Rest: "with the cosines and sines of half a row"}},
	Doc: "Pair i of the d numbers of a row, a and b, becomes `a · cos[i] - b · sin[i]` and `b · cos[i] + a · sin[i]`. `pairs = halves` takes numbers i and i + d/2 for pair i, as Llama and GPT-NeoX do, " +
		"`pairs = interleaved` numbers 2i and 2i + 1, as GPT-J does. The cosines and sines of the angles, one for each pair, broadcast to the row's pairs as in NumPy. " + wideDoc + "\n\n" +
		"Counts 3 FLOP an element: two products and a sum.",
	Example: `func.func @example(%x: tensor<2x3x4xf32>, %cos: tensor<3x2xf32>, %sin: tensor<3x2xf32>) -> tensor<2x3x4xf32> {
  %y = dm.rope %x, %cos, %sin, pairs = halves : (tensor<2x3x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: floats, Doc: "at least one dimension, the last of an even size"},
		{Name: "cos", Elems: floats, Doc: "a shape that broadcasts to x's with half of its last size; x's element type"},
		{Name: "sin", Elems: floats, Doc: "likewise"},
	},
	Results: []Param{{Name: "y", Elems: floats, Doc: "x's type"}},
	Attrs: []AttrDef{{
		Name: "pairs", Kind: KindKeyword, Enum: []string{"halves", "interleaved"}, Default: types.Keyword("halves"),
		Doc: "which numbers of a row are turned together",
	}},
	Traits:  Pure,
	Factors: ropeFactors, Linear: func(*ir.Op) [][]int { return [][]int{{0}, {1, 2}} },
	Divides: "The dimensions but the last.",
	Infer:   inferRope,
	FLOP:    perElement(3),
	Expand: func(b *ir.Builder, o *ir.Op) []*ir.Value {
		n, ok := in(o, 0).Shape[in(o, 0).Rank()-1].Int()
		if !ok {
			return nil
		}
		w := NewBuilder(b, nil)
		x, cos, sin := w.wide(o.Operands[0]), w.wide(o.Operands[1]), w.wide(o.Operands[2])
		first, second := w.ropePairs(o, x, int(n))
		turned := w.ropeRow(o, w.sub(w.mul(first, cos), w.mul(second, sin)), w.add(w.mul(second, cos), w.mul(first, sin)))
		return w.done(w.Convert(turned, in(o, 0).Elem))
	},
	Orders: AlikeOrders,
	Derivative: &Derivative{
		Doc: "`dx` is dy turned back, by the angles with the other sign; `dcos = Σ (da · a + db · b)` and `dsin = Σ (db · a - da · b)` over what broadcasts, with da and db the cotangents of a pair's results.",
		rule: func(g *backward) {
			if g.want[0] {
				pairs := named("pairs", types.Keyword(Str(g.o, "pairs")))
				g.give(0, g.Value("rope", []*ir.Value{g.dy[0], g.x(1), g.neg(g.x(2))}, pairs))
			}
			if !g.want[1] && !g.want[2] {
				return
			}
			n, ok := in(g.o, 0).Shape[in(g.o, 0).Rank()-1].Int()
			if !ok {
				g.problem = problem(SizesCode, 0, "the size of the last dimension is no number").help("bind it")
				return
			}
			a, b := g.ropePairs(g.o, g.wide(g.x(0)), int(n))
			da, db := g.ropePairs(g.o, g.wide(g.dy[0]), int(n))
			g.give(1, g.add(g.mul(da, a), g.mul(db, b)))
			g.give(2, g.sub(g.mul(db, a), g.mul(da, b)))
		},
	},
}

// ropePairs are the first and the second numbers of the pairs that the dm.rope o makes of rows of n.
func (w *Builder) ropePairs(o *ir.Op, x *ir.Value, n int) (first, second *ir.Value) {
	last := []int{in(o, 0).Rank() - 1}
	if Str(o, "pairs") == "interleaved" {
		return w.part(x, last, []int{0}, []int{n}, []int{2}), w.part(x, last, []int{1}, []int{n}, []int{2})
	}
	return w.part(x, last, []int{0}, []int{n / 2}, []int{1}), w.part(x, last, []int{n / 2}, []int{n}, []int{1})
}

// ropeRow puts the first and the second numbers of pairs back to their places.
func (w *Builder) ropeRow(o *ir.Op, first, second *ir.Value) *ir.Value {
	x := in(o, 0)
	d := x.Rank() - 1
	if Str(o, "pairs") != "interleaved" {
		return w.Value("concatenate", []*ir.Value{first, second}, named("dim", intAttr(d)))
	}
	single := append(append([]dim.Dim{}, asTensor(first.Type).Shape...), dim.Const(1))
	row := w.Value("concatenate", []*ir.Value{w.Reshape(first, single...), w.Reshape(second, single...)}, named("dim", intAttr(d+1)))
	return w.Reshape(row, x.Shape...)
}

func inferRope(o *ir.Op) ([]types.Type, *Problem) {
	x := in(o, 0)
	if x.Rank() == 0 {
		return nil, problem("DM117", 0, "x has no dimension").help("rows of pairs have at least one")
	}
	if p := sameElems(o, 0); p != nil {
		return nil, p
	}
	last := x.Shape[x.Rank()-1]
	n, known := last.Int()
	if known && n%2 != 0 {
		return nil, problem("DM122", 0, "a row of %d is no row of pairs", n).help("the last dimension has an even size; slice the numbers that are turned")
	}
	for i := 1; i <= 2; i++ {
		shape := append([]dim.Dim{}, x.Shape...)
		angles := in(o, i).Shape
		if shape[len(shape)-1] = dim.Const(n / 2); !known && len(angles) > 0 {
			shape[len(shape)-1] = angles[len(angles)-1] // half of a size that is open
		}
		if all, ok := broadcastTwo(shape, angles); !ok || len(all) > len(shape) || !sameShape(all, shape) {
			return nil, problem("DM122", i, "%s does not broadcast to the pairs %s", shapeText(angles), shapeText(shape)).
				help("there is an angle for each pair: half of x's last size")
		}
	}
	return one(tensor(x, x.Elem, x.Shape...)), nil
}

// ropeFactors divides what x's dimensions but the last divide.
func ropeFactors(o *ir.Op) *Factors {
	f, shape := newFactors(o), in(o, 0).Shape
	for d, size := range shape[:len(shape)-1] {
		n := f.factor(size, Parallel)
		f.Results[0][d] = []int{n}
		for i := range o.Operands {
			of := in(o, i).Shape
			if k := d - (len(shape) - len(of)); k >= 0 && (i == 0 || !isOne(of[k])) {
				f.Operands[i][k] = []int{n}
			}
		}
	}
	return f
}
