// Package patterns makes the pictures of which elements the sparse arguments of a function, and its constants, store: of a matrix that is
// given, else of a pattern that is drawn.
package patterns

import (
	"errors"
	"fmt"
	"strings"

	"dmir/analysis/report"
	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Given is a matrix that is given for an argument.
type Given struct {
	File     string
	Elements *sparse.COO
}

// Of are the pictures of fn with the sizes of bind; given are matrices by the names of arguments, without "%".
func Of(fn *ir.Func, bind map[string]int64, given map[string]Given) (out []report.PatternAt) {
	sizes := op.Bindings(fn, bind)
	for i, v := range fn.Args {
		for _, m := range types.Members(v.Type) {
			t := m.Tensor
			if t.Format == nil {
				continue
			}
			p := argument(v, m, sizes)
			if g, ok := given[strings.TrimPrefix(v.Name, "%")]; ok && t == v.Type {
				p.From = "counted from " + g.File
				fill(&p, g.Elements.Spy(), g.Elements)
			} else {
				draw(&p, fn, i, t.Bound(sizes))
			}
			out = append(out, report.PatternAt{Pattern: p, Span: v.Span})
		}
	}
	ir.Walk(fn.Body.Ops, func(o *ir.Op) bool {
		if p := packed(o, sizes); p != nil {
			out = append(out, report.PatternAt{Pattern: *p, Span: o.Span})
		}
		return true
	})
	return out
}

// OfValue is the picture of v, a sparse argument of fn whose pattern the text states or a constant, nil where the text says nothing of
// what it stores.
func OfValue(fn *ir.Func, v *ir.Value, bind map[string]int64) *report.Pattern {
	sizes := op.Bindings(fn, bind)
	t := v.Tensor()
	switch {
	case t == nil || t.Format == nil:
		return nil
	case v.Op != nil:
		return packed(v.Op, sizes)
	case v.Block != fn.Body || op.ArgAttr(fn, v.Index, op.PatternAttr) == nil:
		return nil
	}
	p := argument(v, types.Members(v.Type)[0], sizes)
	draw(&p, fn, v.Index, t.Bound(sizes))
	return &p
}

// argument is the picture of the member m of an argument, without its cells.
func argument(v *ir.Value, m types.Member, sizes map[string]int64) report.Pattern {
	return report.Pattern{Name: op.MemberName(v.Name, m), Kind: report.PatternArgument, Type: m.Tensor.Bound(sizes).String()}
}

// packed is the picture of the sparse tensor that o packs from constants, nil where it does not.
func packed(o *ir.Op, sizes map[string]int64) *report.Pattern {
	x, v := constant(o, sizes)
	if x == nil {
		return nil
	}
	c, err := x.Unpack()
	if err != nil {
		return nil
	}
	p := report.Pattern{Name: v.Name, Kind: report.PatternConstant, Type: x.Type.String(), From: "constants of the program"}
	fill(&p, c.Spy(), c)
	return &p
}

// draw fills in the pattern that argument i of fn, of type t, begins with.
func draw(p *report.Pattern, fn *ir.Func, i int, t *types.Tensor) {
	stated, ok := op.StatedPattern(op.ArgAttr(fn, i, op.PatternAttr))
	if !ok {
		p.Reason = "its dm.pattern is none"
		return
	}
	p.From = "drawn: " + strings.ReplaceAll(stated.Kind, "_", " ")
	spy, err := sparse.DrawSpy(t, stated, tensor.NewStream(0, uint64(i)))
	if err != nil {
		p.Reason = err.Error()
		var bad *sparse.Error
		if errors.As(err, &bad) && bad.Help != "" {
			p.Reason += ": " + bad.Help
		}
		return
	}
	fill(p, spy, nil)
	p.Stored, _ = t.Values().Int()
	if spy.Part < 1 {
		p.From += fmt.Sprintf(", at 1:%.0f", 1/spy.Part)
	}
	if shape, ok := sparse.Numbers(t.Shape); ok {
		p.Shape = shape
	}
}

// fill takes the cells of a picture and, where they are there, the elements.
func fill(p *report.Pattern, s *sparse.Spy, x *sparse.COO) {
	if s == nil {
		p.Reason = "its places are too many to count"
		return
	}
	p.Down, p.Across, p.Counts = s.Down, s.Across, s.Counts
	if x == nil {
		return
	}
	p.Stored = int64(x.Len())
	for _, n := range x.Shape {
		p.Shape = append(p.Shape, int64(n))
	}
	c := &op.Counted{Stored: p.Stored}
	x.CountRows(c)
	p.Empty, p.Median, p.Longest, p.Blocks = c.Empty, c.Median, c.Longest, c.Blocks
}

// mostConstant bounds the elements of constants that are pictured.
const mostConstant = 1 << 22

// constant is the sparse tensor that o packs from constants, nil where it does not.
func constant(o *ir.Op, sizes map[string]int64) (*sparse.Tensor, *ir.Value) {
	if o.Name != op.Pack || len(o.Results) != 1 {
		return nil, nil
	}
	t, _ := o.Results[0].Type.(*types.Tensor)
	if t == nil || t.Format == nil {
		return nil, nil
	}
	x := &sparse.Tensor{Type: t.Bound(sizes)}
	for _, v := range o.Operands {
		v = op.Source(v)
		if v.Op == nil || v.Op.Name != op.Constant {
			return nil, nil
		}
		d, _ := v.Op.Attr("value").(*types.Dense)
		part := v.Tensor()
		if d == nil || part == nil || part.Rank() != 1 || d.Len() > mostConstant {
			return nil, nil
		}
		all, err := tensor.Of(d)
		if err != nil {
			return nil, nil
		}
		x.Parts = append(x.Parts, all)
	}
	if x.Check() != nil {
		return nil, nil
	}
	return x, o.Results[0]
}
