package cost

import (
	"cmp"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// parts are the slices that are taken of one value in one shape.
type parts struct {
	of    *ir.Value
	boxes [][]op.Range
}

// addPart adds a slice of v to those of its shape; values of one shape that are
// looked at together are views of one another.
func addPart(ps []*parts, v *ir.Value, box []op.Range) []*parts {
	i := slices.IndexFunc(ps, func(p *parts) bool {
		return slices.EqualFunc(p.of.Tensor().Shape, v.Tensor().Shape, dim.Dim.Equal) && slices.Equal(p.of.Tensor().At.Order, v.Tensor().At.Order)
	})
	if i < 0 {
		i = len(ps)
		ps = append(ps, &parts{of: v})
	}
	ps[i].boxes = append(ps[i].boxes, box)
	return ps
}

// each is what the parts are one by one.
func (p *parts) each() dim.Dim {
	t := p.of.Tensor()
	var sum dim.Dim
	for _, b := range p.boxes {
		n := dim.Const(1)
		for d, r := range b {
			if r.Stride == 0 {
				n = n.Mul(t.Shape[d])
			} else {
				n = n.Scale(max(r.Limit-r.Start+r.Stride-1, 0) / r.Stride)
			}
		}
		sum = sum.Add(t.Elem.Size(n))
	}
	return sum
}

// maxCells bounds the work of counting what parts have in common, with so many
// steps for each of them; beyond it they count one by one.
const maxCells = 1 << 12

// bytes is how much of the value the parts are, what lies in several of them
// counted once; ok is false where that is not known in numbers or costs too much.
func (p *parts) bytes() (n dim.Dim, ok bool) {
	t := p.of.Tensor()
	n = dim.Const(1)
	var cut []int // dimensions of which some part takes a part
	for d, size := range t.Shape {
		all, none := true, true
		for _, b := range p.boxes {
			all, none = all && b[d].Stride == 0, none && b[d].Stride != 0
		}
		if all {
			n = n.Mul(size)
			continue
		}
		whole, known := size.Int()
		if !known && !none {
			return n, false
		}
		for i, b := range p.boxes {
			if b[d].Stride == 0 {
				p.boxes[i] = slices.Clone(b)
				p.boxes[i][d] = op.Range{Limit: whole, Stride: 1}
			}
		}
		cut = append(cut, d)
	}
	all := make([]int, len(p.boxes))
	for i := range all {
		all[i] = i
	}
	work := maxCells + 64*len(p.boxes)
	count, ok := p.count(all, cut, &work)
	return t.Elem.Size(n.Scale(count)), ok
}

// count is how many elements the given parts have together in the dimensions
// cut: those of the first one fall into stretches that lie in the same parts, and
// in each of these into the remainders of the parts' strides.
func (p *parts) count(of, cut []int, work *int) (n int64, ok bool) {
	if len(cut) == 0 || len(of) == 0 {
		return int64(min(len(of), 1)), true
	}
	d, rest := cut[0], cut[1:]
	of = slices.Clone(of)
	slices.SortFunc(of, func(a, b int) int { return cmp.Compare(p.boxes[a][d].Start, p.boxes[b][d].Start) })
	var ends []int64
	for _, i := range of {
		ends = append(ends, p.boxes[i][d].Start, p.boxes[i][d].Limit)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	var here []int // those that the stretch lies in
	for k := range len(ends) - 1 {
		from, to := ends[k], ends[k+1]
		here = slices.DeleteFunc(here, func(i int) bool { return p.boxes[i][d].Limit <= from })
		for len(of) > 0 && p.boxes[of[0]][d].Start <= from {
			if p.boxes[of[0]][d].Limit > from {
				here = append(here, of[0])
			}
			of = of[1:]
		}
		step := int64(1)
		for _, i := range here {
			step = leastCommonMultiple(step, p.boxes[i][d].Stride)
		}
		if *work -= len(here) + 1; *work < 0 || step > maxCells {
			return 0, false
		}
		for at := from; at < min(from+step, to) && len(here) > 0; at++ {
			var hit []int
			for _, i := range here {
				if r := p.boxes[i][d]; (at-r.Start)%r.Stride == 0 {
					hit = append(hit, i)
				}
			}
			if *work -= len(here); *work < 0 {
				return 0, false
			}
			inner, ok := p.count(hit, rest, work)
			if !ok {
				return 0, false
			}
			n += inner * ((to-at-1)/step + 1)
		}
	}
	return n, true
}

// leastCommonMultiple stays below maxCells², beyond which it does not matter.
func leastCommonMultiple(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	if b/x > maxCells {
		return maxCells * maxCells
	}
	return a * (b / x)
}
