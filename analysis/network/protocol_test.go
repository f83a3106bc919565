package network

import (
	"math"
	"testing"

	"dmir/analysis/machine"
)

// Small collectives have the latency of LL, large ones the bandwidth of Simple or of the switch, and none is slower than
// each of NCCL's protocols alone.
func TestProtocols(t *testing.T) {
	pod := func(reduces float64) *machine.Machine {
		return &machine.Machine{Name: "pod", Links: []machine.Link{
			{Name: "nvlink", Title: "NVLink", Devices: 8, Bandwidth: 450e9, Latency: 1.9e-6, Kind: machine.NVLink, Reach: 370e9, Reduces: reduces},
			{Name: "ib", Title: "InfiniBand", Bandwidth: 50e9, Latency: 4e-6, Kind: machine.Adapter, Reach: 40e9},
		}}
	}
	for _, c := range []struct {
		name      string
		m         *machine.Machine
		nodes     int
		kind      Kind
		bytes     int64
		want      float64
		algorithm Algorithm
	}{
		{"a ring of LL in a node", pod(0), 1, AllReduce, 8, 6.6e-6 + 14*(0.6e-6+1/141e9), Ring},
		{"a ring of Simple", pod(0), 1, AllReduce, 8 << 30, 8.4e-6 + 14*(3.4e-6+(1<<30)/370e9), Ring},
		{"the switch", pod(274e9), 1, AllReduce, 8 << 30, 80e-6 + (8<<30)/274e9, Switch},
		{"a switch reduces, and gathers nothing", pod(274e9), 1, AllGather, 8 << 30, 8.4e-6 + 7*(3.4e-6+(1<<30)/370e9), Ring},
		{"switches of two nodes", pod(274e9), 2, AllReduce, 8 << 30, 80e-6 + 2*20.9e-6 + (8<<30)/274e9, Switch},
		{"and of eight, which wait for adapters", pod(274e9), 8, AllReduce, 8 << 30, 80e-6 + 6*20.9e-6 + 2*7/8.*(8<<30)/(8*40e9), Switch},
		{"a transfer to another node", pod(0), 2, Permute, 1 << 30, 8.4e-6 + 14e-6 + 14e-6 + (1<<30)/40e9, Direct},
	} {
		mesh, err := NewMesh(c.m, []Axis{{"node", c.nodes}, {"device", 8}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := mesh.Estimate(c.kind, c.bytes, "node", "device")
		if err != nil || math.Abs(got.Time/c.want-1) > 1e-6 || got.Algorithm != c.algorithm {
			t.Errorf("%s: %.3f µs by %s, want %.3f by %s (%v)", c.name, got.Time*1e6, got.Algorithm, c.want*1e6, c.algorithm, err)
		}
	}
}
