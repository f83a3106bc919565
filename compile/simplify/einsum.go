package simplify

import (
	"slices"
	"strings"

	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
)

func einsumRules() []Rule {
	return []Rule{
		{
			Name: "matmul-to-einsum", Doc: "A matrix product is an einsum, so that what follows sees one form of contraction. Batch dimensions of size 1 that broadcast leave the operand.",
			Ops: []string{"matmul"}, apply: matmulToEinsum,
		},
		{
			Name: "einsum-ellipsis", Doc: "An ellipsis in an equation is the letters that it stands for; batch dimensions of size 1 that broadcast leave the operand.",
			Ops: []string{"einsum"}, apply: einsumEllipsis,
		},
		{
			Name: "einsum-of-one", Doc: "An einsum of one tensor is a transpose or, where it sums, a reduction.",
			Ops: []string{"einsum"}, apply: einsumOfOne,
		},
		{
			Name: "einsum-of-factors", Doc: "An einsum of two tensors that sums nothing, or along dimensions of size 1 alone, is an element-wise product: of outer products and of products row by row, tensor cores would use one step in the depth of a tile.",
			Ops: []string{"einsum"}, apply: einsumOfFactors,
		},
		{
			Name: "einsum-in-steps", Doc: "An einsum of more than two tensors is contracted in pairs, in its order from left to right; what passes between the steps keeps the accumulator's type.",
			Ops: []string{"einsum"}, apply: einsumInSteps,
		},
	}
}

const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// unused is n letters that text lacks; ok is false where there are not so many.
func unused(text string, n int) (letters []string, ok bool) {
	for _, l := range split(alphabet) {
		if len(letters) < n && !strings.Contains(text, l) {
			letters = append(letters, l)
		}
	}
	return letters, len(letters) == n
}

// split is the letters one by one; none for "".
func split(letters string) []string {
	if letters == "" {
		return nil
	}
	return strings.Split(letters, "")
}

func equationText(inputs []string, output string) types.Attr {
	return types.Str((&op.Equation{Inputs: inputs, Output: output}).String())
}

func setEquation(o *ir.Op, inputs []string, output string) {
	o.SetAttr("equation", equationText(inputs, output))
}

func einsumEllipsis(_ *rewriter, o *ir.Op) bool {
	if !strings.Contains(op.Str(o, "equation"), ".") {
		return false
	}
	e, xs := lettered(pass.Before(o), o)
	if e == nil {
		return false
	}
	for i, x := range xs {
		o.SetOperand(i, x)
	}
	setEquation(o, e.Inputs, e.Output)
	return true
}

// lettered is the equation of o, a contraction, with a letter for each dimension, and its operands without the batch dimensions
// of size 1 that broadcast; nil if there are too few letters.
func lettered(b *op.Builder, o *ir.Op) (*op.Equation, []*ir.Value) {
	e, kept := op.PlainEquation(o)
	if e == nil {
		return nil, nil
	}
	xs := slices.Clone(o.Operands)
	for i, dims := range kept {
		if len(dims) == o.In(i).Rank() {
			continue
		}
		shape := make([]dim.Dim, len(dims))
		for k, d := range dims {
			shape[k] = o.In(i).Shape[d]
		}
		xs[i] = b.Reshape(xs[i], shape...)
	}
	return e, xs
}

func matmulToEinsum(_ *rewriter, o *ir.Op) bool {
	b := pass.Before(o)
	e, xs := lettered(b, o)
	if e == nil {
		return false
	}
	attrs := append(kept(o, "transpose_a", "transpose_b"), attr("equation", equationText(e.Inputs, e.Output)))
	return built(b, o, b.Value("einsum", xs, attrs, o.Results[0].Type))
}

func einsumOfOne(_ *rewriter, o *ir.Op) bool {
	e := pattern.Equation(o)
	if e == nil || len(e.Inputs) != 1 || e.Diagonal() || o.In(0).Elem != o.Out(0).Elem {
		return false
	}
	in := e.Inputs[0]
	var sum []int
	rest := ""
	for d, l := range split(in) {
		if strings.Contains(e.Output, l) {
			rest += l
		} else {
			sum = append(sum, d)
		}
	}
	b := pass.Before(o)
	x := o.Operands[0]
	if len(sum) > 0 {
		if elem := o.In(0).Elem; elem == types.F8E4M3FN || elem == types.F8E5M2 {
			return false // which reduce does not take
		}
		x = b.Value("reduce", []*ir.Value{x}, append(kept(o, "equation"), attr("kind", types.Keyword("add")), attr("dims", op.IntList(sum...))))
	}
	if b.Err() != nil {
		b.Undo()
		return false
	}
	dims := make([]int, len(e.Output))
	for i, l := range split(e.Output) {
		dims[i] = strings.Index(rest, l)
	}
	return built(b, o, b.Transpose(x, dims...))
}

func einsumOfFactors(_ *rewriter, o *ir.Op) bool {
	e := pattern.Equation(o)
	if e == nil || len(e.Inputs) != 2 || e.Diagonal() || op.IsSparse(o) {
		return false
	}
	out := o.Out(0).Elem
	elem := out // of the product, which rounds once: it holds the operands
	for i, letters := range e.Inputs {
		for d, l := range split(letters) {
			if !strings.Contains(e.Output, l) && !o.In(i).Shape[d].Equal(dim.Const(1)) {
				return false
			}
		}
		if x := o.In(i).Elem; x != elem && x.Bytes() >= elem.Bytes() {
			elem = x
		}
	}
	switch {
	case elem.IsFloat() && elem.Bytes() < 4 && (elem.Bytes() < 2 || o.In(0).Elem != elem || o.In(1).Elem != elem || out != elem):
		elem = types.F32
	case !elem.IsFloat() && elem != out:
		return false
	}
	b := pass.Before(o)
	var factors [2]*ir.Value
	for i, letters := range e.Inputs {
		factors[i] = along(b, b.Convert(o.Operands[i], elem), letters, e.Output)
	}
	product := b.Value("mul", factors[:], kept(o, "equation", "accumulate", op.PrecisionAttr, "products"))
	if b.Err() != nil {
		b.Undo()
		return false
	}
	return built(b, o, b.Convert(product, out))
}

