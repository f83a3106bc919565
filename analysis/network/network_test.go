package network

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/analysis/machine"
)

// toy has nodes of 4 devices, with 100 B/s and 1 s of latency inside and 10 B/s and 3 s
// between them, for any number of nodes.
var toy = &machine.Machine{Name: "toy", Links: []machine.Link{
	{Title: "inner", Devices: 4, Bandwidth: 100, Latency: 1},
	{Title: "outer", Bandwidth: 10, Latency: 3},
}}

func mesh(t testing.TB, m *machine.Machine, text string) (*Mesh, []string) {
	t.Helper()
	var axes []Axis
	var chosen []string
	for _, f := range strings.Fields(text) { // "data=4 model=2*": the ones with a star are those of the collective
		f, star := strings.CutSuffix(f, "*")
		name, size, _ := strings.Cut(f, "=")
		a := Axis{Name: name}
		if _, err := fmt.Sscan(size, &a.Size); err != nil {
			t.Fatal(err)
		}
		if axes = append(axes, a); star {
			chosen = append(chosen, name)
		}
	}
	n, err := NewMesh(m, axes)
	if err != nil {
		t.Fatal(err)
	}
	return n, chosen
}

// Times are those of the formulas, with the numbers put in by hand.
func TestEstimates(t *testing.T) {
	for _, c := range []struct {
		mesh      string
		kind      Kind
		bytes     int64
		time      float64
		algorithm Algorithm
		link      string
		sent      int64
	}{
		// Inside a node: 4 devices.
		{"a=4*", AllGather, 4000, 3 * (1 + 1000/100.), Ring, "inner", 3000},
		{"a=4*", ReduceScatter, 4000, 3 * (1 + 1000/100.), Ring, "inner", 3000},
		{"a=4*", AllReduce, 4000, 6 * (1 + 1000/100.), Ring, "inner", 6000},
		{"a=4*", AllReduce, 40, 2 * (2*1 + 40/100.), Tree, "inner", 60},
		{"a=4*", AllToAll, 4000, 3 * (1 + 1000/100.), Pairwise, "inner", 3000},
		{"a=4*", Permute, 4000, 1 + 4000/100., Direct, "inner", 4000},
		{"a=4*", Send, 4000, 1 + 4000/100., Direct, "inner", 1000},
		{"a=4*", Broadcast, 4000, 2*1 + 4000/100., Tree, "inner", 3000},
		{"a=3*", AllReduce, 3000, 4 * (1 + 1000/100.), Ring, "inner", 4000},
		{"a=3*", AllReduce, 30, 4 * (1 + 10/100.), Ring, "inner", 40},
		{"a=3*", AllReduce, 1, 4 * (1 + 1/300.), Ring, "inner", 2}, // 4 bytes of three devices

		// Across nodes, one device of each: 4 groups at once, each with one share.
		{"a=2* b=4", AllGather, 2000, 3 + 1000/10., Ring, "outer", 1000},
		{"a=4* b=4", AllReduce, 4000, 6 * (3 + 1000/10.), Ring, "outer", 6000},
		{"a=2* b=4", Permute, 1000, 3 + 1000/10., Direct, "outer", 1000},

		// Whole nodes: a ring has four shares between them. Two nodes exchange half of a
		// piece, which is less than a ring sends between them.
		{"a=64*", AllReduce, 6400000, 126 * (3 + 100000/40.), Ring, "outer", 12600000},
		{"a=64*", AllGather, 6400000, 63 * (3 + 100000/40.), Ring, "outer", 6300000},
		{"a=8*", AllReduce, 80000, 2*3*(1+20000/100.) + 2*(3+10000/10.), Hierarchical, "outer", 140000},
		{"a=8*", AllReduce, 800, 2*3*(1+200/100.) + 2*(3+100/10.), Hierarchical, "outer", 1400},
		{"a=8*", AllReduce, 8, 2 * (2*1 + 1*3 + 8/40.), Tree, "outer", 14},
		{"a=8*", AllGather, 80000, 3*(1+20000/100.) + (3 + 10000/10.), Hierarchical, "outer", 70000},
		{"a=8*", AllGather, 800, 3*(1+200/100.) + (3 + 100/10.), Hierarchical, "outer", 700},
		{"a=8*", ReduceScatter, 800, 3*(1+200/100.) + (3 + 100/10.), Hierarchical, "outer", 700},
		{"a=8*", AllToAll, 8000, 3*(1+1000/100.) + 4*(3+1000/10.), Pairwise, "outer", 7000},
		{"a=8*", Broadcast, 4000, 2*1 + 1*3 + 4000/40., Tree, "outer", 3500},
		{"a=2* b=2 c=2*", AllToAll, 400, 1*(1+100/100.) + 2*(3+100/10.), Pairwise, "outer", 300},

		// The same bytes in groups that lie across each other: two axes, in any order.
		{"a=2* b=4*", AllReduce, 800, 2*3*(1+200/100.) + 2*(3+100/10.), Hierarchical, "outer", 1400},
		{"a=8* b=1*", AllReduce, 800, 2*3*(1+200/100.) + 2*(3+100/10.), Hierarchical, "outer", 1400},

		// Six devices from the middle of a node on: 2 and 4 of them, so that no form of
		// one link after the other fits, and two shares are the least.
		{"a=2 b=6*", AllGather, 6000, 5 * (3 + 1000/20.), Ring, "outer", 5000},

		// Nothing to do.
		{"a=4 b=1*", AllReduce, 4000, 0, None, "", 0},
		{"a=4", AllReduce, 4000, 0, None, "", 0},
		{"a=4*", AllReduce, 0, 2 * 2 * 1, Tree, "inner", 0},
	} {
		m, axes := mesh(t, toy, c.mesh)
		e, err := m.Estimate(c.kind, c.bytes, axes...)
		if err != nil || math.Abs(e.Time-c.time) > 1e-9*c.time || e.Algorithm != c.algorithm || e.Link != c.link || e.Sent != c.sent {
			t.Errorf("%v of %d on %s: %+v (%v)\nwant %v, %s, %q, %d", c.kind, c.bytes, c.mesh, e, err, c.time, c.algorithm, c.link, c.sent)
		}
	}
}

