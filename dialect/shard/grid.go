package shard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/mesh"
	"dmir/dialect/types"
)

// Grid is a mesh whose axes are cut so that each axis and each part of one that a program
// names is a list of whole atoms.
type Grid struct {
	Mesh  *mesh.Mesh
	Atoms []types.Axis // in the order of the mesh; axes of one device have none
	Sizes []int        // of the atoms

	plans map[string]*Plan
}

// NewGrid cuts the axes of m for what the shardings name. It is an error if two parts of an
// axis overlap without one being made of the other's parts.
func NewGrid(m *mesh.Mesh, shardings []*types.Sharding) (*Grid, error) {
	g := &Grid{Mesh: m, plans: map[string]*Plan{}}
	for _, axis := range m.Axes {
		cuts := []int64{1, int64(axis.Size)}
		for _, s := range shardings {
			s.Axes(func(a types.Axis) {
				if a.Name == axis.Name && a.Size > 0 {
					cuts = append(cuts, a.Pre, a.Pre*a.Size)
				}
			})
		}
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		for i, c := range cuts[1:] {
			if c%cuts[i] != 0 {
				return nil, fmt.Errorf("axis %s is cut at %d and at %d devices, which do not divide one another", axis.Name, cuts[i], c)
			}
			atom := types.Axis{Name: axis.Name, Pre: cuts[i], Size: c / cuts[i]}
			if len(cuts) == 2 {
				atom = types.Axis{Name: axis.Name}
			}
			g.Atoms = append(g.Atoms, atom)
			g.Sizes = append(g.Sizes, int(c/cuts[i]))
		}
	}
	return g, nil
}

// Layout is a sharding in atoms.
type Layout struct {
	Dims    [][]int // atoms that each dimension is divided over, the outermost first
	Partial []int   // ascending
	Reduce  types.Reduction
}

// Whole is the layout of a tensor that every device has whole.
func Whole(rank int) Layout { return Layout{Dims: make([][]int, rank)} }

// atoms are those that an axis consists of.
func (g *Grid) atoms(a types.Axis) []int {
	var out []int
	for i, b := range g.Atoms {
		switch {
		case a.Name != b.Name:
		case a.Size == 0 || b.Size == 0 || b.Pre >= a.Pre && b.Pre*b.Size <= a.Pre*a.Size:
			out = append(out, i)
		}
	}
	return out
}

// Layout is s for a tensor of a rank; nil is Whole.
func (g *Grid) Layout(s *types.Sharding, rank int) Layout {
	l := Whole(rank)
	if s == nil {
		return l
	}
	for i, d := range s.Dims {
		for _, a := range d.Axes {
			l.Dims[i] = append(l.Dims[i], g.atoms(a)...)
		}
	}
	for _, a := range s.Partial {
		l.Partial = append(l.Partial, g.atoms(a)...)
	}
	slices.Sort(l.Partial)
	if len(l.Partial) > 0 {
		l.Reduce = s.Reduce
	}
	return l
}

// Axes are atoms as axes of the mesh: neighbouring parts of an axis are one.
func (g *Grid) Axes(atoms []int) []types.Axis {
	var out []types.Axis
	for _, n := range atoms {
		a := g.Atoms[n]
		if k := len(out) - 1; k >= 0 && a.Size > 0 && out[k].Name == a.Name && out[k].Size > 0 && out[k].Pre*out[k].Size == a.Pre {
			out[k].Size *= a.Size
			if out[k].Pre == 1 && g.Mesh.Size(types.Axis{Name: a.Name}) == int(out[k].Size) {
				out[k] = types.Axis{Name: a.Name}
			}
			continue
		}
		out = append(out, a)
	}
	return out
}

// Sharding is l as a type states it.
func (g *Grid) Sharding(l Layout) *types.Sharding {
	s := &types.Sharding{Mesh: types.SymbolOf(g.Mesh.Name), Dims: make([]types.Split, len(l.Dims)), Reduce: l.Reduce}
	for i, d := range l.Dims {
		s.Dims[i].Axes = g.Axes(d)
	}
	s.Partial = g.Axes(l.Partial)
	return s
}

// Count is the number of devices along atoms.
func (g *Grid) Count(atoms []int) int {
	n := 1
	for _, a := range atoms {
		n *= g.Sizes[a]
	}
	return n
}

// Piece is the shape of a device's piece.
func (g *Grid) Piece(shape []int64, l Layout) []int64 {
	out := slices.Clone(shape)
	for i, d := range l.Dims {
		out[i] = mesh.Piece(shape[i], g.Count(d))
	}
	return out
}

// Even reports whether dimension i of n elements is divided without padding.
func (g *Grid) Even(l Layout, i int, n int64) bool { return n%int64(g.Count(l.Dims[i])) == 0 }

// Clone is a copy that can be changed.
func (l Layout) Clone() Layout {
	c := Layout{Dims: make([][]int, len(l.Dims)), Partial: slices.Clone(l.Partial), Reduce: l.Reduce}
	for i, d := range l.Dims {
		c.Dims[i] = slices.Clone(d)
	}
	return c
}

// Equal reports whether two layouts are the same.
func (l Layout) Equal(k Layout) bool {
	return l.Reduce == k.Reduce && slices.Equal(l.Partial, k.Partial) && slices.EqualFunc(l.Dims, k.Dims, slices.Equal)
}

// Uses reports whether l divides something over the atom, or is partial along it.
func (l Layout) Uses(atom int) bool {
	return slices.Contains(l.Partial, atom) || slices.ContainsFunc(l.Dims, func(d []int) bool { return slices.Contains(d, atom) })
}

// divided reports whether a dimension is.
func (l Layout) divided() bool {
	for _, d := range l.Dims {
		if len(d) > 0 {
			return true
		}
	}
	return false
}

// split is all atoms of the dimensions.
func (l Layout) split() []int { return slices.Concat(l.Dims...) }

// key is different for different layouts.
func (l Layout) key() string {
	var b strings.Builder
	for _, d := range l.Dims {
		for _, a := range d {
			b.WriteString(strconv.Itoa(a) + ",")
		}
		b.WriteByte(';')
	}
	for _, a := range l.Partial {
		b.WriteString(strconv.Itoa(a) + ",")
	}
	return b.String() + string(l.Reduce)
}
