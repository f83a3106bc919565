package tensor

import "math"

// Stats is a summary of a tensor. Min, Max and Mean are over the finite
// elements and NaN where there are none.
type Stats struct {
	Min, Max, Mean float64
	NaNs, Infs     int
}

// statsGrain is the number of elements that are summed at a time; it fixes the
// order of summation, whatever the number of threads.
const statsGrain = 1 << 16

// Stats reads every element once, on all cores.
func (t *Tensor) Stats() Stats {
	parts := make([]partial, (t.Len()+statsGrain-1)/statsGrain)
	parallel(len(parts), 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from, to := i*statsGrain, min((i+1)*statsGrain, t.Len())
			switch t.Kind() {
			case KindF32:
				parts[i] = sumUp(t.F32[from:to])
			case KindF64:
				parts[i] = sumUp(t.F64[from:to])
			default:
				whole := make([]float64, to-from)
				for j := range whole {
					whole[j] = t.Float(from + j)
				}
				parts[i] = sumUp(whole)
			}
		}
	})
	all := partial{min: math.Inf(1), max: math.Inf(-1)}
	for _, p := range parts {
		all.min, all.max, all.sum = min(all.min, p.min), max(all.max, p.max), all.sum+p.sum
		all.finite, all.nans, all.infs = all.finite+p.finite, all.nans+p.nans, all.infs+p.infs
	}
	s := Stats{Min: all.min, Max: all.max, Mean: all.sum / float64(all.finite), NaNs: all.nans, Infs: all.infs}
	if all.finite == 0 {
		s.Min, s.Max, s.Mean = math.NaN(), math.NaN(), math.NaN()
	}
	return s
}

// partial is the statistics of some of the elements.
type partial struct {
	min, max, sum      float64
	finite, nans, infs int
}

func sumUp[T float32 | float64](vals []T) partial {
	p := partial{min: math.Inf(1), max: math.Inf(-1)}
	lo, hi := T(math.Inf(1)), T(math.Inf(-1))
	for _, v := range vals {
		if v-v != 0 { // only NaN and the infinities
			if v != v {
				p.nans++
			} else {
				p.infs++
			}
			continue
		}
		if v < lo {
			lo = v
		}
		if v > hi {
			hi = v
		}
		p.sum += float64(v)
		p.finite++
	}
	if p.finite > 0 {
		p.min, p.max = float64(lo), float64(hi)
	}
	return p
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
