package devices

import (
	"fmt"
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Collectives is the pass that writes collectives in the form in which devices run them. Data
// is contiguous, and is cut and put together along the first dimension, in the order of the
// devices' numbers: transposes around a collective, which kernels compute, arrange it. A
// dm.send and its dm.recv in one function are one dm.collective_permute; in the stages of a
// pipeline, whose devices have other functions, each stays. A position on the mesh is an
// argument with op.PositionAttr, so that one program serves all devices that run it.
func Collectives() pass.Pass {
	return pass.Pass{Name: "collectives", Summary: "collectives of contiguous data, and positions as arguments", Run: runCollectives}
}

func runCollectives(u *pass.Unit) error {
	m := mesh.Find(u.Module, u.Func.Op.Str(op.MeshAttr))
	if m == nil || u.Func.Body == nil {
		return nil
	}
	c := &collectives{fn: u.Func, mesh: m, stage: op.OnlyOf(u.Func.Op) != nil, positions: map[string]*ir.Value{}}
	var found, together []*ir.Op
	ir.Walk(u.Func.Body.Ops, func(o *ir.Op) bool {
		if op.IsBucket(o) {
			together = append(together, o)
		}
		if o.Name == op.PartitionID || op.Of(o).Is(op.Collective) {
			found = append(found, o)
		}
		return true
	})
	for _, o := range together { // the pass buckets finds them, in the new form
		pass.Dissolve(o)
	}
	for _, o := range found {
		if err := c.rewrite(o); err != nil {
			return err
		}
	}
	for _, s := range c.sent {
		return unmatched(s.op)
	}
	u.Func.Retype()
	return nil
}

type collectives struct {
	fn        *ir.Func
	mesh      *mesh.Mesh
	stage     bool                 // of a pipeline
	positions map[string]*ir.Value // by axes
	sent      []sending            // that no dm.recv has fetched
}

// sending is a dm.send whose dm.recv comes later.
type sending struct {
	op  *ir.Op
	key string
	x   *ir.Value
}

// group is the axes of a collective: as written, and outermost first.
type group struct {
	axes, sorted []types.Axis
	sizes        []dim.Dim // along axes
	perm         []int     // sorted[i] is axes[perm[i]]
	n            int
}

func (c *collectives) group(o *ir.Op) (g group, err error) {
	if g.axes, err = c.mesh.ParseAxes(op.Strings(o, "axes")); err != nil {
		return g, pass.Errorf(o, "DM831", "%v", err)
	}
	g.sorted, g.perm = c.mesh.Sorted(g.axes)
	for _, a := range g.axes {
		g.sizes = append(g.sizes, dim.Const(int64(c.mesh.Size(a))))
	}
	g.n = c.mesh.Count(g.axes)
	return g, nil
}

// rank is the place among the group's devices, ascending, of a position along the axes.
func (g *group) rank(position int64) int64 {
	at := make([]int64, len(g.sizes))
	for i := len(g.sizes) - 1; i >= 0; i-- {
		n, _ := g.sizes[i].Int()
		at[i], position = position%n, position/n
	}
	rank := int64(0)
	for _, i := range g.perm {
		n, _ := g.sizes[i].Int()
		rank = rank*n + at[i]
	}
	return rank
}

func (g *group) names() types.Named { return types.Named{Name: "axes", Value: mesh.Names(g.sorted)} }

func (c *collectives) rewrite(o *ir.Op) error {
	g, err := c.group(o)
	if err != nil {
		return err
	}
	switch {
	case o.Name == op.PartitionID:
		pass.Replace(o, c.position(g))
		return nil
	case c.stage && (o.Name == op.Send || o.Name == op.Recv):
		return c.point(o, g)
	case o.Name == op.Send:
		c.sent = append(c.sent, sending{o, op.Point(o), o.Operands[0]})
		return nil
	}
	b := pass.Before(o)
	var x *ir.Value
	if o.Name == op.Recv {
		i := slices.IndexFunc(c.sent, func(s sending) bool { return s.key == op.Point(o) && s.op.Parent == o.Parent })
		if i < 0 {
			return unmatched(o)
		}
		s := c.sent[i]
		c.sent = slices.Delete(c.sent, i, i+1)
		if x = s.x; !types.Equal(plain(x.Tensor()), plain(o.Results[0].Tensor())) {
			return pass.Errorf(o, "DM833", "what was sent is %s, not %s", x.Type, o.Results[0].Type)
		}
		ir.EraseAll(s.op)
		b = pass.Before(o)
	} else {
		x = o.Operands[0]
	}
	want := o.Results[0].Tensor()
	if err := numbers(o, x.Tensor(), want); err != nil {
		return err
	}
	y := received(b, c.canonical(b, o, g, sent(b, x)), want)
	if err := b.Err(); err != nil {
		return pass.Errorf(o, "DM820", "%v", err)
	}
	pass.Replace(o, y)
	return nil
}

// numbers is an error if a size of what o moves is a symbol.
func numbers(o *ir.Op, ts ...*types.Tensor) error {
	for _, t := range ts {
		for _, d := range t.Shape {
			if syms := d.Symbols(); len(syms) > 0 {
				return pass.Errorf(o, "DM801", "the size of %s depends on %s", t, syms[0])
			}
		}
	}
	return nil
}

// unpacked is the type with a byte for each element of the packed type e, which collectives cannot divide, or e.
func unpacked(e types.Elem) types.Elem {
	switch e {
	case types.I4:
		return types.I8
	case types.UI4:
		return types.UI8
	}
	return e
}

// sent is x in the form in which devices exchange it.
func sent(b *op.Builder, x *ir.Value) *ir.Value {
	x = rowMajor(b, x)
	if e := unpacked(x.Elem()); e != x.Elem() {
		x = b.Convert(x, e)
	}
	return x
}

// received is y, which was exchanged, as a value of type want.
func received(b *op.Builder, y *ir.Value, want *types.Tensor) *ir.Value {
	if y != nil && y.Elem() != want.Elem {
		y = b.Convert(y, want.Elem)
	}
	if y != nil && !types.Equal(y.Type, want) {
		y = b.Value("copy", []*ir.Value{y}, nil, want)
	}
	return y
}

// point writes a dm.send or a dm.recv of a stage.
func (c *collectives) point(o *ir.Op, g group) error {
	attrs := []types.Named{{Name: "channel", Value: op.Attr(o, "channel")}, g.names()}
	for _, end := range []string{"from", "to"} {
		attrs = append(attrs, types.Named{Name: end, Value: types.Int{V: g.rank(op.Int(o, end))}})
	}
	b := pass.Before(o)
	for _, v := range slices.Concat(o.Operands, o.Results) {
		if err := numbers(o, v.Tensor()); err != nil {
			return err
		}
	}
	var y *ir.Value
	if o.Name == op.Send {
		b.Make(op.Send, []*ir.Value{sent(b, o.Operands[0])}, attrs)
	} else {
		want := o.Results[0].Tensor()
		t := plain(want)
		t.Elem = unpacked(t.Elem)
		y = received(b, b.Value(op.Recv, nil, attrs, t), want)
	}
	if err := b.Err(); err != nil {
		return pass.Errorf(o, "DM820", "%v", err)
	}
	if y == nil {
		ir.EraseAll(o)
	} else {
		pass.Replace(o, y)
	}
	return nil
}

func unmatched(o *ir.Op) error {
	return pass.Errorf(o, "DM833", "%s has no partner of the same axes, positions and channel in the same block", o.Name)
}

// plain is t in row-major order.
func plain(t *types.Tensor) *types.Tensor {
	r := *t
	r.At.Order = nil
	return &r
}

func rowMajor(b *op.Builder, x *ir.Value) *ir.Value {
	if x.Tensor().At.Order == nil {
		return x
	}
	return b.Value("copy", []*ir.Value{x}, nil, plain(x.Tensor()))
}

// canonical is the collective o of x, which is contiguous.
func (c *collectives) canonical(b *op.Builder, o *ir.Op, g group, x *ir.Value) *ir.Value {
	n := int64(g.n)
	shape := x.Tensor().Shape
	reduction := types.Named{Name: "reduction", Value: op.Attr(o, "reduction")}
	along := func(name string) int {
		d, _ := op.Dim(o, name, len(shape))
		return d
	}
	first := func(name string) types.Named { return types.Named{Name: name, Value: types.Int{}} }
	switch o.Name {
	case op.AllReduce:
		if n == 1 {
			return x
		}
		return b.Value("all_reduce", []*ir.Value{x}, []types.Named{reduction, g.names()}, plain(x.Tensor()))
	case op.AllGather:
		d := along("dim")
		if n == 1 {
			return x
		}
		x = b.Reshape(x, slices.Concat([]dim.Dim{dim.Const(1)}, shape)...)
		whole := x.Tensor().With(slices.Concat([]dim.Dim{dim.Const(n)}, shape)...)
		return g.joined(b, b.Value("all_gather", []*ir.Value{x}, []types.Named{first("dim"), g.names()}, whole), d)
	case op.ReduceScatter:
		if n == 1 {
			return x
		}
		x = g.parted(b, x, along("dim"))
		piece := x.Tensor().Shape[1:]
		part := x.Tensor().With(slices.Concat([]dim.Dim{dim.Const(1)}, piece)...)
		return b.Reshape(b.Value("reduce_scatter", []*ir.Value{x}, []types.Named{reduction, first("dim"), g.names()}, part), piece...)
	case op.AllToAll:
		if n == 1 {
			return x
		}
		x = g.parted(b, x, along("split"))
		y := b.Value("all_to_all", []*ir.Value{x}, []types.Named{first("split"), first("concat"), g.names()}, x.Type)
		return g.joined(b, y, along("concat"))
	default: // a dm.collective_permute or a dm.recv
		pairs := op.Pairs(o, "pairs")
		if o.Name == op.Recv {
			pairs = [][2]int64{{op.Int(o, "from"), op.Int(o, "to")}}
		}
		list := make(types.Array, len(pairs))
		for i, p := range pairs {
			list[i] = op.IntList(int(g.rank(p[0])), int(g.rank(p[1])))
		}
		return b.Value("collective_permute", []*ir.Value{x}, []types.Named{{Name: "pairs", Value: list}, g.names()}, plain(x.Tensor()))
	}
}

// parted is x with dimension d cut into the pieces of the group's devices, which become the
// first dimension.
func (g *group) parted(b *op.Builder, x *ir.Value, d int) *ir.Value {
	shape := x.Tensor().Shape
	size, _ := shape[d].Int()
	piece := dim.Const(size / int64(g.n))
	x = b.Reshape(x, slices.Concat(shape[:d], g.sizes, []dim.Dim{piece}, shape[d+1:])...)
	dims := make([]int, 0, x.Tensor().Rank())
	for _, i := range g.perm {
		dims = append(dims, d+i)
	}
	for i := range x.Tensor().Rank() {
		if i < d || i >= d+len(g.sizes) {
			dims = append(dims, i)
		}
	}
	x = transposed(b, x, dims)
	return b.Reshape(x, slices.Concat([]dim.Dim{dim.Const(int64(g.n))}, shape[:d], []dim.Dim{piece}, shape[d+1:])...)
}

// joined is the inverse of parted: the first dimension of x, the devices' pieces, is put
// together along dimension d of the others.
func (g *group) joined(b *op.Builder, x *ir.Value, d int) *ir.Value {
	shape := x.Tensor().Shape[1:]
	var sorted []dim.Dim
	for _, i := range g.perm {
		sorted = append(sorted, g.sizes[i])
	}
	k := len(sorted)
	x = b.Reshape(x, slices.Concat(sorted, shape)...)
	var dims []int
	for i := range d {
		dims = append(dims, k+i)
	}
	for i := range k {
		dims = append(dims, slices.Index(g.perm, i))
	}
	for i := d; i < len(shape); i++ {
		dims = append(dims, k+i)
	}
	x = transposed(b, x, dims)
	whole := slices.Clone(shape)
	whole[d] = shape[d].Scale(int64(g.n))
	return b.Reshape(x, whole...)
}

// transposed is x with its dimensions in the order of dims.
func transposed(b *op.Builder, x *ir.Value, dims []int) *ir.Value {
	if slices.IsSorted(dims) {
		return x
	}
	return b.Transpose(x, dims...)
}

// position is the argument with the device's position along the axes.
func (c *collectives) position(g group) *ir.Value {
	names := mesh.Names(g.axes)
	key := names.String()
	if v := c.positions[key]; v != nil {
		return v
	}
	name := "%position"
	for i := 2; slices.ContainsFunc(c.fn.Args, func(v *ir.Value) bool { return v.Name == name }); i++ {
		name = fmt.Sprintf("%%position_%d", i)
	}
	v := c.fn.Body.AddArg(name, &types.Tensor{Elem: types.I64, At: types.Placement{Space: types.HBM}})
	c.positions[key] = v
	c.fn.Args = c.fn.Body.Args
	own, _ := c.fn.Op.Attr("arg_attrs").(types.Array)
	own = slices.Clone(own)
	for len(own) < len(c.fn.Args) {
		own = append(own, types.Dict{})
	}
	own[len(own)-1] = types.Dict{{Name: op.PositionAttr, Value: names}}
	c.fn.Op.SetAttr("arg_attrs", own)
	return v
}