// What a change of sharding sends, of a value of T bytes, over all p devices.
func TestSent(t *testing.T) {
	for _, p := range []int64{1, 2, 3, 4, 8, 96} {
		T := 96 * 1000 * p
		for _, c := range []struct {
			name  string
			kind  Kind
			bytes int64
			want  int64
		}{
			{"split to broadcast", AllGather, T, T * (p - 1)},
			{"split to another split", AllToAll, T / p, T * (p - 1) / p},
			{"partial to split", ReduceScatter, T, T * (p - 1)},
			{"partial to broadcast", AllReduce, T, 2 * T * (p - 1)},
			{"one to all", Broadcast, T, T * (p - 1)},
		} {
			m, axes := mesh(t, toy, fmt.Sprintf("a=%d*", p))
			e, err := m.Estimate(c.kind, c.bytes, axes...)
			if err != nil || e.GroupSent != c.want || e.Sent != c.want/p {
				t.Errorf("%s on %d devices: %+v, want %d of %d each (%v)", c.name, p, e, c.want, c.want/p, err)
			}
		}
	}
	// Exact up to what 64 bits count, and an error above.
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		bytes, p, kind := r.Int64()>>r.IntN(64), 2+r.IntN(5000), Kind(r.IntN(len(kinds)))
		want := big.NewInt(map[Kind]int64{AllReduce: 2 * int64(p-1), Permute: int64(p), Send: 1}[kind])
		if want.Sign() == 0 {
			want.SetInt64(int64(p - 1))
		}
		want.Mul(want, big.NewInt(bytes))
		if got, ok := kind.Sent(bytes, p); ok != want.IsInt64() || ok && got != want.Int64() {
			t.Fatalf("%v of %d on %d: %d, %v; want %v", kind, bytes, p, got, ok, want)
		}
	}
}

