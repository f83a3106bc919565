package attention

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// normalizes reports whether v comes from exponentials that might be those of a
// softmax: nearly all contractions are done with here.
func normalizes(v *ir.Value) bool {
	for range maxSteps {
		v = origin(v)
		if v.Op == nil || !op.Valid(v.Op) {
			return false
		}
		if p := unguarded(v.Op); p != nil {
			v = p
			continue
		}
		switch v.Op.Name {
		case "dm.softmax", "dm.exp":
			return true
		case "dm.mul":
			if e := origin(v.Op.Operands[1]); e.Op != nil && e.Op.Name == "dm.exp" {
				return true
			}
		case "dm.transpose", "dm.reshape", "dm.convert", "dm.dropout", "dm.div":
		default:
			return false
		}
		v = v.Op.Operands[0]
	}
	return false
}

// roots are o and, where that is all that uses its result, the op that divides it.
func roots(o *ir.Op) []*ir.Op {
	if d := only(o, "dm.div"); d != nil && d.Operands[0] == o.Results[0] && d.Operands[1] != o.Results[0] && shaped(d.Operands[0], d.Results[0]) {
		return []*ir.Op{o, d}
	}
	return []*ir.Op{o}
}

// narrowed are o and, before it, the convert that is all that uses its result, to
// a type that an attention rounds to.
func narrowed(o *ir.Op) []*ir.Op {
	if c := only(o, "dm.convert"); c != nil && computes(c.Out(0).Elem) && exact(c.Out(0).Elem, c.In(0).Elem) {
		return []*ir.Op{c, o}
	}
	return []*ir.Op{o}
}

// only is the op called name that is all that uses o's result, in the same block.
func only(o *ir.Op, name string) *ir.Op {
	us := o.Results[0].Uses
	if len(us) != 1 || us[0].Op.Name != name || us[0].Op.Parent != o.Parent || us[0].Op.Bad || !plain(us[0].Op.Results[0]) {
		return nil
	}
	return us[0].Op
}
