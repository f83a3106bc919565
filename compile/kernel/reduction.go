package kernel

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Identity is the identity element of a reduction of that kind.
func Identity(kind string, elem types.Elem) (f float64, i int64) {
	switch kind {
	case "mul", "and":
		return 1, 1
	case "max":
		return lowest(elem)
	case "min":
		return highest(elem)
	}
	return 0, 0
}

func (e *evaluator) reduction(kind string, elem types.Elem, vars []*Atom, body *Expr) *Expr {
	return e.expr(Expr{Op: Reduce, Elem: elem, Kind: kind, Vars: vars, Args: []*Expr{body}})
}

// loops returns new loop variables of the given sizes.
func (e *evaluator) loops(sizes []int64) (vars []*Atom, idx []Index) {
	for _, n := range sizes {
		if n == 1 {
			idx = append(idx, Index{})
			continue
		}
		v := e.Loop("k", n)
		vars, idx = append(vars, v), append(idx, IndexOf(v))
	}
	return vars, idx
}

// loopsAlong makes loops over the dimensions dims of shape and puts their variables
// into at, the place of an element.
func (e *evaluator) loopsAlong(shape []int64, dims []int, at []Index) (vars []*Atom) {
	sizes := make([]int64, len(dims))
	for i, d := range dims {
		sizes[i] = shape[d]
	}
	vars, idx := e.loops(sizes)
	for i, d := range dims {
		at[d] = idx[i]
	}
	return vars
}

// ReduceKind is the kind of the reduction o: its attribute, or the op of a
// region with a single op; "" for other regions.
func ReduceKind(o *ir.Op) string {
	if k := op.Str(o, "kind"); k != "" {
		return k
	}
	b := o.Body(0)
	if b == nil || len(o.Regions[0].Blocks) != 1 || len(b.Ops) != 2 || len(b.Args) != 2 {
		return ""
	}
	f, y := b.Ops[0], b.Ops[1]
	if len(y.Operands) != 1 || len(f.Results) != 1 || y.Operands[0] != f.Results[0] || len(f.Operands) != 2 {
		return ""
	}
	if a, c := f.Operands[0], f.Operands[1]; (a != b.Args[0] || c != b.Args[1]) && (a != b.Args[1] || c != b.Args[0]) {
		return ""
	}
	if d := op.Of(f); d != nil && slices.Contains(op.Of(o).Attr("kind").Enum, d.Name) {
		return d.Name
	}
	return ""
}

// reducedDims are the dimensions that o, a dm.reduce, reduces, ascending.
func reducedDims(o *ir.Op) []int {
	n := len(shapeOf(o.Operands[0]))
	if op.Attr(o, "dims") == nil {
		dims := make([]int, n)
		for i := range dims {
			dims[i] = i
		}
		return dims
	}
	dims, _ := op.Dims(o, "dims", n)
	dims = slices.Clone(dims)
	slices.Sort(dims)
	return dims
}

func (e *evaluator) reduce(o *ir.Op, idx []Index) *Expr {
	elem := o.Results[0].Elem()
	kind := ReduceKind(o)
	if kind == "" && len(o.Operands) < 2 {
		return e.fail(o, elem, "dm.reduce with a region and no initial value")
	}
	x := o.Operands[0]
	shape, dims := shapeOf(x), reducedDims(o)
	keep := op.Bool(o, "keep_dims")
	at := make([]Index, len(shape))
	next := 0
	for d := range shape {
		if slices.Contains(dims, d) {
			if keep {
				next++
			}
			continue
		}
		at[d] = idx[next]
		next++
	}
	if kind == "" {
		return e.regionReduction(o, at, dims)
	}
	e.reductions = append(e.reductions, reducedSpace{shape, dims})
	reduced := e.rowReduction(kind, elem, x, at, dims)
	if reduced == nil {
		vars := e.loopsAlong(shape, dims, at)
		body := e.at(x, at)
		if len(vars) == 0 {
			reduced = body
		} else {
			reduced = e.reduction(kind, elem, vars, body)
		}
	}
	if len(o.Operands) > 1 {
		init := e.at(o.Operands[1], nil)
		reduced = e.scalar(kind, elem, init, reduced)
	}
	return reduced
}

