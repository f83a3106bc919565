package feature

import (
	"cmp"
	"iter"
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

// maxLooked is how many values are compared for the best: those further up in
// a long function are found by typing more of their names.
const maxLooked = 2000

// maxOthers is how many values are offered in place of one whose name is whole.
const maxOthers = 20

// visible are the values that can be used in s: the nearest first, those of the
// same function only.
func (s *statement) visible() iter.Seq[*ir.Value] {
	return func(yield func(*ir.Value) bool) {
		block, ops := s.block, s.ops
		for {
			if !resultsUpwards(ops, yield) || block == nil || !upwards(block.Args, yield) {
				return
			}
			r := block.Region
			for i := slices.Index(r.Blocks, block) - 1; i >= 0; i-- {
				if !resultsUpwards(r.Blocks[i].Ops, yield) || !upwards(r.Blocks[i].Args, yield) {
					return
				}
			}
			o := r.Op
			if o == nil || o.Name == op.Func || o.Name == op.Module || op.Of(o).Is(op.Isolated) {
				return
			}
			block = o.Parent
			if block == nil {
				return
			}
			i, _ := slices.BinarySearchFunc(block.Ops, o.Span.Start, func(o *ir.Op, at int) int { return cmp.Compare(o.Span.Start, at) })
			ops = block.Ops[:i]
		}
	}
}

// upwards yields the values that have names, the last first; false where it is
// to end.
func upwards(vs []*ir.Value, yield func(*ir.Value) bool) bool {
	for _, v := range slices.Backward(vs) {
		if v.Name != "" && !yield(v) {
			return false
		}
	}
	return true
}

func resultsUpwards(ops []*ir.Op, yield func(*ir.Value) bool) bool {
	for _, o := range slices.Backward(ops) {
		if !upwards(o.Results, yield) {
			return false
		}
	}
	return true
}

// values are the values that can be the operand being written: those whose
// type fits best first, the nearest first among those that fit as well.
func (s *statement) values() (items []Completion, more bool) {
	typed := s.typed()
	if !strings.HasPrefix(typed, "%") {
		typed = ""
	}
	want := s.wanted()
	var found, others []candidate
	seen := map[string]bool{}
	for v := range s.visible() {
		if seen[v.Name] {
			continue
		}
		if !strings.HasPrefix(v.Name, typed) {
			if len(others) < maxOthers && want.fit(v) == 0 {
				others = append(others, candidate{value: v})
			}
			continue
		}
		if len(found) == maxLooked {
			more = true
			break
		}
		seen[v.Name] = true
		found = append(found, candidate{v, want.fit(v)})
	}
	if !seen[typed] { // a name that is not finished
		others = nil
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.fit, b.fit) })
	for _, c := range found[:min(len(found), maxValues)] {
		detail := c.value.Type.String()
		if c.value.Type == types.Type(types.Unknown) {
			detail = ""
		}
		items = append(items, Completion{Kind: ValueItem, Label: c.value.Name, Detail: detail, Text: c.value.Name})
	}
	for _, c := range others { // in place of a whole name, as of what a snippet has filled in
		items = append(items, Completion{Kind: ValueItem, Label: c.value.Name, Detail: c.value.Type.String(), Text: c.value.Name, Filter: typed})
	}
	return items, more || len(found) > maxValues
}

// want is what is known of the operand being written.
type want struct {
	exact types.Type   // its type
	elems []types.Elem // its element types
	like  types.Type   // the type of the first operand, whose element type it shares
	shape bool         // and whose shape it has or broadcasts to
}

// wanted inspects the op and its text so far.
func (s *statement) wanted() want {
	n := s.place().operands
	name := s.opName()
	var owner *ir.Op
	if s.block != nil {
		owner = s.block.Region.Op
	}
	switch name {
	case "return", op.Return:
		for _, f := range s.module.Funcs {
			if owner != nil && f.Op == owner && n < len(f.Results) {
				return want{exact: f.Results[n]}
			}
		}
	case "call", op.Call, op.Grad:
		if f := s.callee(); f != nil && n < len(f.Args) {
			return want{exact: s.instance(f).Args[n].Type}
		}
	case op.Yield:
		if owner != nil && n < len(owner.Results) && !op.Of(owner).Is(op.Isolated) {
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

// fit rates how well v suits, from 0, the best, to 3, not at all.
// In between is a value whose type is not known.
func (w want) fit(v *ir.Value) int {
	if v.Type == types.Type(types.Unknown) {
		return 2
	}
	if w.exact != nil {
		if _, mismatch := types.Bind([]types.Type{w.exact}, []types.Type{v.Type}); mismatch == nil {
			return 0
		}
		return 3
	}
	elem := types.ElemOf(v.Type)
	if elem == types.InvalidElem || w.elems != nil && !slices.Contains(w.elems, elem) {
		return 3
	}
	like := types.ElemOf(w.like)
	switch {
	case like == types.InvalidElem:
		return 0
	case like != elem:
		return 3
	case w.shape && !broadcasts(w.like, v.Type):
		return 1
	}
	return 0
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
