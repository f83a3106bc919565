// Package mesh is the devices that a program is divided over: their arrangement along
// named axes, which pieces of a tensor each has, and which of them run a collective
// together.
package mesh

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Mesh is the meaning of a dm.mesh. Devices are numbered row-major along the axes.
type Mesh struct {
	Name string
	Axes []Axis
}

// Axis is a named axis and the number of devices along it.
type Axis struct {
	Name string
	Size int
}

// Of is the mesh that o defines. An error says what is wrong with it.
func Of(o *ir.Op) (*Mesh, error) {
	m := &Mesh{Name: o.Str("sym_name")}
	names, sizes := op.Strings(o, "axes"), o.Ints("sizes")
	if len(names) != len(sizes) {
		return nil, fmt.Errorf("it has %s and %s", diag.Count(len(names), "name"), diag.Count(len(sizes), "size"))
	}
	for i, n := range names {
		if sizes[i] < 1 || sizes[i] > math.MaxInt32 {
			return nil, fmt.Errorf("axis %s has %d devices", n, sizes[i])
		}
		m.Axes = append(m.Axes, Axis{n, int(sizes[i])})
	}
	return m, m.Check()
}

// Op is a new dm.mesh that defines m: the inverse of Of.
func (m *Mesh) Op() *ir.Op {
	axes, sizes := make(types.Array, len(m.Axes)), make(types.Array, len(m.Axes))
	for i, a := range m.Axes {
		axes[i], sizes[i] = types.Str(a.Name), types.Int{V: int64(a.Size)}
	}
	o := &ir.Op{Name: op.Mesh}
	o.SetAttr("sym_name", types.Str(m.Name))
	o.SetAttr("axes", axes)
	o.SetAttr("sizes", sizes)
	return o
}

// Check is what is wrong with the axes, nil if they are those of a mesh.
func (m *Mesh) Check() error {
	if len(m.Axes) == 0 {
		return fmt.Errorf("there are no axes")
	}
	n := int64(1)
	for i, a := range m.Axes {
		if slices.ContainsFunc(m.Axes[:i], func(b Axis) bool { return a.Name == b.Name }) {
			return fmt.Errorf("axis %s stands in it twice", a.Name)
		}
		if _, err := types.ParseAxis(a.Name); err != nil || strings.Contains(a.Name, ":") {
			return fmt.Errorf("%q is no name of an axis", a.Name)
		}
		if n *= int64(a.Size); n > math.MaxInt32 {
			return fmt.Errorf("there are more than 2^31 devices")
		}
	}
	return nil
}

// Find is the mesh called name in m, nil where there is none or it has an error.
func Find(m *ir.Module, name string) *Mesh {
	for _, o := range m.Ops {
		if o.Name == op.Mesh && o.Str("sym_name") == name {
			if found, err := Of(o); err == nil {
				return found
			}
			return nil
		}
	}
	return nil
}

// Ops are those of m that define meshes: what is printed of a module without the rest needs
// them.
func Ops(m *ir.Module) []*ir.Op {
	var ops []*ir.Op
	for _, o := range m.Ops {
		if o.Name == op.Mesh {
			ops = append(ops, o)
		}
	}
	return ops
}

// All are the meshes of m without an error.
func All(m *ir.Module) []*Mesh {
	var all []*Mesh
	for _, o := range Ops(m) {
		if found, err := Of(o); err == nil {
			all = append(all, found)
		}
	}
	return all
}

// Devices is how many there are.
func (m *Mesh) Devices() int {
	n := 1
	for _, a := range m.Axes {
		n *= a.Size
	}
	return n
}

func (m *Mesh) String() string {
	s := make([]string, len(m.Axes))
	for i, a := range m.Axes {
		s[i] = fmt.Sprintf("%s = %d", a.Name, a.Size)
	}
	return strings.Join(s, ", ")
}

// axis is the number of the axis called name, -1 where there is none.
func (m *Mesh) axis(name string) int {
	return slices.IndexFunc(m.Axes, func(a Axis) bool { return a.Name == name })
}

// Size is the number of devices along a, an axis or a part of one; 0 where the mesh has
// none such.
func (m *Mesh) Size(a types.Axis) int {
	i := m.axis(a.Name)
	switch {
	case i < 0:
		return 0
	case a.Size == 0:
		return m.Axes[i].Size
	case int64(m.Axes[i].Size)%(a.Pre*a.Size) != 0:
		return 0
	}
	return int(a.Size)
}

// Count is the number of devices along axes, their product.
func (m *Mesh) Count(axes []types.Axis) int {
	n := 1
	for _, a := range axes {
		n *= m.Size(a)
	}
	return n
}

