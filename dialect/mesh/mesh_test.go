package mesh_test

import (
	"slices"
	"testing"

	"dmir/dialect/mesh"
	"dmir/dialect/types"
)

func axes(t *testing.T, texts ...string) []types.Axis {
	t.Helper()
	var out []types.Axis
	for _, s := range texts {
		a, err := types.ParseAxis(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// Devices 0 … 23 of 2×3×4 are numbered row-major; parts of an axis are digits of the
// position along it.
func TestGroups(t *testing.T) {
	m := &mesh.Mesh{Name: "m", Axes: []mesh.Axis{{Name: "a", Size: 2}, {Name: "b", Size: 3}, {Name: "c", Size: 4}}}
	for _, c := range []struct {
		axes   []string
		device int
		at     int
		group  []int
	}{
		{[]string{"c"}, 6, 2, []int{4, 5, 6, 7}},
		{[]string{"a"}, 6, 0, []int{6, 18}},
		{[]string{"b"}, 18, 1, []int{14, 18, 22}},
		{[]string{"a", "c"}, 18, 6, []int{4, 5, 6, 7, 16, 17, 18, 19}},
		{[]string{"c", "a"}, 18, 5, []int{4, 16, 5, 17, 6, 18, 7, 19}},
		{[]string{"c:(1)2"}, 6, 1, []int{4, 6}},
		{[]string{"c:(2)2"}, 6, 0, []int{6, 7}},
		{nil, 6, 0, []int{6}},
	} {
		list := axes(t, c.axes...)
		if at, group := m.Position(c.device, list), m.Group(c.device, list); at != c.at || !slices.Equal(group, c.group) {
			t.Errorf("%v of device %d: position %d of %v, not %d of %v", c.axes, c.device, at, group, c.at, c.group)
		}
	}
	// Each device stands in its group at its position.
	for _, list := range [][]types.Axis{axes(t, "b", "c:(2)2"), axes(t, "c:(1)2", "a")} {
		for d := range m.Devices() {
			if g := m.Group(d, list); g[m.Position(d, list)] != d {
				t.Errorf("device %d is not at its position in %v", d, g)
			}
		}
	}
}

// The pieces of a dimension cover it once, padding apart.
func TestOffset(t *testing.T) {
	m := &mesh.Mesh{Name: "m", Axes: []mesh.Axis{{Name: "x", Size: 3}, {Name: "y", Size: 2}}}
	for n := range 14 {
		s := &types.Sharding{Mesh: "m", Dims: []types.Split{{Axes: axes(t, "y", "x")}}}
		covered := make([]int, n)
		for d := range m.Devices() {
			start, size := m.Offset(d, []int{n}, s)
			for i := range size[0] {
				covered[start[0]+i]++
			}
		}
		if slices.ContainsFunc(covered, func(k int) bool { return k != 1 }) {
			t.Errorf("%d elements on 6 devices: covered %v times", n, covered)
		}
	}
}
