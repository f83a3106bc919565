package interp

import (
	"errors"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/collective"
)

// Device is the place of a machine among those that run a function together.
type Device struct {
	Mesh *mesh.Mesh
	ID   int
	Comm collective.Comm // its rank is ID
}

func distributionExecutors() map[string]executor {
	return map[string]executor{
		op.Reshard:           func(c *call) ([]*tensor.Tensor, error) { return one(c.in[0]), nil },
		op.PartitionID:       runPartitionID,
		op.AllReduce:         runAllReduce,
		op.ReduceScatter:     runReduceScatter,
		op.AllGather:         runAllGather,
		op.AllToAll:          runAllToAll,
		op.CollectivePermute: runCollectivePermute,
		op.Send:              runSend,
		op.Recv:              runRecv,
	}
}

// group is the devices that run a collective together, ascending, and where the device
// of each position along the axes stands among them.
type group struct {
	ranks []int
	order []int // of the positions: their places in ranks
	own   int   // the position of this device
}

// group is that of the call's axes.
func (c *call) group() (g group, err error) {
	d := c.opts.Device
	if d == nil {
		return g, c.errorf("DM710", "%s is run by the devices of a mesh together, and this run has one device", c.op.Name)
	}
	axes, bad := d.Mesh.ParseAxes(op.Strings(c.op, "axes"))
	if bad != nil {
		return g, c.errorf("DM704", "%s", bad)
	}
	positions := d.Mesh.Group(d.ID, axes)
	g.ranks = slices.Sorted(slices.Values(positions))
	for _, rank := range positions {
		at, _ := slices.BinarySearch(g.ranks, rank)
		g.order = append(g.order, at)
	}
	g.own = d.Mesh.Position(d.ID, axes)
	return g, nil
}

// failed is the error of a collective at its op; that another device ended the run is
// reported there.
func (c *call) failed(err error) error {
	var ended *collective.Ended
	if err == nil || c.stopped() || errors.As(err, &ended) {
		return err
	}
	return c.errorf("DM711", "%s", err)
}

// packed is a tensor as devices hold it, but with a byte for each element of a type of which
// two share one; elem is the type of these bytes.
func packed(t *tensor.Tensor) (b []byte, elem string) {
	if t.Elem.Packed() {
		t = &tensor.Tensor{Elem: types.I8, Shape: t.Shape, Int: t.Int}
	}
	return tensor.Pack(t), t.Elem.String()
}

// unpacked is the inverse of packed.
func unpacked(b []byte, elem types.Elem, shape []int) (*tensor.Tensor, error) {
	if !elem.Packed() {
		return tensor.Unpack(b, elem, shape)
	}
	t, err := tensor.Unpack(b, types.I8, shape)
	if err == nil {
		t.Elem = elem
	}
	return t, err
}

func runPartitionID(c *call) ([]*tensor.Tensor, error) {
	g, err := c.group()
	if err != nil {
		return nil, err
	}
	return one(tensor.FromInts(types.I64, nil, []int64{int64(g.own)})), nil
}

func runAllReduce(c *call) ([]*tensor.Tensor, error) {
	g, err := c.group()
	if err != nil {
		return nil, err
	}
	b, elem := packed(c.in[0])
	if err := c.opts.Device.Comm.AllReduce(c.ctx, g.ranks, collective.Reduction(op.Str(c.op, "reduction")), elem, b); err != nil {
		return nil, c.failed(err)
	}
	t, err := unpacked(b, c.in[0].Elem, c.in[0].Shape)
	return one(t), err
}

// parted is x with dimension d cut into n parts, which become the first dimension, in the
// order of ranks; join is its inverse.
func (c *call) parted(x *tensor.Tensor, d int, g group) *tensor.Tensor {
	n := len(g.ranks)
	shape := slices.Clone(x.Shape)
	shape[d] /= n
	out := tensor.New(x.Elem, append([]int{n}, shape...)...)
	c.parts(x, out, d, g, func(whole, part view, shape []int) { move(c.pool, part, whole, shape) })
	return out
}

