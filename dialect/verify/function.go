package verify

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/shard"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// function checks the end of a body and the attribute dm.bind; see FunctionOf for
// on and marked, which is nil for all ops.
func (v *verifier) function(o *ir.Op, marked []*ir.Op, on func() (*mesh.Mesh, *shard.Problem)) {
	switch bind := o.Attr(op.BindAttr).(type) {
	case nil:
	case types.Dict:
		for _, n := range bind {
			if i, ok := n.Value.(types.Int); !ok || i.V < 0 {
				v.report("DM191", origin.AttrSpan(o, v.m.Src, op.BindAttr), "dm.bind gives %s the size %s, which is not a non-negative integer", n.Name, clip(n.Value.String()))
				return
			}
		}
		if !v.bound(o, bind) {
			return
		}
	default:
		v.report("DM191", origin.AttrSpan(o, v.m.Src, op.BindAttr), "dm.bind is %s, not a dictionary of sizes", clip(bind.String()))
		return
	}
	if _, ok := op.LimitsOf(o); !ok {
		v.report("DM191", origin.AttrSpan(o, v.m.Src, op.SizesAttr), "dm.sizes is %s, no dictionary from symbols to their min and max", clip(o.Attr(op.SizesAttr).String())).Help = "write `dm.sizes = {n = {min = 2, max = 512}}`"
		return
	}
	if outside := op.BeyondLimits(o, op.Bindings(&ir.Func{Op: o}, nil)); outside != "" {
		v.report("DM191", origin.AttrSpan(o, v.m.Src, op.BindAttr), "%s", outside).Help = "give it another size"
		return
	}
	if !v.state(o) {
		return
	}
	v.pipeline(o, on)
	v.stages(o, marked)
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			v.endsFunction(o, b, marked)
		}
	}
}

func (v *verifier) endsFunction(f *ir.Op, b *ir.Block, marked []*ir.Op) {
	if marked == nil {
		marked = b.Ops
	}
	for _, o := range marked {
		if o.Name == op.Return && o.Parent == b && o != b.Terminator() {
			v.report("DM186", o.Head, "ops follow this return").Help = "move the return to the end of the block"
			return
		}
	}
	switch t := b.Terminator(); {
	case t == nil:
		v.report("DM186", f.Head, "a block of the function is empty").Help = "end it with return"
	case t.Name == op.Call || op.Of(t) != nil && t.Name != op.Yield:
		v.report("DM186", t.Head, "the function does not end in return").Help = "add return after this op"
	}
}

// returns compares the returned values with the signature of the function.
func (v *verifier) returns(o *ir.Op) {
	if o.Parent == nil || o.Parent.Region.Op.Name != op.Func {
		v.report("DM186", o.Head, "return is outside a function").Help = "regions of dm ops end in dm.yield"
		return
	}
	f := o.Parent.Region.Op
	a, _ := f.Attr("function_type").(types.TypeAttr)
	sig, ok := a.T.(*types.Func)
	if !ok || f.Bad {
		return
	}
	if len(o.Operands) != len(sig.Out) {
		d := v.report("DM187", o.Head, "%s returned, but the function has %s", diag.CountAre(len(o.Operands), "value"), diag.Count(len(sig.Out), "result"))
		d.Related = []diag.Related{{Span: f.Head, Message: "the function's signature"}}
		return
	}
	for i, x := range o.Operands {
		if !types.Compatible(x.Type, sig.Out[i]) {
			d := v.report("DM187", origin.OperandSpan(o, i), "%s has type %s, but the function returns %s", operandText(x), x.Type, sig.Out[i])
			d.Related = []diag.Related{{Span: f.Head, Message: "the function's signature"}}
			return
		}
	}
}

func operandText(v *ir.Value) string {
	if v.Name == "" {
		return "the value"
	}
	return v.Name
}

// call compares a call with its callee. Symbols are a function's own: those of
// the callee take the sizes of the operands.
func (v *verifier) call(o *ir.Op) {
	if _, ok := o.Attr("callee").(types.Symbol); !ok {
		v.report("DM188", o.Head, "the call names no function").Help = "write func.call @name(…)"
		return
	}
	f := v.m.Func(o.Str("callee"))
	if f == nil || f.Op.Bad {
		return
	}
	related := signature(f)
	if len(o.Operands) != len(f.Args) {
		v.report("DM188", o.Head, "@%s takes %s, but the call has %d", f.Name, diag.Count(len(f.Args), "operand"), len(o.Operands)).Related = related
		return
	}
	if len(o.Results) != len(f.Results) {
		v.report("DM188", o.Head, "@%s returns %s, but the call has %d", f.Name, diag.Count(len(f.Results), "result"), len(o.Results)).Related = related
		return
	}
	v.passed(o, f, len(o.Operands))
}

func signature(f *ir.Func) []diag.Related {
	return []diag.Related{{Span: f.Op.Head, Message: "the function's signature"}}
}

