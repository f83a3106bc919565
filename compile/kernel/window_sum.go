package kernel

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Sums is f, a convolution of few products for each element, as sums of what its windows meet: loops of threads
// that compute elements of results, as for the reductions of pools. A product of matrices has a row for each channel
// of a group that is made, so that where these are few, as in a depthwise convolution, its tiles are empty for the most
// part. It is nil where f is another product, or rounds in another way.
func (f *Form) Sums() *Form {
	if f.Class != ClassContraction || len(f.Mains) != 1 || f.Reduces() || len(f.Over) > 0 || !op.Of(f.Main).Is(op.Windowed) {
		return nil
	}
	if Product(shapeOf(f.Main.Operands[1])[1:]) > mostTaps || op.Str(f.Main, "accumulate") == "f16" || op.TF32(f.Main) {
		return nil
	}
	if !op.TapsMeet(f.Main) { // sums would not read those taps of the filters, as cost has it
		return nil
	}
	g, err := (&Form{Ops: f.Ops, Outputs: f.Outputs, V: 1}).pointwise()
	if err != nil || len(g.spaces) != 1 {
		return nil
	}
	g.Class, g.Main = ClassLoop, f.Main
	if g, err = g.finish(); err != nil {
		return nil
	}
	return g
}

// SumCells are the cells in which a thread computes elements of the sums f, which Sums made: up to most
// neighbours in memory, and of a few lines. Outputs whose windows overlap share what they read, and of an image
// with zeros between elements a cell has an output of each phase, so that no product with a zero is left.
func (f *Form) SumCells(most int64) (all []*Cells) {
	s := f.spaces[0]
	last := len(s.shape) - 1
	if last < 0 {
		return nil
	}
	spatial := f.spatial()
	base := make([]Axis, last+1)
	for d, n := range s.shape {
		base[d] = Axis{1, 1}
		if r := f.remainders(s.digits[d]); r > 1 && r <= n && spatial[d] {
			base[d].N = r
		}
	}
	for _, lines := range []int64{1, 2, 4} {
		for v := most; v >= 1; v /= 2 {
			c := &Cells{shape: s.shape, Axes: slices.Clone(base)}
			fits := true
			for d, times := range map[int]int64{last: v, last - 1: lines} {
				if d < 0 || times == 1 {
					fits = fits && (d >= 0 || times == 1)
					continue
				}
				n := &c.Axes[d].N
				*n = *n / GCD(*n, times) * times
				// Only what a window meets is read under conditions of its own.
				fits = fits && *n < 2*s.shape[d] && (spatial[d] || s.shape[d]%*n == 0)
			}
			if fits && c.Of() <= mostCell {
				all = append(all, c)
			}
		}
	}
	return all
}

// spatial says which dimensions of the results, as they lie in memory, windows move along.
func (f *Form) spatial() []bool {
	s := f.spaces[0]
	along := make([]bool, len(s.shape))
	moved := f.moved()
	for _, v := range f.Outputs {
		t := v.Tensor()
		if t == nil || moved[v] || !slices.Equal(shapeOf(v), shapeOf(f.Main.Results[0])) {
			return along
		}
		for i, d := range op.OrderOf(t) {
			along[i] = d >= 2
		}
	}
	return along
}

// moved are the values of f computed of elements of its product that have another place, also where shapes are the same: those of a
// transpose of a cube.
func (f *Form) moved() map[*ir.Value]bool {
	of := map[*ir.Value]bool{f.Main.Results[0]: true} // what is computed of the product
	moved := map[*ir.Value]bool{}
	for _, o := range f.Ops {
		for _, x := range o.Operands {
			if !of[x] {
				continue
			}
			for _, v := range o.Results {
				of[v] = true
				moved[v] = moved[v] || moved[x] || !op.Of(o).Is(op.Pointwise) || !slices.Equal(shapeOf(x), shapeOf(v))
			}
		}
	}
	return moved
}

// convolutionWritten is the element at idx of a convolution of few products, without a loop: of the taps
// that meet an element, in the order of the loop.
func (e *evaluator) convolutionWritten(o *ir.Op, idx []Index) *Expr {
	elem := o.Results[0].Elem()
	wide := accumulator(elem)
	x, w := o.Operands[0], o.Operands[1]
	xs, ws := shapeOf(x), shapeOf(w)
	group := e.Div(idx[1], ws[0]/op.Int(o, "feature_group_count"))
	// Windows have bounds of their own; what is read does not depend on other bounds of the dimensions that they move along.
	edge := e.edge
	moved, done := e.unbound(idx[2:])
	defer done()
	for _, c := range edge {
		base, _ := c.X.Apart()
		if !slices.ContainsFunc(moved, func(x Index) bool { at, _ := x.Apart(); return at.Equal(base) }) {
			e.edge = append(e.edge, c)
		}
	}
	widened := func(v *ir.Value, at []Index) *Expr {
		f := e.at(v, at)
		if f.Elem != wide {
			f = e.scalar("convert", wide, f)
		}
		return f
	}
	var sum *Expr
	for c := range ws[1] {
		for _, tap := range tapsOf(ws[2:]) {
			at := []Index{idx[0], group.Times(ws[1]).Plus(c)}
			filter := []Index{idx[1], Const(c)}
			var inside []Condition
			for d, q := range tap {
				stride, dilation, low := steps(o, d, "window_strides", "rhs_dilation")
				place, conds := e.elementAt(moved[d].Times(stride).Plus(q*dilation-low), xs[2+d], spread(o, d))
				at, filter, inside = append(at, place), append(filter, Const(q)), append(inside, conds...)
			}
			if never(inside) {
				continue
			}
			// A weight that meets the padding is multiplied by zero, as by the tiles of products.
			image := e.guard(inside, widened(x, at), e.number(wide, 0))
			y := e.scalar("mul", wide, image, widened(w, filter))
			if sum != nil {
				y = e.scalar("add", wide, sum, y)
			}
			sum = y
		}
	}
	if sum == nil {
		sum = e.number(wide, 0)
	}
	if wide != elem {
		sum = e.scalar("convert", elem, sum)
	}
	return sum
}

// Partial are the sums of x, an element of Sums in cells, up to each line of the window, first to last; each is
// a part of the next. What lines of a window read is needed one after the other. Other forms have none.
func (f *Form) Partial(x *Expr) (sums []*Expr) {
	if f.Main == nil {
		return nil
	}
	line := int(shapeOf(f.Main.Operands[1])[len(shapeOf(f.Main.Operands[1]))-1])
	var chain []*Expr
	seen := map[*Expr]bool{}
	Walk(x, func(y *Expr) {
		if y.Op == "add" && y.From == f.Main && !seen[y] {
			seen[y] = true
			chain = append(chain, y)
		}
	})
	slices.SortFunc(chain, func(a, b *Expr) int { return depth(a) - depth(b) })
	for i := line - 2; i < len(chain); i += line {
		if i >= 0 {
			sums = append(sums, chain[i])
		}
	}
	return sums
}

// depth is how many sums x has been added to.
func depth(x *Expr) (n int) {
	for ; x.Op == "add"; x = x.Args[0] {
		n++
	}
	return n
}
