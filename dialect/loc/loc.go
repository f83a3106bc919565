// Package loc has the locations that tools leave behind ops: the file and line of the Python program that an op was traced from,
// the calls that led there, the scopes and modules around it. They are MLIR's: loc("model.py":4:8), loc(callsite(… at …)),
// loc("h.0/attn"(…)), loc(fused[…]).
//
// A location is an immutable node, shared by all ops that have it; nil is an unknown one. Together the nodes that a program's
// ops reach are its table of locations, which package print writes as aliases.
package loc

import "slices"

// Loc is a location, nil an unknown one.
type Loc = *Node

// Kind says what a Node is.
type Kind uint8

const (
	File   Kind = iota // Text:Line:Col to EndLine:EndCol
	Call               // A, called at B
	Name               // Text, a function, a scope or a path of scopes, for what is at A
	Fused              // A and B, of which both take part in the op
	With               // A, and B of an op that became a part of it without adding to what it costs
	Opaque             // Text, in a form that is not looked into
)

// Node is a location, or a part of one.
type Node struct {
	Kind            Kind
	Text            string
	Line, Col       int32 // from 1; 0 where not known
	EndLine, EndCol int32 // 0 where not stated
	A, B            Loc
}

// At is a place in a file.
func At(file string, line, col int) Loc {
	return &Node{Kind: File, Text: file, Line: int32(line), Col: int32(col)}
}

// Called is callee, in a function that is called at caller.
func Called(callee, caller Loc) Loc {
	switch {
	case caller == nil:
		return callee
	case callee == nil:
		return caller
	}
	return &Node{Kind: Call, A: callee, B: caller}
}

// Named is l under a name.
func Named(name string, l Loc) Loc {
	return &Node{Kind: Name, Text: name, A: l}
}

// Fuse is the location of an op that does what ops at a and b did: both have a part of what it costs.
func Fuse(a, b Loc) Loc { return join(Fused, a, b) }

// Include is the location of an op at a of which an op at b became a part that adds nothing to what it costs, such as a
// transpose that a contraction does.
func Include(a, b Loc) Loc { return join(With, a, b) }

// most bounds the locations of one op. Where more meet, as in a constant that a whole program shares, the first stay.
const most = 32

func join(k Kind, a, b Loc) Loc {
	switch {
	case a == nil:
		return b
	case b == nil || a == b:
		return a
	}
	parts := Parts(a)
	if len(parts) >= most || slices.ContainsFunc(parts, func(p Part) bool { return p.Loc == b && (p.Costs || k == With) }) {
		return a
	}
	return &Node{Kind: k, A: a, B: b}
}

// Part is one of the locations of an op.
type Part struct {
	Loc   Loc
	Costs bool // it has a part of what the op costs
}

// Parts are the locations that l is made of, at least one that costs unless l is nil. None is Fused or With at its top.
func Parts(l Loc) []Part {
	var out []Part
	var walk func(l Loc, costs bool)
	walk = func(l Loc, costs bool) {
		if l != nil && (l.Kind == Fused || l.Kind == With) {
			walk(l.A, costs)
			walk(l.B, costs && l.Kind == Fused)
			return
		}
		if l == nil {
			return
		}
		for i := range out {
			if out[i].Loc == l {
				out[i].Costs = out[i].Costs || costs
				return
			}
		}
		out = append(out, Part{l, costs})
	}
	walk(l, true)
	return out
}

// From makes the locations of a function's ops those of ops in the place of a call of it: an unknown one that of the call.
func From(call Loc) *Mapper {
	return &Mapper{rule: func(l Loc) Loc { return Called(l, call) }, made: map[Loc]Loc{}, unknown: call}
}

// Under makes the locations of ops those of ops that are made for them, which name says: also where it is not known from where.
func Under(name string) *Mapper {
	return &Mapper{rule: func(l Loc) Loc { return Named(name, l) }, made: map[Loc]Loc{}, unknown: Named(name, nil)}
}

// Mapper gives locations that are made from others by one rule, each once.
type Mapper struct {
	rule    func(Loc) Loc
	made    map[Loc]Loc
	unknown Loc // of an unknown location
}

// Of is l after the rule.
func (m *Mapper) Of(l Loc) Loc {
	if l == nil {
		return m.unknown
	}
	if r, known := m.made[l]; known {
		return r
	}
	var r Loc
	if l.Kind == Fused || l.Kind == With {
		r = join(l.Kind, m.Of(l.A), m.Of(l.B))
	} else {
		r = m.rule(l)
	}
	m.made[l] = r
	return r
}
