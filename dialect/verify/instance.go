package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// mismatch reports the operand of o that f does not take: the size that a symbol has here, and the operand that it has
// another one from.
func (v *verifier) mismatch(o *ir.Op, f *ir.Func, b types.Binding, m *types.Mismatch) {
	x := o.Operands[m.Param]
	d := v.report("DM188", origin.OperandSpan(o, m.Param), "%s has type %s, but @%s takes %s", operandText(x), x.Type, f.Name, f.Args[m.Param].Type)
	d.Related = signature(f)
	if m.Type {
		return
	}
	var all, elsewhere []string
	for _, s := range m.Want.Symbols() {
		is, bound := b.Sizes[s]
		if !bound {
			d.Message += fmt.Sprintf(", and no %s makes %s equal to %s", s, m.Want, m.Have)
			d.Help = fmt.Sprintf("pass a value whose size here is %s", m.Want)
			return
		}
		at := b.Sites[s]
		where := fmt.Sprintf("%s is %s", s, is)
		all = append(all, where)
		if at != m.Site {
			where += fmt.Sprintf(", %s of %s", sizeText(at), operandText(o.Operands[at.Param]))
			elsewhere = append(elsewhere, fmt.Sprintf("%s of %s", sizeText(at), operandText(o.Operands[at.Param])))
			d.Related = append(d.Related, diag.Related{Span: origin.OperandSpan(o, at.Param), Message: where})
		}
	}
	if len(all) == 0 {
		return
	}
	d.Message += fmt.Sprintf(": where %s, %s is %s, not %s", strings.Join(all, " and "), sizeText(m.Site), m.Want.Subst(b.Sizes), m.Have)
	if len(elsewhere) > 0 {
		d.Help = fmt.Sprintf("pass values of which %s and %s of %s agree", strings.Join(elsewhere, ", "), sizeText(m.Site), operandText(x))
	}
}

// sizeText is what a site is called beside its value.
func sizeText(s types.Site) string {
	text := fmt.Sprintf("dimension %d", s.Size)
	if s.Path != "" {
		text += " of member " + strings.TrimPrefix(s.Path, ".")
	}
	return text
}

// returned reports that result i of the call o is declared with another type than f returns.
func (v *verifier) returned(o *ir.Op, f *ir.Func, b types.Binding, i int, gives types.Type) {
	r := o.Results[i]
	d := v.report("DM188", o.Head, "%s is declared as %s, but @%s returns %s", resultName(r), r.Type, f.Name, gives)
	d.Related = signature(f)
	if where := Where(b.Sizes); where != "" && !types.Equal(gives, f.Results[i]) {
		d.Message += " where " + where
	}
	if d.Fixes = resultFix(v.m.Src, o, i, gives); d.Fixes != nil {
		d.Help = "declare the result as what the function returns for these operands"
	}
}

// Where says what named symbols stand for: "k is 16 and m is 8"; "" for none.
func Where(sizes map[string]dim.Dim) string {
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(sizes)) {
		if !dim.Sym(s).IsUnnamed() {
			parts = append(parts, fmt.Sprintf("%s is %s", s, sizes[s]))
		}
	}
	return diag.List(parts)
}

// Instances are functions with symbols in the sizes that calls give these: a rule that holds for symbols may fail for
// numbers, and a size that a function returns without a name follows from its body. Each is checked once.
type Instances struct {
	m     *ir.Module
	bind  map[string]int64
	known map[string]*Instance
	begun map[string]bool // functions of which an instance is being checked
}

// Instance is a function in the sizes of a call.
type Instance struct {
	Sizes   map[string]dim.Dim
	Results []types.Type    // what it returns
	Failure *Failure        // nil where all rules hold
	Uses    map[string]bool // the names of the functions that it is made of, its own among them
}

// Failure is a rule that an instance breaks.
type Failure struct {
	Op        *ir.Op // that breaks it, a copy of the function's own
	Code      string
	Msg, Help string
}

// NewInstances are those of m, with sizes for the symbols that calls leave open.
func NewInstances(m *ir.Module, bind map[string]int64) *Instances {
	return &Instances{m: m, bind: bind, known: map[string]*Instance{}, begun: map[string]bool{}}
}

// mostInstances bounds what is followed.
const mostInstances = 1 << 12

// Forget drops the instances that the function called name is part of.
func (x *Instances) Forget(name string) {
	maps.DeleteFunc(x.known, func(_ string, i *Instance) bool { return i.Uses[name] })
}

