// Package verify checks what a module means: that every op has the operands,
// attributes, regions and result types that the registry defines, and that
// functions, calls and kernels fit together. It reports one error for one
// cause: an op with a diagnostic from lowering or an earlier check is not checked
// further, and values of unknown type get no diagnostic.
package verify

import (
	"fmt"
	"runtime"
	"slices"
	"sort"

	"dmir/base/parallel"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/shard"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Module returns the errors in m, in the order of the text. It changes nothing.
func Module(m *ir.Module) []diag.Diagnostic {
	diags := Ops(m, m.Ops)
	ir.Walk(m.Ops, func(o *ir.Op) bool {
		diags = append(diags, Function(m, o)...)
		return true
	})
	sort.SliceStable(diags, func(i, j int) bool { return diags[i].Span.Start < diags[j].Span.Start })
	return diags
}

// Ops returns the errors in ops of m and in what is inside them, but for those
// that concern the body of a function as a whole.
func Ops(m *ir.Module, ops []*ir.Op) []diag.Diagnostic {
	var all []*ir.Op
	ir.Walk(ops, func(o *ir.Op) bool {
		all = append(all, o)
		return true
	})
	m.Work.Add("verify", len(all))
	const batch = 2048 // ops that are worth a goroutine
	workers := max(1, min(runtime.GOMAXPROCS(0), len(all)/batch))
	found := make([][]diag.Diagnostic, workers)
	parallel.Each(workers, workers, func(i int) {
		v := &verifier{m: m}
		for _, o := range all[len(all)*i/workers : len(all)*(i+1)/workers] {
			v.op(o)
		}
		found[i] = v.diags
	})
	return slices.Concat(found...)
}

// Function returns the errors of the body of o as a whole, none where o
// is no function.
func Function(m *ir.Module, o *ir.Op) []diag.Diagnostic {
	if b := o.Body(0); b != nil && o.Name == op.Func {
		m.Work.Add("verify", len(b.Ops))
	}
	return FunctionOf(m, o, nil, func() (*mesh.Mesh, *shard.Problem) { return shard.MeshOf(m, m.Func(o.Str("sym_name"))) })
}

// FunctionOf is Function for a caller that knows which ops of the function's one block are
// marked, returns and those with a stage among them, in the order of the text, and its mesh as
// shard.MeshOf has it. It looks at no other ops.
func FunctionOf(m *ir.Module, o *ir.Op, marked []*ir.Op, on func() (*mesh.Mesh, *shard.Problem)) []diag.Diagnostic {
	if o.Name != op.Func || o.Bad {
		return nil
	}
	v := &verifier{m: m}
	m.Work.Add("verify", len(marked))
	v.function(o, marked, on)
	return v.diags
}

// Op returns the problem of one op of the dialect as it stands, nil if there is
// none or the op is another dialect's. Ops inside its regions are not checked.
func Op(o *ir.Op) *op.Problem {
	def := op.Of(o)
	if def == nil {
		if isUnknownOp(o) {
			return problem("DM166", head, "", "there is no op %s", diag.Name(o.Name))
		}
		return compared(o)
	}
	if p, foreign := foreignElements(o); foreign {
		return p
	}
	for _, check := range []func(*ir.Op, *op.Def) *op.Problem{counts, attributes, regions} {
		if p := check(o, def); p != nil {
			return p
		}
	}
	if !knownTypes(o) || slices.ContainsFunc(o.Results, isUnknown) {
		return nil
	}
	for _, check := range []func(*ir.Op, *op.Def) *op.Problem{operandTypes, spaces, resultTypes, sparseTensors} {
		if p := check(o, def); p != nil {
			return p
		}
	}
	if def.Verify == nil {
		return nil
	}
	if !op.Grouped(o) || op.PassesOn(o) {
		return def.Verify(o)
	}
	for _, m := range op.Split(o) {
		if p := def.Verify(m); p != nil {
			return p
		}
	}
	return nil
}

// compared is the problem of a check of tuples, which compares their members.
func compared(o *ir.Op) *op.Problem {
	if !op.IsCheck(o) || !op.Grouped(o) {
		return nil
	}
	if len(o.Operands) != 2 {
		return problem("DM183", 0, "unpack it: "+unpacked(o.Operands[0]), "%s compares one tensor with its constant, and %s is a tuple", o.Name, operandName(&op.Param{Name: "value"}, o.Operands[0]))
	}
	if a, b := o.Operands[0], o.Operands[1]; !types.SameStructure(a.Type, b.Type) {
		return problem("DM130", 1, "a check of tuples takes tuples with as many members, at the same depth", "%s is %s, whose members do not correspond to those of %s", operandName(&op.Param{Name: "value"}, b), b.Type, a.Type)
	}
	return nil
}

// Infer gives the result types that follow from o's operands, attributes and
// regions; ok is false where o is not fit to be asked or the op has no rule.
func Infer(o *ir.Op) (ts []types.Type, ok bool) {
	def := op.Of(o)
	if def == nil || def.Infer == nil || o.Bad || !knownTypes(o) ||
		counts(o, def) != nil || attributes(o, def) != nil || regions(o, def) != nil || operandTypes(o, def) != nil {
		return nil, false
	}
	ts, p := op.Infer(o)
	return ts, p == nil
}

type verifier struct {
	m     *ir.Module
	diags []diag.Diagnostic
	near  map[string][]op.Meaning // of unknown ops, by their names

	meshes    map[string]*mesh.Mesh // by name, nil for one with an error; see find
	lastShard *types.Sharding       // that was right

	lastKernel *ir.Op // asked about by isBucket
	lastBucket bool
}

func (v *verifier) report(code string, span source.Span, format string, args ...any) *diag.Diagnostic {
	v.diags = append(v.diags, diag.New(code, diag.Error, span, fmt.Sprintf(format, args...)))
	return &v.diags[len(v.diags)-1]
}

func (v *verifier) op(o *ir.Op) {
	if o.Bad && !isUnknownOp(o) {
		return
	}
	if p := Op(o); p != nil {
		v.problem(o, p)
		return
	}
	v.discardables(o)
	v.shardings(o)
	v.stated(o)
	if o.Name == op.PartitionID || op.Of(o).Is(op.Collective) {
		v.collective(o)
	}
	switch o.Name {
	case op.Mesh:
		v.mesh(o)
	case op.Func:
		v.declared(o)
		v.only(o)
		v.perDevice(o)
	case op.Return:
		v.returns(o)
	case op.Call:
		v.call(o)
	case op.Grad:
		v.grad(o)
	case op.Yield:
		v.yield(o)
	}
	if o.Name == op.Kernel || o.Name == op.Call || o.Name == op.Grad {
		v.insideKernel(o)
	}
}

func (v *verifier) problem(o *ir.Op, p *op.Problem) {
	span := o.Head
	switch {
	case p.Attr != "":
		span = origin.AttrSpan(o, v.m.Src, p.Attr)
	case p.Operand >= 0:
		span = origin.OperandSpan(o, p.Operand)
	}
	d := v.report(p.Code, span, "%s", p.Msg)
	if p.Help != "" {
		d.Help = p.Help
	}
	switch p.Code {
	case "DM134":
		v.densify(o, p.Operand, d)
	case "DM166":
		v.propose(o, d)
	case "DM182":
		v.fixKeyword(o, p.Attr, d)
	case "DM184":
		v.fixResult(o, d)
	}
}

// fixResult offers the first result type that follows and is not the one written.
func (v *verifier) fixResult(o *ir.Op, d *diag.Diagnostic) {
	inferred, ok := Infer(o)
	for i := range min(len(inferred), len(o.Results)) {
		if ok && !op.Compatible(inferred[i], o.Results[i].Type) {
			d.Fixes = resultFix(v.m.Src, o, i, inferred[i])
			return
		}
	}
}

// knownTypes reports whether o's operands and what its regions take and yield
// have types. If they have none, that was reported already.
func knownTypes(o *ir.Op) bool {
	for _, v := range o.Operands {
		if isUnknown(v) {
			return false
		}
	}
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			for _, v := range b.Args {
				if isUnknown(v) {
					return false
				}
			}
			if t := b.Terminator(); t != nil {
				for _, v := range t.Operands {
					if isUnknown(v) {
						return false
					}
				}
			}
		}
	}
	return true
}

func isUnknown(v *ir.Value) bool { return v.Type == nil || v.Type == types.Type(types.Unknown) }
