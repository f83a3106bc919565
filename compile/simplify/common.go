package simplify

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func commonRule() Rule {
	return Rule{
		Name: "common", Doc: "An op equal to an earlier one gives the earlier one's results: same operands, attributes, types and regions. Operands of commutative ops may be swapped, letters of equations named otherwise; ops with a seed give the same numbers for the same seed. What a kernel computes by itself it does not read from outside.",
		block: func(r *rewriter, b *ir.Block) bool { return (&numbering{ids: map[*ir.Value]int{}}).block(b, nil) },
	}
}

// numbering gives values numbers, so that ops can be compared as text.
type numbering struct {
	ids map[*ir.Value]int
}

// seen is the ops of a block and, behind it, of the blocks around it.
type seen struct {
	ops   map[string]*ir.Op
	outer *seen
}

func (s *seen) find(key string) *ir.Op {
	for ; s != nil; s = s.outer {
		if o := s.ops[key]; o != nil {
			return o
		}
	}
	return nil
}

func (n *numbering) block(b *ir.Block, outer *seen) bool {
	here := &seen{map[string]*ir.Op{}, outer}
	changed := false
	for _, o := range slices.Clone(b.Ops) {
		d := op.Of(o)
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				around := here
				if d.Is(op.Isolated) || o.Name == op.Kernel {
					around = nil
				}
				changed = n.block(inner, around) || changed
			}
		}
		if !d.Is(op.Pure) || d.Is(op.Terminator) || len(o.Results) == 0 || op.HasEffect(o) || !plain(o) {
			continue
		}
		var key strings.Builder
		n.op(&key, o, map[*ir.Value]string{})
		if first := here.find(key.String()); first != nil {
			pass.Replace(o, first.Results...)
			changed = true
			continue
		}
		here.ops[key.String()] = o
	}
	return changed
}

// value is the name of an operand in a key: of one defined inside the op by
// where, of one outside by number.
func (n *numbering) value(v *ir.Value, inside map[*ir.Value]string) string {
	if s, ok := inside[v]; ok {
		return s
	}
	if _, known := n.ids[v]; !known {
		n.ids[v] = len(n.ids)
	}
	return strconv.Itoa(n.ids[v])
}

func (n *numbering) op(out *strings.Builder, o *ir.Op, inside map[*ir.Value]string) {
	operands := make([]string, len(o.Operands))
	for i, v := range o.Operands {
		operands[i] = n.value(v, inside)
	}
	if op.Of(o).Is(op.Commutative) {
		slices.Sort(operands)
	}
	fmt.Fprintf(out, "%s(%s)", o.Name, strings.Join(operands, ","))
	for _, a := range o.Attrs {
		text := attrText(a.Value)
		if e := equationOf(o); o.Name == "dm.einsum" && a.Name == "equation" && e != nil {
			text = renamed(e)
		}
		fmt.Fprintf(out, "%s=%s;", a.Name, text)
	}
	for _, v := range o.Results {
		out.WriteString(typeText(v.Type) + ",")
	}
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			out.WriteByte('{')
			for _, v := range b.Args {
				inside[v] = "i" + strconv.Itoa(len(inside))
				out.WriteString(typeText(v.Type) + ",")
			}
			for _, inner := range b.Ops {
				n.op(out, inner, inside)
				for _, v := range inner.Results {
					inside[v] = "i" + strconv.Itoa(len(inside))
				}
			}
			out.WriteByte('}')
		}
	}
}

// attrText is the text of an attribute, or of a long literal a digest of its bytes.
func attrText(a types.Attr) string {
	if d, ok := a.(*types.Dense); ok && d.Len() > mostElements {
		return fmt.Sprintf("%x : %s", sha256.Sum256(d.Bytes()), d.Type)
	}
	return a.String()
}

func typeText(t types.Type) string {
	if t == nil {
		return "?"
	}
	return t.String()
}

// renamed is an equation with its letters named in order of appearance.
func renamed(e *op.Equation) string {
	names := map[string]string{}
	var out strings.Builder
	for _, l := range split(strings.Join(e.Inputs, ",") + ">" + e.Output) {
		if l != "," && l != ">" {
			if names[l] == "" {
				names[l] = alphabet[len(names) : len(names)+1]
			}
			l = names[l]
		}
		out.WriteString(l)
	}
	return out.String()
}
