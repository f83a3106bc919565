package interp

import (
	"context"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func controlExecutors() map[string]executor {
	return map[string]executor{
		op.Call:   runCall,
		op.Kernel: runKernel,
		op.If:     runIf,
		op.Scan:   runScan,
		op.While:  runWhile,
		"dm.map":  runMap,
	}
}

// maxCalls bounds the depth of calls.
const maxCalls = 1000

func runCall(c *call) ([]*tensor.Tensor, error) {
	name := c.op.Str("callee")
	fn := c.module.Func(name)
	switch {
	case fn == nil:
		return nil, c.errorf("DM703", "there is no function @%s", name)
	case fn.Body == nil:
		return nil, errorAt(c.op, "DM703", "give it a body", "@%s is only declared", name)
	case len(fn.Args) != len(c.in):
		return nil, c.errorf("DM704", "@%s takes %d values, got %d", name, len(fn.Args), len(c.in))
	case c.calls >= maxCalls:
		return nil, c.errorf("DM706", "functions call each other more than %d deep", maxCalls)
	}
	f, err := c.called(fn)
	if err != nil {
		return nil, err
	}
	if outside := op.BeyondLimits(fn.Op, f.bind); outside != "" {
		return nil, c.errorf("DM704", "@%s: %s", fn.Name, outside)
	}
	c.enter(fn, f.bind)
	c.calls++
	defer func() { c.calls-- }()
	_, leave := c.inside(name)
	defer leave()
	return c.block(f, fn.Body, c.in)
}

// called is a frame of fn, called with the operands of the op: its symbols have the sizes of these.
func (c *call) called(fn *ir.Func) (*frame, error) {
	f := &frame{bind: map[string]int64{}, env: map[*ir.Value]*tensor.Tensor{}}
	given := make([]types.Type, len(c.in))
	for i, x := range c.in {
		given[i] = storedType(x)
	}
	b, _ := op.Bound(fn, given, c.opts.Bind)
	for s, d := range b.Sizes {
		if n, ok := d.Int(); ok {
			f.bind[s] = n
		}
	}
	for i, x := range c.in {
		if err := checkArg(fn, i, x, f.bind); err != nil {
			return nil, c.errorf("DM704", "%s", err.Msg)
		}
	}
	return f, nil
}

// storedType is the type of a tensor in memory.
func storedType(x *tensor.Tensor) *types.Tensor {
	t := &types.Tensor{Elem: x.Elem, At: types.Placement{Space: types.HBM}}
	for _, n := range x.Shape {
		t.Shape = append(t.Shape, dim.Const(int64(n)))
	}
	return t
}

// inside notes that the op runs a loop or, where it has a name, a function.
func (c *call) inside(fn string) (p *Place, leave func()) {
	p = &Place{Func: fn, Line: LineOf(c.module, c.op)}
	c.around = append(c.around, p)
	return p, func() { c.around = c.around[:len(c.around)-1] }
}

func (c *call) region(n int, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if n >= len(c.op.Regions) || len(c.op.Regions[n].Blocks) != 1 {
		return nil, c.errorf("DM703", "region %d of %s is not a single block", n, c.op.Name)
	}
	return c.block(c.frame, c.op.Regions[n].Blocks[0], args)
}

func runKernel(c *call) ([]*tensor.Tensor, error) { return c.region(0, nil) }

func runIf(c *call) ([]*tensor.Tensor, error) {
	p := c.in[0]
	if p.Len() != 1 {
		return nil, c.errorf("DM704", "a condition must be one i1, not %s", p.Type())
	}
	if p.Integer(0) != 0 {
		return c.region(0, nil)
	}
	if len(c.op.Regions) < 2 || len(c.op.Regions[1].Blocks) == 0 {
		return nil, nil
	}
	return c.region(1, nil)
}

func runWhile(c *call) ([]*tensor.Tensor, error) {
	state := c.in
	most := op.Int(c.op, "max_trips")
	loop, leave := c.inside("")
	defer leave()
	for i := int64(0); op.Attr(c.op, "max_trips") == nil || i < most; i++ {
		if c.stopped() {
			return nil, context.Cause(c.ctx)
		}
		loop.Iteration = i
		cond, err := c.region(0, state)
		if err != nil {
			return nil, err
		}
		if len(cond) != 1 || cond[0].Len() != 1 {
			return nil, c.errorf("DM704", "the condition of dm.while must yield one i1")
		}
		if cond[0].Integer(0) == 0 {
			return state, nil
		}
		if state, err = c.region(1, state); err != nil {
			return nil, err
		}
	}
	return state, nil
}

func runScan(c *call) ([]*tensor.Tensor, error) {
	carries := op.Carries(c.op)
	if len(c.op.Results) < carries || op.Attr(c.op, "length") == nil && carries == len(c.in) {
		return nil, c.errorf("DM704", "dm.scan carries %d values and has %d results", carries, len(c.op.Results))
	}
	n := int(op.Int(c.op, "length"))
	for i, x := range c.in[carries:] {
		if i == 0 && op.Attr(c.op, "length") == nil {
			n = x.Shape[0]
		}
		if x.Shape[0] != n {
			return nil, c.errorf("DM704", "dm.scan runs %d times, and stack %d has %d elements", n, i, x.Shape[0])
		}
	}
	state := slices.Clone(c.in[:carries])
	stacks := make([]*tensor.Tensor, len(c.op.Results)-carries)
	loop, leave := c.inside("")
	defer leave()
	for i := range n {
		if c.stopped() {
			return nil, context.Cause(c.ctx)
		}
		at := i
		if op.Bool(c.op, "reverse") {
			at = n - 1 - i
		}
		loop.Iteration = int64(at)
		args := slices.Clone(state)
		for _, x := range c.in[carries:] {
			args = append(args, layer(x, at))
		}
		ys, err := c.region(0, args)
		if err != nil {
			return nil, err
		}
		if len(ys) != len(c.op.Results) {
			return nil, c.errorf("DM704", "the region of dm.scan yields %d values where it has %d results", len(ys), len(c.op.Results))
		}
		for k, y := range ys[carries:] {
			if stacks[k] == nil {
				stacks[k] = tensor.New(y.Elem, append([]int{n}, y.Shape...)...)
			}
			to := layer(stacks[k], at)
			if to.Elem != y.Elem || !slices.Equal(to.Shape, y.Shape) {
				return nil, c.errorf("DM704", "the region of dm.scan yields %s after %s", y.Type(), to.Type())
			}
			move(c.pool, viewOf(to), viewOf(y), y.Shape)
		}
		copy(state, ys)
	}
	for k := range stacks {
		if stacks[k] != nil {
			continue
		}
		shape, err := c.outShape(carries + k) // no iteration: a stack of nothing
		if err != nil {
			return nil, err
		}
		stacks[k] = tensor.New(c.outElem(carries+k), shape...)
	}
	return append(state, stacks...), nil
}

// layer is element i of x's first dimension, sharing its memory.
func layer(x *tensor.Tensor, i int) *tensor.Tensor {
	n := product(x.Shape[1:])
	return slice1(x.Reshape(x.Len()), i*n, (i+1)*n).Reshape(x.Shape[1:]...)
}

// mapBlock is the number of elements of a dm.map that run through its region at
// once.
const mapBlock = 1 << 20

// runMap runs the scalar region on whole tensors, op by op, which gives the
// same elements since its ops are element-wise. A region that branches runs
// element by element.
func runMap(c *call) ([]*tensor.Tensor, error) {
	shape, err := c.common(0)
	if err != nil {
		return nil, err
	}
	n := product(shape)
	flat := make([]*tensor.Tensor, len(c.in))
	for i, x := range c.in {
		flat[i] = expanded(c.pool, x, shape).Reshape(n)
	}
	outs := make([]*tensor.Tensor, len(c.op.Results))
	for i := range outs {
		outs[i] = tensor.New(c.outElem(i), n)
	}
	size := mapBlock
	if !vectorizable(c.op) {
		size = 1
	}
	for lo := 0; lo < n && !c.stopped(); lo += size {
		part := make([]*tensor.Tensor, len(flat))
		for i, x := range flat {
			part[i] = slice1(x, lo, min(lo+size, n))
			if size == 1 {
				part[i] = part[i].Reshape()
			}
		}
		ys, err := c.region(0, part)
		if err != nil {
			return nil, err
		}
		if len(ys) != len(outs) {
			return nil, c.errorf("DM704", "dm.map yields %d values where it has %d results", len(ys), len(outs))
		}
		for i, y := range ys {
			if y.Elem != outs[i].Elem {
				return nil, c.errorf("DM704", "dm.map yields %s where its result is of %s", y.Elem, outs[i].Elem)
			}
			m := min(lo+size, n) - lo
			move(c.pool, view{outs[i], lo, []int{1}}, view{y, 0, broadcastStrides(y.Shape, []int{m})}, []int{m})
		}
	}
	for i := range outs {
		outs[i] = outs[i].Reshape(shape...)
	}
	return outs, nil
}

// vectorizable reports whether every op in o's regions works element by element.
func vectorizable(o *ir.Op) bool {
	all := true
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			for _, inner := range b.Ops {
				d := op.Of(inner)
				all = all && (d.Is(op.Pointwise) && !d.Is(op.Random) || d.Is(op.Terminator) || inner.Name == op.Constant)
			}
		}
	}
	return all
}

