package op

import (
	"cmp"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
)

// Phases are how the outputs of a convolution divide whose image has zeros between its elements, as in the gradient by the
// input of a strided one: outputs of one phase, every Period-th along each dimension, meet elements with the same taps of the
// window, and zeros or padding with the others. No tap is of two phases.
type Phases struct {
	Period []int64 // of each spatial dimension, as in all lists here
	Step   []int64 // elements of the image between two neighbouring outputs of a phase
	Taps   []PhaseTap
	All    []Phase // those with the most taps first
}

// PhaseTap is a tap of the window: its number there, last dimension fastest, and the element, or place in the padding, that the
// first output of its phase meets with it.
type PhaseTap struct {
	Number int64
	At     []int64
}

// Phase is the outputs from First on; its taps are those from Begin on, below End.
type Phase struct {
	First      []int64
	Begin, End int64
}

// The most phases, and taps that they have, which kernels tell apart.
const (
	mostPhases    = 64
	mostPhaseTaps = 512
)

// PhasesOf are those of o, a convolution; nil where its image has no zeros between its elements, where phases are too many, or where
// some tap meets zeros alone.
func PhasesOf(o *ir.Op) *Phases {
	if w, p := convolutionWindow(o); p == nil {
		return w.phases()
	}
	return nil
}

// phases are those of a window's places.
func (w *window) phases() *Phases {
	f := &Phases{All: []Phase{{}}}
	zeros := false
	taps := int64(1)
	for i := range w.Size {
		spread := w.spread(i)
		zeros = zeros || spread > 1
		f.Period = append(f.Period, spread/GCD(w.Stride[i], spread))
		f.Step = append(f.Step, w.Stride[i]/GCD(w.Stride[i], spread))
		first := f.Period[i]
		if out, ok := w.Out[i].Int(); ok {
			first = min(first, out)
		}
		if taps *= w.Size[i]; taps > mostPhaseTaps || first < 1 || first > mostPhases {
			return nil
		}
		var all []Phase
		for _, p := range f.All {
			for at := range first {
				all = append(all, Phase{First: append(slices.Clone(p.First), at)})
			}
		}
		if f.All = all; len(all) > mostPhases {
			return nil
		}
	}
	if !zeros {
		return nil
	}
	met := make([][]PhaseTap, len(f.All))
	for n := range f.All {
		met[n] = w.met(f.All[n].First)
		f.All[n].End = int64(len(met[n]))
	}
	order := make([]int, len(f.All))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.All[b].End, f.All[a].End) })
	sorted := make([]Phase, 0, len(order))
	for _, n := range order {
		begin := int64(len(f.Taps))
		f.Taps = append(f.Taps, met[n]...)
		sorted = append(sorted, Phase{f.All[n].First, begin, int64(len(f.Taps))})
	}
	if f.All = sorted; int64(len(f.Taps)) != taps { // kernels read all of the filter
		return nil
	}
	return f
}

// met are the taps with which the place `first` meets elements or padding, and no zeros between them.
func (w *window) met(first []int64) []PhaseTap {
	all := []PhaseTap{{}}
	for i, place := range first {
		var next []PhaseTap
		for _, t := range all {
			for q := range w.Size[i] {
				if at := place*w.Stride[i] + q*w.Dilation[i] - w.Padding[i][0]; at%w.spread(i) == 0 {
					next = append(next, PhaseTap{t.Number*w.Size[i] + q, append(slices.Clone(t.At), at/w.spread(i))})
				}
			}
		}
		all = next
	}
	return all
}

// Outputs are the most outputs along dimension i, of n, that a phase has; for an open number about as many.
func (f *Phases) Outputs(i int, n dim.Dim) dim.Dim {
	if k, ok := n.Int(); ok {
		return dim.Const((k + f.Period[i] - 1) / f.Period[i])
	}
	return dim.Quotient(n, f.Period[i])
}

// phased is p, of a window w that moves as m over images of so many channels, as products of its phases f.
func (p Product) phased(f *Phases, w *window, m Moving, spatial []dim.Dim, images, channels dim.Dim) *Product {
	last := len(spatial) - 1
	m.Lines, m.Span, m.Planes = dim.Const(1), dim.Dim{}, 1
	places := images
	for d := range spatial {
		n := f.Outputs(d, spatial[d])
		common := GCD(w.Dilation[d], w.spread(d))
		taps := (w.Size[d]-1)*common/w.spread(d) + 1                // of a phase, at most
		behind := (taps - 1) * (w.Dilation[d] / common) / f.Step[d] // outputs between the first and the last that they meet
		m.Span = m.Span.Mul(n).Add(dim.Const(behind))
		m.Planes *= min(taps, f.Step[d])
		places = places.Mul(n)
		if d < last {
			m.Lines = m.Lines.Mul(n)
		} else {
			m.Outputs, m.Reach = n, behind
		}
	}
	m.Taps = max(1, m.Taps/int64(len(f.All)))
	out := p
	out.Phases, out.Channels, out.Window = int64(len(f.All)), channels, &m
	out.Batch = p.Batch.Scale(out.Phases)
	if p.Turned {
		out.Cols = places
	} else {
		out.Rows = places
	}
	return &out
}
