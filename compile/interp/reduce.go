package interp

import (
	"math"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// reducer reduces elements of T into an accumulator of A by one of the named
// reductions.
type reducer[T number, A float64 | int64] struct {
	init  A
	row   func(acc A, x []T) A // reduces x, in order
	cols  func(acc []A, x []T) // combines acc[j] with x[j]
	merge func(a, b A) A       // combines partial results
}

func newReducer[T number, A float64 | int64](kind string, elem types.Elem) reducer[T, A] {
	low, lowInt := tensor.MinValue(elem)
	high, highInt := tensor.MaxValue(elem)
	pick := func(f float64, i int64) A {
		if elem.IsFloat() {
			return A(f)
		}
		return A(i)
	}
	switch kind {
	case "mul":
		return reducer[T, A]{1, func(acc A, x []T) A {
			for _, v := range x {
				acc *= A(v)
			}
			return acc
		}, func(acc []A, x []T) {
			for j, v := range x {
				acc[j] *= A(v)
			}
		}, func(a, b A) A { return a * b }}
	case "max":
		return reducer[T, A]{pick(low, lowInt), func(acc A, x []T) A {
			for _, v := range x {
				acc = max(acc, A(v))
			}
			return acc
		}, func(acc []A, x []T) {
			for j, v := range x {
				acc[j] = max(acc[j], A(v))
			}
		}, func(a, b A) A { return max(a, b) }}
	case "min":
		return reducer[T, A]{pick(high, highInt), func(acc A, x []T) A {
			for _, v := range x {
				acc = min(acc, A(v))
			}
			return acc
		}, func(acc []A, x []T) {
			for j, v := range x {
				acc[j] = min(acc[j], A(v))
			}
		}, func(a, b A) A { return min(a, b) }}
	default:
		return reducer[T, A]{0, sumRow[T, A], func(acc []A, x []T) {
			for j, v := range x {
				acc[j] += A(v)
			}
		}, func(a, b A) A { return a + b }}
	}
}

// sumRow has four accumulators, so that additions are independent.
func sumRow[T number, A float64 | int64](acc A, x []T) A {
	var s0, s1, s2, s3 A
	n := len(x) &^ 3
	for i := 0; i < n; i += 4 {
		v := x[i : i+4 : i+4]
		s0 += A(v[0])
		s1 += A(v[1])
		s2 += A(v[2])
		s3 += A(v[3])
	}
	for _, v := range x[n:] {
		s0 += A(v)
	}
	return acc + ((s0 + s1) + (s2 + s3))
}

// halfReducer rounds every step to f16, for accumulate = f16.
func halfReducer(kind string) reducer[float32, float64] {
	f := newReducer[float32, float64](kind, types.F16)
	merge := func(a, b float64) float64 { return float64(tensor.Round64(types.F16, f.merge(a, b))) }
	return reducer[float32, float64]{f.init, func(acc float64, x []float32) float64 {
		for _, v := range x {
			acc = merge(acc, float64(v))
		}
		return acc
	}, func(acc []float64, x []float32) {
		for j, v := range x {
			acc[j] = merge(acc[j], float64(v))
		}
	}, merge}
}

// reduce reduces the middle one of the dimensions [outer, n, inner] of x to
// outer × inner accumulators. Long reductions are split into pieces whose
// length depends only on n, so that the result does not depend on the threads;
// ordered prevents that.
func reduce[T number, A float64 | int64](p *pool, x []T, outer, n, inner int, f reducer[T, A], ordered bool) []A {
	const long = 1 << 15
	length := n
	if !ordered {
		length = max(1, min(n, max(64, long/inner)))
	}
	pieces := 1
	if length > 0 && n > 0 {
		pieces = (n + length - 1) / length
	}
	blocks := (inner + lanes - 1) / lanes // of columns
	part := make([]A, outer*pieces*inner)
	for i := range part {
		part[i] = f.init
	}
	p.parallel(outer*pieces*blocks, max(1, elements/max(1, length*min(inner, lanes))), func(lo, hi int) {
		for i := lo; i < hi && !p.stopped(); i++ {
			o, piece, block := i/(pieces*blocks), i/blocks%pieces, i%blocks
			k0, k1 := piece*length, min((piece+1)*length, n)
			if inner == 1 {
				part[i] = f.row(part[i], x[o*n+k0:o*n+k1])
				continue
			}
			j0, j1 := block*lanes, min((block+1)*lanes, inner)
			acc := part[(o*pieces+piece)*inner:][j0:j1]
			for k := k0; k < k1; k++ {
				f.cols(acc, x[(o*n+k)*inner:][j0:j1])
			}
		}
	})
	if pieces == 1 {
		return part
	}
	out := make([]A, outer*inner)
	for o := range outer {
		sum := out[o*inner:][:inner]
		copy(sum, part[o*pieces*inner:])
		for piece := 1; piece < pieces; piece++ {
			for j, v := range part[(o*pieces+piece)*inner:][:inner] {
				sum[j] = f.merge(sum[j], v)
			}
		}
	}
	return out
}

// reduceTensor is reduce on a tensor of any kind, stored in a tensor of elem
// with the given shape.
func reduceTensor(p *pool, kind string, x *tensor.Tensor, outer, n, inner int, half bool, elem types.Elem, shape []int) *tensor.Tensor {
	to := tensor.New(elem, shape...)
	floats := func(acc []float64) {
		for i, v := range acc {
			to.SetFloat(i, v)
		}
	}
	switch x.Kind() {
	case tensor.KindF32:
		f := newReducer[float32, float64](kind, x.Elem)
		if half {
			f = halfReducer(kind)
		}
		floats(reduce(p, x.F32, outer, n, inner, f, half))
	case tensor.KindF64:
		floats(reduce(p, x.F64, outer, n, inner, newReducer[float64, float64](kind, x.Elem), false))
	case tensor.KindBool:
		for i, v := range reduce(p, x.Bool, outer, n, inner, newReducer[uint8, int64](kind, x.Elem), false) {
			to.SetInt(i, min(v, 1))
		}
	case tensor.KindInt:
		data, flip := signedOrder(x, kind)
		from := x.Elem
		if flip != 0 {
			from = types.I64
		}
		for i, v := range reduce(p, data, outer, n, inner, newReducer[int64, int64](kind, from), false) {
			to.SetInt(i, v^flip)
		}
	}
	return to
}

// signedOrder is x's integers with, for max and min of ui64, the top bit
// flipped, which orders bit patterns as signed integers; results are flipped
// back.
func signedOrder(x *tensor.Tensor, kind string) (data []int64, flip int64) {
	if x.Elem != types.UI64 || kind != "max" && kind != "min" {
		return x.Int, 0
	}
	flip = math.MinInt64
	data = make([]int64, len(x.Int))
	for i, v := range x.Int {
		data[i] = v ^ flip
	}
	return data, flip
}
