package verify

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// state checks the attributes dm.state of o's results; false after a report.
func (v *verifier) state(o *ir.Op) bool {
	a, _ := o.Attr("function_type").(types.TypeAttr)
	sig, ok := a.T.(*types.Func)
	if !ok {
		return true
	}
	taken := map[int64]int{}
	for i, out := range sig.Out {
		attr := op.StateAttrOf(o, i)
		if attr == nil {
			continue
		}
		span := origin.SignatureAttrSpan(o, v.m.Src, "res_attrs", i, op.StateAttr)
		n, ok := attr.(types.Int)
		switch {
		case !ok:
			v.unknownState(o, span, attr)
			return false
		case n.V < 0 || n.V >= int64(len(sig.In)):
			v.report("DM192", span, "dm.state is argument %d, but the function has %s", n.V, diag.Count(len(sig.In), "argument"))
			return false
		}
		name := argName(o, int(n.V))
		if first, twice := taken[n.V]; twice {
			d := v.report("DM192", span, "%s is the state of two results", name)
			d.Help = "a step gives each argument one next value: remove one of them"
			d.Related = []diag.Related{{Span: origin.SignatureAttrSpan(o, v.m.Src, "res_attrs", first, op.StateAttr), Message: "the other result"}}
			return false
		}
		taken[n.V] = i
		if in := sig.In[n.V]; !types.Compatible(in, out) {
			d := v.report("DM192", span, "the result has type %s, but %s, whose next value it is, has type %s", out, name, in)
			d.Help = "the result of one step is the argument of the next: give both the same type"
			d.Related = []diag.Related{{Span: v.argSpan(o, int(n.V)), Message: "the argument"}}
			return false
		}
	}
	return true
}

// unknownState reports a dm.state that is no argument's name.
func (v *verifier) unknownState(f *ir.Op, span source.Span, attr types.Attr) {
	name, ok := attr.(types.Str)
	if !ok {
		return // reported as a value that it cannot have
	}
	var names []string
	if b := f.Body(0); b != nil {
		for _, a := range b.Args {
			names = append(names, strings.TrimPrefix(a.Name, "%"))
		}
	}
	bare := strings.TrimPrefix(string(name), "%")
	d := v.report("DM192", span, "the function has no argument %%%s", clip(bare))
	near := diag.Suggest(bare, names)
	for _, n := range names {
		if n == bare {
			d.Message, near = "dm.state names an argument without its %", n
		}
	}
	switch {
	case near != "":
		d.Help = "write " + types.Str(near).String()
		if s := v.m.Src; s != nil && s.Slice(span) == attr.String() {
			d.Fixes = []diag.Fix{{Title: "Name the argument %" + near, Safe: true, Edits: []diag.Edit{{Span: span, Text: types.Str(near).String()}}}}
		}
	case len(names) > 0:
		d.Help = "its arguments are " + clip(strings.Join(names, ", "))
	}
}

func argName(f *ir.Op, i int) string {
	if b := f.Body(0); b != nil && i < len(b.Args) && b.Args[i].Name != "" {
		return b.Args[i].Name
	}
	return "the argument"
}

func (v *verifier) argSpan(f *ir.Op, i int) source.Span {
	if t := origin.Tree(f); t != nil && t.Func != nil && i < len(t.Func.Args) {
		return t.Abs(t.Func.Args[i].Type)
	}
	return f.Head
}
