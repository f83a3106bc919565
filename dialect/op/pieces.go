package op

import (
	"fmt"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// PieceRoomAttr is how many entries each piece of a sparse argument that devices divide has room for: a number, or one for each
// compressed level.
const PieceRoomAttr = "dm.piece_room"

// DivideByAttr is what the devices that divide a sparse argument have equally many of: one of Divisions.
const DivideByAttr = "dm.divide_by"

// ByEntries is the value of DivideByAttr for entries.
const ByEntries = "entries"

// Divisions are the values of DivideByAttr, that of an argument that states none first.
var Divisions = []string{"rows", ByEntries}

// DividedByEntries reports whether devices that divide argument i of f, a sparse tensor, have equally many of its entries.
func DividedByEntries(f *ir.Func, i int) bool {
	by, _ := ArgAttr(f, i, DivideByAttr).(types.Str)
	return string(by) == ByEntries
}

// RoomOf is the value of PieceRoomAttr for a format with that many compressed levels, nil where it states none.
func RoomOf(a types.Attr, levels int) []int64 {
	list, ok := a.(types.Array)
	if !ok {
		if a == nil {
			return nil
		}
		list = types.Array{a}
	}
	var out []int64
	for _, e := range list {
		n, ok := e.(types.Int)
		if !ok || n.V < 0 {
			return nil
		}
		out = append(out, n.V)
	}
	for len(list) == 1 && len(out) < levels {
		out = append(out, out[0])
	}
	return out
}

// DivisionProblem is why t, a sparse tensor, cannot be divided as s says over so many devices along a dimension, with what to do;
// "" where it can.
func DivisionProblem(t *types.Tensor, s *types.Sharding, count func(axes []types.Axis) int) (msg, help string) {
	f := t.Format
	outer := f.Outermost()
	example := types.Sharding{Mesh: s.Mesh, Dims: make([]types.Split, t.Rank())}
	for _, d := range s.Dims {
		if len(d.Axes) > 0 {
			example.Dims[outer].Axes = d.Axes
		}
	}
	inner := f.Innermost(t.Rank())
	for d := range s.Dims {
		if d != outer && len(s.Dims[d].Axes) > 0 && (d != inner || len(s.Dims[outer].Axes) == 0) {
			return fmt.Sprintf("%s is stored by dimension %d, along which devices can divide it, and not along dimension %d alone", t, outer, d), "write #dm.at<" + example.Text() + ">, or store it by the other dimension, as #dm.csc is"
		}
	}
	if inner >= 0 && len(s.Dims[inner].Axes) > 0 {
		level := f.Walks(inner)
		columns, known := level.Size(t.Shape).Int()
		switch devices := int64(count(s.Dims[inner].Axes)); {
		case level.Kind == types.StructuredLevel:
			return fmt.Sprintf("dimension %d of %s has %s levels, which devices do not divide", inner, t, types.StructuredLevel), "divide the other dimension alone"
		case known && columns < devices:
			return fmt.Sprintf("%d columns of %s are too few for %d devices", columns, t, devices), "divide them over fewer devices"
		}
	}
	n, known := f.Levels[0].Size(t.Shape).Int()
	switch devices := int64(count(s.Dims[outer].Axes)); {
	case len(s.Partial) > 0:
		return fmt.Sprintf("%s stores elements, and no parts of a sum", t), "divide its rows"
	case f.Levels[0].Kind != types.DenseLevel && f.Levels[0].Kind != types.CompressedLevel || f.Levels[0].NonOrdered:
		return fmt.Sprintf("the outermost level of %s is %s, which devices do not divide", t, f.Levels[0].Kind), "store it as #dm.csr"
	case slices.ContainsFunc(f.Levels, func(l types.Level) bool { return l.Kind == types.LooseCompressedLevel }):
		return fmt.Sprintf("%s has entries with gaps between them, which devices do not divide", t), "store it as #dm.csr: dm.convert_format"
	case known && n < devices:
		return fmt.Sprintf("%d rows of %s are too few for %d devices", n, t, devices), "divide it over fewer devices"
	}
	return "", ""
}

// piecesOf is the pieces of t, a sparse tensor that can be divided as s says over so many devices along a dimension.
func piecesOf(t *types.Tensor, s *types.Sharding, count func(axes []types.Axis) int) types.Pieces {
	p := types.Pieces{Outer: int64(count(s.Dims[t.Format.Outermost()].Axes))}
	if d := t.Format.Innermost(t.Rank()); d >= 0 && len(s.Dims[d].Axes) > 0 {
		p.Inner = int64(count(s.Dims[d].Axes))
	}
	return p
}

// ArgumentPieces are those of argument i of f, of the sparse type t, that s divides, and whether they are of its entries; msg is why
// devices do not divide it so, "" where they do.
func ArgumentPieces(f *ir.Func, i int, t *types.Tensor, s *types.Sharding, count func(axes []types.Axis) int) (p types.Pieces, byEntries bool, msg, help string) {
	if msg, help = DivisionProblem(t, s, count); msg != "" {
		return p, false, msg, help
	}
	p, byEntries = piecesOf(t, s, count), DividedByEntries(f, i)
	switch {
	case byEntries && p.Inner > 0:
		msg, help = fmt.Sprintf("devices divide both dimensions of %s, and not its entries", t), "divide one dimension, or state no "+DivideByAttr
	case byEntries && len(t.Format.Stored) == 0:
		msg, help = fmt.Sprintf("%s stores as many entries in each row: devices divide its rows", t), "divide its rows, without "+DivideByAttr
	}
	return p, byEntries, msg, help
}

// PieceSharding is s, a sharding of the sparse tensor t, as one of what stores t: pieces are the first dimension. It is nil where
// t is whole.
func PieceSharding(t *types.Tensor, s *types.Sharding) *types.Sharding {
	if s == nil || t.Format.Pieces.Count() == 0 || t.Format.Outermost() >= len(s.Dims) {
		return nil
	}
	split := s.Dims[t.Format.Outermost()]
	if d := t.Format.Innermost(t.Rank()); t.Format.Pieces.Inner > 0 && d >= 0 {
		split.Axes = slices.Concat(split.Axes, s.Dims[d].Axes)
	}
	return &types.Sharding{Mesh: s.Mesh, Dims: []types.Split{split, {}}}
}

// MemberShardings is PieceSharding for each of what stores a value of type t, of which a, the value of ShardingAttr, states
// how it is divided: an attribute for each tensor, nil for one of which nothing is stated.
func MemberShardings(a types.Attr, t types.Type) []types.Attr {
	list, problem := shardingsIn(a, t)
	var out []types.Attr
	for i, m := range types.Members(t) {
		var s *types.Sharding
		if problem == "" && i < len(list) {
			s = list[i]
		}
		n := 1
		if m.Tensor.Format != nil {
			n, s = len(m.Tensor.Components()), PieceSharding(m.Tensor, s)
		}
		for range n {
			out = append(out, shardingAttr([]*types.Sharding{s}))
		}
	}
	return out
}

// InPieces gives the sparse results of o, of which operands may have got pieces, the pieces that they are in.
func InPieces(o *ir.Op) *Problem {
	first := pieced(o)
	if first == nil {
		return nil
	}
	d := Of(o)
	f := asTensor(first.Type).Format
	for _, r := range o.Results {
		t := asTensor(r.Type)
		if t == nil || t.Format == nil {
			continue
		}
		if o.Name != Prefix+"transpose" && (d.Sparse == nil || d.Sparse.Keeps == nil || !d.Sparse.Keeps(o, SamePattern)) {
			_, p := cuts(o)
			if p == nil {
				p = problem("DM134", -1, "%s gives a sparse tensor with a pattern of its own from one that devices divide", o.Name).help("take the sharding away, or make the result dense")
			}
			return p
		}
		s, g := *t, *t.Format
		g.Pieces, g.ByEntries, g.Stored = f.Pieces, f.ByEntries, f.Stored
		s.Format = &g
		r.Type = &s
	}
	if o.Name == Prefix+"transpose" {
		return nil
	}
	return VerifySparse(o)
}

// HasPieces reports whether o has an operand in pieces.
func HasPieces(o *ir.Op) bool { return pieced(o) != nil }
