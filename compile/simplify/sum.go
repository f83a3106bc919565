package simplify

import (
	"slices"
	"strings"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
)

func sumRule() Rule {
	return Rule{
		Name: "sum-of-contractions",
		Doc: "A sum of contractions of one equation, as the gradient by a tensor that several others were multiplied with, is one contraction of what they read, concatenated along a letter that is summed over, " +
			"where the machine's predicted time is less: writing and reading the partial results against writing the concatenations. Concatenating neighbouring slices of one tensor costs nothing.",
		Ops: []string{"add"}, apply: sumMerged,
	}
}

// summand is a contraction in a sum, its letters named as in the first one.
type summand struct {
	op    *ir.Op
	terms [2]string
}

func sumMerged(r *rewriter, o *ir.Op) bool {
	if o.Out(0) == nil || inSum(o) {
		return false
	}
	var sums []summand
	var rest []*ir.Value
	var first *op.Equation
	for _, v := range addends(o.Results[0], true) {
		s, e := summandOf(v, first)
		if e == nil || len(sums) > 0 && (!sameAttrs(s.op, sums[0].op) || s.op.In(0).Elem != sums[0].op.In(0).Elem || s.op.In(1).Elem != sums[0].op.In(1).Elem) {
			rest = append(rest, v)
			continue
		}
		if first == nil {
			first = e
		}
		sums = append(sums, s)
	}
	if len(sums) < 2 || !near(o, sums[0].op.Results[0]) {
		return false
	}
	for _, l := range split(first.Letters) {
		if !first.Contracted(l[0]) || !strings.Contains(sums[0].terms[0], l) || !strings.Contains(sums[0].terms[1], l) || !differIn(sums, l) {
			continue
		}
		if r.sumPays(sums, l) && joinSum(o, sums, rest, first, l) {
			return true
		}
	}
	return false
}

// inSum reports whether o is part of a larger sum, which is matched instead.
func inSum(o *ir.Op) bool {
	v := o.Results[0]
	return single(v) && v.Uses[0].Op.Name == "dm.add" && sameShape(o.Out(0), v.Uses[0].Op.Out(0)) && v.Uses[0].Op.In(1-v.Uses[0].Index) != nil &&
		sameShape(o.Out(0), v.Uses[0].Op.In(1-v.Uses[0].Index))
}

// summandOf is v as a contraction of the first one's equation, which is its own
// where there is no first; nil for anything else.
func summandOf(v *ir.Value, first *op.Equation) (summand, *op.Equation) {
	o := from(v, "einsum")
	if o == nil || !single(v) || len(o.Operands) != 2 {
		return summand{}, nil
	}
	e := pattern.Equation(o)
	if e == nil || e.Diagonal() {
		return summand{}, nil
	}
	s := summand{o, [2]string(e.Inputs)}
	if first == nil {
		return s, e
	}
	// Letters by their place in the output, then in the operands.
	names := map[string]string{}
	for i, text := range append([]string{e.Output}, e.Inputs...) {
		like := append([]string{first.Output}, first.Inputs...)[i]
		if len(text) != len(like) {
			return summand{}, nil
		}
		for d, l := range split(text) {
			if names[l] == "" {
				names[l] = like[d : d+1]
			}
			if names[l] != like[d:d+1] {
				return summand{}, nil
			}
		}
	}
	s.terms = [2]string(first.Inputs)
	return s, e
}

// differIn reports whether the summands' tensors agree in all sizes but that of l.
func differIn(sums []summand, l string) bool {
	for _, s := range sums {
		for i, term := range s.terms {
			for d, m := range split(term) {
				if m != l && !s.op.In(i).Shape[d].Equal(sums[0].op.In(i).Shape[d]) {
					return false
				}
			}
		}
	}
	return true
}

// sumPays compares the predicted times. A partial result is written once and
// read once where the next contraction adds to it.
func (r *rewriter) sumPays(sums []summand, l string) bool {
	m := r.Machine
	if m == nil {
		return false
	}
	elem := sums[0].op.In(0).Elem
	out, ok := sums[0].op.Out(0).Bytes().Int()
	if !ok {
		return false
	}
	var flop, read int64
	var separate, merged float64
	time := func(flop, moved int64) float64 { return productTime(m, elem, flop, moved) }
	for i, s := range sums {
		a, ok := s.op.In(0).Bytes().Int()
		b, ok2 := s.op.In(1).Bytes().Int()
		n, ok3 := op.FLOP(s.op).Int()
		if !ok || !ok2 || !ok3 {
			return false
		}
		partial := out
		if i == 0 {
			partial = 0
		}
		separate += time(n, a+b+out+partial)
		flop, read = flop+n, read+a+b
	}
	merged = time(flop, read+out)
	for i := range 2 {
		var group []side
		var bytes int64
		for _, s := range sums {
			n, _ := s.op.In(i).Bytes().Int()
			bytes += n
			group = append(group, side{op: s.op, own: i, term: s.terms[i]})
		}
		if !free(group, l) {
			merged += float64(2*bytes)/m.Reach() + m.Start()
		}
	}
	return merged < separate
}

// joinSum builds the one contraction in place of the sum o, and adds the rest.
func joinSum(o *ir.Op, sums []summand, rest []*ir.Value, e *op.Equation, l string) bool {
	b := pass.Before(o)
	var operands []*ir.Value
	for i := range 2 {
		var parts []*ir.Value
		for _, s := range sums {
			parts = append(parts, s.op.Operands[i])
		}
		d := strings.Index(sums[0].terms[i], l)
		operands = append(operands, b.Value("concatenate", parts, []types.Named{attr("dim", types.Int{V: int64(d)})}))
	}
	attrs := append(kept(sums[0].op, "equation"), attr("equation", equationText(slices.Clone(e.Inputs), e.Output)))
	y := b.Value("einsum", operands, attrs, sums[0].op.Results[0].Type)
	for _, v := range rest {
		y = b.Binary("add", y, v)
	}
	return built(b, o, y)
}
