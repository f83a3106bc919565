package network

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"dmir/analysis/machine"
	"dmir/testkit/need"
)

// randomCase is a mesh on a cluster of up to three links, and axes of it.
func randomCase(r *rand.Rand) (*machine.Machine, []Axis, []string) {
	m := &machine.Machine{Name: "random"}
	devices := 1
	for i := range 1 + r.IntN(3) {
		devices *= 2 + r.IntN(4)
		m.Links = append(m.Links, machine.Link{Title: fmt.Sprint("link ", i), Devices: devices, Bandwidth: 1 + 1e3*r.Float64(), Latency: r.Float64()})
	}
	m.Links[len(m.Links)-1].Devices = 0
	var axes []Axis
	var chosen []string
	for i := range 1 + r.IntN(3) {
		a := Axis{string(rune('a' + i)), 1 + r.IntN(6)}
		if axes = append(axes, a); r.IntN(2) == 0 {
			chosen = append(chosen, a.Name)
		}
	}
	return m, axes, chosen
}

func estimate(t *testing.T, m *machine.Machine, axes []Axis, kind Kind, bytes int64, chosen []string) Estimate {
	t.Helper()
	mesh, err := NewMesh(m, axes)
	if err != nil {
		t.Fatal(err)
	}
	e, err := mesh.Estimate(kind, bytes, chosen...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// More bytes are never faster, a slower link never is, no way is faster than the one that
// is chosen, and none is faster than its bytes over the fastest link.
func TestMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for trial := range 5000 {
		m, axes, chosen := randomCase(r)
		kind, bytes := Kind(r.IntN(len(kinds))), r.Int64N(1e5)
		e := estimate(t, m, axes, kind, bytes, chosen)
		report := func(what string, other float64) {
			t.Helper()
			t.Fatalf("trial %d, %v of %d on %v of %v, %+v: %s: %+v, then %v", trial, kind, bytes, chosen, axes, m.Links, what, e, other)
		}
		slack := e.Time * (1 - 1e-12)
		if more := estimate(t, m, axes, kind, bytes+r.Int64N(1e4), chosen); more.Time < slack {
			report("more bytes are faster", more.Time)
		}
		slow := *m
		slow.Links = slices.Clone(m.Links)
		l := &slow.Links[r.IntN(len(slow.Links))]
		l.Bandwidth *= 0.01 + 0.99*r.Float64()
		l.Latency *= 1 + r.Float64()
		if slower := estimate(t, &slow, axes, kind, bytes, chosen); slower.Time < slack {
			report("a slower link is faster", slower.Time)
		}
		if e.Devices == 1 {
			if e != (Estimate{Algorithm: None, Devices: 1}) {
				report("one device", 0)
			}
			continue
		}
		mesh, _ := NewMesh(m, axes)
		lay, _ := mesh.layout(chosen)
		for _, w := range lay.ways(kind, float64(bytes)) {
			if w.seconds < e.Time {
				report("the "+string(w.algorithm)+" is faster", w.seconds)
			}
		}
		fastest := slices.MaxFunc(m.Links, func(a, b machine.Link) int { return cmp.Compare(a.Bandwidth, b.Bandwidth) })
		if least := float64(e.GroupSent) / float64(e.Devices) / fastest.Bandwidth; e.Time < least*(1-1e-12) {
			report("faster than its bytes", least)
		}
	}
}

// Layouts are those that a look at every pair of devices finds.
func TestLayoutsAgainstPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for trial := range 1500 {
		m, axes, chosen := randomCase(r)
		mesh, err := NewMesh(m, axes)
		if err != nil {
			t.Fatal(err)
		}
		got, err := mesh.layout(chosen)
		if err != nil {
			t.Fatal(err)
		}
		// groups by their coordinates on the other axes
		groups := map[string][]int{}
		for d := range mesh.Devices {
			name, rest := "", d
			for i := len(axes) - 1; i >= 0; i-- {
				if !slices.Contains(chosen, axes[i].Name) {
					name += fmt.Sprint(rest%axes[i].Size, " ")
				}
				rest /= axes[i].Size
			}
			groups[name] = append(groups[name], d)
		}
		within := func(a, b, link int) bool { // a and b are in one unit of the link
			if link < 0 {
				return a == b
			}
			n := m.Links[link].Devices
			return n == 0 || a/n == b/n
		}
		var want []stage
		inside, uniform := 1, true
		for i := range m.Links {
			fewest, most, least := 1<<30, 0, 1<<30
			for _, g := range groups {
				for _, d := range g {
					members, parts := 0, 0
					for j, other := range g {
						if within(d, other, i) {
							members++
							if !slices.ContainsFunc(g[:j], func(x int) bool { return within(x, other, i-1) }) {
								parts++
							}
						}
					}
					fewest, most, least = min(fewest, members), max(most, parts), min(least, parts)
				}
			}
			uniform = uniform && most == least
			if most > 1 {
				want = append(want, stage{parts: most, inside: inside, partners: fewest - inside})
			}
			inside = fewest
		}
		same := slices.EqualFunc(got.stages, want, func(a, b stage) bool {
			return a.parts == b.parts && a.inside == b.inside && a.partners == b.partners
		})
		if !same || got.p > 1 && got.uniform != uniform {
			t.Fatalf("trial %d: %v of %v on %+v: %+v, want %+v, %v", trial, chosen, axes, m.Links, got, want, uniform)
		}
		partners := 1
		for _, s := range got.stages {
			partners += s.partners
		}
		if partners != got.p {
			t.Fatalf("trial %d: %d partners of %d devices", trial, partners-1, got.p)
		}
	}
}

// The largest mesh is laid out once for each set of axes.
func TestLargeMesh(t *testing.T) {
	need.Long(t)
	m, _ := machine.Lookup("dgx-h100")
	axes := []Axis{{"data", 1 << 10}, {"expert", 1 << 4}, {"model", 1 << 6}}
	mesh, err := NewMesh(m, axes)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if e, err := mesh.Estimate(AllReduce, int64(i)<<20, "data", "model"); err != nil || e.Devices != 1<<16 {
			t.Fatal(e, err)
		}
	}
	if len(mesh.layouts) != 1 {
		t.Errorf("%d layouts", len(mesh.layouts))
	}
}
