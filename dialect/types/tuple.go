package types

import (
	"strconv"

	"dmir/syntax/ast"
)

// Tuple is a group of tensors that are one value, in the text as
// tuple<tensor<4xf32>, tuple<…>>. It has at least one member, and members are
// tensors or tuples: a tuple of anything else is Opaque.
type Tuple struct{ Of []Type }

func (t *Tuple) String() string { return "tuple<" + List(t.Of) + ">" }

// Member is a tensor in a type.
type Member struct {
	Path   string // from the type to it, ".0.1"; "" for a tensor that is in no tuple
	Tensor *Tensor
}

// Members are the tensors of t in the order of the text: those of a tuple, at any
// depth, or t itself; none of another type.
func Members(t Type) []Member {
	var out []Member
	walk(t, "", func(m Member) { out = append(out, m) })
	return out
}

func walk(t Type, path string, visit func(Member)) {
	switch t := t.(type) {
	case *Tensor:
		visit(Member{path, t})
	case *Tuple:
		for i, m := range t.Of {
			walk(m, path+"."+strconv.Itoa(i), visit)
		}
	}
}

// IsTuple reports whether t is a group of tensors.
func IsTuple(t Type) bool {
	_, ok := t.(*Tuple)
	return ok
}

// Each is t with f of every tensor in its place.
func Each(t Type, f func(Member) Type) Type { return each(t, "", f) }

func each(t Type, path string, f func(Member) Type) Type {
	switch t := t.(type) {
	case *Tensor:
		return f(Member{path, t})
	case *Tuple:
		r := &Tuple{Of: make([]Type, len(t.Of))}
		changed := false
		for i, m := range t.Of {
			r.Of[i] = each(m, path+"."+strconv.Itoa(i), f)
			changed = changed || r.Of[i] != m
		}
		if !changed {
			return t
		}
		return r
	}
	return t
}

// SameStructure reports whether a and b have tensors in the same places.
func SameStructure(a, b Type) bool {
	switch a := a.(type) {
	case *Tensor:
		_, ok := b.(*Tensor)
		return ok
	case *Tuple:
		t, ok := b.(*Tuple)
		if !ok || len(a.Of) != len(t.Of) {
			return false
		}
		for i := range a.Of {
			if !SameStructure(a.Of[i], t.Of[i]) {
				return false
			}
		}
		return true
	}
	return false
}

func (e *Env) tupleOf(x *ast.TypeExpr) (Type, error) {
	t := &Tuple{Of: make([]Type, len(x.In))}
	grouped, length := len(x.In) > 0, 0
	for i, in := range x.In {
		m, err := FromExpr(in, e)
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *Tensor, *Tuple:
			if length += len(m.String()); length > len(x.Text)+maxExpansion {
				return nil, &Error{Code: "DM156", Msg: "the tuple stands for more than 64 KiB of text"}
			}
		default:
			grouped = false
		}
		t.Of[i] = m
	}
	if !grouped {
		return Opaque{Text: e.foreign(x.Text)}, nil
	}
	return t, nil
}

// Compound reports whether a value of type t is no value in memory but several: a tuple,
// or a sparse tensor.
func Compound(t Type) bool {
	switch t := t.(type) {
	case *Tuple:
		return true
	case *Tensor:
		return t.Format != nil
	}
	return false
}

// Parts are the dense tensors that make up a value of type t: the members of a tuple,
// of sparse ones their components, called ".values" and so on after their path.
func Parts(t Type) []Member {
	var out []Member
	for _, m := range Members(t) {
		if m.Tensor.Format == nil {
			out = append(out, m)
			continue
		}
		for _, c := range m.Tensor.Components() {
			out = append(out, Member{m.Path + "." + c.Name, c.Tensor})
		}
	}
	return out
}