// Of is the instance that o, a call or a gradient, makes of its function; nil where the function has no symbols, where
// there is none of its name or it does not take o's operands, which is said elsewhere.
func (x *Instances) Of(o *ir.Op) *Instance {
	if o.Name != op.Call && o.Name != op.Grad || o.Bad {
		return nil
	}
	f := x.m.Func(o.Str("callee"))
	if f == nil || f.Op.Bad || f.Body == nil || len(f.Op.Regions[0].Blocks) != 1 || !op.Generic(f) || len(o.Operands) < len(f.Args) ||
		slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return isUnknown(v) }) {
		return nil
	}
	b, mismatch := op.Bound(f, ir.Types(o.Operands), x.bind)
	if mismatch != nil {
		return nil
	}
	var key strings.Builder
	key.WriteString(f.Name)
	for _, s := range slices.Sorted(maps.Keys(b.Sizes)) {
		fmt.Fprintf(&key, " %s=%s", s, b.Sizes[s])
	}
	i, known := x.known[key.String()]
	if !known && (x.begun[f.Name] || len(x.known) >= mostInstances) { // what calls itself in other sizes has no end of instances
		return nil
	}
	if !known {
		i = &Instance{Sizes: b.Sizes, Results: sized(f.Results, b.Sizes), Uses: map[string]bool{f.Name: true}}
		x.known[key.String()] = i // a function that calls itself finds the beginning of it
		x.begun[f.Name] = true
		x.check(i, f)
		delete(x.begun, f.Name)
	}
	return i
}

func sized(ts []types.Type, sizes map[string]dim.Dim) []types.Type {
	out := make([]types.Type, len(ts))
	for i, t := range ts {
		out[i] = types.Sized(t, sizes)
	}
	return out
}

// check fills in what is true of i, which is f in sizes.
func (x *Instances) check(i *Instance, f *ir.Func) {
	wrong := false
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		if called := x.Of(o); called != nil {
			maps.Copy(i.Uses, called.Uses)
			wrong = wrong || called.Failure != nil || x.Problem(o, called) != nil
		}
		return !wrong
	})
	if wrong { // in any sizes, which is said in f
		return
	}
	c := f.Clone()
	op.Resize(c, i.Sizes)
	fail := func(o *ir.Op, code, msg, help string) {
		if i.Failure == nil {
			i.Failure = &Failure{Op: o, Code: code, Msg: msg, Help: help}
		}
	}
	Complete(c.Body.Ops, func(o *ir.Op) ([]types.Type, bool) {
		if o.Name != op.Call {
			return Infer(o)
		}
		if called := x.Of(o); called != nil {
			return called.Results, true
		}
		return nil, false
	})
	v := &verifier{m: x.m}
	ir.Walk(c.Body.Ops, func(o *ir.Op) bool {
		if o.Name == op.Return { // compared with what is returned in these sizes
			return true
		}
		v.diags = nil
		if v.op(o); len(v.diags) > 0 {
			d := v.diags[0]
			fail(o, d.Code, d.Message, d.Help)
			return false
		}
		called := x.Of(o)
		if called == nil {
			return true
		}
		maps.Copy(i.Uses, called.Uses)
		if e := called.Failure; e != nil {
			fail(e.Op, e.Code, inside(o, called)+e.Msg, e.Help)
		}
		return true
	})
	x.m.Work.Add("verify", len(c.Body.Ops))
	last := c.Body.Terminator()
	if last == nil || last.Name != op.Return || len(last.Operands) != len(i.Results) {
		return
	}
	for k, v := range last.Operands {
		if gives := i.Results[k]; !types.Compatible(v.Type, gives) {
			fail(last, "DM187", fmt.Sprintf("%s is %s, and the function is declared to return %s", operandText(v), v.Type, gives), "")
		}
		i.Results[k] = v.Type
	}
}

// inside says in which function, and in which sizes, a rule fails that o breaks by its call.
func inside(o *ir.Op, i *Instance) string {
	text := "in @" + o.Str("callee")
	if where := Where(i.Sizes); where != "" {
		text += ", where " + where
	}
	return text + ": "
}

// Problem is what o, a call, breaks in the function that it calls, and whether the types declared for its results are
// those that it returns; nil where there is nothing to say. The fixes of the diagnostic are of the call.
func (x *Instances) Problem(o *ir.Op, i *Instance) *diag.Diagnostic {
	if e := i.Failure; e != nil {
		d := diag.New("DM188", diag.Error, o.Head, inside(o, i)+e.Msg)
		if d.Help = e.Help; d.Help == "" {
			d.Help = "pass operands of other sizes, or change the function"
		}
		if t := origin.Tree(e.Op); t != nil {
			d.Related = []diag.Related{{Span: t.Head(), Message: "the op that does not work in these sizes"}}
		}
		return &d
	}
	if len(o.Results) < len(i.Results) {
		return nil
	}
	for k, gives := range i.Results {
		if types.Compatible(o.Results[k].Type, gives) {
			continue
		}
		v := &verifier{m: x.m}
		v.returned(o, x.m.Func(o.Str("callee")), types.Binding{Sizes: i.Sizes}, k, gives)
		return &v.diags[0]
	}
	return nil
}
