package onnx

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// node is the conversion of one node.
type node struct {
	*scope
	p     *nodeProto
	ins   []*ir.Value
	opset int64           // version of the operator set that its op is of
	used  map[string]bool // the attributes and, by their numbers, inputs that were read
}

// conversion computes the outputs of a node by ops at n.b. What it cannot convert it
// ends with fail or unsupported.
type conversion func(n *node) []*ir.Value

// conversions are those of the ops by name, those of other domains with their domain.
var conversions = map[string]conversion{}

func register(table map[string]conversion) {
	for name, f := range table {
		conversions[name] = f
	}
}

func (n *node) convert() []*ir.Value {
	if f := n.functions[key(n.p.domain, n.p.op, n.p.overload)]; f != nil {
		return n.inline(f)
	}
	version, imported := n.opsets[n.p.domain]
	if !imported {
		fail("no operator set of its domain %q is imported", n.p.domain)
	}
	n.opset = version
	name := n.p.op
	if n.p.domain != "" {
		name = n.p.domain + "." + name
	}
	f := conversions[name]
	if f == nil {
		if n.p.domain == "ai.onnx.ml" {
			unsupported("the op %s: no op of ai.onnx.ml, of trees, support vectors and other classical models, is read", name)
		}
		unsupported("the op %s", name)
	}
	n.known(name)
	n.used = map[string]bool{}
	outs := f(n)
	n.done(name)
	return outs
}

func one(v *ir.Value) []*ir.Value { return []*ir.Value{v} }

// opt is input i, nil where it is left out.
func (n *node) opt(i int) *ir.Value {
	if i < len(n.ins) {
		n.used[strconv.Itoa(i)] = true
		if _, is := n.sequences[n.ins[i]]; is && !strings.Contains(n.p.op, "Sequence") {
			unsupported("input %d, a sequence", i)
		}
		return n.ins[i]
	}
	return nil
}

// in is input i, which must be there.
func (n *node) in(i int) *ir.Value {
	v := n.opt(i)
	if v == nil {
		fail("input %d is missing", i)
	}
	return v
}

// has reports whether output i is used.
func (n *node) has(i int) bool { return i < len(n.p.outputs) && n.p.outputs[i] != "" }

// attr is the attribute called name, nil where it is absent.
func (n *node) attr(name string) *attributeProto {
	n.used[name] = true
	for _, a := range n.p.attrs {
		if a.name == name {
			return n.resolve(a)
		}
	}
	return nil
}

func (n *node) int(name string, otherwise int) int {
	if a := n.attr(name); a != nil {
		return int(a.i)
	}
	return otherwise
}

func (n *node) float(name string, otherwise float64) float64 {
	if a := n.attr(name); a != nil {
		return float64(a.f)
	}
	return otherwise
}

func (n *node) str(name, otherwise string) string {
	if a := n.attr(name); a != nil {
		return string(a.s)
	}
	return otherwise
}

// ints is a list of integers, nil where it is absent.
func (n *node) ints(name string) []int {
	a := n.attr(name)
	if a == nil {
		return nil
	}
	if a.kind == 2 { // one integer in place of a list, as some tools write
		return []int{int(a.i)}
	}
	out := make([]int, len(a.ints))
	for i, v := range a.ints {
		out[i] = int(v)
	}
	return out
}

// value is input i, which must be known at import; nil where it is left out.
func (n *node) value(i int) *types.Dense {
	v := n.opt(i)
	if v == nil {
		return nil
	}
	d := n.constant(v)
	if d == nil {
		panic(&Error{Code: unsupportedCode, Value: true, Msg: "input " + strconv.Itoa(i) + " decides about shapes and is not known at import: the dialect has static shapes"})
	}
	if k, ok := d.Type.Elements().Int(); !ok || k > maxComputed {
		unsupported("a value of %s elements that decides about shapes", d.Type.Elements())
	}
	if n.tracing {
		n.note(whole(d)...)
	}
	return d
}

