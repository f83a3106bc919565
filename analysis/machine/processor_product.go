package machine

import (
	"maps"
	"math"
	"slices"

	"dmir/analysis/blocks"
	"dmir/dialect/types"
)

// ProductRates are what all cores together reach in the parts of a product (package blocks); one that is 0 takes no time.
type ProductRates struct {
	Sums                float64 // FLOP/s of the multiplications of whole tiles
	Rows, Cols, Results float64 // B/s of elements that are packed and stored, of the size of sums
	Line                float64 // s for a row of a tile of results, of one core
}

// Window is what is known of the window of a convolution, of which a Product has the features as rows and the outputs of all
// images as columns.
type Window struct {
	Taps           int64 // 0: there is none
	Images         int64
	Lines, Outputs int64 // of an image, and of a line
	Reach          int64 // elements of a line behind that of an output that its taps meet
	Span           int64 // the same of all dimensions: outputs between the first and the last that an element is for
	Planes         int64 // in which an image is divided where the window moves by several elements
}

// seconds is how long work takes on so many cores, on elements of size bytes.
func (r ProductRates) seconds(w blocks.Work, size int64, cores int) (sums, rest float64) {
	per := func(elements, rate float64) float64 {
		if rate == 0 {
			return 0
		}
		return elements * float64(size) / rate
	}
	return w.FLOP / r.Sums, per(w.Rows, r.Rows) + per(w.Cols, r.Cols) + per(w.Results, r.Results) + w.Lines*r.Line/float64(max(cores, 1))
}

// PlanOf is how a CPU of an architecture computes p.
func PlanOf(p Product, arch string) blocks.Plan {
	s := blocks.Shape{Batch: p.Batch, Rows: p.Rows, Cols: p.Cols, Depth: p.Depth, Products: 1, B: blocks.Outer}
	if p.Groups > 1 { // about as many rows each
		s.Batch, s.Rows, s.Grouped = p.Groups, ceil(p.Rows, p.Groups), true
	}
	if p.Elem == types.F64 {
		s.Acc = blocks.F64
	}
	if w := p.Window; w.Taps > 1 && w.Outputs > 1 && p.Cols == w.Images*w.Lines*w.Outputs {
		line := w.Outputs + w.Reach
		columns := (w.Lines-1)*line + w.Outputs
		if blocks.ReadsImage(p.Rows, w.Images, columns, w.Lines*w.Outputs) {
			s.Batch, s.Cols = s.Batch*w.Images, columns
			s.Window = &blocks.Window{Line: line, Step: 1, Planes: w.Planes, Shared: 1, Taps: make([]blocks.Tap, w.Taps)}
		}
	}
	return blocks.Choose(s, arch)
}

// ProcessorProduct is how long p takes on a CPU whose products were measured, in seconds, at the rates of all its cores. Threads,
// of which 0 are all, have tasks evenly, and one with a task more than others is waited for.
func (m *Machine) ProcessorProduct(p Product, threads int) (t ProductTime, ok bool) {
	e := m.computedAs(p.Elem)
	rates := m.Products[e]
	if rates.Sums == 0 {
		return t, false
	}
	p.Elem = e
	plan := PlanOf(p, m.Arch)
	sums, rest := rates.seconds(plan.Work(), plan.Shape.Acc.Size(), m.SMs)
	return ProductTime{Blocks: plan.Tasks, Compute: sums, Tail: rest + (sums+rest)*(m.waits(plan.Tasks, threads)-1), Streams: plan.Few}, true
}

// waits is how many times longer tasks take than if they could be divided evenly among threads.
func (m *Machine) waits(tasks int64, threads int) float64 {
	n := int64(threads)
	if n == 0 {
		n = int64(max(m.SMs, 1))
	}
	return float64(ceil(tasks, n)*n) / float64(tasks)
}

// A ProductRun is a product that a CPU was measured to compute.
type ProductRun struct {
	Product Product
	Moved   int64   // bytes
	Seconds float64 // without what a kernel adds
}

// FitProducts are the rates with which m predicts measured products with the least squares of relative errors.
func (m *Machine) FitProducts(runs []ProductRun) ProductRates {
	const parts = 5
	var size int64
	works := make([][parts]float64, len(runs)) // of all parts, over the time
	for i, r := range runs {
		plan := PlanOf(r.Product, m.Arch)
		if plan.Few {
			continue
		}
		size = plan.Shape.Acc.Size()
		threads := m.Threads(r.Moved, int64(r.Product.FLOP()))
		longer := m.waits(plan.Tasks, threads)
		if threads > 0 {
			longer *= float64(m.SMs) / float64(threads)
		}
		seconds := r.Seconds - m.Move(r.Moved, 0, threads).Seconds
		w := plan.Work()
		for j, x := range [parts]float64{w.FLOP, w.Rows, w.Cols, w.Results, w.Lines / float64(max(m.SMs, 1))} {
			works[i][j] = x * longer / max(seconds, r.Seconds/2)
		}
	}
	per := nonNegative(works)
	rate := func(x float64) float64 {
		if x == 0 {
			return 0
		}
		return float64(size) / x
	}
	out := ProductRates{Rows: rate(per[1]), Cols: rate(per[2]), Results: rate(per[3]), Line: per[4]}
	if per[0] > 0 {
		out.Sums = 1 / per[0]
	}
	return out
}

// nonNegative are the factors of columns, none negative, with which the sums of rows come nearest to 1: least squares by
// coordinate descent, which converges since the sum of squares is convex.
func nonNegative(rows [][5]float64) (x [5]float64) {
	for range 10000 {
		moved := 0.0
		for j := range x {
			var gradient, curve float64
			for _, r := range rows {
				sum := -1.0
				for k, v := range r {
					sum += v * x[k]
				}
				gradient += r[j] * sum
				curve += r[j] * r[j]
			}
			if curve == 0 {
				continue
			}
			next := max(0, x[j]-gradient/curve)
			moved = max(moved, math.Abs(next-x[j])/max(next, x[j], 1e-300))
			x[j] = next
		}
		if moved < 1e-9 {
			break
		}
	}
	return x
}

// productsOf lays what s says of products over what all, those of a machine called name, has.
func (s *Spec) productsOf(m *Machine, name string) error {
	if len(s.Products) == 0 {
		return nil
	}
	all := maps.Clone(m.Products)
	if all == nil {
		all = map[types.Elem]ProductRates{}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Products)) {
		e, ok := types.ElemByName(key)
		if !ok || !e.IsFloat() {
			return wrong(name, "products."+key, "products.%s: %q is not a floating-point element type", key, key)
		}
		r, spec := all[e], s.Products[key]
		copyTo(&r.Sums, spec.Sums)
		copyTo(&r.Rows, spec.Rows)
		copyTo(&r.Cols, spec.Cols)
		copyTo(&r.Results, spec.Results)
		copyTo(&r.Line, spec.Line)
		if r.Sums == 0 {
			return wrong(name, "products."+key, `products.%s.sums is missing; write for example sums = "150 GFLOP/s"`, key)
		}
		all[e] = r
	}
	m.Products = all
	return nil
}
