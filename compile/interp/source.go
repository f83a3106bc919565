package interp

import (
	"math"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/random"
	"dmir/dialect/types"
)

func sourceExecutors() map[string]executor {
	return map[string]executor{
		op.Constant: runConstant,
		op.Empty:    runEmpty,
		"dm.iota":   runIota,
		"dm.rng":    runRNG,
	}
}

func runEmpty(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.outShape(0)
	if err != nil {
		return nil, err
	}
	return []*tensor.Tensor{tensor.New(c.outElem(0), shape...)}, nil
}

func runConstant(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.outShape(0)
	if err != nil {
		return nil, err
	}
	value := tensor.New(c.outElem(0))
	switch v := op.Attr(c.op, "value").(type) {
	case *types.Dense:
		if v.File() != nil {
			return c.stored(v)
		}
		dims := shape
		if v.Len() == 1 {
			dims = nil
		}
		t, err := tensor.Unpack(v.Stored(), v.Elem, dims)
		if err != nil || v.Elem != value.Elem {
			return nil, c.errorf("DM704", "%d values for %s", v.Len(), (&tensor.Tensor{Elem: value.Elem, Shape: shape}).Type())
		}
		value = t
	case types.Float:
		value.SetFloat(0, v.V)
	case types.Int:
		value.SetInt(0, v.V)
	case types.Bool:
		if v {
			value.SetInt(0, 1)
		}
	default:
		return nil, c.errorf("DM703", "a constant of %s cannot be created", value.Elem)
	}
	return one(expanded(c.pool, value, shape)), nil
}

// stored is a constant whose elements are in a file, which is read once in a run.
func (c *call) stored(v *types.Dense) ([]*tensor.Tensor, error) {
	if t, ok := c.stores[c.op]; ok {
		return one(t), nil
	}
	t, err := tensor.Of(v)
	if err != nil {
		return nil, c.errorf(types.MissingArray, "%v", err)
	}
	if c.stores == nil {
		c.stores = map[*ir.Op]*tensor.Tensor{}
	}
	c.stores[c.op] = t
	return one(t), nil
}

// runIota counts along one dimension.
func runIota(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.outShape(0)
	if err != nil {
		return nil, err
	}
	d, ok := op.Dim(c.op, "dim", len(shape))
	if !ok {
		return nil, c.errorf("DM704", "the result of iota has no dimension %d", op.Int(c.op, "dim"))
	}
	line := tensor.New(c.outElem(0), shape[d])
	start, step := op.Float(c.op, "start"), op.Float(c.op, "step")
	for i := range shape[d] {
		switch {
		case line.Elem.IsInt():
			line.SetInt(i, int64(start)+int64(step)*int64(i))
		case line.Elem == types.F64:
			line.SetFloat(i, start+float64(step*float64(i))) // each rounded, never fused
		default:
			line.SetFloat(i, float64(float32(start)+float32(float32(step)*float32(i))))
		}
	}
	to := tensor.New(line.Elem, shape...)
	strides := make([]int, len(shape))
	strides[d] = 1
	move(c.pool, viewOf(to), view{line, 0, strides}, shape)
	return one(to), nil
}

// seed is the seed of an op that draws random numbers, mixed with its step.
func (c *call) seed() uint64 {
	seed := uint64(op.Int(c.op, "seed"))
	if n := op.OperandNumber(c.op, "step"); n >= 0 {
		return tensor.SeedOf(seed, uint64(c.in[n].Int[0]))
	}
	return seed
}

// numbering is where the numbers that an op with dropout draws for elements of a shape stand in its random sequence: the number of
// the first, and by how much those of neighbours along each dimension differ.
func (c *call) numbering(shape []int) (first uint64, steps []int) {
	n := op.NumberingOf(c.op)
	if n.First != nil {
		first = uint64(c.in[op.OperandNumber(c.op, "first")].Int[0])
	}
	steps = make([]int, len(shape))
	step := 1
	for d := len(shape) - 1; d >= 0; d-- {
		steps[d] = step
		if n.Whole != nil {
			step *= int(n.Whole[d])
		} else {
			step *= shape[d]
		}
	}
	return first, steps
}

// runRNG draws element i as a function of the seed, the step and i only.
func runRNG(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.outShape(0)
	if err != nil {
		return nil, err
	}
	to := tensor.New(c.outElem(0), shape...)
	seed := c.seed()
	low, high := op.Float(c.op, "low"), op.Float(c.op, "high")
	mean, deviation := op.Float(c.op, "mean"), op.Float(c.op, "stddev")
	normal := op.Str(c.op, "distribution") == "normal"
	integer := to.Elem.IsInt()
	if integer {
		low, high = math.Ceil(low), math.Ceil(high)
	}
	narrow := to.Elem.IsFloat() && to.Elem.Bytes() <= 4
	stream, low32, range32, high32 := tensor.NewStream(seed, random.RNG), float32(low), float32(high-low), float32(high)
	c.parallel(to.Len(), elements, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if narrow && !normal {
				v := low32 + float32(range32*stream.Uniform32(uint64(i))) // each rounded, never fused
				if to.SetFloat(i, float64(v)); to.Float(i) >= float64(high32) {
					to.SetFloat(i, float64(low32))
				}
				continue
			}
			if normal {
				to.SetFloat(i, mean+deviation*tensor.Normal(seed, random.RNG, uint64(i)))
				continue
			}
			v := low + (high-low)*tensor.Uniform(seed, random.RNG, uint64(i))
			if integer {
				v = math.Floor(v)
			}
			if to.SetFloat(i, v); to.Float(i) >= high { // rounded up to the excluded bound
				to.SetFloat(i, low)
			}
		}
	})
	return one(to), nil
}