// regionReduction is a reduction by the region of o, a dm.reduce, that starts
// from its operand init.
func (e *evaluator) regionReduction(o *ir.Op, at []Index, dims []int) *Expr {
	elem, body := o.Results[0].Elem(), o.Body(0)
	if body == nil || len(body.Args) != 2 || len(o.Regions[0].Blocks) != 1 || body.Terminator() == nil || len(body.Terminator().Operands) != 1 {
		return e.fail(o, elem, "dm.reduce with a region that branches")
	}
	shape := shapeOf(o.Operands[0])
	vars := e.loopsAlong(shape, dims, at)
	inner := newEvaluator(e.Space, body.Ops)
	for _, a := range body.Args {
		inner.block[a] = e.expr(Expr{Op: Part, Elem: a.Elem(), Vars: []*Atom{e.Loop("part", 1)}})
	}
	join := inner.at(body.Terminator().Operands[0], nil)
	if inner.why != nil && e.why == nil {
		e.why = inner.why
	}
	args := []*Expr{e.at(o.Operands[0], at), e.at(o.Operands[1], nil), join, inner.block[body.Args[0]], inner.block[body.Args[1]]}
	return e.expr(Expr{Op: Reduce, Elem: elem, Kind: Region, Vars: vars, Args: args})
}

// rowReduction is a reduction over the rows or columns of the kernel, nil where
// it is neither.
func (e *evaluator) rowReduction(kind string, elem types.Elem, x *ir.Value, at []Index, dims []int) *Expr {
	r := e.rows
	if r == nil {
		return nil
	}
	shape := shapeOf(x)
	var kept Index
	var sizes []int64
	reduced, rest := int64(1), int64(1)
	for d, n := range shape {
		if slices.Contains(dims, d) {
			sizes = append(sizes, n)
			reduced *= n
			continue
		}
		kept = kept.Times(n).Add(at[d])
		rest *= n
	}
	put := func(x Index) {
		for i, c := range e.Unlinear(x, sizes) {
			at[dims[i]] = c
		}
	}
	reduceOver := func(over Over, vars []*Atom, body *Expr) *Expr {
		return e.expr(Expr{Op: Reduce, Elem: elem, Kind: kind, Over: over, Vars: vars, Args: []*Expr{body}})
	}
	switch {
	case reduced == r.Cols && rest == r.Rows && r.Cols > 1 && kept.Equal(r.row()) && r.fits(shape, dims):
		put(r.col())
		return reduceOver(RowReduction, r.colVars(), e.at(x, at))
	case reduced == r.Rows && rest == r.Cols && r.Row != nil && kept.Equal(r.col()) && r.across(shape, dims):
		put(r.row())
		return reduceOver(ColumnReduction, r.rowVars(), e.at(x, at))
	case reduced == r.Rows && rest == 1 && r.Row != nil && len(dims) == len(shape):
		put(r.row())
		return reduceOver(FullReduction, r.rowVars(), e.at(x, at))
	}
	return nil
}

// product is a contraction as a serial loop, outside of the kernel's main loop.
func (e *evaluator) product(o *ir.Op, idx []Index) *Expr {
	elem := o.Results[0].Elem()
	it := op.Of(o).Maps(o)
	if it == nil {
		return e.fail(o, elem, "a contraction without an iteration space")
	}
	at := make([]Index, len(it.Loops))
	for d, l := range it.Results[0] {
		if l >= 0 {
			at[l] = idx[d]
		}
	}
	var vars []*Atom
	for l, n := range it.Loops {
		if !it.Reduces[l] {
			continue
		}
		size, _ := n.Int()
		v, ks := e.loops([]int64{size})
		vars, at[l] = append(vars, v...), ks[0]
	}
	wide := accumulator(elem)
	var body *Expr
	for i, v := range o.Operands {
		x := make([]Index, len(it.Operands[i]))
		for d, l := range it.Operands[i] {
			if l >= 0 {
				x[d] = at[l]
			}
		}
		f := e.at(v, x)
		if f.Elem != wide {
			f = e.scalar("convert", wide, f)
		}
		if body == nil {
			body = f
		} else {
			body = e.scalar("mul", wide, body, f)
		}
	}
	if len(vars) > 0 {
		body = e.reduction("add", wide, vars, body)
	}
	if wide != elem {
		body = e.scalar("convert", elem, body)
	}
	return body
}

// accumulator is the type in which products of elem are accumulated.
func accumulator(elem types.Elem) types.Elem {
	if elem.IsFloat() && elem != types.F64 {
		return types.F32
	}
	return elem
}
