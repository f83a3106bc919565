package shard

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Transfer is what an op makes a device send to others.
type Transfer struct {
	Axes    []types.Axis // along which the devices of a group lie
	Devices int          // of a group
	Buffer  int64        // bytes of the larger of what a device gives and gets
	Sent    int64        // bytes that a device sends: the mean of the group, rounded up
}

// Key is the axes as one word: "data", "data,model".
func (t Transfer) Key() string {
	names := make([]string, len(t.Axes))
	for i, a := range t.Axes {
		names[i] = a.String()
	}
	return strings.Join(names, ",")
}

// TransferOf is what o, an op of a function that the devices of m run, makes a device send; ok is false
// of ops that send nothing, and of collectives whose sizes are no numbers or whose axes are
// not those of m. With buffers of T bytes in groups of p devices, the devices of a group send
// together, whatever the algorithm (OneFlow's boxing costs, Yuan et al., arXiv 2110.15032): an
// all-reduce 2·T·(p-1), a reduce-scatter and an all-gather T·(p-1), of an all-to-all T is the piece of a
// device and each sends T·(p-1)/p; a permutation sends T for each pair of two devices, a
// send T once.
func TransferOf(o *ir.Op, m *mesh.Mesh) (t Transfer, ok bool) {
	d := op.Of(o)
	if d == nil || !d.Is(op.Collective) || o.Name == op.Recv || m == nil || len(o.Operands) != 1 {
		return Transfer{}, false
	}
	axes, err := m.ParseAxes(op.Strings(o, "axes"))
	if err != nil {
		return Transfer{}, false
	}
	buffer := o.In(0)
	if o.Name == op.AllGather {
		buffer = o.Out(0)
	}
	if buffer == nil {
		return Transfer{}, false
	}
	bytes, known := buffer.Bytes().Int()
	if !known {
		return Transfer{}, false
	}
	p := int64(m.Count(axes))
	t = Transfer{Axes: axes, Devices: int(p), Buffer: bytes}
	times, over := p-1, p // the group sends Buffer·times·p/over
	switch o.Name {
	case op.AllReduce:
		times *= 2
	case op.CollectivePermute:
		times = int64(len(slices.DeleteFunc(op.Pairs(o, "pairs"), func(p [2]int64) bool { return p[0] == p[1] })))
	case op.Send:
		times = 1
	}
	if times > 0 && bytes > (1<<62)/times {
		return Transfer{}, false
	}
	t.Sent = (bytes*times + over - 1) / over
	return t, true
}