func (c *call) joined(parts *tensor.Tensor, d int, g group) *tensor.Tensor {
	shape := slices.Clone(parts.Shape[1:])
	shape[d] *= len(g.ranks)
	out := tensor.New(parts.Elem, shape...)
	c.parts(out, parts, d, g, func(whole, part view, shape []int) { move(c.pool, whole, part, shape) })
	return out
}

// parts visits, for each position along the axes, its piece along dimension d of whole and
// its part of parts.
func (c *call) parts(whole, parts *tensor.Tensor, d int, g group, visit func(whole, part view, shape []int)) {
	shape := parts.Shape[1:]
	size := 1
	for _, n := range shape {
		size *= n
	}
	strides := tensor.Strides(whole.Shape)
	for position, place := range g.order {
		visit(view{whole, position * shape[d] * strides[d], strides}, view{parts, place * size, tensor.Strides(shape)}, shape)
	}
}

func runReduceScatter(c *call) ([]*tensor.Tensor, error) {
	g, d, err := c.along("dim")
	if err != nil {
		return nil, err
	}
	x := c.in[0]
	if x.Shape[d]%len(g.ranks) != 0 {
		return nil, c.errorf("DM704", "dimension %d of %s cannot be cut for %d devices", d, x.Type(), len(g.ranks))
	}
	parts := c.parted(x, d, g)
	b, elem := packed(parts)
	out := make([]byte, len(b)/len(g.ranks))
	if err := c.opts.Device.Comm.ReduceScatter(c.ctx, g.ranks, collective.Reduction(op.Str(c.op, "reduction")), elem, b, out); err != nil {
		return nil, c.failed(err)
	}
	t, err := unpacked(out, x.Elem, parts.Shape[1:])
	return one(t), err
}

// along is the group, and the dimension in an attribute.
func (c *call) along(attr string) (g group, d int, err error) {
	if g, err = c.group(); err != nil {
		return g, 0, err
	}
	d, ok := op.Dim(c.op, attr, c.in[0].Rank())
	if !ok {
		return g, 0, c.errorf("DM704", "%s has no dimension %d", c.in[0].Type(), op.Int(c.op, attr))
	}
	return g, d, nil
}

func runAllGather(c *call) ([]*tensor.Tensor, error) {
	g, d, err := c.along("dim")
	if err != nil {
		return nil, err
	}
	x := c.in[0]
	b, elem := packed(x)
	out := make([]byte, len(b)*len(g.ranks))
	if err := c.opts.Device.Comm.AllGather(c.ctx, g.ranks, elem, b, out); err != nil {
		return nil, c.failed(err)
	}
	parts, err := unpacked(out, x.Elem, append([]int{len(g.ranks)}, x.Shape...))
	if err != nil {
		return nil, err
	}
	return one(c.joined(parts, d, g)), nil
}

func runAllToAll(c *call) ([]*tensor.Tensor, error) {
	g, split, err := c.along("split")
	if err != nil {
		return nil, err
	}
	_, concat, err := c.along("concat")
	if err != nil {
		return nil, err
	}
	x := c.in[0]
	if x.Shape[split]%len(g.ranks) != 0 {
		return nil, c.errorf("DM704", "dimension %d of %s cannot be cut for %d devices", split, x.Type(), len(g.ranks))
	}
	parts := c.parted(x, split, g)
	b, elem := packed(parts)
	out := make([]byte, len(b))
	if err := c.opts.Device.Comm.AllToAll(c.ctx, g.ranks, elem, b, out); err != nil {
		return nil, c.failed(err)
	}
	got, err := unpacked(out, x.Elem, parts.Shape)
	if err != nil {
		return nil, err
	}
	return one(c.joined(got, concat, g)), nil
}

