package stablehlo

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// ones is the list of integers called name, ones where it is absent.
func (c *out) ones(name string, n int) []int64 {
	if l := op.Ints(c.o, name); len(l) == n {
		return l
	}
	return slices.Repeat([]int64{1}, n)
}

// padding is the attribute of windows; zeros where it is absent.
func (c *out) padding(n int) types.Named {
	pads := op.Pairs(c.o, "padding")
	rows := make(types.Array, n)
	for i := range rows {
		p := [2]int64{}
		if pads != nil {
			p = pads[i]
		}
		rows[i] = op.IntList(int(p[0]), int(p[1]))
	}
	return types.Named{Name: "padding", Value: types.Raw(fmt.Sprintf("dense<%s> : tensor<%dx2xi64>", rows, n))}
}

func exportConvolution(c *out) ([]*ir.Value, error) {
	if op.Str(c.o, "accumulate") == "f16" {
		return nil, unsupported("StableHLO has no accumulator type")
	}
	n := c.result(0).Rank() - 2
	places := make([]string, n)
	for i := range places {
		places[i] = fmt.Sprint(i)
	}
	space := strings.Join(places, ", ")
	numbers := fmt.Sprintf("#stablehlo.conv<[b, f, %[1]s]x[o, i, %[1]s]->[b, f, %[1]s]>", space)
	return one(c.make("convolution", c.result(0), c.in, types.Named{Name: "dimension_numbers", Value: types.Raw(numbers)},
		list("window_strides", c.ones("window_strides", n)...), c.padding(n), list("lhs_dilation", c.ones("lhs_dilation", n)...),
		list("rhs_dilation", c.ones("rhs_dilation", n)...), number("feature_group_count", op.Int(c.o, "feature_group_count")), number("batch_group_count", 1)))
}

// term is an operand of a contraction, with the loop of each of its dimensions.
type term struct {
	v     *ir.Value
	loops []int
}

// exportContraction contracts the operands pairwise from left to right, each step
// keeping the loops that are needed later.
func exportContraction(c *out) ([]*ir.Value, error) {
	if op.Str(c.o, "accumulate") == "f16" {
		return nil, unsupported("StableHLO has no accumulator type")
	}
	it := op.Of(c.o).Maps(c.o)
	if it == nil {
		return nil, unsupported("sizes are not known")
	}
	to := c.result(0).Elem
	var terms []term
	for i, v := range c.in {
		t := term{v: v}
		var shape []dim.Dim
		for d, l := range it.Operands[i] {
			if slices.Contains(t.loops, l) {
				return nil, unsupported("StableHLO has no diagonals")
			}
			if l >= 0 {
				t.loops, shape = append(t.loops, l), append(shape, v.Tensor().Shape[d])
			}
		}
		t.v = c.reshape(v, shape)
		terms = append(terms, t)
	}
	if e := c.in[0].Elem(); e.IsFloat() && e.Bits() < 32 && (len(terms) != 2 || lonely(terms, it.Results[0])) {
		for i, t := range terms { // sums are kept in f32 between the steps
			terms[i].v = c.convert(t.v, types.F32)
		}
	}
	acc := terms[0]
	for k, next := range terms[1:] {
		needed := append([]int{}, it.Results[0]...)
		for _, t := range terms[k+2:] {
			needed = append(needed, t.loops...)
		}
		e := acc.v.Elem()
		if k == len(terms)-2 && (e == c.in[0].Elem() || to.Bits() > e.Bits()) {
			e = to
		}
		acc = c.dotted(c.summed(acc, append(needed, next.loops...)), c.summed(next, append(needed, acc.loops...)), needed, e)
	}
	acc = c.summed(acc, it.Results[0])
	order := make([]int, len(it.Results[0]))
	for i, l := range it.Results[0] {
		order[i] = slices.Index(acc.loops, l)
		if order[i] < 0 {
			return nil, unsupported("a dimension of the result that no operand has")
		}
	}
	return one(c.reshape(c.convert(c.transpose(acc.v, order), to), c.result(0).Shape))
}

// lonely reports whether a loop is one of one term alone, and not of the result.
func lonely(terms []term, result []int) bool {
	count := map[int]int{}
	for _, t := range terms {
		for _, l := range t.loops {
			count[l]++
		}
	}
	for l, n := range count {
		if n == 1 && !slices.Contains(result, l) {
			return true
		}
	}
	return false
}

