package plan

import (
	"testing"

	"dmir/analysis/network"
)

// How long collectives take along the axes of a grid, and what a device has of a value.
func TestGrid(t *testing.T) {
	s := &search{o: Options{Machine: cluster(t, "dgx-h100"), Devices: 8}}
	g, err := s.grid(setting{axes: []Axis{{Name: "data", Size: 2}, {Name: "model", Size: 4}}, pipe: 1, micro: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		axes    uint8
		names   []string
		devices float64
	}{
		{0b01, []string{"data"}, 2},
		{0b10, []string{"model"}, 4},
		{0b11, []string{"data", "model"}, 8},
	} {
		e, err := g.net.Estimate(network.AllReduce, 1<<20, c.names...)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time it is known
			if got := g.collective(network.AllReduce, c.axes, 1<<20); got != e.Time || got == 0 {
				t.Errorf("along %v: %g s, want %g", c.names, got, e.Time)
			}
		}
		if n := g.along(c.axes); n != c.devices {
			t.Errorf("along %v: %g devices, want %g", c.names, n, c.devices)
		}
	}
	if got := g.collective(network.AllReduce, 0, 1<<20) + g.collective(network.AllReduce, 1, 0); got != 0 {
		t.Errorf("along no axis, and of nothing: %g s", got)
	}
	v := &value{shape: []int64{24, 10}, elem: 4, bytes: 960, batch: 0}
	for _, c := range []struct {
		at    layout
		bytes float64
	}{
		{layout{whole, whole, whole}, 4 * 6 * 10},
		{layout{0, whole, whole}, 4 * 3 * 10},
		{layout{0, 1, whole}, 4 * 3 * 3},
		{layout{0, 0, whole}, 4 * 1 * 10},
		{layout{partial, 1, whole}, 4 * 6 * 3},
	} {
		if got := g.piece(v, c.at); got != c.bytes {
			t.Errorf("in layout %v a device has %g bytes, want %g", c.at, got, c.bytes)
		}
	}
}
