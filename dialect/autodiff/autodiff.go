// Package autodiff makes from a function the function of its gradient: reverse
// mode over typed SSA (Griewank and Walther, Evaluating Derivatives, 2008). The
// rules of the single ops are the registry's; here they are combined, and
// calls, kernels and regions are gone through.
package autodiff

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/budget"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Options are what to differentiate, and with respect to what.
type Options struct {
	// Wrt are the numbers of the arguments whose gradients are given, in that
	// order; nil is every floating-point argument.
	Wrt []int
	// Seeded: the function takes, behind its own arguments, the cotangent of each
	// of its floating-point results. Otherwise its first result is a
	// floating-point scalar, the loss, whose cotangent is 1, and the other results
	// are only passed along.
	Seeded bool
	// Joint: the results of the function come before the gradients. Otherwise
	// only the gradients are given, and what only the results need is left out.
	Joint bool
	// Budget is what may be written out; nil: that of the module.
	Budget *budget.Left
	// Resolved: the ops of the function have the stages that they belong to (op.ResolveStages) already.
	Resolved bool
	// Marked: ops that are added have op.BackwardAttr, as they have in any case where the function has stages.
	Marked bool
}

// Function is the gradient of f as a new function, not added to m, of which it
// needs the functions that f calls. Its arguments are f's, and the cotangents
// where Seeded; its results f's where Joint, and the gradients, of the types of
// the arguments. Kernels that the gradient goes through are unfused, calls
// inlined. An error is a *Error.
func Function(m *ir.Module, f *ir.Func, opts Options) (*ir.Func, error) {
	x := expand(m, opts.Budget)
	x.callers = []string{f.Name}
	return x.function(f, opts)
}

func (x expansion) function(f *ir.Func, opts Options) (*ir.Func, error) {
	m := x.m
	if f.Body == nil {
		return nil, fail(m, f.Op, "DM812", "@%s is only declared", f.Name)
	}
	f, _ = flatten.Func(f)
	ret := f.Body.Terminator()
	if ret == nil || ret.Name != op.Return || len(f.Op.Regions[0].Blocks) != 1 {
		return nil, fail(m, f.Op, "DM812", "the body of @%s is not a single block that ends in return", f.Name)
	}
	if err := returned(m, f.Op, f); err != nil {
		return nil, err
	}
	wrt, err := selected(m, f, opts.Wrt)
	if err != nil {
		return nil, err
	}
	g := f.Clone()
	b := g.Body
	if !opts.Resolved {
		op.ResolveStages(b.Ops)
	}
	ret = b.Terminator()
	outs := slices.Clone(ret.Operands)
	ir.Erase(ret)

	r := &reverse{expansion: x, active: map[*ir.Value]bool{}, cot: map[*ir.Value][]*ir.Value{}, segments: new(int64)}
	*r.segments = op.Segments(b.Ops)
	for _, i := range wrt {
		r.active[b.Args[i]] = true
	}
	if outs, err = r.forward(b, outs); err != nil {
		return nil, err
	}
	n, marked := len(b.Ops), map[*ir.Op]int{}
	for _, o := range b.Ops {
		if o.Attr(op.RecomputeAttr) != nil {
			marked[o] = len(o.Results)
		}
	}
	if err := r.seed(f, g, outs, opts.Seeded); err != nil {
		return nil, err
	}
	if err := r.backward(b, len(b.Ops)); err != nil {
		return nil, err
	}
	build := &ir.Builder{Block: b, Index: len(b.Ops), At: ret}
	var results []*ir.Value
	if opts.Joint {
		results = append(results, outs...)
	}
	for _, i := range wrt {
		results = append(results, r.gradient(build, b.Args[i]))
	}
	ir.Relocate(b.Ops[n:], loc.Under(loc.Gradient))
	recompute(b, n, outs, marked)
	if opts.Marked || op.Staged(b.Ops) {
		for _, o := range b.Ops[n:] {
			o.SetAttr(op.BackwardAttr, types.Unit{})
		}
	}
	op.DropRecompute(b.Ops)
	ir.Walk(b.Ops, func(o *ir.Op) bool {
		o.RemoveAttr(op.GradientShardingAttr)
		return true
	})
	build.Index = len(b.Ops)
	build.Op(op.Return, results, nil)
	op.RemoveDead(b)
	sign(g, f, results)
	return g, nil
}

// selected are the arguments of f that opts.Wrt names.
func selected(m *ir.Module, f *ir.Func, wrt []int) ([]int, error) {
	if wrt == nil {
		for i, a := range f.Args {
			if isFloat(a) {
				wrt = append(wrt, i)
			}
		}
		return wrt, nil
	}
	for _, i := range wrt {
		if i < 0 || i >= len(f.Args) {
			return nil, fail(m, f.Op, "DM813", "@%s has no argument %d; the last is %d", f.Name, i, len(f.Args)-1)
		}
		if !isFloat(f.Args[i]) {
			return nil, fail(m, f.Op, "DM813", "argument %s of @%s is %s, and only floating-point tensors have gradients", f.Args[i].Name, f.Name, f.Args[i].Type)
		}
	}
	return wrt, nil
}

