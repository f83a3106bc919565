package stablehlo

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// tidy removes what the functions of m do not need: values that nothing reads, and
// repetitions that element-wise ops make by themselves.
func tidy(m *ir.Module) {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		unify(f.Body, map[string]*ir.Value{})
		t := tidier{small: map[*ir.Value]*ir.Value{}, before: map[*ir.Op]*ir.Op{}}
		t.block(f.Body)
		t.insert(f.Body)
		ir.CountUses(f.Body)
		op.RemoveDead(f.Body)
	}
}

// unify makes one constant of those of a number that a block and the regions in it
// repeat; numbers has those of the blocks around.
func unify(b *ir.Block, numbers map[string]*ir.Value) {
	var own []string
	for _, o := range b.Ops {
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				unify(inner, numbers)
			}
		}
		d, ok := o.Attr("value").(*types.Dense)
		if o.Name != op.Constant || !ok || d.Type.Rank() > 0 {
			continue
		}
		text := d.String()
		if v := numbers[text]; v != nil {
			ir.ReplaceUses(o.Results[0], v)
			continue
		}
		numbers[text], own = o.Results[0], append(own, text)
	}
	for _, text := range own {
		delete(numbers, text)
	}
}

// tidier lets element-wise ops read what a broadcast or a constant of one number
// repeats. Ops are inserted, and users counted, once for all.
type tidier struct {
	small  map[*ir.Value]*ir.Value // what stands in the place of a repetition
	before map[*ir.Op]*ir.Op       // its op, to insert before the one that repeats
}

func (t *tidier) block(b *ir.Block) {
	for _, o := range b.Ops {
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				t.block(inner)
			}
		}
		if d := op.Of(o); d.Is(op.Pointwise) && !d.Is(op.Random) && len(o.Operands) > 1 && len(o.Results) == 1 && o.Out(0) != nil {
			t.pointwise(o)
		}
	}
}

func (t *tidier) insert(b *ir.Block) {
	ops := b.Ops
	b.Ops = make([]*ir.Op, 0, len(ops))
	for _, o := range ops {
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				t.insert(inner)
			}
		}
		if first := t.before[o]; first != nil {
			first.Parent = b
			b.Ops = append(b.Ops, first)
		}
		b.Ops = append(b.Ops, o)
	}
}

// pointwise replaces operands of o by smaller ones as long as the result keeps its
// shape.
func (t *tidier) pointwise(o *ir.Op) {
	shapes := make([][]dim.Dim, len(o.Operands))
	for i, v := range o.Operands {
		if v.Tensor() == nil {
			return
		}
		shapes[i] = v.Tensor().Shape
	}
	for i := range o.Operands {
		for {
			v := o.Operands[i]
			shape, ok := repeated(v)
			was := shapes[i]
			if shapes[i] = shape; !ok || !slices.EqualFunc(common(shapes), o.Out(0).Shape, dim.Dim.Equal) {
				shapes[i] = was
				break
			}
			o.Operands[i] = t.smaller(v, shape)
		}
	}
}

// repeated is the shape of what v, a broadcast or a constant of one number, repeats:
// one that broadcasts to v's as in NumPy.
func repeated(v *ir.Value) ([]dim.Dim, bool) {
	if v.Op == nil {
		return nil, false
	}
	switch v.Op.Name {
	case op.Constant:
		d, ok := v.Op.Attr("value").(*types.Dense)
		return nil, ok && d.Splat && d.Type.Rank() > 0
	case "dm.reshape": // ones in front of the shape
		x, shape := v.Op.In(0).Shape, v.Tensor().Shape
		k := len(shape) - len(x)
		return x, k > 0 && slices.EqualFunc(shape[k:], x, dim.Dim.Equal)
	case "dm.broadcast":
		dims, p := op.BroadcastDims(v.Op)
		if p != nil {
			return nil, false
		}
		x := v.Op.In(0)
		if len(dims) == 0 {
			return nil, true
		}
		shape := make([]dim.Dim, v.Tensor().Rank()-dims[0])
		for i := range shape {
			shape[i] = dim.Const(1)
		}
		for i, d := range dims {
			shape[d-dims[0]] = x.Shape[i]
		}
		return shape, true
	}
	return nil, false
}

// smaller is a value of that shape for the repetition v.
func (t *tidier) smaller(v *ir.Value, shape []dim.Dim) *ir.Value {
	if s := t.small[v]; s != nil {
		return s
	}
	o := v.Op
	b := &ir.Builder{Block: &ir.Block{Region: o.Parent.Region}, At: o}
	var s *ir.Value
	if o.Name == op.Constant {
		d := o.Attr("value").(*types.Dense)
		one := d.Type.With()
		s = b.Op(op.Constant, nil, []types.Named{{Name: "value", Value: d.Of(one)}}, one).Results[0]
	} else if x := o.Operands[0]; slices.EqualFunc(x.Tensor().Shape, shape, dim.Dim.Equal) {
		s = x
	} else {
		s = b.Op("dm.reshape", []*ir.Value{x}, nil, x.Tensor().With(shape...)).Results[0]
	}
	if s.Name == "" {
		s.Name = v.Name
	}
	if len(b.Block.Ops) > 0 {
		t.before[o] = s.Op
	}
	t.small[v] = s
	return s
}

// common is the shape to which shapes broadcast as in NumPy; nil where there is none.
func common(shapes [][]dim.Dim) []dim.Dim {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := make([]dim.Dim, rank)
	for i := range out {
		out[i] = dim.Const(1)
	}
	for _, s := range shapes {
		for i, d := range s {
			at := &out[rank-len(s)+i]
			if n, ok := d.Int(); !ok || n != 1 {
				*at = d
			}
		}
	}
	return out
}
