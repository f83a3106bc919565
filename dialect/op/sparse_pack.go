package op

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// packed is how dm.pack groups sparse tensors, and makes one of its components.
var packed = &Sparse{
	Doc: "Members may be sparse. Where the result is a sparse tensor, the operands are its components: level by level positions and coordinates, then the values. " +
		"What they store is as the format says: sorted, nothing twice, and the last position is how many there are.",
	Assembles: true,
	Infer: func(o *ir.Op, _ []types.Type) ([]types.Type, *Problem) {
		r := made(o)
		if r == nil {
			return one(&types.Tuple{Of: ir.Types(o.Operands)}), nil
		}
		cs := r.Components()
		if len(cs) != len(o.Operands) {
			return nil, problem("DM134", -1, "%s has %d components, but dm.pack has %d operands", r, len(cs), len(o.Operands)).help("%s", componentList(cs))
		}
		for i, c := range cs {
			if !types.Equal(o.Operands[i].Type, c.Tensor) {
				return nil, problem("DM134", i, "the %s of %s are %s, and %s is %s", c.Name, r, c.Tensor, valueName(o.Operands[i]), o.Operands[i].Type).help("%s", componentList(cs))
			}
		}
		return one(r), nil
	},
	lower: func(l *lowering) {
		for _, vs := range l.in {
			l.results[0] = append(l.results[0], vs...)
		}
	},
}

// made is the sparse tensor that o, dm.pack, makes of its components; nil where it makes a tuple.
func made(o *ir.Op) *types.Tensor {
	if len(o.Results) != 1 {
		return nil
	}
	if t := asTensor(o.Results[0].Type); t != nil && t.Format != nil {
		return t
	}
	return nil
}

// repacked is the sparse tensor whose pattern o, dm.pack, gives other values: all operands but the last are components of it,
// as one dm.unpack has them; nil: there is none.
func repacked(o *ir.Op) *ir.Value {
	t := made(o)
	if o.Name != Prefix+"pack" || t == nil {
		return nil
	}
	u := o.Operands[0].Op
	if u == nil || u.Name != Prefix+"unpack" || len(u.Results) != len(o.Operands) {
		return nil
	}
	for i, v := range o.Operands[:len(o.Operands)-1] {
		if v != u.Results[i] {
			return nil
		}
	}
	from := asTensor(u.Operands[0].Type)
	if from == nil || from.Format == nil || !from.Format.Equal(t.Format) || !sameShape(from.Shape, t.Shape) {
		return nil
	}
	return u.Operands[0]
}

func componentList(cs []types.Component) string {
	s := "its components are"
	for i, c := range cs {
		if i > 0 {
			s += ","
		}
		s += " " + c.Name + " " + c.Tensor.String()
	}
	return s
}

// unpacked is how dm.unpack gives the sparse members of a tuple, and the components of a
// sparse tensor.
var unpacked = &Sparse{
	Doc:       "Members may be sparse. Of a sparse tensor the results are its components: level by level positions and coordinates, then the values.",
	Assembles: true,
	Infer: func(o *ir.Op, _ []types.Type) ([]types.Type, *Problem) {
		return unpackedTypes(o.Operands[0].Type), nil
	},
	lower: func(l *lowering) {
		vs := l.in[0]
		for i, r := range l.o.Results {
			n := len(types.Parts(r.Type))
			if n == 0 || n > len(vs) {
				l.refuse(problem("DM125", -1, "%s has fewer components than results are written", valueName(l.o.Operands[0])))
			}
			l.results[i], vs = vs[:n:n], vs[n:]
		}
	},
}

// unpackedTypes are the members of t, a tuple, or the components of t, a sparse tensor; nil of
// other types.
func unpackedTypes(t types.Type) []types.Type {
	switch t := t.(type) {
	case *types.Tuple:
		return append([]types.Type(nil), t.Of...)
	case *types.Tensor:
		if t.Format == nil {
			return nil
		}
		var out []types.Type
		for _, c := range t.Components() {
			out = append(out, c.Tensor)
		}
		return out
	}
	return nil
}