// summed is t without the loops that are not needed.
func (c *out) summed(t term, needed []int) term {
	var at, kept []int
	for d, l := range t.loops {
		if slices.Contains(needed, l) {
			kept = append(kept, l)
		} else {
			at = append(at, d)
		}
	}
	if len(at) == 0 {
		return t
	}
	return term{c.reduced(t.v, "add", at), kept}
}

// dotted is the contraction of two terms, with the loops that are needed.
func (c *out) dotted(x, y term, needed []int, e types.Elem) term {
	var lists [4][]int
	r := term{}
	t := &types.Tensor{Elem: e}
	var free []int
	for d, l := range x.loops {
		switch k := slices.Index(y.loops, l); {
		case k < 0:
			free = append(free, d)
		case slices.Contains(needed, l):
			lists[0], lists[1] = append(lists[0], d), append(lists[1], k)
			r.loops, t.Shape = append(r.loops, l), append(t.Shape, x.v.Tensor().Shape[d])
		default:
			lists[2], lists[3] = append(lists[2], d), append(lists[3], k)
		}
	}
	for _, d := range free {
		r.loops, t.Shape = append(r.loops, x.loops[d]), append(t.Shape, x.v.Tensor().Shape[d])
	}
	for d, l := range y.loops {
		if !slices.Contains(x.loops, l) {
			r.loops, t.Shape = append(r.loops, l), append(t.Shape, y.v.Tensor().Shape[d])
		}
	}
	numbers := fmt.Sprintf("#stablehlo.dot<lhs_batching_dimensions = %s, rhs_batching_dimensions = %s, lhs_contracting_dimensions = %s, rhs_contracting_dimensions = %s>",
		op.IntList(lists[0]...), op.IntList(lists[1]...), op.IntList(lists[2]...), op.IntList(lists[3]...))
	attrs := []types.Named{{Name: "dot_dimension_numbers", Value: types.Raw(numbers)}}
	if op.TF32(c.o) {
		attrs = append(attrs, types.Named{Name: "algorithm", Value: types.Raw("#stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, " +
			"lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>")})
	}
	r.v = c.make("dot_general", t, []*ir.Value{x.v, y.v}, attrs...)
	return r
}

// reduced reduces dimensions of x by a named function.
func (c *out) reduced(x *ir.Value, kind string, at []int) *ir.Value {
	t := &types.Tensor{Elem: x.Elem()}
	for d, n := range x.Tensor().Shape {
		if !slices.Contains(at, d) {
			t.Shape = append(t.Shape, n)
		}
	}
	o := c.Op("stablehlo.reduce", []*ir.Value{x, c.neutralOf(kind, t.Elem)}, []types.Named{list("dimensions", wide(at)...)}, t)
	c.combineBy(o, kind, t.Elem)
	return o.Results[0]
}

func exportReduce(c *out) ([]*ir.Value, error) {
	x := c.in[0]
	at, ok := op.Dims(c.o, "dims", x.Tensor().Rank())
	if !ok {
		return nil, unsupported("no dimensions")
	}
	slices.Sort(at)
	if kind := op.Str(c.o, "kind"); kind != "" {
		return one(c.reshape(c.reduced(x, kind, at), c.result(0).Shape))
	}
	t := &types.Tensor{Elem: x.Elem()}
	for d, n := range x.Tensor().Shape {
		if !slices.Contains(at, d) {
			t.Shape = append(t.Shape, n)
		}
	}
	o := c.Op("stablehlo.reduce", c.in, []types.Named{list("dimensions", wide(at)...)}, t)
	was := c.shape
	c.shape = nil
	defer func() { c.shape = was }()
	b := o.AddRegion()
	for _, a := range c.o.Body(0).Args {
		c.env[a] = b.AddArg(a.Name, &types.Tensor{Elem: t.Elem})
	}
	if err := c.block(&ir.Builder{Block: b}, c.o.Body(0), "stablehlo.return"); err != nil {
		return nil, err
	}
	return one(c.reshape(o.Results[0], c.result(0).Shape))
}

func exportReduceWindow(c *out) ([]*ir.Value, error) {
	t, kind := c.result(0), op.Str(c.o, "kind")
	n := t.Rank()
	o := c.Op("stablehlo.reduce_window", []*ir.Value{c.in[0], c.neutralOf(kind, t.Elem)}, []types.Named{
		list("window_dimensions", op.Ints(c.o, "window_dimensions")...), list("window_strides", c.ones("window_strides", n)...),
		list("window_dilations", c.ones("window_dilations", n)...), c.padding(n),
	}, t)
	c.combineBy(o, kind, t.Elem)
	return o.Results, nil
}