// along is x, whose dimensions have letters, with the dimensions of output in their order: of size 1 where x lacks one, and without
// those that output lacks, whose size is 1.
func along(b *op.Builder, x *ir.Value, letters, output string) *ir.Value {
	t, ok := x.Type.(*types.Tensor)
	if !ok {
		return x
	}
	var dims, rest []int // of x, in the order of output, and those that it lacks
	shape := make([]dim.Dim, len(output))
	for i, l := range split(output) {
		shape[i] = dim.Const(1)
		if d := strings.Index(letters, l); d >= 0 {
			dims, shape[i] = append(dims, d), t.Shape[d]
		}
	}
	for d, l := range split(letters) {
		if !strings.Contains(output, l) {
			rest = append(rest, d)
		}
	}
	return b.Reshape(b.Transpose(x, append(dims, rest...)...), shape...)
}

func einsumInSteps(_ *rewriter, o *ir.Op) bool {
	e := pattern.Equation(o)
	if e == nil || len(e.Inputs) < 3 || op.Str(o, "accumulate") == "f16" {
		return false
	}
	elem := o.In(0).Elem
	if elem.IsFloat() && elem.Bytes() < 4 {
		elem = types.F32
	}
	b := pass.Before(o)
	left := b.Convert(o.Operands[0], elem)
	letters := e.Inputs[0]
	for i, s := range e.Steps() {
		eq := equationText([]string{letters, e.Inputs[i+1]}, s.Out)
		left = b.Value("einsum", []*ir.Value{left, b.Convert(o.Operands[i+1], elem)}, append(kept(o, "equation"), attr("equation", eq)))
		letters = s.Out
	}
	if b.Err() != nil {
		b.Undo()
		return false
	}
	return built(b, o, b.Convert(left, o.Out(0).Elem))
}

// factors matches the dimensions of a shape with those of another one into
// which some of them were split: parts[d] are the dimensions of to that make up
// dimension d of from.
func factors(from, to []int64) (parts [][]int, ok bool) {
	at := 0
	for _, n := range from {
		var group []int
		product := int64(1)
		for at < len(to) && (len(group) == 0 || product < n) {
			group = append(group, at)
			product *= to[at]
			at++
		}
		if product != n || len(group) == 0 {
			return nil, false
		}
		parts = append(parts, group)
	}
	return parts, at == len(to)
}

// splitting is letters of an equation that become several.
type splitting map[string]struct {
	letters []string
	sizes   []dim.Dim
}

// splitOf returns how the letters of term split where its tensor, of the merged
// shape, is viewed in a shape with more dimensions.
func splitOf(e *op.Equation, term string, merged, parted *types.Tensor) (splitting, bool) {
	from, ok := sizes(merged)
	to, ok2 := sizes(parted)
	if !ok || !ok2 || len(term) != len(from) {
		return nil, false
	}
	groups, ok := factors(from, to)
	if !ok {
		return nil, false
	}
	s := splitting{}
	text := e.Letters
	for d, group := range groups {
		letter := term[d : d+1]
		if _, twice := s[letter]; twice {
			return nil, false
		}
		if len(group) == 1 {
			continue
		}
		letters, ok := unused(text, len(group)-1)
		if !ok {
			return nil, false
		}
		text += strings.Join(letters, "")
		entry := s[letter]
		entry.letters = append([]string{letter}, letters...)
		for _, i := range group {
			entry.sizes = append(entry.sizes, parted.Shape[i])
		}
		s[letter] = entry
	}
	return s, len(s) > 0
}

// term is the letters of one tensor after the splitting.
func (s splitting) term(letters string) string {
	out := ""
	for _, l := range split(letters) {
		if e, is := s[l]; is {
			l = strings.Join(e.letters, "")
		}
		out += l
	}
	return out
}

// shape is that of a tensor of those letters after the splitting.
func (s splitting) shape(letters string, t *types.Tensor) []dim.Dim {
	var out []dim.Dim
	for d, l := range split(letters) {
		if e, is := s[l]; is {
			out = append(out, e.sizes...)
		} else {
			out = append(out, t.Shape[d])
		}
	}
	return out
}

// parted builds the einsum o with letters split; operand given (or -1) is
// already so. The result has the split shape.
func (s splitting) parted(b *op.Builder, o *ir.Op, e *op.Equation, given int, v *ir.Value) *ir.Value {
	operands, terms := slices.Clone(o.Operands), make([]string, len(o.Operands))
	for i, x := range operands {
		terms[i] = s.term(e.Inputs[i])
		if i == given {
			operands[i] = v
			continue
		}
		operands[i] = b.Reshape(x, s.shape(e.Inputs[i], x.Tensor())...)
	}
	attrs := append(kept(o, "equation"), attr("equation", equationText(terms, s.term(e.Output))))
	return b.Value("einsum", operands, attrs, o.Out(0).With(s.shape(e.Output, o.Out(0))...))
}
