package feature

import (
	"cmp"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// candidate is a value that can be used at a place.
type candidate struct {
	value *ir.Value
	fit   int // 0 is best
}

// visible are the values that can be used in s and that keep, which may be nil,
// accepts: the nearest first, those of the same function only.
func (s *statement) visible(keep func(*ir.Value) bool) []candidate {
	var out []candidate
	add := func(vs []*ir.Value) {
		for i := len(vs) - 1; i >= 0; i-- {
			if v := vs[i]; v.Name != "" && (keep == nil || keep(v)) {
				out = append(out, candidate{value: v})
			}
		}
	}
	block, ops := s.block, s.ops
	for {
		for i := len(ops) - 1; i >= 0; i-- {
			add(ops[i].Results)
		}
		if block == nil {
			return out
		}
		add(block.Args)
		r := block.Region
		for i := slices.Index(r.Blocks, block) - 1; i >= 0; i-- {
			for j := len(r.Blocks[i].Ops) - 1; j >= 0; j-- {
				add(r.Blocks[i].Ops[j].Results)
			}
			add(r.Blocks[i].Args)
		}
		o := r.Op
		if o == nil || o.Name == "func.func" || o.Name == "builtin.module" || op.Of(o).Is(op.Isolated) {
			return out
		}
		block = o.Parent
		if block == nil {
			return out
		}
		i, _ := slices.BinarySearchFunc(block.Ops, o.Span.Start, func(o *ir.Op, at int) int { return cmp.Compare(o.Span.Start, at) })
		ops = block.Ops[:i]
	}
}

// values are the values that can be the operand being written: those whose
// type fits best first, the nearest first among those that fit as well.
func (s *statement) values() (items []Completion, more bool) {
	typed := s.typed()
	if !strings.HasPrefix(typed, "%") {
		typed = ""
	}
	found := s.visible(func(v *ir.Value) bool { return strings.HasPrefix(v.Name, typed) })
	want := s.wanted()
	for i := range found {
		found[i].fit = want.fit(found[i].value)
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.fit, b.fit) })
	seen := map[string]bool{}
	for _, c := range found {
		if seen[c.value.Name] {
			continue
		}
		if len(items) == maxValues {
			return items, true
		}
		seen[c.value.Name] = true
		detail := c.value.Type.String()
		if c.value.Type == types.Type(types.Unknown) {
			detail = ""
		}
		items = append(items, Completion{Kind: ValueItem, Label: c.value.Name, Detail: detail, Text: c.value.Name})
	}
	return items, false
}

// want is what is known of the operand being written.
type want struct {
	exact types.Type   // its type
	elems []types.Elem // its element types
	like  types.Type   // the type of the first operand, whose element type it shares
	shape bool         // and whose shape it has or broadcasts to
}

// wanted looks at the op and at what is written of it.
func (s *statement) wanted() want {
	n := s.place().operands
	name := s.opName()
	var owner *ir.Op
	if s.block != nil {
		owner = s.block.Region.Op
	}
	switch name {
	case "return", "func.return":
		for _, f := range s.module.Funcs {
			if owner != nil && f.Op == owner && n < len(f.Results) {
				return want{exact: f.Results[n]}
			}
		}
	case "call", "func.call":
		if f := s.callee(); f != nil && n < len(f.Args) {
			return want{exact: f.Args[n].Type}
		}
	case "dm.yield":
		if owner != nil && n < len(owner.Results) && owner.Name != "dm.map" && owner.Name != "dm.reduce" {
			return want{exact: owner.Results[n].Type}
		}
	}
	def := op.Lookup(name)
	if def == nil || len(def.Operands) == 0 {
		return want{}
	}
	w := want{elems: def.Operands[min(n, len(def.Operands)-1)].Elems, shape: def.Is(op.Pointwise)}
	if n > 0 && s.op != nil && len(s.op.Operands) > 0 {
		w.like = s.op.Operands[0].Type
	}
	return w
}

// fit says how well v suits: 0 is as good as can be told, 3 that it does not.
// In between is a value whose type is not known.
func (w want) fit(v *ir.Value) int {
	if v.Type == types.Type(types.Unknown) {
		return 2
	}
	if w.exact != nil {
		if v.Type.String() == w.exact.String() {
			return 0
		}
		return 3
	}
	elem, ok := elemOf(v.Type)
	if !ok || w.elems != nil && !slices.Contains(w.elems, elem) {
		return 3
	}
	like, ok := elemOf(w.like)
	switch {
	case !ok:
		return 0
	case like != elem:
		return 3
	case w.shape && !broadcasts(w.like, v.Type):
		return 1
	}
	return 0
}

func elemOf(t types.Type) (types.Elem, bool) {
	switch t := t.(type) {
	case *types.Tensor:
		return t.Elem, true
	case types.Scalar:
		return t.Elem, true
	}
	return types.InvalidElem, false
}

// broadcasts reports whether two shapes agree from the back, as NumPy has it.
func broadcasts(a, b types.Type) bool {
	x, isTensor := a.(*types.Tensor)
	y, areTensors := b.(*types.Tensor)
	if !isTensor || !areTensors {
		return isTensor == areTensors
	}
	for i := 1; i <= min(x.Rank(), y.Rank()); i++ {
		m, n := x.Shape[x.Rank()-i], y.Shape[y.Rank()-i]
		one := func(s string) bool { return s == "1" }
		if m.String() != n.String() && !one(m.String()) && !one(n.String()) {
			return false
		}
	}
	return true
}