// passed compares the types of o's first operands and results with those of f's
// arguments and results, and gives what the symbols of f stand for; ok is false
// after a report.
func (v *verifier) passed(o *ir.Op, f *ir.Func, operands int) (bind map[string]dim.Dim, ok bool) {
	b, mismatch := types.Bind(ir.Types(f.Args), ir.Types(o.Operands[:operands]))
	if mismatch != nil {
		v.mismatch(o, f, b, mismatch)
		return nil, false
	}
	numbers := map[string]int64{}
	for s, d := range b.Sizes {
		if n, ok := d.Int(); ok {
			numbers[s] = n
		}
	}
	if outside := op.BeyondLimits(f.Op, numbers); outside != "" {
		v.report("DM188", o.Head, "%s", outside).Related = signature(f)
		return nil, false
	}
	for i, r := range o.Results[:len(f.Results)] {
		if gives := types.Sized(f.Results[i], b.Sizes); !types.Compatible(r.Type, gives) {
			v.returned(o, f, b, i, gives)
			return nil, false
		}
	}
	return b.Sizes, true
}

// grad compares a dm.grad with the function that it differentiates.
func (v *verifier) grad(o *ir.Op) {
	f := v.m.Func(o.Str("callee"))
	unknown := func(x *ir.Value) bool { return x.Type == types.Unknown }
	if f == nil || f.Op.Bad || slices.ContainsFunc(o.Operands, unknown) {
		return
	}
	related := signature(f)
	given := int(op.Int(o, "cotangents"))
	if n := len(o.Operands) - given; n != len(f.Args) {
		v.report("DM188", o.Head, "@%s takes %s, but dm.grad passes %d", f.Name, diag.Count(len(f.Args), "operand"), n).Related = related
		return
	}
	wrt, _ := op.GradArgs(o)
	if n := len(o.Results) - len(wrt); n != len(f.Results) {
		v.report("DM188", o.Head, "@%s returns %s, but dm.grad has %d before the gradients", f.Name, diag.Count(len(f.Results), "result"), n).Related = related
		return
	}
	bind, ok := v.passed(o, f, len(f.Args))
	if !ok {
		return
	}
	var seeded []types.Type
	for _, t := range f.Results {
		switch r, isTensor := t.(*types.Tensor); {
		case isTensor && r.Elem.IsFloat() || types.IsTuple(t) && op.HasGradient(t):
			seeded = append(seeded, types.Sized(t, bind))
		case given > 0 && types.IsTuple(t) && hasFloat(t):
			v.report("DM188", o.Head, "@%s returns %s, of which some members have cotangents and others none", f.Name, t).Related = related
			v.diags[len(v.diags)-1].Help = "return what is not floating-point beside the tuple"
			return
		}
	}
	if given == 0 {
		if t, ok := first(f.Results).(*types.Tensor); !ok || t.Rank() != 0 || !t.Elem.IsFloat() {
			v.report("DM188", o.Head, "the first result of @%s is not a floating-point scalar", f.Name).Related = related
			v.diags[len(v.diags)-1].Help = "return the loss first, or give the results' cotangents as further operands with cotangents = n"
		}
		return
	}
	if given != len(seeded) {
		v.report("DM188", o.Head, "@%s returns %s, but dm.grad has %s", f.Name, diag.Count(len(seeded), "floating-point result"), diag.Count(given, "cotangent")).Related = related
		return
	}
	for i, want := range seeded {
		if at := len(f.Args) + i; !types.Compatible(o.Operands[at].Type, want) {
			v.report("DM188", origin.OperandSpan(o, at), "%s has type %s, but is the cotangent of a %s", operandText(o.Operands[at]), o.Operands[at].Type, want).Related = related
			return
		}
	}
}

func hasFloat(t types.Type) bool {
	return slices.ContainsFunc(types.Members(t), func(m types.Member) bool { return m.Tensor.Elem.IsFloat() })
}

func first(ts []types.Type) types.Type {
	if len(ts) == 0 {
		return nil
	}
	return ts[0]
}

// yield checks where a dm.yield stands. What it yields is a rule of the op
// around it.
func (v *verifier) yield(o *ir.Op) {
	switch {
	case o.Parent == nil || op.Of(o.Parent.Region.Op) == nil:
		v.report("DM186", o.Head, "dm.yield is outside the region of a dm op").Help = "functions end in return"
	case o.Parent.Terminator() != o:
		v.report("DM186", o.Head, "ops follow this dm.yield").Help = "move dm.yield to the end of the region"
	}
}

// insideKernel refuses what cannot run within one kernel.
func (v *verifier) insideKernel(o *ir.Op) {
	for b := o.Parent; b != nil; b = b.Region.Op.Parent {
		if k := b.Region.Op; k.Name == op.Kernel {
			d := v.report("DM189", o.Head, "%s cannot be inside a kernel", o.Name)
			if d.Related = []diag.Related{{Span: k.Head, Message: "the kernel"}}; o.Name == op.Kernel {
				d.Help = "merge it with the kernel around it, or move it out"
			}
			return
		}
	}
}
