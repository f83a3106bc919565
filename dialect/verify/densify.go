package verify

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// densify offers to compute o, which takes no such sparse tensors, of dense ones: the operand
// that the problem is about, or all of them. A result that is written as a sparse tensor is
// stored as one again.
func (v *verifier) densify(o *ir.Op, operand int, d *diag.Diagnostic) {
	t := origin.Tree(o)
	if t == nil || t.Form != ast.Pretty || t.Sig.Empty() || !t.Loc.Empty() || len(t.Regions) > 0 || len(o.Results) != 1 || len(t.Operands) != len(o.Operands) {
		return
	}
	sparse := func(x *ir.Value) bool { s, ok := x.Type.(*types.Tensor); return ok && s.Format != nil }
	var all []int
	for i, x := range o.Operands {
		if sparse(x) {
			all = append(all, i)
		}
	}
	tries := [][]int{all}
	if slices.Contains(all, operand) && len(all) > 1 {
		tries = [][]int{{operand}, all}
	}
	for _, these := range tries {
		if len(these) > 0 && v.densified(o, t, these, d) {
			return
		}
	}
}

// densified is densify of those operands; false: o does not take them either.
func (v *verifier) densified(o *ir.Op, t *ast.Op, these []int, d *diag.Diagnostic) bool {
	c := *o
	c.Operands, c.Attrs = slices.Clone(o.Operands), slices.Clone(o.Attrs)
	r := *o.Results[0]
	r.Type = dense(r.Type)
	r.Op, c.Results = &c, []*ir.Value{&r}
	names := map[*ir.Value]string{}
	taken := v.m.Src.Text()
	unused := func(name string) string { // for the dense tensor in place of the value called name
		name += "_dense"
		if name[1] >= '0' && name[1] <= '9' { // a number is all of its name
			name = "%dense"
		}
		own := name
		for n := 1; strings.Contains(taken, own); n++ {
			own = fmt.Sprint(name, n)
		}
		taken += own
		return own
	}
	for _, i := range these {
		x := o.Operands[i]
		if x.Name == "" {
			return false
		}
		if names[x] == "" {
			names[x] = unused(x.Name)
		}
		y := *x
		y.Name, y.Type = names[x], dense(x.Type)
		c.Operands[i] = &y
	}
	inferred, ok := Infer(&c)
	if !ok || len(inferred) != 1 {
		return false
	}
	r.Type = inferred[0]
	if Op(&c) != nil {
		return false
	}
	before := v.m.Src.Text()[:t.Off]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	if strings.TrimLeft(line, " \t") != "" { // it begins no line
		return false
	}
	fix := diag.Fix{Title: "Make dense: " + listed(o, these)}
	begin := ""
	for _, i := range these {
		x := o.Operands[i]
		if first := slices.IndexFunc(o.Operands, func(y *ir.Value) bool { return y == x }); first == i || !slices.Contains(these, first) {
			begin += fmt.Sprintf("%s = dm.convert_format %s : (%s) -> %s\n%s", names[x], x.Name, x.Type, dense(x.Type), line)
		}
		fix.Edits = append(fix.Edits, diag.Edit{Span: t.Abs(t.Operands[i].Span), Text: names[x]})
	}
	fix.Edits = append(fix.Edits, diag.Edit{Span: source.Span{Start: t.Off, End: t.Off}, Text: begin})
	signature := (&types.Func{In: ir.Types(c.Operands), Out: []types.Type{r.Type}}).String()
	if want := o.Results[0].Type; !op.Compatible(r.Type, want) {
		if _, ok := want.(*types.Tensor); !ok || len(t.Results) != 1 || o.Results[0].Name == "" {
			return false
		}
		name := unused(o.Results[0].Name)
		fix.Edits = append(fix.Edits, diag.Edit{Span: t.Abs(t.Results[0].Span), Text: name})
		signature += fmt.Sprintf("\n%s%s = dm.convert_format %s : (%s) -> %s", line, o.Results[0].Name, name, r.Type, want)
	}
	fix.Edits = append(fix.Edits, diag.Edit{Span: t.Abs(t.Sig), Text: signature})
	slices.SortStableFunc(fix.Edits, func(a, b diag.Edit) int { return int(a.Span.Start) - int(b.Span.Start) })
	d.Fixes = []diag.Fix{fix}
	return true
}

// listed are the names of operands.
func listed(o *ir.Op, these []int) string {
	var out []string
	for _, i := range these {
		if !slices.Contains(out, o.Operands[i].Name) {
			out = append(out, o.Operands[i].Name)
		}
	}
	return strings.Join(out, ", ")
}

// dense is t without a format.
func dense(t types.Type) types.Type {
	s, ok := t.(*types.Tensor)
	if !ok || s.Format == nil {
		return t
	}
	r := *s
	r.Format = nil
	return &r
}