// stride is the distance between the numbers of devices that are neighbours along a.
func (m *Mesh) stride(a types.Axis) int {
	i := m.axis(a.Name)
	n := 1
	for _, b := range m.Axes[i+1:] {
		n *= b.Size
	}
	if a.Size > 0 {
		n *= m.Axes[i].Size / int(a.Pre*a.Size)
	}
	return n
}

// Sorted is axes in the order of the devices' numbers, the outermost first: sorted[i] is
// axes[perm[i]].
func (m *Mesh) Sorted(axes []types.Axis) (sorted []types.Axis, perm []int) {
	for i := range axes {
		perm = append(perm, i)
	}
	slices.SortStableFunc(perm, func(i, j int) int { return m.stride(axes[j]) - m.stride(axes[i]) })
	for _, i := range perm {
		sorted = append(sorted, axes[i])
	}
	return sorted, perm
}

// Stride is the distance between the numbers of devices that are neighbours along a.
func (m *Mesh) Stride(a types.Axis) int { return m.stride(a) }

// Position is where a device stands along axes, the last one fastest.
func (m *Mesh) Position(device int, axes []types.Axis) int {
	at := 0
	for _, a := range axes {
		at = at*m.Size(a) + device/m.stride(a)%m.Size(a)
	}
	return at
}

// Group is the devices that differ from one only in their position along axes, in the
// order of these positions.
func (m *Mesh) Group(device int, axes []types.Axis) []int {
	first := device
	for _, a := range axes {
		first -= device / m.stride(a) % m.Size(a) * m.stride(a)
	}
	group := []int{first}
	for _, a := range axes {
		next := make([]int, 0, len(group)*m.Size(a))
		for _, d := range group {
			for k := range m.Size(a) {
				next = append(next, d+k*m.stride(a))
			}
		}
		group = next
	}
	return group
}

// Problem is what is wrong with a sharding on m, "" if nothing.
func (m *Mesh) Problem(s *types.Sharding) string {
	problem := ""
	s.Axes(func(a types.Axis) {
		switch n := m.axis(a.Name); {
		case problem != "":
		case n < 0:
			problem = fmt.Sprintf("mesh @%s has no axis %s: it has %s", m.Name, a.Name, m)
		case m.Size(a) == 0:
			problem = fmt.Sprintf("%s is no part of axis %s, which has %d devices", a, a.Name, m.Axes[n].Size)
		}
	})
	return problem
}

// ParseAxes are the axes of a collective's attribute, which are all of m; an error names
// the first that is not, or that stands in it twice.
func (m *Mesh) ParseAxes(names []string) ([]types.Axis, error) {
	s := &types.Sharding{}
	for _, n := range names {
		a, err := types.ParseAxis(n)
		if err != nil {
			return nil, err
		}
		s.Partial = append(s.Partial, a)
	}
	if p := m.Problem(s); p != "" {
		return nil, fmt.Errorf("%s", p)
	}
	return s.Partial, s.CheckAxes()
}

// Names is axes as the attribute of a collective.
func Names(axes []types.Axis) types.Array {
	l := make(types.Array, len(axes))
	for i, a := range axes {
		l[i] = types.Str(a.String())
	}
	return l
}

// Piece is the size of a device's piece of a dimension of n that p devices have together,
// rounded up: the last pieces are padded where p does not divide n.
func Piece(n int64, p int) int64 { return (n + int64(p) - 1) / int64(p) }

// Local is the type of a device's piece of t. ok is false where a divided dimension is no
// number.
func (m *Mesh) Local(t *types.Tensor, s *types.Sharding) (local *types.Tensor, ok bool) {
	r := *t
	r.At.Shard = nil
	if s == nil {
		return &r, true
	}
	r.Shape = slices.Clone(t.Shape)
	for i, d := range s.Dims {
		p := m.Count(d.Axes)
		if p == 1 {
			continue
		}
		n, isInt := t.Shape[i].Int()
		if !isInt {
			return nil, false
		}
		r.Shape[i] = dim.Const(Piece(n, p))
	}
	return &r, true
}

// Offset is where, in elements of each dimension, the piece of a device begins, and how many
// elements of it are not padding.
func (m *Mesh) Offset(device int, shape []int, s *types.Sharding) (start, size []int) {
	start, size = make([]int, len(shape)), slices.Clone(shape)
	if s == nil {
		return start, size
	}
	for i, d := range s.Dims {
		if p := m.Count(d.Axes); p > 1 {
			piece := int(Piece(int64(shape[i]), p))
			start[i] = min(m.Position(device, d.Axes)*piece, shape[i])
			size[i] = min(piece, shape[i]-start[i])
		}
	}
	return start, size
}