func isFloat(v *ir.Value) bool { return v.Elem().IsFloat() }

// HasLoss reports whether the first result of f is a floating-point scalar.
func HasLoss(f *ir.Func) bool {
	if len(f.Results) == 0 {
		return false
	}
	t, ok := f.Results[0].(*types.Tensor)
	return ok && t.Rank() == 0 && t.Elem.IsFloat()
}

// seed gives the results their cotangents.
func (r *reverse) seed(f, g *ir.Func, outs []*ir.Value, seeded bool) error {
	b := g.Body
	build := &ir.Builder{Block: b, Index: len(b.Ops), At: f.Body.Terminator()}
	if !seeded {
		if !HasLoss(f) {
			return fail(r.m, f.Op, "DM814", "the first result of @%s is not a floating-point scalar", f.Name)
		}
		if r.active[outs[0]] {
			if build.At = outs[0].Op; build.At == nil {
				build.At = f.Body.Terminator()
			}
			r.add(outs[0], op.Filled(build, outs[0].Type, 1))
		}
		return nil
	}
	for _, v := range outs {
		if !isFloat(v) {
			continue
		}
		a := &ir.Value{Name: CotangentName(v), Type: plain(v.Type), Block: b, Index: len(b.Args), Span: v.Span}
		b.Args = append(b.Args, a)
		if r.active[v] {
			r.add(v, a)
		}
	}
	g.Args = b.Args
	return nil
}

// gradient is the cotangent of an argument in the argument's own placement.
func (r *reverse) gradient(b *ir.Builder, arg *ir.Value) *ir.Value {
	v := r.sum(b, arg)
	t := arg.Tensor()
	if v == nil {
		v = op.Zeros(b, arg.Type)
	}
	if t != nil && v.Tensor() != nil && !t.At.Equal(v.Tensor().At) {
		move := "dm.copy"
		if at := t.At; at.In() == v.Tensor().At.In() && slices.Equal(at.Order, v.Tensor().At.Order) {
			move = op.Reshard
		}
		v = b.Op(move, []*ir.Value{v}, nil, arg.Type).Results[0]
	}
	if s := op.StatedSharding(arg); s != nil && t.At.Shard == nil {
		v = b.Op(op.Reshard, []*ir.Value{v}, nil, arg.Type).Results[0]
		op.StateSharding(v, s)
	}
	if v.Op != nil && v.Name == "" {
		v.Name = CotangentName(arg)
	}
	return v
}

// plain is t without a layout.
func plain(t types.Type) types.Type {
	if w, ok := t.(*types.Tensor); ok {
		return w.With(w.Shape...)
	}
	return t
}

// CotangentName is what the gradient by v is called where it has no other name; "" of a value without one.
func CotangentName(v *ir.Value) string {
	if len(v.Name) < 2 {
		return ""
	}
	return "%d_" + strings.ReplaceAll(v.Name[1:], "#", "_")
}

// sign gives g its name and type.
func sign(g, f *ir.Func, results []*ir.Value) {
	g.Name = f.Name + "_grad"
	g.Args = g.Body.Args
	g.Results = nil
	ty := &types.Func{}
	for _, a := range g.Args {
		ty.In = append(ty.In, a.Type)
	}
	for _, v := range results {
		g.Results = append(g.Results, v.Type)
	}
	ty.Out = g.Results
	o := g.Op
	o.Attrs = slices.DeleteFunc(o.Attrs, func(a types.Named) bool {
		d := op.LookupAttr(a.Name)
		return a.Name == "res_attrs" || d != nil && d.Unit != "" // the budget is the function's own
	})
	if own, ok := o.Attr("arg_attrs").(types.Array); ok { // one for each argument
		own = slices.Clone(own)
		for len(own) < len(g.Args) {
			own = append(own, types.Dict{})
		}
		o.SetAttr("arg_attrs", own)
	}
	o.Origin = nil
	o.SetAttr("sym_name", types.Str(g.Name))
	o.SetAttr("function_type", types.TypeAttr{T: ty})
}

// Name gives f a name that no function of m has: its own, or one like it.
func Name(m *ir.Module, f *ir.Func) {
	base := f.Name
	for n := 2; m.Func(f.Name) != nil; n++ {
		f.Name = fmt.Sprintf("%s_%d", base, n)
	}
	f.Op.SetAttr("sym_name", types.Str(f.Name))
}
