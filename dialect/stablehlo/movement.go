package stablehlo

import (
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func convertReshape(c *call) ([]*ir.Value, error) {
	t := c.out(0)
	if t == nil || c.need(1) != nil {
		return nil, invalid("%s is malformed", c.o.Name)
	}
	return one(c.b.Reshape(c.in(0), t.Shape...))
}

func convertBroadcast(c *call) ([]*ir.Value, error) {
	x, t := c.in(0), c.out(0)
	in, err := shapeOf(x)
	if err != nil || t == nil {
		return nil, err
	}
	out, err := sizes(t)
	if err != nil {
		return nil, err
	}
	at, err := c.ints("broadcast_dimensions", nil)
	if err == nil && at == nil {
		at, err = c.ints("dims", nil)
	}
	if err != nil {
		return nil, err
	}
	if len(at) != len(in) {
		return nil, invalid("%d dimensions are named of %d", len(at), len(in))
	}
	for i, d := range at {
		if d < 0 || d >= len(out) || in[i] != 1 && in[i] != out[d] {
			return nil, invalid("dimension %d cannot become dimension %d of %s", i, d, t)
		}
	}
	return one(c.broadcast(x, at, out))
}

// broadcast repeats x to a shape: its dimension i becomes dimension at[i].
func (c *call) broadcast(x *ir.Value, at, shape []int) *ir.Value {
	in, _ := shapeOf(x)
	same := len(in) == len(shape)
	for i := range in {
		same = same && at[i] == i && in[i] == shape[i]
	}
	if same {
		return x
	}
	// dm.broadcast keeps the order of the dimensions; another one is a transpose first.
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	sorted := append([]int(nil), at...)
	for i := range sorted {
		for j := i + 1; j < len(sorted); j++ {
			if sorted[j] < sorted[i] {
				sorted[i], sorted[j] = sorted[j], sorted[i]
				order[i], order[j] = order[j], order[i]
			}
		}
	}
	x = c.b.Transpose(x, order...)
	t := &types.Tensor{Elem: x.Elem(), Shape: dims(shape)}
	return c.make("broadcast", []*ir.Value{x}, named("dims", sorted), t)
}

func convertTranspose(c *call) ([]*ir.Value, error) {
	p, err := c.ints("permutation", nil)
	if err == nil && p == nil {
		p, err = c.ints("dims", nil)
	}
	in, err2 := shapeOf(c.in(0))
	if err != nil || err2 != nil {
		return nil, join(err, err2)
	}
	if !permutation(p, len(in)) {
		return nil, invalid("%v is no permutation of %d dimensions", p, len(in))
	}
	return one(c.b.Transpose(c.in(0), p...))
}

func join(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func permutation(p []int, n int) bool {
	seen := make([]bool, n)
	for _, d := range p {
		if d < 0 || d >= n || seen[d] {
			return false
		}
		seen[d] = true
	}
	return len(p) == n
}

func convertReverse(c *call) ([]*ir.Value, error) {
	d, err := c.ints("dimensions", nil)
	if err == nil && d == nil {
		d, err = c.ints("dims", nil)
	}
	if err != nil {
		return nil, err
	}
	return one(c.reverse(c.in(0), d))
}

func (c *call) reverse(x *ir.Value, dims []int) *ir.Value {
	if len(dims) == 0 {
		return x
	}
	return c.make("reverse", []*ir.Value{x}, named("dims", dims))
}

func convertConcatenate(c *call) ([]*ir.Value, error) {
	d, err := c.int("dimension", -1)
	if err == nil && d < 0 {
		d, err = c.int("dim", 0)
	}
	if err != nil {
		return nil, err
	}
	return one(c.concatenate(d, c.o.Operands...))
}

func (c *call) concatenate(d int, xs ...*ir.Value) *ir.Value {
	if len(xs) == 1 {
		return xs[0]
	}
	return c.make("concatenate", xs, named("dim", d))
}

func convertSlice(c *call) ([]*ir.Value, error) {
	in, err := shapeOf(c.in(0))
	if err != nil {
		return nil, err
	}
	start, err1 := c.ints("start_indices", nil)
	limit, err2 := c.ints("limit_indices", nil)
	step, err3 := c.ints("strides", nil)
	if err := join(err1, err2, err3); err != nil {
		return nil, err
	}
	if len(c.words) > 0 { // %x [0:10, 2:3:1]
		_, list, found := strings.Cut(c.words[0], "[")
		if !found {
			return nil, invalid("no ranges")
		}
		start, limit, step = nil, nil, nil
		for _, r := range split(strings.TrimSuffix(strings.TrimSpace(list), "]")) {
			if r == "" {
				continue
			}
			n := [3]int{0, 0, 1}
			for i, s := range strings.SplitN(r, ":", 3) {
				if n[i], err = strconv.Atoi(strings.TrimSpace(s)); err != nil {
					return nil, invalid("the range %s is malformed", r)
				}
			}
			start, limit, step = append(start, n[0]), append(limit, n[1]), append(step, n[2])
		}
	}
	if len(start) != len(in) || len(limit) != len(in) || len(step) > 0 && len(step) != len(in) {
		return nil, invalid("%d ranges for %d dimensions", len(start), len(in))
	}
	for i := range in {
		if start[i] < 0 || start[i] > limit[i] || limit[i] > in[i] || i < len(step) && step[i] < 1 {
			return nil, invalid("the range of dimension %d is not in its size %d", i, in[i])
		}
	}
	return one(c.slice(c.in(0), start, limit, step))
}

// slice is a part of x; without a step all steps are 1.
func (c *call) slice(x *ir.Value, start, limit, step []int) *ir.Value {
	in, _ := shapeOf(x)
	whole, ones := true, true
	for i := range in {
		whole = whole && start[i] == 0 && limit[i] == in[i]
		ones = ones && (len(step) == 0 || step[i] == 1)
	}
	if whole && ones {
		return x
	}
	attrs := named("start_indices", start, "limit_indices", limit)
	if !ones {
		attrs = append(attrs, named("strides", step)...)
	}
	return c.make("slice", []*ir.Value{x}, attrs)
}

func convertDynamicSlice(c *call) ([]*ir.Value, error) {
	n, err := c.ints("slice_sizes", nil)
	if err == nil && n == nil {
		n, err = c.ints("sizes", nil)
	}
	if err != nil {
		return nil, err
	}
	return one(c.make("dynamic_slice", append([]*ir.Value{c.in(0)}, c.positions(c.o.Operands[1:])...), named("slice_sizes", n)))
}

func convertDynamicUpdateSlice(c *call) ([]*ir.Value, error) {
	if len(c.o.Operands) < 2 {
		return nil, invalid("no update")
	}
	return one(c.make("dynamic_update_slice", append([]*ir.Value{c.in(0), c.in(1)}, c.positions(c.o.Operands[2:])...), nil))
}

// positions are indices in an element type that positions may have.
func (c *call) positions(vs []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		out[i] = c.index(v)
	}
	return out
}

// index is v in an element type that indices may have.
func (c *call) index(v *ir.Value) *ir.Value {
	switch v.Elem() {
	case types.I64, types.I32, types.UI64, types.UI32:
		return v
	}
	return c.b.Convert(v, types.I64)
}

func convertPad(c *call) ([]*ir.Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	var list [3][]int
	for i, names := range [3][2]string{{"edge_padding_low", "low"}, {"edge_padding_high", "high"}, {"interior_padding", "interior"}} {
		var err error
		if list[i], err = c.ints(names[0], nil); err == nil && list[i] == nil {
			list[i], err = c.ints(names[1], nil)
		}
		if err != nil {
			return nil, err
		}
	}
	return c.padded(c.in(0), c.in(1), list[0], list[1], list[2])
}

// padded is x with value before, after and between its elements; where the numbers
// are negative, elements are left out.
func (c *call) padded(x, value *ir.Value, low, high, interior []int) ([]*ir.Value, error) {
	in, err := shapeOf(x)
	if err != nil {
		return nil, err
	}
	n := len(in)
	zeros := make([]int, n)
	for _, l := range []*[]int{&low, &high, &interior} {
		if *l == nil {
			*l = zeros
		}
		if len(*l) != n {
			return nil, invalid("%d paddings for %d dimensions", len(*l), n)
		}
	}
	more := [2][]int{make([]int, n), make([]int, n)}
	size, start, limit := make([]int, n), make([]int, n), make([]int, n)
	for i := range in {
		if interior[i] < 0 {
			return nil, invalid("an interior padding is negative")
		}
		more[0][i], more[1][i] = max(0, low[i]), max(0, high[i])
		size[i] = more[0][i] + in[i] + max(0, in[i]-1)*interior[i] + more[1][i]
		start[i], limit[i] = max(0, -low[i]), size[i]-max(0, -high[i])
		if limit[i] < start[i] {
			return nil, invalid("the padding of dimension %d leaves nothing", i)
		}
	}
	if nonzero(more[0]) || nonzero(more[1]) || nonzero(interior) {
		attrs := named("low", more[0], "high", more[1])
		if nonzero(interior) {
			attrs = append(attrs, named("interior", interior)...)
		}
		x = c.make("pad", []*ir.Value{x, value}, attrs)
	}
	return one(c.slice(x, start, limit, nil))
}

func nonzero(ns []int) bool {
	for _, n := range ns {
		if n != 0 {
			return true
		}
	}
	return false
}
