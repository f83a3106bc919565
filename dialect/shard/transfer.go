package shard

import (
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

// TransferOf is what o, an op of a function that the devices of m run, makes a device send by Sent; ok
// is false of ops that send nothing, and of collectives whose sizes are no numbers or whose axes are not
// those of m.
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
	devices := int64(m.Devices())
	bytes, known := buffer.Bytes().Int()
	if !known || bytes > (1<<62)/(2*devices) {
		return Transfer{}, false
	}
	return Transfer{Axes: axes, Devices: m.Count(axes), Buffer: bytes, Sent: (Sent(o, m) + devices - 1) / devices}, true
}