func TestErrors(t *testing.T) {
	pcie, _ := machine.Lookup("pcie-l40s")
	for _, c := range []struct {
		m    *machine.Machine
		axes []Axis
		want string
	}{
		{pcie, []Axis{{"data", 4}, {"model", 4}}, "the mesh has 16 devices and pcie-l40s has 8; make the mesh smaller, or choose a cluster with more devices, such as dgx-h100"},
		{toy, []Axis{{"data", 0}}, `axis "data" of the mesh has size 0; a size is 1 or more`},
		{toy, []Axis{{"data", 2}, {"data", 2}}, `the mesh has two axes "data"; give each a name of its own`},
		{toy, []Axis{{"", 2}}, "axis 0 of the mesh has no name"},
		{toy, []Axis{{"a", math.MaxInt}, {"b", math.MaxInt}}, "the mesh has more than 1048576 devices, the most that times are predicted for; make it smaller"},
		{toy, make([]Axis, 65), "the mesh has 65 axes; at most 64 are possible"},
		{&machine.Machine{Name: "box"}, []Axis{{"a", 2}}, "machine box has no links to other devices; describe them under [machines.box.links], or choose a cluster such as dgx-h100"},
	} {
		if _, err := NewMesh(c.m, c.axes); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.axes, err, c.want)
		}
	}
	m, _ := mesh(t, toy, "data=4 model=2")
	for _, c := range []struct {
		kind  Kind
		bytes int64
		axes  []string
		want  string
	}{
		{AllReduce, 1, []string{"expert"}, `all-reduce: the mesh has no axis "expert"; it has data, model`},
		{AllReduce, 1, []string{"data", "data"}, `all-reduce: axis "data" is named twice`},
		{AllReduce, -1, []string{"data"}, "all-reduce of -1 bytes: a size is 0 or more"},
		{AllReduce, math.MaxInt64, []string{"data"}, "all-reduce of 9223372036854775807 bytes on 4 devices sends more bytes than 64 bits count"},
		{Kind(99), 1, []string{"data"}, "Kind(99) is no kind of collective"},
	} {
		if _, err := m.Estimate(c.kind, c.bytes, c.axes...); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.kind, err, c.want)
		}
	}
	if _, err := NewMesh(&machine.Machine{Name: "box"}, nil); err != nil {
		t.Errorf("one device needs no links: %v", err)
	}
}

// The links that an axis crosses on real clusters, and how their time compares.
func TestClusters(t *testing.T) {
	for _, c := range []struct{ machine, mesh, want string }{
		{"dgx-h100", "data=2 model=8*", "NVLink 4"},
		{"dgx-h100", "data=2* model=8", "InfiniBand NDR"},
		{"dgx-h100", "data=2* model=8*", "NVLink 4, InfiniBand NDR"},
		{"dgx-h100", "data=2 model=4* x=2", "NVLink 4"},
		{"dgx-h100", "data=5 model=6*", "NVLink 4, InfiniBand NDR"},
		{"gb200-nvl72", "data=2 model=36*", "NVLink 5"},
		{"gb200-nvl72", "data=2* model=72", "InfiniBand NDR"},
		{"pcie-l40s", "model=8*", "PCIe 4 switch, PCIe 4 host"},
		{"h200", "model=8*", "peer link"},
		{"cpu-25gbe", "data=16*", "25 GbE"},
	} {
		mach, ok := machine.Lookup(c.machine)
		if !ok {
			t.Fatal(c.machine)
		}
		m, axes := mesh(t, mach, c.mesh)
		links, err := m.Crosses(axes...)
		var got []string
		for _, l := range links {
			got = append(got, l.Title)
		}
		if s := strings.Join(got, ", "); err != nil || s != c.want {
			t.Errorf("%s on %s crosses %s, want %s (%v)", c.mesh, c.machine, s, c.want, err)
		}
	}
}
