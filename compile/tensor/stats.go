package tensor

import "math"

// Stats sums up a tensor in a few numbers. Min, Max and Mean are over the
// finite elements and NaN where there are none.
type Stats struct {
	Min, Max, Mean float64
	NaNs, Infs     int
}

// Stats looks at every element once.
func (t *Tensor) Stats() Stats {
	s := Stats{Min: math.Inf(1), Max: math.Inf(-1)}
	var sum float64
	n := t.Len()
	finite := 0
	for i := range n {
		v := t.Float(i)
		switch {
		case v != v:
			s.NaNs++
			continue
		case math.IsInf(v, 0):
			s.Infs++
			continue
		}
		s.Min, s.Max = math.Min(s.Min, v), math.Max(s.Max, v)
		sum += v
		finite++
	}
	if finite == 0 {
		return Stats{Min: math.NaN(), Max: math.NaN(), Mean: math.NaN(), NaNs: s.NaNs, Infs: s.Infs}
	}
	s.Mean = sum / float64(finite)
	return s
}

// MaxDiff is the largest absolute difference between elements of a and b,
// divided by 1 + |b| (so relative for large and absolute for small values).
// Equal infinities and two NaNs differ by 0; it is +Inf where the shapes differ
// or only one is NaN.
func MaxDiff(a, b *Tensor) float64 {
	if a.Len() != b.Len() || len(a.Shape) != len(b.Shape) {
		return math.Inf(1)
	}
	for i := range a.Shape {
		if a.Shape[i] != b.Shape[i] {
			return math.Inf(1)
		}
	}
	var worst float64
	for i := range a.Len() {
		x, y := a.Float(i), b.Float(i)
		switch {
		case x == y || x != x && y != y:
		case x != x || y != y:
			return math.Inf(1)
		default:
			worst = max(worst, math.Abs(x-y)/(1+math.Abs(y)))
		}
	}
	return worst
}
