package stablehlo

import (
	"maps"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// exports are the ops that are written by more than their name; the tables unaries and
// binaries of the importer have the others.
var exports map[string]func(c *out) ([]*ir.Value, error)

var (
	unaryExports  = map[string]string{"abs": "abs", "neg": "negate", "sign": "sign", "bitcast": "bitcast_convert"}
	binaryExports = map[string]string{}
)

// chlo are the functions that only CHLO has.
var chlo = map[string]bool{"erf": true, "erf_inv": true, "erfc": true, "sinh": true, "cosh": true, "asinh": true, "acosh": true, "atanh": true}

func init() {
	for foreign, name := range unaries {
		unaryExports[name] = strings.TrimPrefix(foreign, "chlo.")
	}
	for foreign, name := range binaries {
		binaryExports[name] = foreign
	}
	exports = map[string]func(c *out) ([]*ir.Value, error){
		"relu": exportRelu, "compare": exportCompare, "select": exportSpread("select"), "clamp": exportSpread("clamp"),
		"convert": exportConvert, "constant": exportConstant, "empty": exportEmpty, "iota": exportIota,
		"copy": exportSame, "reshard": exportSame, "stop_gradient": exportSame, "transpose": exportTranspose, "reshape": exportReshape,
		"broadcast": exportBroadcast, "slice": exportSlice, "dynamic_slice": exportDynamicSlice,
		"dynamic_update_slice": exportDynamicUpdate, "concatenate": exportConcatenate, "pad": exportPad, "reverse": exportReverse,
		"gather": exportGather, "scatter": exportScatter, "einsum": exportContraction, "matmul": exportContraction,
		"convolution": exportConvolution, "reduce": exportReduce, "reduce_window": exportReduceWindow,
		"select_and_scatter": exportSelectAndScatter, "argmax": exportArgmax, "sort": exportSort, "top_k": exportSort,
		"cumsum": exportRunning, "cumprod": exportRunning, "cummax": exportRunning,
		"map": exportMap, "kernel": exportKernel, "if": exportIf, "while": exportWhile,
	}
	maps.Copy(exports, collectiveExports())
}

func exportUnary(c *out) ([]*ir.Value, error) {
	name := unaryExports[op.Of(c.o).Name]
	prefix := "stablehlo."
	if chlo[name] {
		prefix = "chlo."
	}
	return c.Op(prefix+name, c.in, nil, c.result(0)).Results, nil
}

func exportBinary(c *out) ([]*ir.Value, error) {
	return exportSpread(binaryExports[op.Of(c.o).Name])(c)
}

// exportSpread writes an element-wise op, its operands in the shape of the result.
func exportSpread(name string) func(c *out) ([]*ir.Value, error) {
	return func(c *out) ([]*ir.Value, error) {
		t := c.result(0)
		for i, v := range c.in {
			c.in[i] = c.spread(v, t.Shape)
		}
		return one(c.make(name, t, c.in))
	}
}

func exportRelu(c *out) ([]*ir.Value, error) {
	t := c.result(0)
	return one(c.make("maximum", t, []*ir.Value{c.in[0], c.spread(c.scalarOf(t.Elem, 0), t.Shape)}))
}

func exportCompare(c *out) ([]*ir.Value, error) {
	t := c.result(0)
	return one(c.is(strings.ToUpper(op.Str(c.o, "direction")), c.spread(c.in[0], t.Shape), c.spread(c.in[1], t.Shape)))
}

// is compares two tensors of one shape.
func (c *out) is(direction string, x, y *ir.Value) *ir.Value {
	kind := "SIGNED"
	switch e := x.Elem(); {
	case e.IsFloat():
		kind = "FLOAT"
	case e.IsUnsigned():
		kind = "UNSIGNED"
	}
	return c.make("compare", &types.Tensor{Elem: types.I1, Shape: x.Tensor().Shape}, []*ir.Value{x, y},
		types.Named{Name: "comparison_direction", Value: types.Raw("#stablehlo<comparison_direction " + direction + ">")},
		types.Named{Name: "compare_type", Value: types.Raw("#stablehlo<comparison_type " + kind + ">")})
}

func exportConvert(c *out) ([]*ir.Value, error) {
	return one(c.make("convert", c.result(0), c.in))
}

func exportConstant(c *out) ([]*ir.Value, error) {
	t := c.result(0)
	switch v := c.o.Attr("value").(type) {
	case *types.Dense:
		v, err := v.Inline()
		if err != nil {
			return nil, unsupported("%v", err)
		}
		if types.Equal(v.Type, t) {
			return one(c.constant(v))
		}
		d := *v
		d.Type = t
		return one(c.constant(&d))
	case types.Int:
		return one(c.spread(c.constant(types.IntOf(&types.Tensor{Elem: t.Elem}, v.V)), t.Shape))
	case types.Float:
		return one(c.spread(c.scalarOf(t.Elem, v.V), t.Shape))
	case types.Bool:
		n := int64(0)
		if v {
			n = 1
		}
		return one(c.spread(c.constant(types.IntOf(&types.Tensor{Elem: t.Elem}, n)), t.Shape))
	}
	return nil, unsupported("a constant without a list of elements")
}

// exportEmpty is for memory whose elements are not set: zeros.
func exportEmpty(c *out) ([]*ir.Value, error) {
	return one(c.constant(types.SplatOf(c.result(0), 0)))
}

func exportIota(c *out) ([]*ir.Value, error) {
	t := c.result(0)
	d, ok := op.Dim(c.o, "dim", t.Rank())
	if !ok {
		return nil, unsupported("no dimension")
	}
	v := c.make("iota", t, nil, number("iota_dimension", int64(d)))
	if step := op.Float(c.o, "step"); step != 1 {
		v = c.make("multiply", t, []*ir.Value{v, c.spread(c.scalarOf(t.Elem, step), t.Shape)})
	}
	if start := op.Float(c.o, "start"); start != 0 {
		v = c.make("add", t, []*ir.Value{v, c.spread(c.scalarOf(t.Elem, start), t.Shape)})
	}
	return one(v)
}

func exportSame(c *out) ([]*ir.Value, error) { return c.in[:1], nil }

func exportTranspose(c *out) ([]*ir.Value, error) {
	p, ok := op.Dims(c.o, "dims", c.in[0].Tensor().Rank())
	if !ok {
		return nil, unsupported("no permutation")
	}
	return one(c.transpose(c.in[0], p))
}

func exportReshape(c *out) ([]*ir.Value, error) { return one(c.reshape(c.in[0], c.result(0).Shape)) }

func exportBroadcast(c *out) ([]*ir.Value, error) {
	at, p := op.BroadcastDims(c.o)
	if p != nil {
		return nil, unsupported("%s", p.Msg)
	}
	return one(c.make("broadcast_in_dim", c.result(0), c.in, list("broadcast_dimensions", wide(at)...)))
}

func wide(ns []int) []int64 {
	out := make([]int64, len(ns))
	for i, n := range ns {
		out[i] = int64(n)
	}
	return out
}

// sizesOf are the sizes of v in numbers, which its type is known to have.
func sizesOf(v *ir.Value) []int64 {
	var out []int64
	for _, d := range v.Tensor().Shape {
		n, _ := d.Int()
		out = append(out, n)
	}
	return out
}

func exportSlice(c *out) ([]*ir.Value, error) {
	part, ok := op.Taken(c.o)
	if !ok {
		return nil, unsupported("the range is not known in numbers")
	}
	var start, limit, step []int64
	for d, r := range part {
		if r.Stride == 0 {
			r = op.Range{Limit: sizesOf(c.in[0])[d], Stride: 1}
		}
		start, limit, step = append(start, r.Start), append(limit, r.Limit), append(step, r.Stride)
	}
	return one(c.slice(c.in[0], start, limit, step))
}

func (c *out) slice(x *ir.Value, start, limit, step []int64) *ir.Value {
	t := &types.Tensor{Elem: x.Elem()}
	for i := range start {
		t.Shape = append(t.Shape, dim.Const((max(limit[i]-start[i], 0)+step[i]-1)/step[i]))
	}
	return c.make("slice", t, []*ir.Value{x}, list("start_indices", start...), list("limit_indices", limit...), list("strides", step...))
}

func exportDynamicSlice(c *out) ([]*ir.Value, error) {
	return one(c.make("dynamic_slice", c.result(0), c.in, list("slice_sizes", sizesOf(c.o.Results[0])...)))
}

func exportDynamicUpdate(c *out) ([]*ir.Value, error) {
	return one(c.make("dynamic_update_slice", c.result(0), c.in))
}

func exportConcatenate(c *out) ([]*ir.Value, error) {
	d, _ := op.Dim(c.o, "dim", c.result(0).Rank())
	return one(c.make("concatenate", c.result(0), c.in, number("dimension", int64(d))))
}

func exportPad(c *out) ([]*ir.Value, error) {
	var l [3][]int64
	for i, name := range []string{"low", "high", "interior"} {
		if l[i] = op.Ints(c.o, name); l[i] == nil {
			l[i] = make([]int64, c.result(0).Rank())
		}
	}
	return one(c.make("pad", c.result(0), c.in, list("edge_padding_low", l[0]...), list("edge_padding_high", l[1]...), list("interior_padding", l[2]...)))
}

func exportReverse(c *out) ([]*ir.Value, error) {
	d, ok := op.Dims(c.o, "dims", c.result(0).Rank())
	if !ok {
		return nil, unsupported("no dimensions")
	}
	return one(c.make("reverse", c.result(0), c.in, list("dimensions", wide(d)...)))
}

// exportMap writes the region's ops for whole tensors.
func exportMap(c *out) ([]*ir.Value, error) {
	shape := c.result(0).Shape
	for i, v := range c.in {
		c.in[i] = c.spread(v, shape)
	}
	was := c.shape
	c.shape = shape
	defer func() { c.shape = was }()
	return c.inlined(c.o.Body(0), c.in)
}

func exportKernel(c *out) ([]*ir.Value, error) { return c.inlined(c.o.Body(0), nil) }

// inlined writes the ops of a block in place and returns what it yields.
func (c *out) inlined(from *ir.Block, args []*ir.Value) ([]*ir.Value, error) {
	for i, a := range from.Args {
		c.env[a] = args[i]
	}
	if err := c.block(c.Builder, from, "stablehlo.return"); err != nil {
		return nil, err
	}
	last := c.Block.Terminator()
	vs := last.Operands
	ir.Erase(last)
	c.Index--
	return vs, nil
}

func (c *out) results() (ts []types.Type) {
	for i := range c.o.Results {
		ts = append(ts, c.result(i))
	}
	return ts
}

func exportIf(c *out) ([]*ir.Value, error) {
	o := c.Op("stablehlo.if", c.in, nil, c.results()...)
	for i := range 2 {
		b := &ir.Builder{Block: o.AddRegion()}
		if c.o.Body(i) == nil {
			b.Op("stablehlo.return", nil, nil)
		} else if err := c.block(b, c.o.Body(i), "stablehlo.return"); err != nil {
			return nil, err
		}
	}
	return o.Results, nil
}

func exportWhile(c *out) ([]*ir.Value, error) {
	o := c.Op("stablehlo.while", c.in, nil, c.results()...)
	for i := range 2 {
		b := o.AddRegion(o.Results...)
		for k, a := range c.o.Body(i).Args {
			b.Args[k].Name = a.Name
			c.env[a] = b.Args[k]
		}
		if err := c.block(&ir.Builder{Block: b}, c.o.Body(i), "stablehlo.return"); err != nil {
			return nil, err
		}
	}
	return o.Results, nil
}
