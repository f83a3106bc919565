package kernel

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// moves are the ops that compute nothing: which element of which operand the
// element at idx of the result is.
var moves map[string]func(e *evaluator, o *ir.Op, idx []Index) *Expr

func init() {
	moves = map[string]func(e *evaluator, o *ir.Op, idx []Index) *Expr{
		"dm.transpose":            (*evaluator).transpose,
		"dm.reshape":              (*evaluator).reshape,
		"dm.broadcast":            (*evaluator).broadcast,
		"dm.slice":                (*evaluator).slice,
		"dm.concatenate":          (*evaluator).concatenate,
		"dm.pad":                  (*evaluator).pad,
		"dm.reverse":              (*evaluator).reverse,
		"dm.gather":               (*evaluator).gather,
		"dm.embedding":            (*evaluator).embedding,
		"dm.dynamic_slice":        (*evaluator).dynamicSlice,
		"dm.dynamic_update_slice": (*evaluator).dynamicUpdate,
		"dm.scatter":              (*evaluator).scatter,
		"dm.select_and_scatter":   (*evaluator).selectAndScatter,
	}
}

func (e *evaluator) transpose(o *ir.Op, idx []Index) *Expr {
	at := make([]Index, len(idx))
	for i, d := range op.Ints(o, "dims") {
		at[d] = idx[i]
	}
	return e.at(o.Operands[0], at)
}

func (e *evaluator) reshape(o *ir.Op, idx []Index) *Expr {
	return e.at(o.Operands[0], e.reshaped(idx, shapeOf(o.Results[0]), shapeOf(o.Operands[0])))
}

// reshaped is the place in a tensor of shape to of the element that lies at idx
// in one of shape from.
func (e *evaluator) reshaped(idx []Index, from, to []int64) []Index {
	if slices.Equal(from, to) {
		return idx
	}
	return e.Unlinear(Linear(idx, from), to)
}

func (e *evaluator) broadcast(o *ir.Op, idx []Index) *Expr {
	x := o.Operands[0]
	shape := shapeOf(x)
	at := make([]Index, len(shape))
	dims := op.Ints(o, "dims")
	for i, n := range shape {
		d := len(idx) - len(shape) + i
		if dims != nil {
			d = int(dims[i])
		}
		if n != 1 {
			at[i] = idx[d]
		}
	}
	return e.at(x, at)
}

// sliced gives start and stride of every dimension of a dm.slice.
func sliced(o *ir.Op) (start, stride []int64) {
	n := len(shapeOf(o.Operands[0]))
	start, stride = make([]int64, n), make([]int64, n)
	for i := range stride {
		stride[i] = 1
	}
	starts, strides := op.Ints(o, "start_indices"), op.Ints(o, "strides")
	dims, ok := op.Dims(o, "dims", n)
	for i := range starts {
		d := i
		if ok && op.Attr(o, "dims") != nil {
			d = dims[i]
		}
		start[d] = starts[i]
		if i < len(strides) {
			stride[d] = strides[i]
		}
	}
	return start, stride
}

func (e *evaluator) slice(o *ir.Op, idx []Index) *Expr {
	start, stride := sliced(o)
	at := make([]Index, len(idx))
	for d, x := range idx {
		at[d] = x.Times(stride[d]).Plus(start[d])
	}
	return e.at(o.Operands[0], at)
}

func (e *evaluator) concatenate(o *ir.Op, idx []Index) *Expr {
	elem := ElemOf(o.Results[0])
	d, _ := op.Dim(o, "dim", len(idx))
	var from int64
	var out *Expr
	type part struct {
		cond Condition
		x    *Expr
	}
	var parts []part
	for _, v := range o.Operands {
		n := shapeOf(v)[d]
		cond := Condition{X: idx[d], Lo: from, Hi: from + n}
		if n > 0 && !cond.never() {
			at := slices.Clone(idx)
			at[d] = e.Within(idx[d].Plus(-from), 0, n-1)
			parts = append(parts, part{cond, e.at(v, at)})
		}
		from += n
	}
	if len(parts) == 0 {
		return e.fail(o, elem, "an empty concatenation")
	}
	out = parts[len(parts)-1].x
	for i := len(parts) - 2; i >= 0; i-- {
		out = e.guard([]Condition{parts[i].cond}, parts[i].x, out)
	}
	return out
}

func (e *evaluator) pad(o *ir.Op, idx []Index) *Expr {
	x := o.Operands[0]
	shape := shapeOf(x)
	low, interior := op.Ints(o, "low"), op.Ints(o, "interior")
	at := make([]Index, len(idx))
	var inside []Condition
	for d, i := range idx {
		var l, gap int64
		if d < len(low) {
			l = low[d]
		}
		if d < len(interior) {
			gap = interior[d]
		}
		i = i.Plus(-l)
		whole := Condition{X: i, Lo: 0, Hi: (shape[d]-1)*(gap+1) + 1}
		inside = append(inside, whole)
		i = e.Within(i, 0, max(whole.Hi-1, 0))
		if gap > 0 {
			inside = append(inside, Condition{X: e.Mod(i, gap+1), Lo: 0, Hi: 1})
			i = e.Div(i, gap+1)
		}
		at[d] = i
	}
	return e.guard(inside, e.at(x, at), e.at(o.Operands[1], nil))
}

