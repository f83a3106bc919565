package scalar_test

import (
	"math"
	"math/rand/v2"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// patterns are all values of a type of up to 16 bits; of wider ones those with few bits
// set, the ends of ranges, and random ones of all sizes.
func patterns(elem types.Elem) *tensor.Tensor {
	bits := elem.Bits()
	switch {
	case elem == types.I1:
		return tensor.FromInts(elem, []int{2}, []int64{0, 1})
	case bits <= 16:
		all := make([]uint64, 1<<bits)
		for i := range all {
			all[i] = uint64(i)
		}
		return fromBits(elem, all)
	}
	r := rand.New(rand.NewPCG(1, uint64(elem)))
	var all []uint64
	for shift := range bits {
		one := uint64(1) << shift
		all = append(all, one, one-1, -one, ^one, one+1)
	}
	if elem.IsFloat() {
		for _, v := range ends {
			for _, w := range []float64{v, -v} {
				b := math.Float64bits(w)
				if elem == types.F32 {
					b = uint64(math.Float32bits(float32(w)))
				}
				all = append(all, b-1, b, b+1)
			}
		}
	}
	for range 1 << 15 {
		v := r.Uint64()
		if elem.IsInt() {
			v >>= r.IntN(int(bits))
			if r.IntN(2) == 0 {
				v = -v
			}
		}
		all = append(all, v)
	}
	for range 1 << 13 { // floats of moderate size
		if elem == types.F32 {
			all = append(all, uint64(math.Float32bits(float32(r.NormFloat64()*4))))
		} else {
			all = append(all, math.Float64bits(r.NormFloat64()*4))
		}
	}
	return fromBits(elem, all)
}

// ends are where conversions and functions change.
var ends = []float64{
	0, 1, 0.5, 1.5, 2.5, 7, 8, 15, 16, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 1 << 31, 1 << 32, 1 << 63, 1 << 64,
	448, 464, 480, 57344, 61440, 65504, 65520, 0x1p-6, 0x1p-9, 0x1p-10, 0x1p-14, 0x1p-16, 0x1p-17, 0x1p-24, 0x1p-25, 0x1p-126, 0x1p-149, 0x1.FEp127, 0x1.FFp127,
	math.MaxFloat32, 88.72283935546875, 103.97208404541015625, 87.3365478515625, math.Inf(1), math.NaN(), math.Pi, math.Pi / 2, 1e22, 0x1.921fb6p0, 0x1.fffffep-1,
}

// fromBits makes a tensor of the low bits of each number.
func fromBits(elem types.Elem, all []uint64) *tensor.Tensor {
	t := tensor.New(elem, len(all))
	for i, b := range all {
		switch {
		case elem == types.F32:
			t.F32[i] = math.Float32frombits(uint32(b))
		case elem == types.F64:
			t.F64[i] = math.Float64frombits(b)
		case elem.IsFloat():
			t.F32[i] = float32(types.FromBits(b, elem))
		default:
			t.SetInt(i, int64(b))
		}
	}
	return t
}

// operands are n values of each operand's type: all where there is one operand, all
// pairs of two of 8 bits, and otherwise random ones, of which some are equal.
func operands(s single) (n int, args []*tensor.Tensor) {
	const most = 1 << 16
	r := rand.New(rand.NewPCG(2, 3))
	var pools []*tensor.Tensor
	n = 1
	for _, a := range s.x.Args {
		p := patterns(a.Elem)
		pools = append(pools, p)
		n *= min(p.Len(), most)
	}
	all := n <= most
	n = min(n, most)
	step := 1
	for k, p := range pools {
		at := make([]int, n)
		for i := range at {
			switch {
			case all:
				at[i] = i / step % p.Len()
			case r.IntN(2) == 0 && p.Len() > 1<<12 && s.x.Args[k].Elem.Bytes() > 2:
				at[i] = r.IntN(1 << 10) // the special ones
			default:
				at[i] = r.IntN(p.Len())
			}
		}
		step *= p.Len()
		x := pick(p, at)
		if k > 0 && !all && x.Elem == args[k-1].Elem {
			for i := 0; i < n; i += 7 {
				copyElement(x, i, args[k-1], i)
			}
		}
		args = append(args, x)
	}
	return n, args
}

// pick is the elements of p at those places.
func pick(p *tensor.Tensor, at []int) *tensor.Tensor {
	t := tensor.New(p.Elem, len(at))
	for i, k := range at {
		copyElement(t, i, p, k)
	}
	return t
}

func copyElement(to *tensor.Tensor, i int, from *tensor.Tensor, k int) {
	switch to.Kind() {
	case tensor.KindF32:
		to.F32[i] = from.F32[k]
	case tensor.KindF64:
		to.F64[i] = from.F64[k]
	case tensor.KindInt:
		to.Int[i] = from.Int[k]
	case tensor.KindBool:
		to.Bool[i] = from.Bool[k]
	}
}
