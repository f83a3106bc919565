package simplify

import (
	"slices"
	"strings"

	"dmir/analysis/machine"
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
)

func mergeRule() Rule {
	return Rule{
		Name: "contractions-merged",
		Doc: "Contractions of one tensor with several others, which differ at most in the size of one letter, become one with the others concatenated (queries, keys and values), " +
			"where the machine's predicted time, or at equal time the bytes, are less: reading the shared tensor once against writing the concatenation and cutting the result. " +
			"Concatenating constants and neighbouring slices of one tensor costs nothing. (Contractions of equal shape may also share a kernel as they are, which is for fuse to see.)",
		Ops: []string{"einsum"}, apply: merge,
	}
}

// side is an einsum seen from the operand that it shares with others.
type side struct {
	op     *ir.Op
	own    int    // the number of its other operand
	term   string // that operand's letters, those of the shared one named as in the first einsum
	output string
}

// merge looks for einsums that share an operand with o, the first of them.
func merge(r *rewriter, o *ir.Op) bool {
	e := pattern.Equation(o)
	if e == nil || len(o.Operands) != 2 || e.Diagonal() || o.Operands[0] == o.Operands[1] {
		return false
	}
	for shared := range o.Operands {
		group := r.sharing(o, shared)
		if len(group) < 2 {
			continue
		}
		for _, l := range split(e.Output) {
			if strings.Contains(e.Inputs[shared], l) {
				continue
			}
			fit := alike(group, l)
			if len(fit) > 1 && r.pays(fit, l) && join(fit, shared, e.Inputs[shared], l) {
				return true
			}
		}
	}
	return false
}

// sharing is o and the later einsums of its block that read operand number
// shared of o too, with the same letters contracted.
func (r *rewriter) sharing(o *ir.Op, shared int) []side {
	x := o.Operands[shared]
	e := pattern.Equation(o)
	group := []side{{o, 1 - shared, e.Inputs[1-shared], e.Output}}
	at := r.place(o)
	var users []*ir.Op
	for _, u := range x.Uses {
		// Both its operands may be x; then it is met twice and has no operand of its own.
		if u.Op.Name == "dm.einsum" && u.Op.Parent == o.Parent && len(u.Op.Operands) == 2 && r.place(u.Op) > at && r.before(u.Op.Operands[1-u.Index], o) && plain(u.Op) {
			users = append(users, u.Op)
		}
	}
	slices.SortFunc(users, func(a, b *ir.Op) int { return r.place(a) - r.place(b) })
	for _, u := range users {
		f := pattern.Equation(u)
		own := 1 - slices.Index(u.Operands, x)
		if f == nil || f.Diagonal() || u.Operands[own] == x ||
			u.Out(0).Elem != o.Out(0).Elem || u.In(own).Elem != o.In(1-shared).Elem || !sameAttrs(u, o) {
			continue
		}
		if s, ok := aligned(u, own, f.Inputs[1-own], f.Inputs[own], f.Output, e.Inputs[shared], group[0]); ok {
			group = append(group, s)
		}
	}
	return group
}

// aligned renames the letters of u to those of the first einsum: those of the
// shared tensor by their place in it, the others by their place in the output.
func aligned(u *ir.Op, own int, common, term, output, names string, first side) (side, bool) {
	if len(common) != len(names) || len(output) != len(first.output) || len(term) != len(first.term) {
		return side{}, false
	}
	letters := map[string]string{}
	for i, l := range split(common) {
		letters[l] = names[i : i+1]
	}
	for i, l := range split(output) {
		if letters[l] == "" {
			letters[l] = first.output[i : i+1]
		}
	}
	as := func(text string) string {
		out := ""
		for _, l := range split(text) {
			out += letters[l]
		}
		return out
	}
	s := side{u, own, as(term), as(output)}
	return s, s.term == first.term && s.output == first.output
}

func sameAttrs(a, b *ir.Op) bool {
	return types.EqualNamed(kept(a, "equation"), kept(b, "equation"))
}

// before reports whether v is defined before o, in its block or around it.
func (r *rewriter) before(v *ir.Value, o *ir.Op) bool {
	return v.Op == nil || v.Op.Parent != o.Parent || r.place(v.Op) < r.place(o)
}

