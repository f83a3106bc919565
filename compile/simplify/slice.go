package simplify

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func sliceRules() []Rule {
	return []Rule{
		{
			Name: "slice-chain", Doc: "A slice of everything is its operand; a slice of a slice is one.",
			Ops: []string{"slice"}, apply: sliceChain,
		},
		{
			Name: "slice-of-concatenate", Doc: "A slice that lies within one of the tensors that were concatenated cuts that tensor.",
			Ops: []string{"slice"}, apply: sliceOfConcatenate,
		},
		{
			Name: "slice-of-pad", Doc: "A slice that takes nothing of the padding cuts what was padded.",
			Ops: []string{"slice"}, apply: sliceOfPad,
		},
		{
			Name: "concatenate-flat", Doc: "Concatenating one tensor is that tensor; a concatenate of concatenates along the same dimension is one; empty parts go.",
			Ops: []string{"concatenate"}, apply: concatenateFlat,
		},
		{
			Name: "concatenate-of-slices", Doc: "Neighbouring slices of one tensor, concatenated, are one slice.",
			Ops: []string{"concatenate"}, apply: concatenateOfSlices,
		},
		{
			Name: "pad-nothing", Doc: "Padding by nothing is the operand; padding twice with one value is padding once.",
			Ops: []string{"pad"}, apply: padChain,
		},
		{
			Name: "pads-to-concatenate", Doc: "A sum of tensors padded with zeros, which cover a dimension side by side, is their concatenation: so end the gradients of slices. A -0 stays one.",
			Ops: []string{"add"}, apply: padsToConcatenate,
		},
		{
			Name: "static-slice", Doc: "A dynamic_slice at constant positions is a slice.",
			Ops: []string{"dynamic_slice"}, apply: staticSlice,
		},
	}
}

// cut is what a slice takes of each dimension.
type cut struct{ start, limit, stride []int64 }

func cutOf(o *ir.Op) (c cut, ok bool) {
	shape, ok := sizes(o.In(0))
	if !ok {
		return cut{}, false
	}
	c = whole(shape)
	start, limit, stride := op.Ints(o, "start_indices"), op.Ints(o, "limit_indices"), op.Ints(o, "strides")
	for i, d := range dimsOf(o, len(shape)) {
		c.start[d], c.limit[d] = start[i], limit[i]
		if stride != nil {
			c.stride[d] = stride[i]
		}
	}
	return c, true
}

// whole takes everything.
func whole(shape []int64) cut {
	c := cut{make([]int64, len(shape)), slices.Clone(shape), make([]int64, len(shape))}
	for d := range c.stride {
		c.stride[d] = 1
	}
	return c
}

// slice builds the slice of x that c takes.
func slice(b *op.Builder, x *ir.Value, c cut) *ir.Value {
	attrs := []types.Named{attr("start_indices", op.IntList(ints(c.start)...)), attr("limit_indices", op.IntList(ints(c.limit)...))}
	if slices.ContainsFunc(c.stride, func(n int64) bool { return n != 1 }) {
		attrs = append(attrs, attr("strides", op.IntList(ints(c.stride)...)))
	}
	return b.Value("slice", []*ir.Value{x}, attrs)
}

func sliceChain(_ *rewriter, o *ir.Op) bool {
	if gone(o) {
		return true
	}
	inner := from(o.Operands[0], "slice")
	if inner == nil {
		return false
	}
	first, ok := cutOf(inner)
	second, ok2 := cutOf(o)
	if !ok || !ok2 {
		return false
	}
	c := cut{}
	for d := range first.start {
		start := first.start[d] + second.start[d]*first.stride[d]
		// One past the last element that the second takes, in the first's operand.
		limit := start
		if n := second.limit[d] - second.start[d]; n > 0 {
			last := (n - 1) / second.stride[d] * second.stride[d]
			limit = start + last*first.stride[d] + 1
		}
		c.start, c.limit = append(c.start, start), append(c.limit, limit)
		c.stride = append(c.stride, first.stride[d]*second.stride[d])
		if limit-start <= c.stride[d] {
			c.stride[d] = 1
		}
	}
	b := pass.Before(o)
	return built(b, o, slice(b, inner.Operands[0], c))
}