// whole are the elements of d as integers, those that are none by their bits.
func whole(d *types.Dense) []int {
	if !d.Elem.IsFloat() {
		return integers(d)
	}
	var out []int
	for i := range d.Len() {
		v := d.Float(i)
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			out = append(out, int(v))
		} else {
			out = append(out, int(math.Float64bits(v)))
		}
	}
	return out
}

// list is the integers that the attribute called name has or, since a later version
// of the op, input i; nil where there are none.
func (n *node) list(name string, i int) []int {
	if a := n.attr(name); a != nil {
		return n.ints(name)
	}
	if d := n.value(i); d != nil {
		return integers(d)
	}
	return nil
}

// shape is the sizes of v.
func (n *node) shape(v *ir.Value) []int {
	t := v.Tensor()
	if t == nil {
		fail("%s is no tensor", v.Type)
	}
	out := make([]int, len(t.Shape))
	for i, d := range t.Shape {
		k, ok := d.Int()
		if !ok || d.Overflow() {
			fail("%s has no fixed size", t)
		}
		out[i] = int(k)
	}
	return out
}

func (n *node) rank(v *ir.Value) int { return len(n.shape(v)) }

// axis is the dimension that a number, negative ones from the back, names.
func axis(a, rank int) int {
	d := a
	if d < 0 {
		d += rank
	}
	if d < 0 || d >= rank {
		fail("axis %d of %d dimensions", a, rank)
	}
	return d
}

func axes(list []int, rank int) []int {
	out, seen := make([]int, len(list)), map[int]bool{}
	for i, a := range list {
		out[i] = axis(a, rank)
		if seen[out[i]] {
			fail("axis %d is named twice", a)
		}
		seen[out[i]] = true
	}
	return out
}

// make is the first result of dm.name.
func (n *node) make(name string, in []*ir.Value, attrs []types.Named, results ...types.Type) *ir.Value {
	v := n.b.Value(name, in, attrs, results...)
	if err := n.b.Err(); err != nil {
		fail("%v", err)
	}
	return v
}

// makeAll is the results of dm.name.
func (n *node) makeAll(name string, in []*ir.Value, attrs []types.Named, results ...types.Type) []*ir.Value {
	o := n.b.Make(name, in, attrs, results...)
	if o == nil {
		fail("%v", n.b.Err())
	}
	return o.Results
}

func (n *node) unary(name string, x *ir.Value) *ir.Value { return n.make(name, []*ir.Value{x}, nil) }

func (n *node) binary(name string, x, y *ir.Value) *ir.Value {
	return n.make(name, []*ir.Value{x, y}, nil)
}

// with is dm.name of x and a number of its element type.
func (n *node) with(name string, x *ir.Value, v float64) *ir.Value {
	return n.binary(name, x, n.scalar(x.Elem(), v))
}

// scalar is the constant v of an element type, which broadcasts.
func (n *node) scalar(e types.Elem, v float64) *ir.Value { return n.splat(e, v) }

// splat is the constant v of an element type and a shape.
func (n *node) splat(e types.Elem, v float64, shape ...int) *ir.Value {
	return n.literal(types.SplatOf(tensorOf(e, shape), v))
}