func runCollectivePermute(c *call) ([]*tensor.Tensor, error) {
	g, err := c.group()
	if err != nil {
		return nil, err
	}
	to, from := -1, -1
	for _, p := range op.Pairs(c.op, "pairs") {
		if int(p[0]) >= len(g.ranks) || int(p[1]) >= len(g.ranks) {
			return nil, c.errorf("DM704", "the pair [%d, %d] has a position that %d devices do not have", p[0], p[1], len(g.ranks))
		}
		if int(p[0]) == g.own {
			to = g.ranks[g.order[p[1]]]
		}
		if int(p[1]) == g.own {
			from = g.ranks[g.order[p[0]]]
		}
	}
	return c.permuted(c.in[0], to, from)
}

// permuted gives x to one device and gets a tensor like it from another.
func (c *call) permuted(x *tensor.Tensor, to, from int) ([]*tensor.Tensor, error) {
	b, _ := packed(x)
	out := make([]byte, len(b))
	if err := c.opts.Device.Comm.Permute(c.ctx, to, from, b, out); err != nil {
		return nil, c.failed(err)
	}
	t, err := unpacked(out, x.Elem, x.Shape)
	return one(t), err
}

// parcel tells apart what travels between devices.
type parcel struct{ from, to, channel int }

// point is the parcel of a send or a recv.
func (c *call) point() (p parcel, err error) {
	g, err := c.group()
	if err != nil {
		return p, err
	}
	from, to := int(op.Int(c.op, "from")), int(op.Int(c.op, "to"))
	if from < 0 || to < 0 || from >= len(g.ranks) || to >= len(g.ranks) {
		return p, c.errorf("DM704", "from = %d or to = %d is no position of %d devices", from, to, len(g.ranks))
	}
	return parcel{g.ranks[g.order[from]], g.ranks[g.order[to]], int(op.Int(c.op, "channel"))}, nil
}

// runSend makes a tensor ready; it travels where it is fetched, so that no order of sends can
// make devices wait for each other in a circle. Where devices run functions of their own it leaves at once.
func runSend(c *call) ([]*tensor.Tensor, error) {
	p, err := c.point()
	if err != nil {
		return nil, err
	}
	if c.apart {
		if p.from != c.opts.Device.ID {
			return nil, c.errorf("DM704", "device %d sends what device %d has", c.opts.Device.ID, p.from)
		}
		b, _ := packed(c.in[0])
		return nil, c.failed(c.opts.Device.Comm.Send(c.ctx, p.to, p.channel, b))
	}
	if p.from == c.opts.Device.ID {
		if c.ready == nil {
			c.ready = map[parcel][]*tensor.Tensor{}
		}
		c.ready[p] = append(c.ready[p], c.in[0])
	}
	return nil, nil
}

func runRecv(c *call) ([]*tensor.Tensor, error) {
	p, err := c.point()
	if err != nil {
		return nil, err
	}
	shape, err2 := c.outShape(0)
	if err2 != nil {
		return nil, err2
	}
	x := tensor.New(c.outElem(0), shape...)
	if c.apart {
		return c.received(x, p)
	}
	switch c.opts.Device.ID {
	case p.from:
		list := c.ready[p]
		if len(list) == 0 {
			return nil, c.errorf("DM704", "no dm.send has made a tensor ready for channel %d", p.channel)
		}
		c.ready[p] = list[1:]
		if list[0].Elem != x.Elem || !slices.Equal(list[0].Shape, x.Shape) {
			return nil, c.errorf("DM704", "what was sent is %s, not %s", list[0].Type(), x.Type())
		}
		if _, err := c.permuted(list[0], p.to, -1); err != nil {
			return nil, err
		}
	case p.to:
		return c.permuted(x, -1, p.from)
	}
	return one(x), nil
}

// received is a tensor like x that the function of another device sends.
func (c *call) received(x *tensor.Tensor, p parcel) ([]*tensor.Tensor, error) {
	if p.to != c.opts.Device.ID {
		return nil, c.errorf("DM704", "device %d receives what is for device %d", c.opts.Device.ID, p.to)
	}
	b, _ := packed(x)
	if err := c.opts.Device.Comm.Recv(c.ctx, p.from, p.channel, b); err != nil {
		return nil, c.failed(err)
	}
	t, err := unpacked(b, x.Elem, x.Shape)
	return one(t), err
}
