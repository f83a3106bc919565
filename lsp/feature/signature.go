package feature

import (
	"strings"

	"dmir/analysis/program"
	"dmir/dialect/op"
)

// Signature is how an op is written, and where in it the cursor is.
type Signature struct {
	Label  string
	Op     string // whose documentation belongs to it; see Documentation
	Params []Param
	Active int // of Params, -1 where the cursor is at none of them
}

// Param is a part of a signature: the lead, an operand, a clause, the type.
type Param struct {
	Start, End int // bytes of Label
	Doc        string
}

// SignatureAt is the form of the op that off lies in, behind its name; nil for
// ops that are not in the registry.
func SignatureAt(p *program.Program, off int) *Signature {
	if off < 0 || off > p.Src.Len() {
		return nil
	}
	if p.Imported {
		return nil
	}
	s := statementAt(p, off)
	if s == nil || s.name < 0 || len(s.before) <= s.name {
		return nil
	}
	def := op.Lookup(s.opName())
	if def == nil {
		return nil
	}
	parts := form(def)
	sig := &Signature{Op: def.FullName()}
	var b strings.Builder
	for i, r := range def.Results {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("%" + r.Name)
		if r.Variadic {
			b.WriteString(", …")
		}
	}
	if len(def.Results) > 0 {
		b.WriteString(" = ")
	}
	b.WriteString(def.FullName())
	for i, p := range parts {
		between := glue(parts, i)
		if p.optional {
			b.WriteString(strings.TrimSuffix(between, ", "))
			between = strings.TrimPrefix(between, " ")
			b.WriteString("[")
		}
		b.WriteString(between)
		start := b.Len()
		b.WriteString(p.text)
		sig.Params = append(sig.Params, Param{start, b.Len(), p.doc})
		if p.optional {
			b.WriteString("]")
		}
	}
	sig.Label = b.String()
	sig.Active = s.active(parts)
	return sig
}

// active is the part that is being written, -1 where that is none of them.
func (s *statement) active(parts []part) int {
	l := s.place()
	find := func(kind partKind, name string) int {
		for i, p := range parts {
			if p.kind == kind && (name == "" || p.name == name) {
				return i
			}
		}
		return -1
	}
	switch {
	case l.typed:
		return find(typePart, "")
	case l.clause != "":
		return find(clausePart, l.clause)
	case len(s.before) == s.name+1 && find(leadPart, "") >= 0:
		return find(leadPart, "")
	case l.inside() >= 0 && s.tok(l.inside()) == "{" && find(axesPart, "") >= 0:
		return find(axesPart, "")
	case l.inside() >= 0:
		return -1
	}
	if typed := s.typed(); typed != "" && wordByte(typed[0]) {
		for i, p := range parts {
			if p.kind == clausePart && strings.HasPrefix(p.name, typed) {
				return i
			}
		}
		return -1
	}
	// Behind a value, and not behind the comma after it, the cursor is still at it.
	n := l.operands
	if last := s.tok(len(s.before) - 1); n > 0 && strings.HasPrefix(last, "%") {
		n--
	}
	first := find(operandPart, "")
	for i := max(first, 0); first >= 0 && i < len(parts) && parts[i].kind == operandPart; i++ {
		if i == first+n || parts[i].many {
			return i
		}
	}
	return find(clausePart, "")
}
