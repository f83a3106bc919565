package interp

import (
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/op"
)

func movementExecutors() map[string]executor {
	return map[string]executor{
		"dm.transpose":   runTranspose,
		"dm.reshape":     runReshape,
		"dm.broadcast":   runBroadcast,
		"dm.slice":       runSlice,
		"dm.concatenate": runConcatenate,
		"dm.pad":         runPad,
		"dm.reverse":     runReverse,
		"dm.roll":        runRoll,
		"dm.one_hot":     runOneHot,
		"dm.rope":        runRope,
		// Values are immutable, so a copy may share memory.
		"dm.copy":          runSame,
		"dm.stop_gradient": runSame,
	}
}

func runSame(c *call) ([]*tensor.Tensor, error) { return one(c.in[0]), nil }

func runTranspose(c *call) ([]*tensor.Tensor, error) {
	dims, err := c.dims("dims", c.in[0].Rank())
	if err != nil {
		return nil, err
	}
	if len(dims) != c.in[0].Rank() {
		return nil, c.errorf("DM704", "%v is not a permutation of the dimensions of %s", dims, c.in[0].Type())
	}
	return one(permuted(c.pool, c.in[0], dims)), nil
}

// runReshape is a view. A single unknown size follows from the others.
func runReshape(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	t := c.op.Results[0].Tensor()
	if t == nil {
		return one(x.Reshape()), nil
	}
	shape, bad := shapeOf(t, c.frame.bind)
	if bad != nil {
		open, rest := -1, 1
		for i, n := range shape {
			switch {
			case n >= 0:
				rest *= n
			case open >= 0:
				return nil, sizeError(c.op, t, *bad)
			default:
				open = i
			}
		}
		if rest == 0 || x.Len()%rest != 0 {
			return nil, sizeError(c.op, t, *bad)
		}
		shape[open] = x.Len() / rest
	}
	if n, ok := tensor.Count(shape); !ok || n != x.Len() {
		return nil, c.errorf("DM704", "%s has %d elements and cannot become %s", x.Type(), x.Len(), t.Bound(c.frame.bind))
	}
	return one(x.Reshape(shape...)), nil
}

func runBroadcast(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.outShape(0)
	if err != nil {
		return nil, err
	}
	x := c.in[0]
	dims, p := op.BroadcastDims(c.op)
	if p != nil {
		return nil, c.errorf("DM704", "%s", p.Msg)
	}
	own, strides := tensor.Strides(x.Shape), make([]int, len(shape))
	for i, d := range dims {
		switch {
		case x.Shape[i] == shape[d]:
			strides[d] = own[i]
		case x.Shape[i] != 1:
			return nil, c.errorf("DM704", "%s does not broadcast to %v", x.Type(), shape)
		}
	}
	to := tensor.New(x.Elem, shape...)
	move(c.pool, viewOf(to), view{x, 0, strides}, shape)
	return one(to), nil
}

func runSlice(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	dims, err := c.dims("dims", x.Rank())
	if err != nil {
		return nil, err
	}
	start, limit, step := op.Ints(c.op, "start_indices"), op.Ints(c.op, "limit_indices"), op.Ints(c.op, "strides")
	if len(start) != len(dims) || len(limit) != len(dims) || step != nil && len(step) != len(dims) {
		return nil, c.errorf("DM704", "slice of %d dimensions has %d starts and %d limits", len(dims), len(start), len(limit))
	}
	shape, from := slices.Clone(x.Shape), viewOf(x)
	for i, d := range dims {
		by := int64(1)
		if step != nil {
			by = step[i]
		}
		if start[i] < 0 || start[i] > limit[i] || limit[i] > int64(x.Shape[d]) || by < 1 {
			return nil, c.errorf("DM704", "[%d, %d) lies outside dimension %d of %s", start[i], limit[i], d, x.Type())
		}
		from.at += int(start[i]) * from.strides[d]
		shape[d] = 0
		if n := limit[i] - start[i]; n > 0 {
			shape[d] = int((n-1)/by + 1)
		}
		from.strides[d] *= int(by)
	}
	to := tensor.New(x.Elem, shape...)
	move(c.pool, viewOf(to), from, shape)
	return one(to), nil
}

func runConcatenate(c *call) ([]*tensor.Tensor, error) {
	d, err := c.dim(c.in[0].Rank())
	if err != nil {
		return nil, err
	}
	shape := slices.Clone(c.in[0].Shape)
	shape[d] = 0
	for _, x := range c.in {
		if x.Rank() != len(shape) {
			return nil, c.errorf("DM704", "%s and %s have different ranks", c.in[0].Type(), x.Type())
		}
		for e := range shape {
			if e != d && x.Shape[e] != shape[e] {
				return nil, c.errorf("DM704", "%s and %s differ in dimension %d", c.in[0].Type(), x.Type(), e)
			}
		}
		shape[d] += x.Shape[d]
	}
	to := tensor.New(c.in[0].Elem, shape...)
	part := viewOf(to)
	for _, x := range c.in {
		move(c.pool, part, viewOf(x), x.Shape)
		part.at += x.Shape[d] * part.strides[d]
	}
	return one(to), nil
}

func runPad(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	list := func(name string) []int64 {
		if l := op.Ints(c.op, name); len(l) == x.Rank() {
			return l
		}
		return make([]int64, x.Rank())
	}
	low, high, interior := list("low"), list("high"), list("interior")
	shape := make([]int, x.Rank())
	for d, n := range x.Shape {
		shape[d] = int(low[d]+high[d]) + n + max(0, n-1)*int(interior[d])
	}
	if n, ok := tensor.Count(shape); !ok || StorageBytes(x.Elem, n) > c.limit-c.live {
		return nil, c.errorf("DM705", "%v of %s do not fit into memory", shape, x.Elem)
	}
	to := tensor.New(x.Elem, shape...)
	move(c.pool, viewOf(to), view{c.in[1], 0, make([]int, len(shape))}, shape)
	inside := viewOf(to)
	for d := range shape {
		inside.at += int(low[d]) * inside.strides[d]
		inside.strides[d] *= int(interior[d]) + 1
	}
	move(c.pool, inside, viewOf(x), x.Shape)
	return one(to), nil
}

func runReverse(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	dims, err := c.dims("dims", x.Rank())
	if err != nil {
		return nil, err
	}
	from := viewOf(x)
	for _, d := range dims {
		from.at += (x.Shape[d] - 1) * from.strides[d]
		from.strides[d] = -from.strides[d]
	}
	to := tensor.New(x.Elem, x.Shape...)
	move(c.pool, viewOf(to), from, x.Shape)
	return one(to), nil
}
