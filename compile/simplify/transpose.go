package simplify

import (
	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
)

func transposeRules() []Rule {
	return []Rule{
		{
			Name: "transpose-into-einsum", Doc: "An einsum reads the operand of a transpose, its letters in the order that they have there.",
			Ops: []string{"einsum"}, apply: transposeInto,
		},
		{
			Name: "einsum-transposed", Doc: "A transpose of an einsum that nothing else uses is an einsum that writes its letters in that order.",
			Ops: []string{"transpose"}, apply: transposeOf,
		},
		{
			Name: "merged-into-einsum", Doc: "An einsum whose operand was transposed and then had dimensions merged reads the original: the merged letter becomes several. So attention's heads are read where they lie.",
			Ops: []string{"einsum"}, apply: mergedInto,
		},
		{
			Name: "split-into-einsum", Doc: "An einsum whose operand was transposed and then had dimensions split reads the original with these split.",
			Ops: []string{"einsum"}, apply: splitInto,
		},
		{
			Name: "einsum-parted", Doc: "An einsum whose result's dimensions are split and then transposed writes the split letters itself.",
			Ops: []string{"transpose"}, apply: partedOf,
		},
	}
}

func transposeInto(_ *rewriter, o *ir.Op) bool {
	for i := range o.Operands {
		if t, equation := pattern.TransposedOperand(o, i); t != nil && plain(t) {
			o.SetOperand(i, t.Operands[0])
			o.SetAttr("equation", types.Str(equation))
			return true
		}
	}
	return false
}

func transposeOf(_ *rewriter, o *ir.Op) bool {
	inner, equation := pattern.TransposedResult(o)
	if inner == nil || !plain(inner) || !single(o.Operands[0]) || !near(o, o.Operands[0]) {
		return false
	}
	b := pass.Before(o)
	b.At = inner
	attrs := append(kept(inner, "equation"), attr("equation", types.Str(equation)))
	return built(b, o, b.Value("einsum", inner.Operands, attrs, o.Results[0].Type))
}

func mergedInto(_ *rewriter, o *ir.Op) bool {
	e := pattern.Equation(o)
	if e == nil || e.Diagonal() || len(o.Operands) != 2 {
		return false
	}
	for i, v := range o.Operands {
		merge := from(v, "reshape")
		if merge == nil || !single(v) {
			continue
		}
		t := from(merge.Operands[0], "transpose")
		if t == nil || !single(t.Results[0]) {
			continue
		}
		s, ok := splitOf(e, e.Inputs[i], merge.Out(0), merge.In(0))
		if !ok {
			continue
		}
		b := pass.Before(o)
		y := s.parted(b, o, e, i, t.Results[0])
		if b.Err() != nil {
			b.Undo()
			continue
		}
		return built(b, o, b.Reshape(y, o.Out(0).Shape...))
	}
	return false
}

func splitInto(_ *rewriter, o *ir.Op) bool {
	e := pattern.Equation(o)
	if e == nil {
		return false
	}
	for i, v := range o.Operands {
		part := from(v, "reshape")
		if part == nil {
			continue
		}
		t := from(part.Operands[0], "transpose")
		if t == nil || part.In(0).Rank() >= part.Out(0).Rank() {
			continue
		}
		whole, ok := sizes(part.In(0))
		parts, ok2 := sizes(part.Out(0))
		if !ok || !ok2 {
			continue
		}
		groups, ok := factors(whole, parts)
		if !ok {
			continue
		}
		// The dimensions of the original in its own order, each in its parts.
		at := make([]int, len(groups))
		for d, origin := range dimsOf(t, len(groups)) {
			at[origin] = d
		}
		letters := ""
		var shape []dim.Dim
		for _, d := range at {
			for _, g := range groups[d] {
				letters += e.Inputs[i][g : g+1]
				shape = append(shape, part.Out(0).Shape[g])
			}
		}
		b := pass.Before(o)
		x := b.Reshape(t.Operands[0], shape...)
		if b.Err() != nil {
			b.Undo()
			continue
		}
		e.Inputs[i] = letters
		o.SetOperand(i, x)
		setEquation(o, e.Inputs, e.Output)
		return true
	}
	return false
}

func partedOf(_ *rewriter, o *ir.Op) bool {
	part := from(o.Operands[0], "reshape")
	if part == nil || !single(part.Results[0]) {
		return false
	}
	inner := from(part.Operands[0], "einsum")
	if inner == nil || !single(inner.Results[0]) || inner.Parent != o.Parent || part.Parent != o.Parent || len(inner.Operands) != 2 {
		return false
	}
	e := pattern.Equation(inner)
	if e == nil || e.Diagonal() {
		return false
	}
	s, ok := splitOf(e, e.Output, part.In(0), part.Out(0))
	if !ok {
		return false
	}
	b := pass.Before(part)
	b.At = inner
	return built(b, part, s.parted(b, inner, e, -1, nil))
}