// alike are those of the group whose tensors differ from the first's in the
// size of letter l alone.
func alike(group []side, l string) []side {
	var fit []side
	for _, s := range group {
		ok := true
		for d, m := range split(s.term) {
			ok = ok && (m == l || s.op.In(s.own).Shape[d].Equal(group[0].op.In(group[0].own).Shape[d]))
		}
		if ok {
			fit = append(fit, s)
		}
	}
	return fit
}

// pays compares the predicted time of the contractions one by one with that of
// the merged one, of the concatenation before it and of the slices behind it,
// which stand between the contraction and what might have been its epilogue.
func (r *rewriter) pays(group []side, l string) bool {
	m := r.Machine
	if m == nil {
		return false
	}
	var flop, apart, together, weights, results, shared int64
	var separate float64
	elem := group[0].op.In(1 - group[0].own).Elem
	time := func(flop, moved int64) float64 { return productTime(m, elem, flop, moved) }
	for _, s := range group {
		x, ok := s.op.In(1 - s.own).Bytes().Int()
		w, ok2 := s.op.In(s.own).Bytes().Int()
		y, ok3 := s.op.Out(0).Bytes().Int()
		n, ok4 := op.FLOP(s.op).Int()
		if !ok || !ok2 || !ok3 || !ok4 {
			return false
		}
		shared = x
		flop, weights, results = flop+n, weights+w, results+y
		apart += x + w + y
		separate += time(n, x+w+y)
	}
	together = shared + weights + results
	merged := time(flop, together) + float64(2*results)/m.Reach() + m.Start()
	together += 2 * results
	if !free(group, l) {
		together += 2 * weights
		merged += float64(2*weights)/m.Reach() + m.Start()
	}
	return merged < separate || merged == separate && together < apart
}

// free reports whether the tensors of a group are concatenated without moving
// anything: they are small constants, or neighbouring slices of one tensor in
// this order.
func free(group []side, l string) bool {
	total := int64(0)
	constants, slicesOfOne := true, true
	var of *ir.Value // that they are slices of
	var end []int64
	for _, s := range group {
		v := s.op.Operands[s.own]
		n, ok := v.Tensor().Elements().Int()
		total += n
		constants = constants && ok && v.Op != nil && v.Op.Name == op.Constant
		part := from(v, "slice")
		if part == nil || of != nil && part.Operands[0] != of {
			slicesOfOne = false
			continue
		}
		of = part.Operands[0]
		c, ok := cutOf(part)
		d := strings.Index(s.term, l)
		if !ok || c.stride[d] != 1 || end != nil && c.start[d] != end[d] {
			slicesOfOne = false
			continue
		}
		end = c.limit
	}
	return constants && total <= mostElements || slicesOfOne
}

// join builds the merged contraction before the first one, and slices of its
// result in place of the others' results.
func join(group []side, shared int, common, l string) bool {
	first := group[0]
	b := pass.Before(first.op)
	var parts []*ir.Value
	all := *first.op
	for _, s := range group {
		parts = append(parts, s.op.Operands[s.own])
		all.Loc = loc.Fuse(all.Loc, s.op.Loc)
	}
	b.At = &all
	d := strings.Index(first.term, l)
	w := b.Value("concatenate", parts, []types.Named{attr("dim", types.Int{V: int64(d)})})
	operands, terms := []*ir.Value{first.op.Operands[shared], w}, []string{common, first.term}
	if shared == 1 {
		slices.Reverse(operands)
		slices.Reverse(terms)
	}
	at := strings.Index(first.output, l)
	result := *first.op.Out(0)
	result.Shape = slices.Clone(result.Shape)
	result.Shape[at] = w.Tensor().Shape[d]
	attrs := append(kept(first.op, "equation"), attr("equation", equationText(terms, first.output)))
	y := b.Value("einsum", operands, attrs, &result)
	shape, ok := sizes(&result)
	if !ok || b.Err() != nil {
		b.Undo()
		return false
	}
	start := int64(0)
	for _, s := range group {
		n, _ := s.op.Out(0).Shape[at].Int()
		c := whole(shape)
		c.start[at], c.limit[at] = start, start+n
		start += n
		b.At = s.op
		v := slice(b, y, c)
		if b.Err() != nil {
			return false
		}
		pass.Replace(s.op, v)
	}
	return true
}

// productTime weighs a product of so many FLOP and bytes on m, in seconds, by the rate of the tensor cores and the bandwidth.
func productTime(m *machine.Machine, elem types.Elem, flop, moved int64) float64 {
	return max(float64(flop)/m.Rate(true, elem, ""), float64(moved)/m.Reach()) + m.Start()
}
