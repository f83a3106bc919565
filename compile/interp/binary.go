package interp

import (
	"math"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// binary is the loops of an op with two broadcast operands. uints, where set,
// is for ui64, whose storage is a bit pattern.
type binary struct {
	f32   func(to, x, y []float32)
	f64   func(to, x, y []float64)
	ints  func(to, x, y []int64)
	uints func(to, x, y []int64)
	bools func(to, x, y []uint8)
}

func (b binary) run(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.common(0)
	if err != nil {
		return nil, err
	}
	to := tensor.New(c.in[0].Elem, shape...)
	if !b.apply(c.pool, to, c.in[0], c.in[1]) {
		return nil, c.errorf("DM703", "%s is not defined on %s", c.op.Name, to.Elem)
	}
	return one(to), nil
}

func (b binary) apply(p *pool, to, x, y *tensor.Tensor) bool {
	kind := x.Kind()
	switch {
	case kind == tensor.KindF32 && b.f32 != nil:
		map2(p, to, x, y, b.f32)
	case kind == tensor.KindF64 && b.f64 != nil:
		map2(p, to, x, y, b.f64)
	case kind == tensor.KindInt && x.Elem == types.UI64 && b.uints != nil:
		map2(p, to, x, y, b.uints)
	case kind == tensor.KindInt && b.ints != nil:
		map2(p, to, x, y, b.ints)
	case kind == tensor.KindBool && b.bools != nil:
		map2(p, to, x, y, b.bools)
	default:
		return false
	}
	return true
}

func binaryExecutors() map[string]executor {
	m := map[string]executor{}
	for name, b := range binaries {
		m["dm."+name] = b.run
	}
	for name, f := range shifts {
		m["dm."+name] = func(c *call) ([]*tensor.Tensor, error) {
			size := c.in[0].Elem.Bits()
			return binary{ints: each(func(x, y int64) int64 { return f(x, y, size) })}.run(c)
		}
	}
	return m
}

var binaries = map[string]binary{
	"add":   {addLoop[float32], addLoop[float64], addLoop[int64], nil, orLoop[uint8]},
	"sub":   {subLoop[float32], subLoop[float64], subLoop[int64], nil, nil},
	"mul":   {mulLoop[float32], mulLoop[float64], mulLoop[int64], nil, andLoop[uint8]},
	"div":   {divLoop[float32], divLoop[float64], each(divInt), each(divUint), nil},
	"max":   {maxLoop[float32], maxLoop[float64], maxLoop[int64], each(maxUint), orLoop[uint8]},
	"min":   {minLoop[float32], minLoop[float64], minLoop[int64], each(minUint), andLoop[uint8]},
	"rem":   {viaFloat(math.Mod), each(math.Mod), each(remInt), each(remUint), nil},
	"pow":   {viaFloat(pow), each(math.Pow), each(powInt), each(powUint), nil},
	"atan2": {viaFloat(math.Atan2), each(math.Atan2), nil, nil, nil},
	"and":   {nil, nil, andLoop[int64], nil, andLoop[uint8]},
	"or":    {nil, nil, orLoop[int64], nil, orLoop[uint8]},
	"xor":   {nil, nil, xorLoop[int64], nil, xorLoop[uint8]},
}

// pow is math.Pow of float32 numbers, whose squares, and cubes but for one rounding, are exact: models are full of both.
func pow(x, y float64) float64 {
	switch y {
	case 2:
		return x * x
	case 3:
		return x * x * x
	}
	return math.Pow(x, y)
}

// shifts move the bits of integers of so many bits; by at least as many, or by a
// negative number, all of them out.
var shifts = map[string]func(x, y, size int64) int64{
	"shift_left": func(x, y, size int64) int64 {
		if uint64(y) >= uint64(size) {
			return 0
		}
		return x << y
	},
	"shift_right_logical": func(x, y, size int64) int64 {
		if uint64(y) >= uint64(size) {
			return 0
		}
		return int64(uint64(x) << (64 - size) >> (64 - size) >> y)
	},
	"shift_right_arithmetic": func(x, y, size int64) int64 {
		return x << (64 - size) >> (64 - size) >> min(uint64(y), 63)
	},
}

// each is the loop that calls f for every element.
func each[T number](f func(x, y T) T) func(to, x, y []T) {
	return func(to, x, y []T) {
		for i, v := range x {
			to[i] = f(v, y[i])
		}
	}
}

func viaFloat(f func(x, y float64) float64) func(to, x, y []float32) {
	return func(to, x, y []float32) {
		for i, v := range x {
			to[i] = float32(f(float64(v), float64(y[i])))
		}
	}
}

func addLoop[T number](to, x, y []T) {
	x, y = x[:len(to)], y[:len(to)]
	for i := range to {
		to[i] = x[i] + y[i]
	}
}

func subLoop[T number](to, x, y []T) {
	x, y = x[:len(to)], y[:len(to)]
	for i := range to {
		to[i] = x[i] - y[i]
	}
}

func mulLoop[T number](to, x, y []T) {
	x, y = x[:len(to)], y[:len(to)]
	for i := range to {
		to[i] = x[i] * y[i]
	}
}

func divLoop[T float32 | float64](to, x, y []T) {
	x, y = x[:len(to)], y[:len(to)]
	for i := range to {
		to[i] = x[i] / y[i]
	}
}

// maxLoop and minLoop give NaN if an operand is NaN; of two zeros max gives +0
// if there is one, min -0.
func maxLoop[T number](to, x, y []T) {
	x, y = x[:len(to)], y[:len(to)]
	for i := range to {
		to[i] = max(x[i], y[i])
	}
}

func minLoop[T number](to, x, y []T) {
	x, y = x[:len(to)], y[:len(to)]
	for i := range to {
		to[i] = min(x[i], y[i])
	}
}

func andLoop[T int64 | uint8](to, x, y []T) {
	for i, v := range x {
		to[i] = v & y[i]
	}
}

func orLoop[T int64 | uint8](to, x, y []T) {
	for i, v := range x {
		to[i] = v | y[i]
	}
}

func xorLoop[T int64 | uint8](to, x, y []T) {
	for i, v := range x {
		to[i] = v ^ y[i]
	}
}

func divInt(x, y int64) int64 {
	if y == 0 {
		return -1
	}
	return x / y // MinInt64 / -1 wraps
}

func divUint(x, y int64) int64 {
	if y == 0 {
		return -1
	}
	return int64(uint64(x) / uint64(y))
}

func remInt(x, y int64) int64 {
	if y == 0 {
		return x
	}
	return x % y
}

func remUint(x, y int64) int64 {
	if y == 0 {
		return x
	}
	return int64(uint64(x) % uint64(y))
}

func maxUint(x, y int64) int64 { return int64(max(uint64(x), uint64(y))) }

func minUint(x, y int64) int64 { return int64(min(uint64(x), uint64(y))) }

// powInt is x to the y, wrapping; a negative power of anything but 1 and -1 is 0.
func powInt(x, y int64) int64 {
	if y < 0 {
		switch {
		case x == 1 || x == -1 && y&1 == 0:
			return 1
		case x == -1:
			return -1
		}
		return 0
	}
	return powUint(x, y)
}

func powUint(x, y int64) int64 {
	r := int64(1)
	for e := uint64(y); e > 0; e >>= 1 {
		if e&1 == 1 {
			r *= x
		}
		x *= x
	}
	return r
}
