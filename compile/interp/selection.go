package interp

import (
	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/random"
	"dmir/dialect/types"
)

func selectionExecutors() map[string]executor {
	return map[string]executor{
		"dm.compare": runCompare,
		"dm.select":  runSelect,
		"dm.clamp":   runClamp,
		"dm.convert": func(c *call) ([]*tensor.Tensor, error) { return one(convert(c.pool, c.in[0], c.outElem(0))), nil },
		"dm.dropout": runDropout,
	}
}

func runCompare(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.common(0)
	if err != nil {
		return nil, err
	}
	to := tensor.New(types.I1, shape...)
	x, y, dir := c.in[0], c.in[1], op.Str(c.op, "direction")
	switch x.Kind() {
	case tensor.KindF32:
		map2(c.pool, to, x, y, compareLoop[float32](dir))
	case tensor.KindF64:
		map2(c.pool, to, x, y, compareLoop[float64](dir))
	case tensor.KindBool:
		map2(c.pool, to, x, y, compareLoop[uint8](dir))
	case tensor.KindInt:
		loop := compareLoop[int64](dir)
		if x.Elem == types.UI64 {
			loop = compareUint(loop)
		}
		map2(c.pool, to, x, y, loop)
	}
	return one(to), nil
}

// compareUint moves ui64 into the signed order by flipping the top bit.
func compareUint(loop func(to []uint8, x, y []int64)) func(to []uint8, x, y []int64) {
	return func(to []uint8, x, y []int64) {
		var fx, fy [lanes]int64
		for i, v := range x {
			fx[i], fy[i] = v^(-1<<63), y[i]^(-1<<63)
		}
		loop(to, fx[:len(x)], fy[:len(x)])
	}
}

func compareLoop[T number](dir string) func(to []uint8, x, y []T) {
	loop := func(holds func(x, y T) bool) func(to []uint8, x, y []T) {
		return func(to []uint8, x, y []T) {
			for i, v := range x {
				if holds(v, y[i]) {
					to[i] = 1
				} else {
					to[i] = 0
				}
			}
		}
	}
	switch dir {
	case "eq":
		return loop(func(x, y T) bool { return x == y })
	case "ne":
		return loop(func(x, y T) bool { return x != y })
	case "lt":
		return loop(func(x, y T) bool { return x < y })
	case "le":
		return loop(func(x, y T) bool { return x <= y })
	case "gt":
		return loop(func(x, y T) bool { return x > y })
	default:
		return loop(func(x, y T) bool { return x >= y })
	}
}

func runSelect(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.common(0)
	if err != nil {
		return nil, err
	}
	to := tensor.New(c.in[1].Elem, shape...)
	p, x, y := c.in[0], c.in[1], c.in[2]
	switch to.Kind() {
	case tensor.KindF32:
		map3(c.pool, to, p, x, y, selectLoop[float32])
	case tensor.KindF64:
		map3(c.pool, to, p, x, y, selectLoop[float64])
	case tensor.KindInt:
		map3(c.pool, to, p, x, y, selectLoop[int64])
	case tensor.KindBool:
		map3(c.pool, to, p, x, y, selectLoop[uint8])
	}
	return one(to), nil
}

func selectLoop[T number](to []T, p []uint8, x, y []T) {
	for i, v := range y {
		if p[i] != 0 {
			v = x[i]
		}
		to[i] = v
	}
}

// runClamp is min(max(x, low), high).
func runClamp(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.common(0)
	if err != nil {
		return nil, err
	}
	low, x, high := c.in[0], c.in[1], c.in[2]
	mid, _ := broadcastShape(low.Shape, x.Shape)
	raised, to := tensor.New(x.Elem, mid...), tensor.New(x.Elem, shape...)
	if !binaries["max"].apply(c.pool, raised, x, low) || !binaries["min"].apply(c.pool, to, raised, high) {
		return nil, c.errorf("DM703", "%s is not defined on %s", c.op.Name, x.Elem)
	}
	return one(to), nil
}

// convert is x converted to another element type; x itself if it has that type.
func convert(p *pool, x *tensor.Tensor, elem types.Elem) *tensor.Tensor {
	if x.Elem == elem {
		return x
	}
	to := tensor.New(elem, x.Shape...)
	from, dest := x.Kind(), to.Kind()
	switch {
	case from == tensor.KindF32 && dest == tensor.KindF32:
		map1(p, to, x, func(to, x []float32) { copy(to, x) })
	case from == tensor.KindF32 && dest == tensor.KindF64:
		map1(p, to, x, func(to []float64, x []float32) {
			for i, v := range x {
				to[i] = float64(v)
			}
		})
	case from == tensor.KindInt && dest == tensor.KindInt:
		map1(p, to, x, func(to, x []int64) { copy(to, x) })
	case from == tensor.KindBool && dest == tensor.KindF32:
		map1(p, to, x, func(to []float32, x []uint8) {
			for i, v := range x {
				to[i] = float32(v)
			}
		})
	default:
		p.parallel(x.Len(), elements, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				switch {
				case !x.Elem.IsInt():
					to.SetFloat(i, x.Float(i))
				case dest == tensor.KindBool:
					to.Bool[i] = uint8(min(uint64(x.Integer(i)), 1))
				case dest == tensor.KindInt:
					to.SetInt(i, x.Integer(i))
				default:
					to.SetFloat(i, x.Float(i))
				}
			}
		})
	}
	return to
}

// runDropout draws element i as a function of the seed and the number of i only.
func runDropout(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	rate, seed := op.Float(c.op, "rate"), c.seed()
	keep := c.dropMask(x.Shape, rate, seed)
	y := tensor.New(x.Elem, x.Shape...)
	scale := [2]float64{0, 1 / (1 - rate)} // by the mask; 0 · NaN stays NaN
	c.parallel(x.Len(), elements, func(lo, hi int) {
		if y.F64 != nil {
			for i := lo; i < hi; i++ {
				y.F64[i] = x.F64[i] * scale[keep[i]]
			}
			return
		}
		for i := lo; i < hi; i++ {
			y.F32[i] = float32(float64(x.F32[i]) * scale[keep[i]])
		}
		tensor.RoundSlice(y.Elem, y.F32[lo:hi])
	})
	out := one(y)
	if len(c.op.Results) > 1 {
		mask := &tensor.Tensor{Elem: types.I1, Shape: x.Shape, Bool: keep}
		out = append(out, convert(c.pool, mask, c.outElem(1)))
	}
	return out, nil
}

// dropMask is 1 for each element of a shape that is kept.
func (c *call) dropMask(shape []int, rate float64, seed uint64) []uint8 {
	first, steps := c.numbering(shape)
	// Elements of a line have numbers one behind another: all, but of a part of a whole those of the last dimensions only.
	line, lines := product(shape), []int{0}
	if op.NumberingOf(c.op).First != nil {
		n := max(len(shape)-1, 0)
		line, lines = product(shape[n:]), offsets(shape[:n], steps[:n])
	}
	keep := make([]uint8, product(shape))
	stream, threshold := tensor.NewStream(seed, random.Dropout), tensor.Threshold(rate)
	c.parallel(len(keep), elements, func(lo, hi int) {
		for lo < hi {
			end := min(hi, lo/line*line+line)
			stream.Keep(keep[lo:end], first+uint64(lines[lo/line]+lo%line), threshold)
			lo = end
		}
	})
	return keep
}
