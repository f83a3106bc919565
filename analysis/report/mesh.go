package report

import (
	"fmt"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/graph"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// shownDevices bounds the devices of which a panel has the pieces.
const shownDevices = 512

// mesh is which piece of each value the devices have.
func (b *builder) mesh() *Mesh {
	on := b.f.Mesh()
	out := &Mesh{
		Name: on.Name, Axes: []MeshAxis{}, Devices: on.Devices(), Shown: min(on.Devices(), shownDevices),
		Values: []MeshValue{}, Layouts: []MeshLayout{},
	}
	for _, a := range on.Axes {
		out.Axes = append(out.Axes, MeshAxis{a.Name, a.Size})
	}
	for _, o := range graph.Module(b.p, b.f.Func).Ops {
		if o.Name == op.Mesh && o.Str("sym_name") == on.Name {
			out.Place = b.placeOf(o)
		}
	}
	s := &spread{b: b, mesh: on, out: out, sizes: dim.Consts(op.Bindings(b.f.Func, b.p.Bind)), known: map[string]int{}}
	var problem *shard.Problem
	s.values, problem = b.f.Shardings()
	out.Local = s.values == nil && problem == nil
	if problem == nil {
		s.divided, problem = b.f.Divide()
	}
	if problem != nil {
		out.Reason = problem.Msg
	}
	entries := b.f.ByOp()
	for _, v := range b.f.Func.Args {
		s.value(v, entries)
	}
	ir.WalkValues(b.f.Func.Body.Ops, func(v *ir.Value) { s.value(v, entries) })
	return out
}

// spread collects the values of a function.
type spread struct {
	b       *builder
	mesh    *mesh.Mesh
	out     *Mesh
	values  *shard.Values // nil where the text states no shardings, or there is a problem
	divided *cost.Divided
	sizes   map[string]dim.Dim
	known   map[string]int // index in out.Layouts, by shape and sharding
}

func (s *spread) value(v *ir.Value, entries map[*ir.Op]*cost.Entry) {
	stated := op.StatedShardings(v)
	for i, m := range types.Members(types.Sized(v.Type, s.sizes)) {
		x := MeshValue{Name: v.Name + m.Path, Kind: ValueInner, Place: place(s.b.p.Src, v.Span), Layout: -1}
		switch {
		case returned(v):
			x.Kind = ValueResult
		case v.Op == nil && v.Block == s.b.f.Func.Body:
			x.Kind = ValueArgument
		}
		if v.Op != nil {
			x.Op = v.Op.Name
			if x.Line == 0 {
				x.Place = s.b.placeOf(v.Op)
			}
			if e := entries[v.Op]; e != nil {
				x.Class = className(e)
			}
		}
		own := s.describe(&x, v, m, stated[i])
		x.Type = shortType(&ir.Value{Type: m.Tensor})
		local, sized := m.Tensor, true
		if !s.out.Local {
			local, sized = s.mesh.Local(m.Tensor, own)
			x.Padding, x.Partial = s.padding(m.Tensor, own), s.partial(own)
			x.Layout = s.layout(m.Tensor, own)
		}
		if sized {
			x.Piece = shortType(&ir.Value{Type: local})
			x.Bytes, x.BytesLabel = number(local.Bytes()), bytesLabel(local.Bytes())
		} else {
			x.Piece = s.symbols(m.Tensor, own)
		}
		s.out.Values = append(s.out.Values, x)
	}
}

// describe fills in how the devices have v's member, and why.
func (s *spread) describe(x *MeshValue, v *ir.Value, m types.Member, stated *types.Sharding) *types.Sharding {
	own := stated
	x.Stated = own != nil
	if s.values != nil && m.Path == "" {
		own, x.Stated = s.values.Sharding(v)
	}
	if s.divided != nil {
		if made := s.divided.Sharding(v); made != nil && len(made.Partial) > 0 && m.Path == "" {
			own = made
		}
	}
	x.Sharding = "whole"
	if s.out.Local {
		x.Sharding = "of each device"
	} else if own != nil && own.Short() != "" {
		x.Sharding = own.Short()
	}
	if s.values != nil && !x.Stated {
		if from, by := s.values.Why(v); from != nil && by != nil && from.Name != "" {
			x.Why = "as " + from.Name + ", by " + by.Name
		}
	}
	return own
}

// symbols is a piece of a tensor of symbolic sizes, in short: "n/4×256 f32".
func (s *spread) symbols(t *types.Tensor, own *types.Sharding) string {
	parts := make([]string, t.Rank())
	for i, d := range own.Dims {
		parts[i] = t.Shape[i].String()
		if t.Shape[i].Terms() > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
		if p := s.mesh.Count(d.Axes); p > 1 {
			parts[i] += fmt.Sprintf("/%d", p)
		}
	}
	return cut(strings.Join(parts, "×"), 60) + " " + t.Elem.String()
}

func (s *spread) padding(t *types.Tensor, own *types.Sharding) string {
	if own == nil {
		return ""
	}
	var parts []string
	for i, d := range own.Dims {
		p := s.mesh.Count(d.Axes)
		n, known := t.Shape[i].Int()
		if each := mesh.Piece(n, p); known && each*int64(p) > n {
			all := each * int64(p)
			parts = append(parts, fmt.Sprintf("dimension %d from %d to %d, %s more", i, n, all, units.Percent(float64(all-n), float64(n))))
		}
	}
	return strings.Join(parts, "; ")
}

func (s *spread) partial(own *types.Sharding) string {
	if own == nil || len(own.Partial) == 0 {
		return ""
	}
	return fmt.Sprintf("one of %d to %s along %s", s.mesh.Count(own.Partial), own.Reduce.Word(), types.AxisList(own.Partial))
}

// layout is the index of the layout of a tensor, which it shares with others of its shape and sharding.
func (s *spread) layout(t *types.Tensor, own *types.Sharding) int {
	key := fmt.Sprint(t.Shape)
	if own != nil {
		key += own.Text()
	}
	at, known := s.known[key]
	if !known {
		at = len(s.out.Layouts)
		s.known[key] = at
		s.out.Layouts = append(s.out.Layouts, s.pieces(t, own))
	}
	return at
}

// pieces are those of a tensor.
func (s *spread) pieces(t *types.Tensor, own *types.Sharding) MeshLayout {
	if own == nil {
		own = &types.Sharding{Dims: make([]types.Split, t.Rank())}
	}
	out := MeshLayout{Dims: []MeshDim{}, Pieces: 1, Piece: make([]int, s.out.Shown)}
	shape := make([]int, t.Rank())
	counts := make([]int, t.Rank())
	parts := make([]map[int]int, t.Rank()) // from a position to the index of the part
	for i, d := range own.Dims {
		counts[i] = s.mesh.Count(d.Axes)
		x := MeshDim{Size: int64(counts[i]), Label: t.Shape[i].String(), Parts: []MeshPart{}, At: make([]int, s.out.Shown)}
		if n, ok := t.Shape[i].Int(); ok {
			x.Size = n
		}
		if len(d.Axes) > 0 {
			x.Axes = types.AxisList(d.Axes)
		}
		shape[i], parts[i] = int(x.Size), map[int]int{}
		out.Pieces *= counts[i]
		out.Dims = append(out.Dims, x)
	}
	seen := map[string]int{}
	for device := range s.out.Shown {
		start, size := s.mesh.Offset(device, shape, own)
		for i := range out.Dims {
			d := &out.Dims[i]
			at := s.mesh.Position(device, own.Dims[i].Axes)
			k, known := parts[i][at]
			if !known {
				k = len(d.Parts)
				parts[i][at] = k
				p := MeshPart{Start: int64(start[i]), End: int64(start[i] + size[i])}
				p.Label = fmt.Sprintf("%d:%d", p.Start, p.End)
				if _, isInt := t.Shape[i].Int(); !isInt {
					p.Label = fmt.Sprintf("%d of %d of %s", at+1, counts[i], d.Label)
				} else {
					p.Padding = mesh.Piece(d.Size, counts[i]) - int64(size[i])
				}
				d.Parts = append(d.Parts, p)
			}
			d.At[device] = k
		}
		key := ""
		for _, d := range out.Dims {
			key += fmt.Sprint(d.At[device], " ")
		}
		if _, known := seen[key]; !known {
			seen[key] = len(seen)
		}
		out.Piece[device] = seen[key]
	}
	return out
}