func exportSelectAndScatter(c *out) ([]*ir.Value, error) {
	t := c.result(0)
	n := t.Rank()
	if slices.ContainsFunc(c.ones("window_dilations", n), func(d int64) bool { return d != 1 }) {
		return nil, unsupported("select_and_scatter has no dilation in StableHLO")
	}
	o := c.Op("stablehlo.select_and_scatter", append(slices.Clone(c.in), c.scalarOf(t.Elem, 0)), []types.Named{
		list("window_dimensions", op.Ints(c.o, "window_dimensions")...), list("window_strides", c.ones("window_strides", n)...), c.padding(n),
	}, t)
	s := &types.Tensor{Elem: t.Elem}
	c.region(o, []*types.Tensor{s, s}, func(b *out, x []*ir.Value) []*ir.Value {
		return []*ir.Value{b.is(map[string]string{"max": "GE", "min": "LE"}[op.Str(c.o, "kind")], x[0], x[1])}
	})
	c.combineBy(o, "add", t.Elem)
	return o.Results, nil
}

// places are the numbers along dimension d of a tensor of x's shape.
func (c *out) places(x *ir.Value, d int, e types.Elem) *ir.Value {
	return c.make("iota", &types.Tensor{Elem: e, Shape: x.Tensor().Shape}, nil, number("iota_dimension", int64(d)))
}

// exportArgmax reduces values and their places together; of equal ones the first stays,
// and a NaN is the largest.
func exportArgmax(c *out) ([]*ir.Value, error) {
	x, e, to := c.in[0], c.in[0].Elem(), c.result(0).Elem
	d, ok := op.Dim(c.o, "dim", x.Tensor().Rank())
	if !ok {
		return nil, unsupported("no dimension")
	}
	shape := slices.Delete(slices.Clone(x.Tensor().Shape), d, d+1)
	o := c.Op("stablehlo.reduce", []*ir.Value{x, c.places(x, d, to), c.neutralOf("max", e), c.scalarOf(to, 0)},
		[]types.Named{list("dimensions", int64(d))}, &types.Tensor{Elem: e, Shape: shape}, &types.Tensor{Elem: to, Shape: shape})
	v, i := &types.Tensor{Elem: e}, &types.Tensor{Elem: to}
	c.region(o, []*types.Tensor{v, i, v, i}, func(b *out, x []*ir.Value) []*ir.Value {
		t := &types.Tensor{Elem: types.I1}
		larger, equal := b.is("GT", x[0], x[2]), b.is("EQ", x[0], x[2])
		if e.IsFloat() {
			nan, other := b.is("NE", x[0], x[0]), b.is("NE", x[2], x[2])
			larger = b.make("or", t, []*ir.Value{larger, b.make("and", t, []*ir.Value{nan, b.make("not", t, []*ir.Value{other})})})
			equal = b.make("or", t, []*ir.Value{equal, b.make("and", t, []*ir.Value{nan, other})})
		}
		first := b.make("and", t, []*ir.Value{equal, b.is("LT", x[1], x[3])})
		keep := b.make("or", t, []*ir.Value{larger, first})
		return []*ir.Value{b.make("select", v, []*ir.Value{keep, x[0], x[2]}), b.make("select", i, []*ir.Value{keep, x[1], x[3]})}
	})
	return one(c.reshape(o.Results[1], c.result(0).Shape))
}

// exportSort sorts values, or values with their places; of a top_k it takes the first.
func exportSort(c *out) ([]*ir.Value, error) {
	x, e := c.in[0], c.in[0].Elem()
	d, ok := op.Dim(c.o, "dim", x.Tensor().Rank())
	if !ok {
		return nil, unsupported("no dimension")
	}
	down := op.Bool(c.o, "descending")
	if c.o.Attr("k") != nil {
		down = op.Bool(c.o, "largest")
	}
	v := &types.Tensor{Elem: e}
	operands, args := []*ir.Value{x}, []*types.Tensor{v, v}
	if len(c.o.Results) > 1 {
		i := c.result(1).Elem
		operands, args = append(operands, c.places(x, d, i)), append(args, &types.Tensor{Elem: i}, &types.Tensor{Elem: i})
	}
	o := c.Op("stablehlo.sort", operands, []types.Named{number("dimension", int64(d)), {Name: "is_stable", Value: types.Bool(true)}}, ir.Types(operands)...)
	c.region(o, args, func(b *out, x []*ir.Value) []*ir.Value {
		return []*ir.Value{b.is(map[bool]string{false: "LT", true: "GT"}[down], x[0], x[1])}
	})
	vs := slices.Clone(o.Results)
	if k := op.Int(c.o, "k"); c.o.Attr("k") != nil {
		for i, v := range vs {
			limit := sizesOf(v)
			limit[d] = k
			vs[i] = c.slice(v, make([]int64, len(limit)), limit, slices.Repeat([]int64{1}, len(limit)))
		}
	}
	return vs, nil
}