// numbers is a constant list of i64.
func (n *node) numbers(list ...int) *ir.Value {
	data := make([]byte, 0, 8*len(list))
	for _, v := range list {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return n.literal(types.DenseOf(tensorOf(types.I64, []int{len(list)}), data))
}

func (n *node) convertTo(x *ir.Value, e types.Elem) *ir.Value {
	v := n.b.Convert(x, e)
	if err := n.b.Err(); err != nil {
		fail("%v", err)
	}
	return v
}

func (n *node) compare(direction string, x, y *ir.Value) *ir.Value {
	return n.make("compare", []*ir.Value{x, y}, named("direction", direction))
}

func (n *node) choose(pred, x, y *ir.Value) *ir.Value {
	return n.make("select", []*ir.Value{pred, x, y}, nil)
}

// few is the literal that x is, where it is small and may be written again.
func (n *node) few(x *ir.Value) *types.Dense {
	if x.Op == nil || x.Op.Name != op.Constant || x.Elem().Packed() {
		return nil
	}
	if d, ok := x.Op.Attr("value").(*types.Dense); ok && d.Len() > 0 && d.Len() <= 64 {
		return d
	}
	return nil
}

// reshape gives x another shape of as many elements.
func (n *node) reshape(x *ir.Value, shape ...int) *ir.Value {
	for _, d := range shape {
		if d < 0 {
			fail("size %d is negative", d)
		}
	}
	if d := n.few(x); d != nil && product(shape) == product(n.shape(x)) {
		return n.literal(types.DenseOf(tensorOf(x.Elem(), shape), d.Bytes()))
	}
	v := n.b.Reshape(x, sizes(shape)...)
	if err := n.b.Err(); err != nil {
		fail("%v", err)
	}
	return v
}

func (n *node) transpose(x *ir.Value, order ...int) *ir.Value {
	v := n.b.Transpose(x, order...)
	if err := n.b.Err(); err != nil {
		fail("%v", err)
	}
	return v
}

// broadcast repeats x to a shape, as in NumPy.
func (n *node) broadcast(x *ir.Value, shape ...int) *ir.Value {
	have := n.shape(x)
	if len(have) == len(shape) && product(have) == product(shape) {
		return x
	}
	for i := 1; i <= len(have); i++ {
		if i > len(shape) || have[len(have)-i] != shape[len(shape)-i] && have[len(have)-i] != 1 {
			fail("%v does not broadcast to %v", have, shape)
		}
	}
	if d := n.few(x); d != nil && d.Len() == 1 {
		return n.literal(types.DenseOf(tensorOf(x.Elem(), shape), d.Bytes()))
	}
	return n.make("broadcast", []*ir.Value{x}, nil, tensorOf(x.Elem(), shape))
}

// slice is a part of x; without a step all steps are 1.
func (n *node) slice(x *ir.Value, start, limit, step []int) *ir.Value {
	whole, ones := true, true
	for i, size := range n.shape(x) {
		whole = whole && start[i] == 0 && limit[i] == size
		ones = ones && (len(step) == 0 || step[i] == 1)
	}
	if whole && ones {
		return x
	}
	attrs := named("start_indices", start, "limit_indices", limit)
	if !ones {
		attrs = append(attrs, named("strides", step)...)
	}
	return n.make("slice", []*ir.Value{x}, attrs)
}

// part is elements from up to to of dimension d of x.
func (n *node) part(x *ir.Value, d, from, to int) *ir.Value {
	limit := n.shape(x)
	start := make([]int, len(limit))
	start[d], limit[d] = from, to
	return n.slice(x, start, limit, nil)
}

func (n *node) concatenate(d int, xs ...*ir.Value) *ir.Value {
	if len(xs) == 1 {
		return xs[0]
	}
	return n.make("concatenate", xs, named("dim", d))
}

// pad adds elements before and after each dimension.
func (n *node) pad(x, value *ir.Value, low, high []int) *ir.Value {
	for i := range low {
		if low[i] != 0 || high[i] != 0 {
			return n.make("pad", []*ir.Value{x, value}, named("low", low, "high", high))
		}
	}
	return x
}

// iota counts along dimension d of a shape.
func (n *node) iota(e types.Elem, d int, shape ...int) *ir.Value {
	return n.make("iota", nil, named("dim", d), tensorOf(e, shape))
}

// reduce is a named reduction.
func (n *node) reduce(kind string, x *ir.Value, at []int, keep bool) *ir.Value {
	if len(at) == 0 {
		return x
	}
	attrs := named("kind", kind, "dims", at)
	if keep {
		attrs = append(attrs, named("keep_dims", true)...)
	}
	return n.make("reduce", []*ir.Value{x}, attrs)
}

// index is v in an element type that indices may have.
func (n *node) index(v *ir.Value) *ir.Value {
	switch v.Elem() {
	case types.I64, types.I32, types.UI64, types.UI32:
		return v
	}
	return n.convertTo(v, types.I64)
}