// expanded is x written out in a shape that it broadcasts to.
func expanded(p *pool, x *tensor.Tensor, shape []int) *tensor.Tensor {
	if slices.Equal(x.Shape, shape) {
		return x
	}
	to := tensor.New(x.Elem, shape...)
	move(p, viewOf(to), view{x, 0, broadcastStrides(x.Shape, shape)}, shape)
	return to
}

// slice1 is elements [lo, hi) of a tensor of one dimension, sharing its memory.
func slice1(x *tensor.Tensor, lo, hi int) *tensor.Tensor {
	y := &tensor.Tensor{Elem: x.Elem, Shape: []int{hi - lo}}
	switch x.Kind() {
	case tensor.KindF32:
		y.F32 = x.F32[lo:hi]
	case tensor.KindF64:
		y.F64 = x.F64[lo:hi]
	case tensor.KindInt:
		y.Int = x.Int[lo:hi]
	case tensor.KindBool:
		y.Bool = x.Bool[lo:hi]
	}
	return y
}

// reduceRegion reduces the last of two dimensions, [outer, n], with region 0,
// which takes two scalars: neighbours are combined in pairs, all pairs of all
// rows at once, until one value per row is left; the region must therefore be
// associative but need not be commutative. Regions that are not vectorizable
// reduce value by value.
func (c *call) reduceRegion(x *tensor.Tensor, outer, n int, init *tensor.Tensor) (*tensor.Tensor, error) {
	elem := x.Elem
	step := func(a, b *tensor.Tensor) (*tensor.Tensor, error) {
		if vectorizable(c.op) {
			ys, err := c.region(0, []*tensor.Tensor{a, b})
			if err != nil {
				return nil, err
			}
			if len(ys) != 1 || ys[0].Elem != elem {
				return nil, c.errorf("DM704", "the region of %s must yield one %s", c.op.Name, elem)
			}
			return expanded(c.pool, ys[0], a.Shape), nil
		}
		to := tensor.New(elem, a.Len())
		for i := range a.Len() {
			ys, err := c.region(0, []*tensor.Tensor{slice1(a, i, i+1).Reshape(), slice1(b, i, i+1).Reshape()})
			if err != nil {
				return nil, err
			}
			if len(ys) != 1 || ys[0].Elem != elem || ys[0].Len() != 1 {
				return nil, c.errorf("DM704", "the region of %s must yield one %s", c.op.Name, elem)
			}
			move(c.pool, view{to, i, []int{1}}, view{ys[0], 0, []int{1}}, []int{1})
		}
		return to, nil
	}
	for n > 1 {
		half := n / 2
		a, b := tensor.New(elem, outer*half), tensor.New(elem, outer*half)
		box := []int{outer, half}
		move(c.pool, view{a, 0, []int{half, 1}}, view{x, 0, []int{n, 2}}, box)
		move(c.pool, view{b, 0, []int{half, 1}}, view{x, 1, []int{n, 2}}, box)
		y, err := step(a, b)
		if err != nil {
			return nil, err
		}
		rest := n - 2*half
		next := y
		if rest == 1 { // the odd one is appended to the next round
			next = tensor.New(elem, outer*(half+1))
			move(c.pool, view{next, 0, []int{half + 1, 1}}, view{y, 0, []int{half, 1}}, box)
			move(c.pool, view{next, half, []int{half + 1, 1}}, view{x, n - 1, []int{n, 1}}, []int{outer, 1})
		}
		x, n = next, half+rest
	}
	first := expanded(c.pool, init.Reshape(), []int{outer})
	if n == 0 {
		return first, nil
	}
	return step(first, x.Reshape(outer))
}
