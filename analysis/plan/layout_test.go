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
	// Along a dimension that is cut into pieces of different size, pieces of one layout are no parts of those of another: sums are
	// complete, and pieces gathered, before the next ones are cut.
	odd := &value{shape: []int64{1000}, elem: 4, bytes: 4000, batch: -1, class: 1}
	for _, c := range []struct {
		from, to layout
		like     [][2]layout
	}{
		{layout{0, whole, whole}, layout{0, 0, whole}, nil},
		{layout{whole, partial, whole}, layout{whole, 0, whole}, [][2]layout{{{whole, partial, whole}, {whole, 0, whole}}}},
		{layout{1, whole, whole}, layout{1, 1, whole}, [][2]layout{{{1, whole, whole}, allWhole}}},
		{layout{whole, partial, whole}, layout{1, 1, whole}, [][2]layout{{{whole, partial, whole}, allWhole}}},
	} {
		v := odd
		if c.from[0] == 1 || c.to[0] == 1 { // 998 is no multiple of 8
			v = &value{shape: []int64{1000, 998}, elem: 4, bytes: 4 * 998000, batch: -1, class: 2}
		}
		want := 0.0
		for _, k := range c.like {
			want += g.convert(v, k[0], k[1]).time
		}
		if got := g.convert(v, c.from, c.to).time; got != want {
			t.Errorf("%v: from %v to %v takes %g s, want %g", v.shape, c.from, c.to, got, want)
		}
	}
}