func sliceOfConcatenate(_ *rewriter, o *ir.Op) bool {
	inner := from(o.Operands[0], "concatenate")
	if inner == nil {
		return false
	}
	c, ok := cutOf(o)
	d, ok2 := op.Dim(inner, "dim", o.In(0).Rank())
	if !ok || !ok2 || c.limit[d] == c.start[d] {
		return false
	}
	at := int64(0)
	for i, v := range inner.Operands {
		n, ok := inner.In(i).Shape[d].Int()
		if !ok {
			return false
		}
		if c.start[d] >= at && c.limit[d] <= at+n {
			c.start[d] -= at
			c.limit[d] -= at
			b := pass.Before(o)
			return built(b, o, slice(b, v, c))
		}
		at += n
	}
	return false
}

// padding is what a pad adds to each dimension.
func padding(o *ir.Op) (low, high, interior []int64) {
	list := func(name string) []int64 {
		if l := op.Ints(o, name); l != nil {
			return l
		}
		return make([]int64, o.In(0).Rank())
	}
	return list("low"), list("high"), list("interior")
}

func sliceOfPad(_ *rewriter, o *ir.Op) bool {
	inner := from(o.Operands[0], "pad")
	if inner == nil {
		return false
	}
	c, ok := cutOf(o)
	shape, ok2 := sizes(inner.In(0))
	if !ok || !ok2 {
		return false
	}
	low, _, interior := padding(inner)
	for d := range shape {
		if c.start[d] == c.limit[d] || interior[d] != 0 || c.start[d] < low[d] || c.limit[d] > low[d]+shape[d] {
			return false
		}
		c.start[d] -= low[d]
		c.limit[d] -= low[d]
	}
	b := pass.Before(o)
	return built(b, o, slice(b, inner.Operands[0], c))
}

func concatenateFlat(_ *rewriter, o *ir.Op) bool {
	if gone(o) {
		return true
	}
	d, ok := op.Dim(o, "dim", o.Out(0).Rank())
	if !ok {
		return false
	}
	var operands []*ir.Value
	changed := false
	for i, v := range o.Operands {
		inner := from(v, "concatenate")
		var own int
		if inner != nil {
			own, ok = op.Dim(inner, "dim", v.Tensor().Rank())
		}
		switch n, known := v.Tensor().Shape[d].Int(); {
		case known && n == 0 && len(operands)+len(o.Operands)-i > 1: // another one stays
			changed = true
		case inner != nil && ok && own == d && single(v):
			operands = append(operands, inner.Operands...)
			changed = true
		default:
			operands = append(operands, v)
		}
	}
	if changed && len(operands) > 0 {
		o.SetOperands(operands...)
		return true
	}
	return false
}

func concatenateOfSlices(_ *rewriter, o *ir.Op) bool {
	d, ok := op.Dim(o, "dim", o.Out(0).Rank())
	if !ok {
		return false
	}
	for i := 0; i+1 < len(o.Operands); i++ {
		x, y := from(o.Operands[i], "slice"), from(o.Operands[i+1], "slice")
		if x == nil || y == nil || x.Operands[0] != y.Operands[0] {
			continue
		}
		a, ok := cutOf(x)
		c, ok2 := cutOf(y)
		if !ok || !ok2 || a.stride[d] != 1 || c.stride[d] != 1 || a.limit[d] != c.start[d] {
			continue
		}
		both := cut{slices.Clone(a.start), slices.Clone(a.limit), a.stride}
		both.limit[d] = c.limit[d]
		c.start[d], a.limit[d] = a.start[d], c.limit[d]
		if !slices.Equal(a.start, c.start) || !slices.Equal(a.limit, c.limit) || !slices.Equal(a.stride, c.stride) {
			continue
		}
		b := pass.Before(o)
		v := slice(b, x.Operands[0], both)
		if b.Err() != nil {
			b.Undo()
			continue
		}
		o.SetOperands(slices.Concat(o.Operands[:i], []*ir.Value{v}, o.Operands[i+2:])...)
		return true
	}
	return false
}

