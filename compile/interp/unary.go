package interp

import (
	"math"
	"math/bits"

	"dmir/compile/tensor"
	"dmir/dialect/op"
)

// unary is the loops of an op with one operand, for the kinds it is defined on.
type unary struct {
	f32   func(to, x []float32)
	f64   func(to, x []float64)
	ints  func(to, x []int64)
	bools func(to, x []uint8)
}

func (u unary) run(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	to := tensor.New(x.Elem, x.Shape...)
	kind := x.Kind()
	switch {
	case kind == tensor.KindF32 && u.f32 != nil:
		map1(c.pool, to, x, u.f32)
	case kind == tensor.KindF64 && u.f64 != nil:
		map1(c.pool, to, x, u.f64)
	case kind == tensor.KindInt && u.ints != nil:
		map1(c.pool, to, x, u.ints)
	case kind == tensor.KindBool && u.bools != nil:
		map1(c.pool, to, x, u.bools)
	default:
		return nil, c.errorf("DM703", "%s is not defined on %s", c.op.Name, x.Elem)
	}
	return one(to), nil
}

// through computes in float64, which is wider than every narrower result.
func through(f func(float64) float64) unary {
	return unary{
		f32: func(to, x []float32) {
			for i, v := range x {
				to[i] = float32(f(float64(v)))
			}
		},
		f64: func(to, x []float64) {
			for i, v := range x {
				to[i] = f(v)
			}
		},
	}
}

func unaryExecutors() map[string]executor {
	table := map[string]unary{
		"abs":      {absLoop[float32], absLoop[float64], absLoop[int64], nil},
		"neg":      {negLoop[float32], negLoop[float64], negLoop[int64], nil},
		"relu":     {reluLoop[float32], reluLoop[float64], reluLoop[int64], nil},
		"sign":     {signLoop[float32], signLoop[float64], signLoop[int64], nil},
		"not":      {nil, nil, notInts, notBools},
		"exp":      through(math.Exp),
		"log":      through(math.Log),
		"log1p":    through(math.Log1p),
		"expm1":    through(math.Expm1),
		"sqrt":     {sqrtF32, through(math.Sqrt).f64, nil, nil},
		"rsqrt":    through(func(x float64) float64 { return 1 / math.Sqrt(x) }),
		"cbrt":     through(math.Cbrt),
		"tanh":     through(math.Tanh),
		"erf":      through(math.Erf),
		"erfc":     through(math.Erfc),
		"erfinv":   through(math.Erfinv),
		"sinh":     through(math.Sinh),
		"cosh":     through(math.Cosh),
		"asinh":    through(math.Asinh),
		"acosh":    through(math.Acosh),
		"atanh":    through(math.Atanh),
		"logistic": through(logistic),
		"silu":     through(silu),
		"floor":    through(math.Floor),
		"ceil":     through(math.Ceil),
		"round":    through(math.RoundToEven),

		"round_half_away": through(math.Round),
		"tan":             through(math.Tan),
		"cos":             through(math.Cos),
		"sin":             through(math.Sin),
	}
	m := map[string]executor{}
	for name, u := range table {
		m["dm."+name] = u.run
	}
	m["dm.popcnt"] = bitwise(func(x uint64, _ int64) int { return bits.OnesCount64(x) })
	m["dm.count_leading_zeros"] = bitwise(func(x uint64, size int64) int { return bits.LeadingZeros64(x) - 64 + int(size) })
	m["dm.bitcast"] = runBitcast
	m["dm.gelu"] = func(c *call) ([]*tensor.Tensor, error) {
		if op.Str(c.op, "approximate") == "tanh" {
			return through(geluTanh).run(c)
		}
		return through(gelu).run(c)
	}
	return m
}

// bitwise is a function of the bits of integers, which are as many as size.
func bitwise(f func(x uint64, size int64) int) executor {
	return func(c *call) ([]*tensor.Tensor, error) {
		size := c.in[0].Elem.Bits()
		return unary{ints: func(to, x []int64) {
			for i, v := range x {
				to[i] = int64(f(uint64(v)<<(64-size)>>(64-size), size))
			}
		}}.run(c)
	}
}

// runBitcast packs the elements as devices hold them and unpacks them as another type.
func runBitcast(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	y, err := tensor.Unpack(tensor.Pack(x), c.outElem(0), x.Shape)
	if err != nil {
		return nil, c.errorf("DM704", "%s as %s: %v", x.Elem, c.outElem(0), err)
	}
	return one(y), nil
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// silu is x · logistic(x); written as a quotient it would give NaN at -∞.
func silu(x float64) float64 { return x * logistic(x) }

func gelu(x float64) float64 { return 0.5 * x * (1 + math.Erf(x*(1/math.Sqrt2))) }

func geluTanh(x float64) float64 {
	const k = math.Sqrt2 * 2 / math.SqrtPi / 2 // √(2/π)
	return 0.5 * x * (1 + math.Tanh(k*(x+0.044715*x*x*x)))
}

type signedNumber interface{ float32 | float64 | int64 }

// absLoop gives +0 for -0.
func absLoop[T signedNumber](to, x []T) {
	for i, v := range x {
		if v <= 0 {
			v = 0 - v
		}
		to[i] = v
	}
}

func negLoop[T signedNumber](to, x []T) {
	for i, v := range x {
		to[i] = -v
	}
}

// reluLoop is max(x, 0): NaN stays.
func reluLoop[T signedNumber](to, x []T) {
	for i, v := range x {
		to[i] = max(v, 0)
	}
}

// signLoop keeps ±0 and NaN as they are.
func signLoop[T signedNumber](to, x []T) {
	for i, v := range x {
		switch {
		case v > 0:
			v = 1
		case v < 0:
			v = -1
		}
		to[i] = v
	}
}

func sqrtF32(to, x []float32) {
	for i, v := range x {
		to[i] = float32(math.Sqrt(float64(v)))
	}
}

func notInts(to, x []int64) {
	for i, v := range x {
		to[i] = ^v
	}
}

func notBools(to, x []uint8) {
	for i, v := range x {
		to[i] = 1 - v
	}
}