func (e *evaluator) reverse(o *ir.Op, idx []Index) *Expr {
	shape := shapeOf(o.Operands[0])
	at := slices.Clone(idx)
	dims, _ := op.Dims(o, "dims", len(shape))
	for _, d := range dims {
		at[d] = idx[d].Times(-1).Plus(shape[d] - 1)
	}
	return e.at(o.Operands[0], at)
}

// datum is the integer x, moved into [0, n), as an index.
func (e *evaluator) datum(x *Expr, n int64) Index {
	bound := func(v int64) *Expr { return e.expr(Expr{Op: Number, Elem: x.Elem, Int: v}) }
	c := e.scalar("clamp", x.Elem, bound(0), x, bound(n-1))
	return e.atom(Atom{Kind: Datum, E: c, Max: n - 1})
}

func (e *evaluator) gather(o *ir.Op, idx []Index) *Expr {
	d, _ := op.Dim(o, "dim", len(shapeOf(o.Operands[0])))
	return e.pick(o, idx, d, int(op.Int(o, "batch_dims")))
}

func (e *evaluator) embedding(o *ir.Op, idx []Index) *Expr { return e.pick(o, idx, 0, 0) }

// pick is y[a…, i…, c…] = x[a…, indices[i…], c…].
func (e *evaluator) pick(o *ir.Op, idx []Index, d, batch int) *Expr {
	x, indices := o.Operands[0], o.Operands[1]
	shape := shapeOf(x)
	picks := len(shapeOf(indices)) - batch
	which := append(slices.Clone(idx[:batch]), idx[d:d+picks]...)
	at := append(slices.Clone(idx[:d]), e.datum(e.at(indices, which), shape[d]))
	return e.at(x, append(at, idx[d+picks:]...))
}

func (e *evaluator) dynamicSlice(o *ir.Op, idx []Index) *Expr {
	at := make([]Index, len(idx))
	for d, start := range e.starts(o, 1, shapeOf(o.Results[0])) {
		at[d] = start.Add(idx[d])
	}
	return e.at(o.Operands[0], at)
}

func (e *evaluator) dynamicUpdate(o *ir.Op, idx []Index) *Expr {
	x, update := o.Operands[0], o.Operands[1]
	size := shapeOf(update)
	at := make([]Index, len(idx))
	var inside []Condition
	for d, start := range e.starts(o, 2, size) {
		i := idx[d].Add(start.Times(-1))
		inside = append(inside, Condition{X: i, Lo: 0, Hi: size[d]})
		at[d] = e.Within(i, 0, size[d]-1)
	}
	return e.guard(inside, e.at(update, at), e.at(x, idx))
}

// scatter looks for each element of the result which updates meet it, in their
// order, so that the sum is always the same.
func (e *evaluator) scatter(o *ir.Op, idx []Index) *Expr {
	x, indices, updates := o.Operands[0], o.Operands[1], o.Operands[2]
	elem := ElemOf(x)
	d, _ := op.Dim(o, "dim", len(shapeOf(x)))
	batch := int(op.Int(o, "batch_dims"))
	vars, picks := e.loops(shapeOf(indices)[batch:])
	meets := e.place(indices, append(slices.Clone(idx[:batch]), picks...)).Add(idx[d].Times(-1))
	at := slices.Concat(idx[:d], picks, idx[d+1:])
	update := e.at(updates, at)
	old := e.at(x, idx)
	kind := op.Str(o, "kind")
	f, i := Identity(kind, elem)
	none := (&constant{f, i}).number(e.Space, elem)
	if kind == "set" {
		none = old
	}
	body := e.guard([]Condition{{X: meets, Lo: 0, Hi: 1}}, update, none)
	switch {
	case kind == "set":
		return e.expr(Expr{Op: Fold, Elem: elem, Kind: Last, Vars: vars, Args: []*Expr{body, old}})
	case len(vars) == 0:
		return e.scalar(kind, elem, old, body)
	}
	return e.scalar(kind, elem, old, e.fold(kind, elem, vars, body))
}

// lowest and highest are the ends of an element type's order.
func lowest(elem types.Elem) (float64, int64) {
	switch {
	case elem.IsFloat():
		return math.Inf(-1), 0
	case elem == types.I1 || elem.IsUnsigned():
		return 0, 0
	}
	return 0, math.MinInt64 >> (64 - 8*elem.Bytes())
}

func highest(elem types.Elem) (float64, int64) {
	switch {
	case elem.IsFloat():
		return math.Inf(1), 0
	case elem == types.I1:
		return 1, 1
	case elem.IsUnsigned() && elem.Bytes() < 8:
		return 0, 1<<(8*elem.Bytes()) - 1
	case elem.IsUnsigned():
		return 0, -1
	}
	return 0, math.MaxInt64 >> (64 - 8*elem.Bytes())
}