// exportRunning reduces a window as long as the dimension that ends at each element.
func exportRunning(c *out) ([]*ir.Value, error) {
	if op.Str(c.o, "accumulate") == "f16" {
		return nil, unsupported("StableHLO has no accumulator type")
	}
	t, x := c.result(0), c.in[0]
	d, ok := op.Dim(c.o, "dim", t.Rank())
	if !ok {
		return nil, unsupported("no dimension")
	}
	kind := strings.TrimPrefix(op.Of(c.o).Name, "cum")
	switch kind {
	case "sum":
		kind = "add"
	case "prod":
		kind = "mul"
	}
	size := sizesOf(x)
	first := c.neutralOf(kind, t.Elem)
	back := op.Bool(c.o, "reverse")
	if op.Bool(c.o, "exclusive") { // moved by one
		low, high := make([]int64, len(size)), make([]int64, len(size))
		low[d], high[d] = 1, -1
		if back {
			low, high = high, low
		}
		x = c.make("pad", t, []*ir.Value{x, first}, list("edge_padding_low", low...), list("edge_padding_high", high...), list("interior_padding", make([]int64, len(size))...))
	}
	if size[d] == 0 {
		return one(x)
	}
	window := slices.Repeat([]int64{1}, len(size))
	window[d] = size[d]
	rows := make(types.Array, len(size))
	for i := range rows {
		low, high := 0, 0
		if i == d && back {
			high = int(size[d]) - 1
		} else if i == d {
			low = int(size[d]) - 1
		}
		rows[i] = op.IntList(low, high)
	}
	o := c.Op("stablehlo.reduce_window", []*ir.Value{x, first}, []types.Named{
		list("window_dimensions", window...),
		{Name: "padding", Value: types.Raw(fmt.Sprintf("dense<%s> : tensor<%dx2xi64>", rows, len(rows)))},
	}, t)
	c.combineBy(o, kind, t.Elem)
	return o.Results, nil
}

// numbers are the dimension numbers of a gather or a scatter across one dimension, in
// the words of the two: window, collapsed, batching, along, starts.
func (c *out) numbers(words [5]string, rank, d, batch, indices int) string {
	var window, along []int
	for k := range rank {
		switch {
		case k < batch:
			along = append(along, k)
		case k < d:
			window = append(window, k)
		case k > d:
			window = append(window, k-1+indices-batch)
		}
	}
	s := fmt.Sprintf("%s = %s, %s = %s", words[0], op.IntList(window...), words[1], op.IntList(d))
	if batch > 0 {
		s += fmt.Sprintf(", %s = %s, %s = %s", words[2], op.IntList(along...), words[3], op.IntList(along...))
	}
	return fmt.Sprintf("%s, %s = %s, index_vector_dim = %d", s, words[4], op.IntList(d), indices)
}

func exportGather(c *out) ([]*ir.Value, error) {
	size := sizesOf(c.in[0])
	d, ok := op.Dim(c.o, "dim", len(size))
	if !ok {
		return nil, unsupported("no dimension")
	}
	batch := int(op.Int(c.o, "batch_dims"))
	numbers := c.numbers([5]string{"offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map"},
		len(size), d, batch, c.in[1].Tensor().Rank())
	for i := range batch {
		size[i] = 1
	}
	size[d] = 1
	return one(c.make("gather", c.result(0), c.in, types.Named{Name: "dimension_numbers", Value: types.Raw("#stablehlo.gather<" + numbers + ">")}, list("slice_sizes", size...)))
}

func exportScatter(c *out) ([]*ir.Value, error) {
	t, kind := c.result(0), op.Str(c.o, "kind")
	d, ok := op.Dim(c.o, "dim", t.Rank())
	if !ok {
		return nil, unsupported("no dimension")
	}
	numbers := c.numbers([5]string{"update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"},
		t.Rank(), d, int(op.Int(c.o, "batch_dims")), c.in[1].Tensor().Rank())
	o := c.Op("stablehlo.scatter", c.in, []types.Named{{Name: "scatter_dimension_numbers", Value: types.Raw("#stablehlo.scatter<" + numbers + ">")}}, t)
	c.combineBy(o, kind, t.Elem)
	return o.Results, nil
}