func padChain(_ *rewriter, o *ir.Op) bool {
	if gone(o) {
		return true
	}
	inner := from(o.Operands[0], "pad")
	if inner == nil || inner.Operands[1] != o.Operands[1] {
		return false
	}
	low, high, interior := padding(o)
	low2, high2, interior2 := padding(inner)
	sum := func(a, b []int64) types.Attr {
		out := make([]int, len(a))
		for i := range a {
			out[i] = int(a[i] + b[i])
		}
		return op.IntList(out...)
	}
	if slices.ContainsFunc(slices.Concat(interior, interior2), func(n int64) bool { return n != 0 }) {
		return false
	}
	b := pass.Before(o)
	return built(b, o, b.Value("pad", inner.Operands, []types.Named{attr("low", sum(low, low2)), attr("high", sum(high, high2))}))
}

// span is a tensor that was padded with zeros along one dimension alone.
type span struct {
	v          *ir.Value
	dim        int
	start, end int64
}

func spanOf(v *ir.Value) (s span, ok bool) {
	o := from(v, "pad")
	if o == nil {
		return s, false
	}
	shape, ok := sizes(o.In(0))
	zero, isNumber := numberOf(o.Operands[1])
	if !ok || !isNumber || !zero.isZero() {
		return s, false
	}
	low, high, interior := padding(o)
	s.v, s.dim = o.Operands[0], -1
	for d := range shape {
		if interior[d] != 0 {
			return s, false
		}
		if low[d] == 0 && high[d] == 0 {
			continue
		}
		if s.dim >= 0 {
			return s, false
		}
		s.dim, s.start, s.end = d, low[d], low[d]+shape[d]
	}
	return s, s.dim >= 0
}

// addends are what a tree of sums, each used only within it, adds up, in the order of the text.
func addends(v *ir.Value, root bool) []*ir.Value {
	o := adding(v, root)
	if o == nil {
		return []*ir.Value{v}
	}
	return append(addends(o.Operands[0], false), addends(o.Operands[1], false)...)
}

// adding is the sum of a tree that v is, nil where it is what is added up.
func adding(v *ir.Value, root bool) *ir.Op {
	o := from(v, "add")
	if o == nil || !root && !single(v) || !sameShape(o.In(0), o.Out(0)) || !sameShape(o.In(1), o.Out(0)) {
		return nil
	}
	return o
}

// padded are the addends of a tree of sums as spans of one dimension; ok is false where one is none. It
// looks at those near the root first: a long chain of other sums asks this of each, and few are looked at.
func padded(root *ir.Value) (spans []span, ok bool) {
	for work := []*ir.Value{root}; len(work) > 0; work = work[1:] {
		v := work[0]
		if o := adding(v, v == root); o != nil {
			work = append(work, o.Operands...)
			continue
		}
		s, ok := spanOf(v)
		if !ok || len(spans) > 0 && s.dim != spans[0].dim {
			return nil, false
		}
		spans = append(spans, s)
	}
	return spans, true
}

func padsToConcatenate(_ *rewriter, o *ir.Op) bool {
	if o.Out(0) == nil || !plain(o) {
		return false
	}
	spans, ok := padded(o.Results[0])
	if !ok {
		return false
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.start - b.start) })
	at := int64(0)
	var parts []*ir.Value
	for _, s := range spans {
		if s.start != at {
			return false
		}
		at = s.end
		parts = append(parts, s.v)
	}
	if n, ok := o.Out(0).Shape[spans[0].dim].Int(); !ok || n != at {
		return false
	}
	b := pass.Before(o)
	return built(b, o, b.Value("concatenate", parts, []types.Named{attr("dim", types.Int{V: int64(spans[0].dim)})}))
}

func staticSlice(_ *rewriter, o *ir.Op) bool {
	shape, ok := sizes(o.In(0))
	want := op.Ints(o, "slice_sizes")
	if !ok {
		return false
	}
	c := whole(shape)
	for d := range shape {
		n, ok := numberOf(o.Operands[1+d])
		if !ok {
			return false
		}
		if want[d] < 0 {
			continue
		}
		at := n.i
		if n.elem == types.UI64 && at < 0 {
			at = shape[d]
		}
		c.start[d] = min(max(at, 0), shape[d]-want[d])
		c.limit[d] = c.start[d] + want[d]
	}
	b := pass.Before(o)
	return built(b, o, slice(b, o.Operands[0], c))
}
