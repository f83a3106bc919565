package kernel

import (
	"math"
	"math/bits"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Axis is the elements along a dimension that one thread computes: N of them, Stride apart.
// The threads next to it have those next to them, so that N·Stride elements are those of
// Stride threads.
type Axis struct{ N, Stride int64 }

// Cells divides the elements of results among threads, which compute a cell each: the
// elements with all combinations of places along the Axes. Which places of a cell an
// element has is known when code is made: remainders and bounds that depend on it alone are
// numbers then, and what several elements of a cell read is read once.
type Cells struct {
	shape []int64 // of the results, in the order of memory
	Axes  []Axis
}

// Of is the number of elements of a cell.
func (c *Cells) Of() int64 {
	n := int64(1)
	for _, a := range c.Axes {
		n *= a.N
	}
	return n
}

// Whole reports whether the fastest dimension is whole cells, so that elements of one may be neighbours in aligned places.
func (c *Cells) Whole() bool {
	last := len(c.Axes) - 1
	return last < 0 || c.shape[last]%(c.Axes[last].N*c.Axes[last].Stride) == 0
}

// Count is the number of cells, those at an edge of which only a part is inside included.
func (c *Cells) Count() int64 {
	n := int64(1)
	for d, a := range c.Axes {
		n *= a.cells(c.shape[d])
	}
	return n
}

// Neighbours is the number of cells in a row whose elements of equal place lie next to each other.
func (c *Cells) Neighbours() int64 {
	last := len(c.Axes) - 1
	if last < 0 {
		return 1
	}
	if a := c.Axes[last]; a.N > 1 {
		return a.Stride
	}
	return c.shape[last]
}

func (a Axis) cells(n int64) int64 {
	return (n + a.N*a.Stride - 1) / (a.N * a.Stride) * a.Stride
}

// space is the loop over results of one shape and order.
type space struct {
	shape  []int64 // in the order of memory
	vars   []*Atom
	digits []Index // the place of an element in each dimension; nil: results are in cells
}

// cell is an element of a cell: its indices in the order of memory, and the conditions under
// which it is inside.
type cell struct {
	at     []Index
	inside []Condition
}

// cells are the variable that numbers cells, v at a time, and the elements of one.
func (s *Space) cells(c *Cells, v int64, lane *Atom) (vars []*Atom, all []cell) {
	step, at := s.wide("i", c.Count(), v, lane)
	counts := make([]int64, len(c.Axes))
	for d, a := range c.Axes {
		counts[d] = a.cells(c.shape[d])
	}
	all = []cell{{}}
	for d, q := range s.Unlinear(at, counts) {
		a, n := c.Axes[d], c.shape[d]
		first := s.Div(q, a.Stride).Times(a.N * a.Stride).Add(s.Mod(q, a.Stride))
		var more []cell
		for _, b := range all {
			for k := range a.N {
				x := first.Plus(k * a.Stride)
				y := cell{append(b.at[:d:d], s.Within(x, 0, n-1)), b.inside[:len(b.inside):len(b.inside)]}
				in := Condition{X: x, Lo: 0, Hi: n}
				if in.never() {
					continue
				}
				if !in.always() {
					y.inside = append(y.inside, in)
				}
				more = append(more, y)
			}
		}
		all = more
	}
	return []*Atom{step}, all
}

// Divided is f, a kernel whose threads compute single elements, with results of the shapes of
// all in cells, and the loops over windows written out.
func (f *Form) Divided(all []*Cells) (*Form, error) {
	g := *f
	g.Cells = all
	return g.Widen(1, 0)
}

// mostTaps bounds the windows that are written out.
const mostTaps = op.WindowProducts

// Fit are cells for f by what its indices depend on, nil where they gain nothing. With
// divisions with a remainder along a dimension, cells have as many elements of it as make
// the remainder a number: the elements of a window's stride. Where a dimension has parts of
// equal size, cells have an element of each. Where windows are written out, they have times[0] times
// the elements of a remainder, times[1] along the fastest dimension, and neighbours along that one at least, if these divide it.
func (f *Form) Fit(neighbours int64, times [2]int64) []*Cells {
	if f.Class == ClassLoop && !f.windows() {
		return nil
	}
	var all []*Cells
	gain := false
	for _, l := range f.spaces {
		c := &Cells{shape: l.shape, Axes: make([]Axis, len(l.shape))}
		for d := range l.shape {
			a := Axis{1, 1}
			if n := f.remainders(l.digits[d]); n > 1 && n <= l.shape[d] {
				a.N = n
				// A cell at the edge may be wasted in part, an eighth of all at most.
				m := n * times[0]
				if d == len(l.shape)-1 {
					m = n * times[1]
				}
				if f.Class == ClassLoop && (m-l.shape[d]%m)%m*8 <= l.shape[d] {
					a.N = m
				}
			} else if f.Class == ClassPointwise {
				a = f.parted(l.digits[d], l.shape[d])
			}
			if n := a.N * neighbours / GCD(a.N, neighbours); (f.Class == ClassLoop || a.N > 1 && a.Stride == 1) && d == len(l.shape)-1 && l.shape[d]%n == 0 {
				a.N = n
			}
			c.Axes[d] = a
		}
		if c.Of() > mostCell {
			return nil
		}
		gain = gain || c.Of() > 1
		all = append(all, c)
	}
	if !gain {
		return nil
	}
	return all
}

const (
	mostCell  = 32 // elements of a cell
	mostParts = 4  // of a dimension
)

// windows reports whether all reductions of f are over few values, and there are some.
func (f *Form) windows() bool {
	found, few := false, len(f.Over) == 0
	for _, o := range f.Outs {
		Walk(o.X, func(x *Expr) {
			if x.Op != Reduce {
				return
			}
			found, few = true, few && x.Steps() <= mostTaps && x.Groups == nil && x.Span == nil
		})
	}
	return found && few
}

// indices visits the indices of what f reads and the conditions under which it does.
func (f *Form) indices(at func(x Index), bound func(c Condition)) {
	for _, o := range f.Outs {
		for _, x := range o.Exprs() {
			Walk(x, func(y *Expr) {
				at(y.At)
				for _, c := range y.If {
					bound(c)
				}
			})
		}
	}
}

// remainders is the least number of neighbours along a dimension, whose place is digit, by
// which every division of a sum that it is a part of has the same remainder.
func (f *Form) remainders(digit Index) int64 {
	n := int64(1)
	look := func(x Index, alone bool) {
		x.Atoms(func(a *Atom) {
			if a.Kind != Div && a.Kind != Mod {
				return
			}
			sum := written(a.X)
			if len(sum.Terms) == 1 && sum.C == 0 && !alone {
				return
			}
			for _, t := range sum.Terms {
				if digit.Equal(t.Atom.index()) {
					m := a.N / GCD(a.N, t.Coef)
					n = n / GCD(n, m) * m
				}
			}
		})
	}
	f.indices(func(x Index) { look(x, false) }, func(c Condition) { look(c.X, true) })
	return n
}

// parted is the axis that has an element of each part of a dimension of n elements, where
// conditions divide it into a few of equal size.
func (f *Form) parted(digit Index, n int64) Axis {
	size := n
	f.indices(func(Index) {}, func(c Condition) {
		x := written(c.X)
		if len(x.Terms) != 1 || x.Terms[0].Coef != 1 || !digit.Equal(x.Terms[0].Atom.index()) {
			return
		}
		for _, at := range []int64{c.Lo - x.C, c.Hi - x.C} {
			if at > 0 && at < n {
				size = GCD(size, at)
			}
		}
	})
	if n/size > mostParts {
		return Axis{1, 1}
	}
	return Axis{n / size, size}
}

// written is x with what is known to lie between bounds written out.
func written(x Index) Index {
	out := Const(x.C)
	for _, t := range x.Terms {
		if t.Atom.Kind == Within {
			out = out.Add(written(t.Atom.X).Times(t.Coef))
			continue
		}
		out = out.Add(Index{Terms: []Term{t}})
	}
	return out
}

// Apart is x without its number, with what is known to lie between bounds written out, and that number: places in
// memory of one base lie as far apart as their numbers.
func (x Index) Apart() (base Index, number int64) {
	x = written(x)
	return Index{Terms: x.Terms}, x.C
}

// Key identifies x among the indices of its space.
func (x Index) Key() string { return string(x.appendTo(nil)) }

// tapsOf are the taps of a window of that size, in their order.
func tapsOf(size []int64) (all [][]int64) {
	all = [][]int64{nil}
	for _, n := range size {
		var more [][]int64
		for _, t := range all {
			for k := range n {
				more = append(more, append(t[:len(t):len(t)], k))
			}
		}
		all = more
	}
	return all
}

// writes reports whether loops over a window of that size are written out.
func (e *evaluator) writes(size []int64) bool { return e.cells && Product(size) <= mostTaps }

// unbound is idx with no bounds of its own, for a window over it whose places have theirs; done ends that.
func (e *evaluator) unbound(idx []Index) (at []Index, done func()) {
	for _, x := range idx {
		at = append(at, written(x))
	}
	edge := e.edge
	e.edge = nil
	return at, func() { e.edge = edge }
}

// windowWritten is the element at idx of a reduction over windows, without a loop.
func (e *evaluator) windowWritten(o *ir.Op, idx []Index) *Expr {
	idx, done := e.unbound(idx)
	defer done()
	elem, kind := o.Results[0].Elem(), op.Str(o, "kind")
	x := o.Operands[0]
	in := shapeOf(x)
	f, i := Identity(kind, elem)
	none := (&constant{f, i}).number(e.Space, elem)
	var sum *Expr
	if kind == "add" && elem.IsFloat() {
		sum = none // which makes 0 of -0
	}
	for _, tap := range tapsOf(op.Ints(o, "window_dimensions")) {
		at := make([]Index, len(idx))
		var inside []Condition
		for d := range idx {
			stride, dilation, low := steps(o, d, "window_strides", "window_dilations")
			var conds []Condition
			at[d], conds = e.elementAt(idx[d].Times(stride).Plus(tap[d]*dilation-low), in[d], spread(o, d))
			inside = append(inside, conds...)
		}
		if never(inside) {
			continue
		}
		y := e.guard(inside, e.at(x, at), none)
		if sum != nil {
			y = e.scalar(kind, elem, sum, y)
		}
		sum = y
	}
	if sum == nil {
		return none
	}
	return sum
}

func never(conds []Condition) bool {
	for _, c := range conds {
		if c.never() {
			return true
		}
	}
	return false
}

func always(conds []Condition) bool {
	for _, c := range conds {
		if !c.always() {
			return false
		}
	}
	return true
}

// chosenWritten is selectAndScatter without loops: of every window that an element may be
// in, the tap of the chosen element is found once, for all elements of a cell. What no window adds to stays as it is: a sum from 0
// on is never -0.
func (e *evaluator) chosenWritten(o *ir.Op, idx []Index) *Expr {
	idx, done := e.unbound(idx)
	defer done()
	source, win := o.Operands[1], op.Ints(o, "window_dimensions")
	elem, out := o.Operands[0].Elem(), shapeOf(o.Operands[1])
	none := e.number(elem, 0)
	sum := none
	taps := tapsOf(win)
	for n, tap := range taps {
		place, first := make([]Index, len(idx)), make([]Index, len(idx))
		var fits []Condition
		for d := range idx {
			stride, dilation, low := steps(o, d, "window_strides", "window_dilations")
			first[d] = idx[d].Plus(-tap[d] * dilation)
			var conds []Condition
			place[d], conds = e.elementAt(first[d].Plus(low), out[d], stride)
			fits = append(fits, conds...)
		}
		if never(fits) {
			continue
		}
		is := e.wins(o, first, taps, n)
		sum = e.scalar("select", elem, is, e.scalar("add", elem, sum, e.guard(fits, e.at(source, place), none)), sum)
	}
	return sum
}

// wins reports whether tap n has the first extreme element of a window; first is the place of the window's first tap, which may
// lie outside.
func (e *evaluator) wins(o *ir.Op, first []Index, taps [][]int64, n int) *Expr {
	var at *Expr
	if elem := o.Operands[0].Elem(); elem.IsFloat() && elem.Bytes() == 2 {
		at, n = e.greatest(o, first, taps), -n&lowBits(taps)
	} else {
		at = e.winner(o, first, taps)
	}
	return e.compares("eq", at, e.number(types.I32, float64(n)))
}

// tapsInside calls f for each tap of a window that may have an element, with that element, or none where it is outside.
func (e *evaluator) tapsInside(o *ir.Op, first []Index, taps [][]int64, value func(at []Index) *Expr, none *Expr, f func(n int, always bool, w *Expr)) {
	x := o.Operands[0]
	in, out, win := shapeOf(x), shapeOf(o.Operands[1]), op.Ints(o, "window_dimensions")
	// What no window has is not read: what lies beyond the last one, and, where windows leave elements between them out, what a
	// window has that is none.
	var real []Condition
	for d := range first {
		stride, dilation, low := steps(o, d, "window_strides", "window_dilations")
		if gaps(out[d], win[d], stride, dilation) {
			_, conds := e.elementAt(first[d].Plus(low), out[d], stride)
			real = append(real, conds...)
		}
	}
	for n, tap := range taps {
		place := make([]Index, len(first))
		inside := slices.Clone(real)
		for d := range first {
			stride, dilation, low := steps(o, d, "window_strides", "window_dilations")
			p := first[d].Plus(tap[d] * dilation)
			place[d] = e.Within(p, 0, in[d]-1)
			most := (out[d]-1)*stride + (win[d]-1)*dilation - low
			inside = append(inside, Condition{X: p, Lo: max(0, -low), Hi: min(in[d], most+1)})
		}
		if !never(inside) {
			f(n, always(inside), e.guard(inside, value(place), none))
		}
	}
}

// greatest is, of a window of 16-bit floats, the low bits of minus the number of the tap whose element is the first extreme one: those of
// the greatest of the elements' keys, from each of which the number of its tap is taken, by which equal ones are ordered.
func (e *evaluator) greatest(o *ir.Op, first []Index, taps [][]int64) *Expr {
	x := o.Operands[0]
	best := e.number(types.I32, math.MinInt32+KeyStep/2) // what lies outside, below all keys
	e.tapsInside(o, first, taps, func(at []Index) *Expr {
		v := e.rounded(e.at(x, at))
		if op.Str(o, "kind") == "min" {
			v = e.scalar("neg", v.Elem, v)
		}
		return e.scalar(Key, types.I32, v)
	}, best, func(n int, always bool, w *Expr) {
		if n > 0 {
			w = e.scalar("sub", types.I32, w, e.number(types.I32, float64(n)))
		}
		if best.Op == Number && always {
			best = w
			return
		}
		best = e.scalar("max", types.I32, best, w)
	})
	return e.scalar("and", types.I32, best, e.number(types.I32, float64(lowBits(taps))))
}

// lowBits are those of a key that tell the taps of a window.
func lowBits(taps [][]int64) int { return 1<<bits.Len(uint(len(taps)-1)) - 1 }

// winner is the number of the tap whose element is the first extreme one of a window; first is
// the place of the window's first tap, which may lie outside.
func (e *evaluator) winner(o *ir.Op, first []Index, taps [][]int64) *Expr {
	x := o.Operands[0]
	elem, kind := x.Elem(), op.Str(o, "kind")
	f, i := Identity(kind, elem)
	none := (&constant{f, i}).number(e.Space, elem)
	number := func(n int64) *Expr { return e.number(types.I32, float64(n)) }
	beats, yields := "gt", "le"
	if kind == "min" {
		beats, yields = "lt", "ge"
	}
	better := func(a, b *Expr) *Expr { // whether a precedes b, which it follows: a NaN precedes all but a NaN
		if !elem.IsFloat() {
			return e.compares(beats, a, b)
		}
		return e.scalar("and", types.I1, e.scalar("not", types.I1, e.compares(yields, a, b)), e.compares("eq", b, b))
	}
	best, at := none, e.firstInside(o, first, number)
	e.tapsInside(o, first, taps, func(at []Index) *Expr { return e.rounded(e.at(x, at)) }, none, func(n int, always bool, w *Expr) {
		if n == 0 && always {
			best, at = w, number(0)
			return
		}
		// Outside, the identity is no better than what is inside.
		takes := better(w, best)
		best, at = e.scalar("select", elem, takes, w, best), e.scalar("select", types.I32, takes, number(int64(n)), at)
	})
	return at
}

// gaps reports whether so many windows leave elements between them out, or may where they reach far. What they leave out repeats from
// window to window.
func gaps(out, win, stride, dilation int64) bool {
	reach := (win - 1) * dilation
	out = min(out, 2*(reach/stride+1)+1)
	if out*win > 1<<12 {
		return true
	}
	have := map[int64]bool{}
	for w := range out {
		for k := range win {
			have[w*stride+k*dilation] = true
		}
	}
	return int64(len(have)) < (out-1)*stride+reach+1
}

// firstInside is the number of the first tap of a window that is inside.
func (e *evaluator) firstInside(o *ir.Op, first []Index, number func(int64) *Expr) *Expr {
	win := op.Ints(o, "window_dimensions")
	at := number(0)
	for d, x := range first {
		_, dilation, _ := steps(o, d, "window_strides", "window_dilations")
		one := number(Product(win[d+1:]))
		for k := range win[d] - 1 {
			_, most := x.Bounds()
			outside := e.guard([]Condition{{X: x, Lo: -k * dilation, Hi: most + 1}}, number(0), one)
			if outside != number(0) {
				at = e.scalar("add", types.I32, at, outside)
			}
		}
	}
	return at
}
