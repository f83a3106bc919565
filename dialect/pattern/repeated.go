package pattern

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Repeated calls again for every op of b, and of the regions in it, that computes
// the values of an earlier op visible from it: one without side effects with the
// same operands, attributes, types and regions. An attribute with its default is one that is absent. Operands of commutative ops may
// be swapped and the letters of equations named otherwise; ops with a seed draw the same
// numbers for the same seed. A kernel reads nothing from outside that it computes
// by itself. Only ops that may holds are compared; again may replace o.
func Repeated(b *ir.Block, may func(*ir.Op) bool, again func(first, o *ir.Op)) {
	n := &numbering{ids: map[*ir.Value]int{}, may: may, again: again}
	n.block(b, nil)
}

// Congruent reports of values in b, and in the regions in it, whether they are equal: those of equal ops, as Repeated
// compares them, on equal values.
func Congruent(b *ir.Block) func(v, w *ir.Value) bool {
	n := &numbering{ids: map[*ir.Value]int{}, may: func(*ir.Op) bool { return true }}
	n.again = func(first, o *ir.Op) {
		for i, r := range o.Results {
			n.value(first.Results[i], nil)
			n.ids[r] = n.ids[first.Results[i]]
		}
	}
	n.block(b, nil)
	return func(v, w *ir.Value) bool {
		x, known := n.ids[v]
		y, also := n.ids[w]
		return v == w || known && also && x == y
	}
}

// numbering numbers values, so that ops can be compared as text.
type numbering struct {
	ids   map[*ir.Value]int
	may   func(*ir.Op) bool
	again func(first, o *ir.Op)
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

func (n *numbering) block(b *ir.Block, outer *seen) {
	here := &seen{map[string]*ir.Op{}, outer}
	for _, o := range slices.Clone(b.Ops) {
		d := op.Of(o)
		around := here
		if d.Is(op.Isolated) || o.Name == op.Kernel {
			around = nil
		}
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				n.block(inner, around)
			}
		}
		if len(o.Results) == 0 || op.HasEffect(o) || !n.may(o) {
			continue
		}
		var key strings.Builder
		n.op(&key, o, map[*ir.Value]string{})
		if first := here.find(key.String()); first != nil {
			n.again(first, o)
			continue
		}
		here.ops[key.String()] = o
	}
}

// value is the name of an operand in a key: of one defined inside the op by
// where, of one outside by number.
func (n *numbering) value(v *ir.Value, inside map[*ir.Value]string) string {
	if s, ok := inside[v]; ok {
		return s
	}
	if _, known := n.ids[v]; !known {
		n.ids[v] = len(n.ids) // merged numbers leave gaps, and none comes twice
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
	attrs := slices.SortedFunc(slices.Values(o.Attrs), func(a, b types.Named) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range attrs {
		if d := op.Of(o).Attr(a.Name); d != nil && d.Default != nil && types.EqualAttr(a.Value, d.Default) {
			continue
		}
		text := attrText(a.Value)
		if a.Name == "equation" {
			if e := Equation(o); e != nil {
				text = renamed(e)
			}
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

func attrText(a types.Attr) string {
	if d, ok := a.(*types.Dense); ok {
		return d.Key()
	}
	return a.String()
}

func typeText(t types.Type) string {
	if t == nil {
		return "?"
	}
	return t.String()
}

// renamed is an equation with its letters numbered in order of appearance.
func renamed(e *op.Equation) string {
	numbers := map[rune]int{}
	var out strings.Builder
	for _, l := range e.String() {
		if l == ',' || l == '-' || l == '>' {
			out.WriteRune(l)
			continue
		}
		if _, known := numbers[l]; !known {
			numbers[l] = len(numbers)
		}
		fmt.Fprintf(&out, " %d", numbers[l])
	}
	return out.String()
}
