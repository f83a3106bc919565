package stablehlo

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// pair reads "[0] x [1]" of an op's own form.
func (c *call) pair(text string) (l, r []int, err error) {
	a, b, found := strings.Cut(text, "x")
	if !found {
		return nil, nil, invalid("%s is no pair of lists", text)
	}
	l, err1 := c.numbers(strings.TrimSpace(a))
	r, err2 := c.numbers(strings.TrimSpace(b))
	return l, r, join(err1, err2)
}

func convertDotGeneral(c *call) ([]*ir.Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	var lb, rb, lc, rc []int
	var err error
	if text := c.attrs["dot_dimension_numbers"]; text != "" {
		f := fields(text)
		for name, to := range map[string]*[]int{
			"lhs_batching_dimensions": &lb, "rhs_batching_dimensions": &rb,
			"lhs_contracting_dimensions": &lc, "rhs_contracting_dimensions": &rc,
		} {
			if *to, err = c.list(f, name); err != nil {
				return nil, err
			}
		}
	} else {
		for name, to := range map[string][2]*[]int{"batching_dims": {&lb, &rb}, "contracting_dims": {&lc, &rc}} {
			if c.attrs[name] == "" {
				continue
			}
			if *to[0], *to[1], err = c.pair(c.attrs[name]); err != nil {
				return nil, err
			}
		}
	}
	return c.dot(lb, rb, lc, rc)
}

func convertDot(c *call) ([]*ir.Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, y := c.in(0).Tensor(), c.in(1).Tensor()
	if x == nil || y == nil || x.Rank() == 0 || y.Rank() == 0 {
		return nil, invalid("operands without dimensions")
	}
	return c.dot(nil, nil, []int{x.Rank() - 1}, []int{0})
}

