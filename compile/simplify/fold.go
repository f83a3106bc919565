package simplify

import (
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
)

func foldRules() []Rule {
	return []Rule{
		{
			Name: "splat", Doc: "An element-wise op on constants of one value each is such a constant; so is one that was moved, repeated or cut.",
			apply: splat,
		},
		{
			Name: "constant", Doc: "An op on small constants is computed now, by the reference executor.",
			apply: fold,
		},
	}
}

// What is computed while compiling: literals of so many elements, and ops of so
// many floating-point operations.
const (
	mostElements = 1 << 10
	mostFLOP     = 1 << 20
)

// foldable reports whether o may be computed now: a pure op on constants that
// takes no random numbers and has one tensor as its result.
func foldable(o *ir.Op) bool {
	d := op.Of(o)
	if !d.Is(op.Pure) || d.Is(op.Random) || d.Is(op.Terminator) || len(o.Operands) == 0 || len(o.Regions) > 0 || len(o.Results) != 1 || o.Out(0) == nil {
		return false
	}
	for i, v := range o.Operands {
		if v.Op == nil || v.Op.Name != op.Constant || o.In(i) == nil {
			return false
		}
	}
	return true
}

func splat(r *rewriter, o *ir.Op) bool {
	if !foldable(o) {
		return false
	}
	first, ok := numberOf(o.Operands[0])
	if !ok {
		return false
	}
	if m := op.MoveOf(o); m.Covered() && !op.Of(o).Is(op.Cast) {
		for _, p := range m.Pieces {
			if n, ok := numberOf(o.Operands[p.Operand]); !ok || n != first {
				return false
			}
		}
		return literal(o, first.tensor())
	}
	if !pattern.Elementwise(o) {
		return false
	}
	for _, v := range o.Operands {
		if _, ok := numberOf(v); !ok {
			return false
		}
	}
	y, ok := r.compute(o, o.Operands, true)
	return ok && literal(o, y)
}

// tensor is n as a tensor of rank 0.
func (n number) tensor() *tensor.Tensor {
	t := tensor.New(n.elem)
	if n.elem.IsFloat() {
		t.SetFloat(0, n.f)
	} else {
		t.SetInt(0, n.i)
	}
	return t
}

func fold(r *rewriter, o *ir.Op) bool {
	if !foldable(o) || !small(o.Results[0]) {
		return false
	}
	for _, v := range o.Operands {
		if !small(v) {
			return false
		}
	}
	if n, ok := op.FLOP(o).Int(); !ok || n > mostFLOP {
		return false
	}
	y, ok := r.compute(o, o.Operands, false)
	return ok && literal(o, y)
}

func small(v *ir.Value) bool {
	if v.Op != nil && op.InFile(v.Op) { // passes do not read files
		return false
	}
	n, ok := v.Tensor().Elements().Int()
	return ok && n <= mostElements
}

// compute runs o on constant operands in a function of its own; scalars leaves
// out their shapes. ok is false where it cannot be run.
func (r *rewriter) compute(o *ir.Op, operands []*ir.Value, scalars bool) (y *tensor.Tensor, ok bool) {
	body := &ir.Block{}
	fn := &ir.Op{Name: op.Func, Regions: []*ir.Region{{Blocks: []*ir.Block{body}}}}
	fn.Regions[0].Op, body.Region = fn, fn.Regions[0]
	b := &ir.Builder{Block: body, At: o}
	shape := func(t *types.Tensor) *types.Tensor {
		if scalars {
			return t.With()
		}
		return t
	}
	var inputs []*ir.Value
	for _, v := range operands {
		c := b.Op(op.Constant, nil, v.Op.Attrs, shape(v.Tensor()))
		if d, is := v.Op.Attr("value").(*types.Dense); is && scalars {
			one := *d
			one.Type = shape(v.Tensor())
			c.SetAttr("value", &one)
		}
		inputs = append(inputs, c.Results...)
	}
	result := shape(o.Out(0))
	last := b.Op(o.Name, inputs, o.Attrs, result)
	b.Op(op.Return, last.Results, nil)
	f := &ir.Func{Op: fn, Name: "constant", Body: body, Results: []types.Type{result}}
	res, err := interp.Run(r.Context(), &ir.Module{Src: r.Module.Src}, f, nil, interp.Options{Threads: 1})
	if err != nil || len(res.Outputs) != 1 {
		return nil, false
	}
	return res.Outputs[0], true
}

// literal replaces o by the constant t, or by one that repeats it where it has
// one element.
func literal(o *ir.Op, t *tensor.Tensor) bool {
	b := pass.Before(o)
	return t.Len() > 0 && built(b, o, literalOf(b, o.Out(0), t))
}

// literalOf builds the constant of type to with t's elements.
func literalOf(b *op.Builder, to *types.Tensor, t *tensor.Tensor) *ir.Value {
	value := types.DenseOf
	if to.Elem.Packed() && t.Len() == 1 {
		value = func(to *types.Tensor, _ []byte) *types.Dense { return types.IntOf(to, t.Int[0]) }
	}
	return b.Value("constant", nil, []types.Named{attr("value", value(to, tensor.Pack(t)))}, to)
}
