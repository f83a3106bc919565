package op

import (
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

var reduceDerivative = &Derivative{
	Doc: "`add`: dy repeated along the reduced dimensions. `max`, `min`: the elements that have the extreme value share dy evenly. " +
		"`mul`: dy times the product of the other elements, right also where some are 0. A reduction by a region has no derivative.",
	rule: reduceRule,
}

var reduceWindowDerivative = &Derivative{
	Doc: "`add`: the sum of dy over the windows that an element is in, itself a `reduce_window`. `max`, `min`: `dm.select_and_scatter`, the first extreme element of a window takes its dy. " +
		"`mul`: the product's rule, not defined where an element is 0.",
	rule: reduceWindowRule,
}

var selectAndScatterDerivative = &Derivative{
	Doc:  "`dsource` is dy at the elements that were chosen. None for x, which only chooses.",
	rule: selectAndScatterRule,
}

var topKDerivative = &Derivative{
	Doc:  "`dx` is zeros with dvalues at the positions they came from.",
	rule: orderRule,
}

var sortDerivative = &Derivative{
	Doc:  "`dx` is dvalues moved back to the positions they came from.",
	rule: orderRule,
}

var argmaxDerivative = flat("The result is a position: no gradient flows.")

func reduceRule(g *backward) {
	kind := Str(g.o, "kind")
	if kind == "" {
		g.refuse("a reduction by a region has no derivative").help("write it with add, max, min or mul, or as dm.map and a named reduction")
		return
	}
	xt := in(g.o, 0)
	dims, _ := Dims(g.o, "dims", xt.Rank())
	kept := append([]dim.Dim{}, xt.Shape...)
	for _, d := range dims {
		kept[d] = dim.Const(1)
	}
	dy := g.Reshape(g.dy[0], kept...)
	if kind == "add" {
		if xt.Rank() > 0 {
			t := asTensor(dy.Type)
			if !sameShape(t.Shape, xt.Shape) {
				dy = g.Value("broadcast", []*ir.Value{dy}, nil, tensor(xt, t.Elem, xt.Shape...))
			}
		}
		g.give(0, dy)
		return
	}
	y, x := g.Reshape(g.y(0), kept...), g.x(0)
	if kind != "mul" {
		same := g.wide(g.Convert(g.compare("eq", x, y), xt.Elem))
		g.give(0, g.mul(same, g.div(g.wide(dy), g.reduce("add", same, dims...))))
		return
	}
	x, dy = g.wide(x), g.wide(dy)
	// The product of the others: without zeros y/x; with one zero the product of
	// the rest there and 0 elsewhere; with more 0.
	zero := g.compare("eq", x, g.number(x, 0))
	zeros := g.reduce("add", g.Convert(zero, asTensor(x.Type).Elem), dims...)
	solid := g.choose(zero, g.number(x, 1), x)
	product := g.reduce("mul", solid, dims...)
	alone := g.when(g.compare("eq", zeros, g.number(x, 1)), product)
	none := g.when(g.compare("eq", zeros, g.number(x, 0)), product)
	g.give(0, g.mul(dy, g.choose(zero, alone, g.div(none, solid))))
}

// windowAttrs are the attributes of the window of o.
func windowAttrs(o *ir.Op) []types.Named {
	var attrs []types.Named
	for _, name := range []string{"window_dimensions", "window_strides", "window_dilations", "padding"} {
		if a := o.Attr(name); a != nil {
			attrs = append(attrs, types.Named{Name: name, Value: a})
		}
	}
	return attrs
}

func reduceWindowRule(g *backward) {
	kind := Str(g.o, "kind")
	switch kind {
	case "add":
		g.give(0, g.windowSums(g.dy[0]))
	case "mul":
		x := g.wide(g.x(0))
		g.give(0, g.div(g.windowSums(g.mul(g.wide(g.dy[0]), g.wide(g.y(0)))), x))
	default:
		g.give(0, g.Value("select_and_scatter", []*ir.Value{g.x(0), g.dy[0]}, append(windowAttrs(g.o), types.Named{Name: "kind", Value: types.Keyword(kind)})))
	}
}

// windowSums is, for every element of x, the sum of v over the windows of o that
// it is in: v with its elements as far apart as the windows' steps, summed over
// the same window turned round.
func (g *backward) windowSums(v *ir.Value) *ir.Value {
	win, p := reduceWindow(g.o)
	if p != nil {
		g.failed = true
		return v
	}
	rank := len(win.Size)
	low, high, between := make([]int, rank), make([]int, rank), make([]int, rank)
	padding := make(types.Array, rank)
	var dims, start, limit, steps []int
	for i := range rank {
		inside, ok := in(g.o, 0).Shape[i].Int()
		outside, ok2 := asTensor(v.Type).Shape[i].Int()
		reach := (win.Size[i] - 1) * win.Dilation[i]
		if !ok || !ok2 {
			if g.failed = g.failed || reach != 0 || win.Stride[i] != 1 || win.Padding[i] != [2]int64{}; g.failed {
				return v
			}
			padding[i] = types.Array{types.Int{}, types.Int{}}
			continue
		}
		spread := (outside-1)*win.Stride[i] + 1
		before := reach - win.Padding[i][0]
		after := inside + reach - spread - before
		between[i] = int(win.Stride[i] - 1)
		padding[i] = types.Array{types.Int{V: max(0, before)}, types.Int{V: max(0, after)}}
		if before < 0 || after < 0 {
			dims, steps = append(dims, i), append(steps, 1)
			start, limit = append(start, int(max(0, -before))), append(limit, int(spread-max(0, -after)))
		}
	}
	v = g.part(g.pad(v, low, high, between), dims, start, limit, steps)
	attrs := []types.Named{
		{Name: "kind", Value: types.Keyword("add")},
		{Name: "window_dimensions", Value: int64sAttr(win.Size)},
		{Name: "window_dilations", Value: int64sAttr(win.Dilation)},
		{Name: "padding", Value: padding},
	}
	return g.Value("reduce_window", []*ir.Value{v}, attrs)
}

// orderRule is that of top_k and sort: both know where their values came from.
func orderRule(g *backward) {
	if g.dy[0] == nil {
		return // the positions are integers
	}
	xt := in(g.o, 0)
	d, _ := Dim(g.o, "dim", xt.Rank())
	last := xt.Rank() - 1
	order := append(append(identity(xt.Rank())[:d:d], identity(xt.Rank())[d+1:]...), d)
	idx := g.Transpose(g.second(types.I64), order...)
	dy := g.Transpose(g.dy[0], order...)
	shape := append(without(xt.Shape, d), xt.Shape[d])
	dx := g.scatter("set", g.zeros(tensor(xt, xt.Elem, shape...)), idx, dy, last, last)
	g.give(0, g.Transpose(dx, Inverse(order)...))
}

// second is o's second result, which o gets where it lacks it.
func (g *backward) second(elem types.Elem) *ir.Value {
	if len(g.o.Results) == 1 {
		y := out(g.o, 0)
		g.addResult(tensor(y, elem, y.Shape...))
	}
	return g.y(1)
}

// addResult gives o one more of its optional results.
func (g *backward) addResult(t types.Type) *ir.Value {
	v := &ir.Value{Type: t, Span: g.o.Head}
	AddResult(g.o, v)
	return v
}

// mostTaps bounds the windows whose elements are looked at one by one.
const mostTaps = 1 << 8

// selectAndScatterRule goes through the taps of the window in their order and
// takes dy at the first whose element is the window's extreme.
func selectAndScatterRule(g *backward) {
	x, source := in(g.o, 0), in(g.o, 1)
	win, p := reduceWindow(g.o)
	if p != nil || !g.want[1] {
		g.failed = p != nil
		return
	}
	rank, taps := x.Rank(), int64(1)
	low, high, steps, start := make([]int, rank), make([]int, rank), make([]int, rank), make([]int, rank)
	limit, positions := make([]int, rank), make([]int64, rank)
	for d := range rank {
		var ok bool
		positions[d], ok = source.Shape[d].Int()
		if taps *= win.Size[d]; !ok || taps > mostTaps {
			g.failed = !ok
			if ok {
				g.refuse("the window has more than %d elements", mostTaps)
			}
			return
		}
		low[d], high[d], steps[d] = int(win.Padding[d][0]), int(win.Padding[d][1]), int(win.Stride[d])
	}
	kind := Str(g.o, "kind")
	least := math.Inf(-1)
	if kind == "min" {
		least = math.Inf(1)
	}
	extreme := g.Value("reduce_window", []*ir.Value{g.x(0)}, append(windowAttrs(g.o), types.Named{Name: "kind", Value: types.Keyword(kind)}))
	pads := []types.Named{{Name: "low", Value: IntList(low...)}, {Name: "high", Value: IntList(high...)}}
	xs := g.Value("pad", []*ir.Value{g.x(0), g.number(g.x(0), least)}, pads)
	dys := g.Value("pad", []*ir.Value{g.dy[0], g.number(g.dy[0], 0)}, pads)
	var sum, taken *ir.Value
	for tap := range taps {
		for d, rest := rank-1, tap; d >= 0; d-- {
			start[d] = int(rest % win.Size[d] * win.Dilation[d])
			limit[d] = start[d] + int((positions[d]-1)*win.Stride[d]) + 1
			rest /= win.Size[d]
		}
		here := g.compare("eq", g.part(xs, identity(rank), start, limit, steps), extreme)
		value := g.part(dys, identity(rank), start, limit, steps)
		if taken == nil {
			sum, taken = g.when(here, value), here
			continue
		}
		sum = g.choose(g.Binary("and", here, g.Unary("not", taken)), value, sum)
		taken = g.Binary("or", taken, here)
	}
	g.give(1, sum)
}