// dot contracts dimensions lc of the first operand with rc of the second one; lb and
// rb are those that both share.
func (c *call) dot(lb, rb, lc, rc []int) ([]*ir.Value, error) {
	x, y := c.in(0), c.in(1)
	xs, err1 := shapeOf(x)
	ys, err2 := shapeOf(y)
	if err := join(err1, err2); err != nil {
		return nil, err
	}
	if len(lb) != len(rb) || len(lc) != len(rc) {
		return nil, invalid("the operands name different numbers of dimensions")
	}
	if len(xs)+len(ys) > 50 {
		return nil, unsupported("a contraction of %d dimensions", len(xs)+len(ys))
	}
	letter := 0
	next := func() byte { letter++; return "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[letter-1] }
	l, r := make([]byte, len(xs)), make([]byte, len(ys))
	var out []byte
	both := func(i, j int, keep bool) error {
		if i < 0 || i >= len(xs) || j < 0 || j >= len(ys) || xs[i] != ys[j] || l[i] != 0 || r[j] != 0 {
			return invalid("dimension %d of the first operand does not fit dimension %d of the second", i, j)
		}
		l[i] = next()
		r[j] = l[i]
		if keep {
			out = append(out, l[i])
		}
		return nil
	}
	for k := range lb {
		if err := both(lb[k], rb[k], true); err != nil {
			return nil, err
		}
	}
	for k := range lc {
		if err := both(lc[k], rc[k], false); err != nil {
			return nil, err
		}
	}
	for _, side := range [][]byte{l, r} {
		for i := range side {
			if side[i] == 0 {
				side[i] = next()
				out = append(out, side[i])
			}
		}
	}
	t := c.out(0)
	if t == nil {
		return nil, invalid("no type")
	}
	wide := widest(x.Elem(), y.Elem(), t.Elem)
	if x.Elem() != y.Elem() {
		e := widest(x.Elem(), y.Elem())
		x, y = c.b.Convert(x, e), c.b.Convert(y, e)
	}
	if x.Elem() == types.I1 {
		x, y = c.b.Convert(x, t.Elem), c.b.Convert(y, t.Elem)
	}
	if x.Elem().IsInt() || x.Elem().IsFloat() != wide.IsFloat() { // sums of integers are taken in the result's type
		x, y = c.b.Convert(x, wide), c.b.Convert(y, wide)
	}
	var v *ir.Value
	result := t.With(t.Shape...)
	result.Elem = wide
	if names := string(l) + "," + string(r); len(lb) == 0 && len(xs) == 2 && len(ys) == 2 && names[1] == names[3] {
		v = c.make("matmul", []*ir.Value{x, y}, nil, result)
	} else {
		v = c.make("einsum", []*ir.Value{x, y}, named("equation", types.Attr(types.Str(names+"->"+string(out)))), result)
	}
	return one(c.b.Convert(v, t.Elem))
}

// widest is the element type with the most bits, the last of several.
func widest(es ...types.Elem) types.Elem {
	best := es[0]
	for _, e := range es {
		if e.Bits() >= best.Bits() {
			best = e
		}
	}
	return best
}

// convLayout is where batch, features and space are in a tensor of a convolution.
type convLayout struct {
	batch, feature int
	space          []int
}

// order is the permutation that brings the dimensions into the order first, second, space.
func (l convLayout) order(first, second int) []int {
	return append([]int{first, second}, l.space...)
}

// layouts reads "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]".
func layouts(text string) (in, kernel, out convLayout, err error) {
	if i := strings.IndexByte(text, '<'); i >= 0 {
		text = strings.TrimSuffix(strings.TrimSpace(text[i+1:]), ">")
	}
	left, right, ok1 := strings.Cut(text, "->")
	a, b, ok2 := strings.Cut(left, "]x[")
	if !ok1 || !ok2 {
		return in, kernel, out, invalid("the dimension numbers %s are malformed", text)
	}
	read := func(text, batch, feature string) convLayout {
		list := strings.Split(strings.Trim(strings.TrimSpace(text), "[]"), ",")
		l := convLayout{-1, -1, make([]int, max(0, len(list)-2))}
		for i := range l.space {
			l.space[i] = -1
		}
		for i, w := range list {
			switch w = strings.TrimSpace(w); {
			case w == batch:
				l.batch = i
			case w == feature:
				l.feature = i
			case len(w) == 1 && int(w[0]-'0') < len(l.space):
				l.space[w[0]-'0'] = i
			default:
				err = invalid("%s in dimension numbers", w)
			}
		}
		if l.batch < 0 || l.feature < 0 || slices.Contains(l.space, -1) {
			err = invalid("the dimension numbers %s are malformed", text)
		}
		return l
	}
	in, kernel, out = read(a, "b", "f"), read(b, "o", "i"), read(right, "b", "f")
	if err == nil && (len(in.space) != len(kernel.space) || len(in.space) != len(out.space)) {
		err = invalid("the dimension numbers %s are malformed", text)
	}
	return in, kernel, out, err
}

func convertConvolution(c *call) ([]*ir.Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	numbers := c.attrs["dimension_numbers"]
	window := map[string]string{
		"stride": c.attrs["window_strides"], "pad": c.attrs["padding"], "lhs_dilate": c.attrs["lhs_dilation"],
		"rhs_dilate": c.attrs["rhs_dilation"], "reverse": c.attrs["window_reversal"],
	}
	for _, w := range c.words { // (%x, %w) dim_numbers = …
		if _, text, found := strings.Cut(w, "dim_numbers ="); found {
			numbers = text
		}
	}
	if text := c.attrs["window"]; text != "" {
		window = map[string]string{}
		for _, part := range split(strings.Trim(strings.TrimSpace(text), "{}")) {
			name, value, _ := strings.Cut(part, "=")
			window[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	in, kernel, out, err := layouts(numbers)
	if err != nil {
		return nil, err
	}
	n := len(in.space)
	read := func(name string) (list []int, set bool) {
		if window[name] == "" || err != nil {
			return nil, false
		}
		list, err = c.numbers(window[name])
		return list, err == nil && len(list) > 0
	}
	stride, hasStride := read("stride")
	pad, hasPad := read("pad")
	lhs, hasLHS := read("lhs_dilate")
	rhs, hasRHS := read("rhs_dilate")
	var reversed []int
	if text := window["reverse"]; text != "" && err == nil {
		for i, w := range strings.Split(strings.Trim(strings.TrimSuffix(strings.TrimPrefix(text, "array<i1:"), ">"), "[] "), ",") {
			if w = strings.TrimSpace(w); w == "true" || w == "1" {
				reversed = append(reversed, 2+i)
			}
		}
		if strings.Contains(text, "dense<true>") {
			for i := range n {
				reversed = append(reversed, 2+i)
			}
		}
	}
	groups, err1 := c.int("feature_group_count", 1)
	batches, err2 := c.int("batch_group_count", 1)
	if err := join(err, err1, err2); err != nil {
		return nil, err
	}
	x := c.b.Transpose(c.in(0), in.order(in.batch, in.feature)...)
	w := c.reverse(c.b.Transpose(c.in(1), kernel.order(kernel.batch, kernel.feature)...), reversed)
	xs, err := shapeOf(x)
	if err != nil {
		return nil, err
	}
	if groups > 1 && batches > 1 || batches < 1 || groups < 1 || xs[0]%batches != 0 {
		return nil, invalid("group counts %d and %d", groups, batches)
	}
	if batches > 1 {
		// Batch groups are feature groups of the batch's parts: [G·N, C, …] becomes [N, G·C, …].
		shape := append([]int{batches, xs[0] / batches, xs[1]}, xs[2:]...)
		x = c.b.Reshape(x, dims(shape)...)
		order := []int{1, 0, 2}
		for i := range n {
			order = append(order, 3+i)
		}
		x = c.b.Transpose(x, order...)
		x = c.b.Reshape(x, dims(append([]int{xs[0] / batches, batches * xs[1]}, xs[2:]...))...)
		groups = batches
	}
	t := c.out(0)
	if t == nil {
		return nil, invalid("no type")
	}
	wide := widest(x.Elem(), w.Elem(), t.Elem)
	if x.Elem() != w.Elem() || x.Elem().IsInt() || x.Elem().IsFloat() != wide.IsFloat() {
		x, w = c.b.Convert(x, wide), c.b.Convert(w, wide)
	}
	if n == 0 { // a product of matrices
		v := c.make("einsum", []*ir.Value{x, w}, named("equation", types.Attr(types.Str("bf,of->bo"))))
		return one(c.b.Convert(c.untranspose(v, out), t.Elem))
	}
	if n > 3 {
		return nil, unsupported("a convolution over %d dimensions", n)
	}
	var attrs []types.Named
	if hasStride {
		attrs = append(attrs, named("window_strides", stride)...)
	}
	if hasPad {
		pairs := types.Array{}
		for i := 0; i+1 < len(pad); i += 2 {
			pairs = append(pairs, op.IntList(pad[i], pad[i+1]))
		}
		attrs = append(attrs, types.Named{Name: "padding", Value: pairs})
	}
	if hasLHS {
		attrs = append(attrs, named("lhs_dilation", lhs)...)
	}
	if hasRHS {
		attrs = append(attrs, named("rhs_dilation", rhs)...)
	}
	if groups > 1 {
		attrs = append(attrs, named("feature_group_count", groups)...)
	}
	v := c.make("convolution", []*ir.Value{x, w}, attrs)
	return one(c.b.Convert(c.untranspose(v, out), t.Elem))
}

// untranspose brings batch, features and space of a convolution's result to their places.
func (c *call) untranspose(v *ir.Value, l convLayout) *ir.Value {
	from := l.order(l.batch, l.feature) // dimension i of v is dimension from[i] of the result
	order := make([]int, len(from))
	for i, d := range from {
		order[d] = i
	}
	return c.b.Transpose(v, order...)
}
