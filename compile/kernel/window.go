package kernel

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// steps are stride, dilation and low padding of dimension d of a window op.
func steps(o *ir.Op, d int, strideAttr, dilationAttr string) (stride, dilation, low int64) {
	stride, dilation = 1, 1
	if s := op.Ints(o, strideAttr); d < len(s) {
		stride = s[d]
	}
	if s := op.Ints(o, dilationAttr); d < len(s) {
		dilation = s[d]
	}
	if p := op.Pairs(o, "padding"); d < len(p) {
		low = p[d][0]
	}
	return stride, dilation, low
}

// elementAt is the index of an element whose distance is spread at position x of n
// of them with zeros between, and the conditions under which there is one.
func (e *evaluator) elementAt(x Index, n, spread int64) (at Index, inside []Condition) {
	reach := max((n-1)*spread+1, 0)
	inside = []Condition{{X: x, Lo: 0, Hi: reach}}
	at = e.Within(x, 0, reach-1)
	if q, rest := written(x).split(spread); spread > 1 && len(rest.Terms) == 0 {
		return e.Within(q, 0, n-1), []Condition{{X: q, Lo: 0, Hi: n}, {X: rest, Lo: 0, Hi: 1}}
	}
	if spread > 1 {
		inside = append(inside, Condition{X: e.Mod(at, spread), Lo: 0, Hi: 1})
		at = e.Within(e.Div(at, spread), 0, n-1)
	}
	return at, inside
}

// spread is the distance of the elements of dimension d that a window moves over.
func spread(o *ir.Op, d int) int64 {
	if s := op.Ints(o, "lhs_dilation"); d < len(s) {
		return s[d]
	}
	return 1
}

// windowed returns, for the spatial dimensions of a window op, the loops over
// the window, the index in the operand, and the conditions under which it is in
// bounds.
func (e *evaluator) windowed(o *ir.Op, in, win []int64, out []Index, strideAttr, dilationAttr string) (vars []*Atom, at, taps []Index, inside []Condition) {
	vars, taps = e.loops(win)
	for d := range win {
		stride, dilation, low := steps(o, d, strideAttr, dilationAttr)
		x := out[d].Times(stride).Add(taps[d].Times(dilation)).Plus(-low)
		place, conds := e.elementAt(x, in[d], spread(o, d))
		inside, at = append(inside, conds...), append(at, place)
	}
	return vars, at, taps, inside
}

func (e *evaluator) convolution(o *ir.Op, idx []Index) *Expr {
	if e.writes(shapeOf(o.Operands[1])[1:]) {
		return e.convolutionWritten(o, idx)
	}
	elem := o.Results[0].Elem()
	x, w := o.Operands[0], o.Operands[1]
	xs, ws := shapeOf(x), shapeOf(w)
	groups := op.Int(o, "feature_group_count")
	vars, at, taps, inside := e.windowed(o, xs[2:], ws[2:], idx[2:], "window_strides", "rhs_dilation")
	cv, c := e.loops(ws[1:2])
	group := e.Div(idx[1], ws[0]/groups)
	wide := accumulator(elem)
	widened := func(v *ir.Value, at []Index) *Expr {
		f := e.at(v, at)
		if f.Elem != wide {
			f = e.scalar("convert", wide, f)
		}
		return f
	}
	image := widened(x, append([]Index{idx[0], group.Times(ws[1]).Add(c[0])}, at...))
	filter := widened(w, append([]Index{idx[1], c[0]}, taps...))
	body := e.guard(inside, e.scalar("mul", wide, image, filter), e.number(wide, 0))
	if vars = append(cv, vars...); len(vars) > 0 {
		body = e.reduction("add", wide, vars, body)
	}
	if wide != elem {
		body = e.scalar("convert", elem, body)
	}
	return body
}

func (e *evaluator) window(o *ir.Op, idx []Index) *Expr {
	if e.writes(op.Ints(o, "window_dimensions")) {
		return e.windowWritten(o, idx)
	}
	elem, kind := o.Results[0].Elem(), op.Str(o, "kind")
	x := o.Operands[0]
	vars, at, _, inside := e.windowed(o, shapeOf(x), op.Ints(o, "window_dimensions"), idx, "window_strides", "window_dilations")
	f, i := Identity(kind, elem)
	none := (&constant{f, i}).number(e.Space, elem)
	body := e.guard(inside, e.at(x, at), none)
	if len(vars) == 0 {
		return body
	}
	return e.reduction(kind, elem, vars, body)
}

// selectAndScatter is, for every element of x, the sum of the source over the
// windows of which it is the first largest (or smallest) element; NaN counts as
// both.
func (e *evaluator) selectAndScatter(o *ir.Op, idx []Index) *Expr {
	x, source := o.Operands[0], o.Operands[1]
	elem := x.Elem()
	in, out, win := shapeOf(x), shapeOf(source), op.Ints(o, "window_dimensions")
	if e.writes(win) {
		return e.chosenWritten(o, idx)
	}
	vars, taps := e.loops(win)
	var place []Index // of the window in which the element is at the tap
	var fits []Condition
	for d := range win {
		stride, dilation, low := steps(o, d, "window_strides", "window_dilations")
		z, conds := e.elementAt(idx[d].Plus(low).Add(taps[d].Times(-dilation)), out[d], stride)
		fits, place = append(fits, conds...), append(place, z)
	}
	others, at, there, inside := e.windowed(o, in, win, place, "window_strides", "window_dilations")
	v, w := e.rounded(e.at(x, idx)), e.rounded(e.at(x, at))
	flag := func(name string, args ...*Expr) *Expr { return e.scalar(name, types.I1, args...) }
	beats := "gt"
	if op.Str(o, "kind") == "min" {
		beats = "lt"
	}
	better := func(a, b *Expr) *Expr { // whether a precedes b in the order of values
		if !elem.IsFloat() {
			return e.compares(beats, a, b)
		}
		return flag("or", e.compares(beats, a, b), flag("and", e.compares("ne", a, a), e.compares("eq", b, b)))
	}
	number := func(at []Index) *Expr { return e.expr(Expr{Op: Count, Elem: types.I32, At: Linear(at, win)}) }
	earlier := e.compares("lt", number(there), number(taps))
	same := e.compares("eq", number(there), number(taps))
	wins := flag("or", same, flag("select", earlier, better(v, w), flag("not", better(w, v))))
	chosen := e.guard(inside, wins, e.number(types.I1, 1))
	if len(others) > 0 {
		chosen = e.reduction("and", types.I1, others, chosen)
	}
	none := e.number(elem, 0)
	body := e.guard(fits, e.scalar("select", elem, chosen, e.at(source, place), none), none)
	if len(vars) == 0 {
		return body
	}
	return e.reduction("add", elem, vars, body)
}
