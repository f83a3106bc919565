package cost

import (
	"context"
	"errors"
	"slices"

	"dmir/dialect/autodiff"
	"dmir/dialect/budget"
	"dmir/dialect/dim"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/microbatch"
	"dmir/dialect/op"
	"dmir/dialect/partition"
	"dmir/dialect/shard"
	"dmir/dialect/stacks"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Divided is a function whose text divides values over the devices of a mesh, or its batch into
// micro-batches, as each device runs it.
type Divided struct {
	Mesh   *mesh.Mesh // nil: one device
	Fn     *ir.Func   // what a device runs: shapes of pieces, collectives, the ops of each micro-batch
	Device *Func      // its cost

	// Lines is the same cost, line by line of the text: each op has the costs of the ops made of
	// it, and a return those of what it hands on.
	Lines *Func

	made map[*ir.Value]*types.Sharding
}

// named is a result of an op that was made of one of the text: its name and the op's place there.
type named struct {
	at   source.Span
	name string
}

// Sharding is how the devices first have v, a result of an op of the text: partial where it has
// not been reduced yet. It is nil where that is not known.
func (d *Divided) Sharding(v *ir.Value) *types.Sharding {
	return d.made[v]
}

// Mesh is the mesh whose devices run f together: that of a function of one device, or that
// over which the text divides values, or along which its stages lie; nil where there is none.
func (f *Func) Mesh() *mesh.Mesh {
	if f.body == nil {
		return nil
	}
	if f.body.in.mesh != nil {
		return f.body.in.mesh
	}
	if f.pipeline() != "" {
		on, _ := f.MeshOf()
		return on
	}
	defer f.lock()()
	on, _, _ := f.stated()
	return on
}

// Microbatches is into how many micro-batches the text cuts the batch of f; 0 where it does not.
func (f *Func) Microbatches() int { return microbatch.Count(f.Func) }

// Divide is f as each device of its mesh runs it, computed on first use; nil where its text
// divides nothing, nor its batch. The problem is why it cannot be divided.
func (f *Func) Divide() (*Divided, *shard.Problem) {
	f.DivideUnless(context.Background())
	return f.divided, f.undivided
}

// DivideUnless computes what Divide returns, unless ctx ends before: then nothing is kept, and ok is false.
func (f *Func) DivideUnless(ctx context.Context) (ok bool) {
	if f.body == nil || f.device != nil || f.body.in.mesh != nil {
		return true
	}
	c := f.body.in.coster
	c.late.Lock()
	defer c.late.Unlock()
	if !f.tried {
		divided, problem := c.divide(ctx, f)
		if ctx.Err() != nil {
			return false
		}
		f.tried, f.divided, f.undivided = true, divided, problem
	}
	return true
}

// Shardings are the layouts of f's values that follow from those in its text, computed on
// first use after a change; nil where it states none.
func (f *Func) Shardings() (*shard.Values, *shard.Problem) {
	if f.body == nil || f.body.in.m == nil || f.body.in.mesh != nil {
		return nil, nil
	}
	c := f.body.in.coster
	c.late.Lock()
	defer c.late.Unlock()
	f.propagate()
	return f.shardings, f.unshardable
}

// propagate finds the shardings. The coster must not be in use by others.
func (f *Func) propagate() {
	if f.spread {
		return
	}
	f.spread = true
	if _, states, _ := f.stated(); !states {
		f.shardings, f.unshardable = nil, nil
		return
	}
	f.visit("shard", len(f.Func.Body.Ops))
	f.turn = 1 - f.turn // who looks at LastShardings has what the other memo holds
	f.shardings, f.unshardable = f.memos[f.turn].Propagate(f.body.in.m, f.Func)
}

// Spread reports whether Shardings has its answer already.
func (f *Func) Spread() bool {
	if f.body == nil {
		return true
	}
	defer f.lock()()
	_, states, _ := f.stated()
	return f.spread || !states
}

// LastShardings are Shardings of f, or of f before its last changes: nothing is known of values
// that came with them.
func (f *Func) LastShardings() *shard.Values {
	if f.body == nil {
		return nil
	}
	defer f.lock()()
	if _, states, _ := f.stated(); !states {
		return nil
	}
	return f.shardings
}

// Tried reports whether Divide has its answer already.
func (f *Func) Tried() bool {
	if f.body == nil {
		return true
	}
	c := f.body.in.coster
	c.late.Lock()
	defer c.late.Unlock()
	return f.tried
}

// PerDevice is the cost that people see of f: of each device, where its text divides values,
// else f itself.
func (f *Func) PerDevice() *Func {
	if d, _ := f.Divide(); d != nil {
		return d.Lines
	}
	return f
}

// IsDivided reports whether f is the cost of the lines of a divided function: Divided.Lines.
func (f *Func) IsDivided() bool { return f.device != nil }

// divide divides the function of f as the compiler does.
func (c *coster) divide(ctx context.Context, f *Func) (*Divided, *shard.Problem) {
	if c.m == nil {
		return nil, nil
	}
	fn := f.Func
	on, states, problem := f.stated()
	cut := microbatch.Count(fn) > 1
	if problem != nil || !states && !cut {
		return nil, problem
	}
	f.visit("shard", len(fn.Body.Ops))
	m, whole, problem := c.whole(ctx, fn, false)
	if problem != nil {
		return nil, problem
	}
	if cut {
		step, problem := microbatch.Split(m, whole)
		if problem != nil {
			return nil, problem
		}
		whole = step
	}
	partition.Regather(whole)
	device, made, problem := partition.Divide(ctx, m, whole)
	if problem != nil {
		return nil, problem
	}
	if device == nil { // of one device
		device = whole
	}
	enclose(fn, device)
	d := &Divided{Mesh: on, Fn: device, Device: newCoster(m, nil).function(device)}
	shardings := make(map[named]*types.Sharding, len(made))
	for _, x := range made {
		if x.Value.Name != "" && x.Value.Op != nil {
			shardings[named{x.Value.Op.Span, x.Value.Name}] = x.Shard
		}
	}
	d.made = make(map[*ir.Value]*types.Sharding, len(made))
	ir.WalkValues(fn.Body.Ops, func(v *ir.Value) {
		if v.Op != nil {
			if s := shardings[named{v.Op.Span, v.Name}]; s != nil {
				d.made[v] = s
			}
		}
	})
	d.Lines = lines(fn, d.Device, c)
	return d, nil
}

// Whole is f as one block of ops on whole tensors, in a module: without tuples, calls and gradients, sizes as numbers where
// they are bound. Each op has the stage that its text gives it (op.StageAttr), and the place of the op of f that led to it. Each
// call makes a new one.
func (f *Func) Whole(ctx context.Context) (*ir.Module, *ir.Func, *shard.Problem) {
	return f.asOne(ctx, false)
}

// Cut is Whole with a loop that the text cuts into stages as as many loops; the module is one in which they are so, too. Places of
// arguments and results are those of package stacks.
func (f *Func) Cut(ctx context.Context) (*ir.Module, *ir.Func, *shard.Problem) {
	return f.asOne(ctx, true)
}

func (f *Func) asOne(ctx context.Context, cut bool) (*ir.Module, *ir.Func, *shard.Problem) {
	if f.body == nil || f.body.in.m == nil {
		return nil, nil, &shard.Problem{Msg: "it has no body"}
	}
	c := f.body.in.coster
	c.late.Lock()
	defer c.late.Unlock()
	return c.whole(ctx, f.Func, cut)
}

func (c *coster) whole(ctx context.Context, fn *ir.Func, cut bool) (*ir.Module, *ir.Func, *shard.Problem) {
	if o := unsound(c.m, fn, map[*ir.Func]bool{}); o != nil {
		return nil, nil, &shard.Problem{At: o, Msg: "it has errors", Help: "fix these first"}
	}
	m, fn, problem := flatten.Divided(c.m, fn, c.bind)
	if problem != nil {
		return nil, nil, problem
	}
	m, flat, _ := flatten.In(m, fn)
	if cut {
		if m, flat, problem = stacks.Stages(m, flat); problem != nil {
			return nil, nil, problem
		}
	}
	whole := flat.Clone()
	size(whole, op.Bindings(fn, c.bind))
	if problem := inlined(ctx, m, whole); problem != nil {
		return nil, nil, problem
	}
	size(whole, op.Bindings(fn, c.bind))
	return m, whole, nil
}

// unsound is an op of fn, or of the functions that it calls, that breaks a rule or that dmir does
// not know; nil if there is none.
func unsound(m *ir.Module, fn *ir.Func, seen map[*ir.Func]bool) *ir.Op {
	if seen[fn] {
		return nil
	}
	seen[fn] = true
	last := fn.Body.Terminator()
	if len(fn.Op.Regions) != 1 || len(fn.Op.Regions[0].Blocks) != 1 || last == nil || last.Name != op.Return || len(last.Operands) != len(fn.Results) {
		return fn.Op
	}
	if fn.Op.Bad || slices.ContainsFunc(fn.Args, misfit) {
		return fn.Op
	}
	for i, v := range last.Operands {
		if !types.Compatible(fn.Results[i], v.Type) {
			return last
		}
	}
	var bad *ir.Op
	ir.Walk(fn.Body.Ops, func(o *ir.Op) bool {
		switch {
		case bad != nil:
			return false
		case o.Bad, !known(o), o.Name == op.Return && o != last, slices.ContainsFunc(o.Results, misfit):
			bad = o
		case o.Name == op.Call || o.Name == op.Grad:
			if callee := m.Func(o.Str("callee")); callee == nil || callee.Body == nil {
				bad = o
			} else {
				bad = unsound(m, callee, seen)
			}
		}
		return bad == nil
	})
	return bad
}

// misfit reports whether the type of v is not known, or the text states a sharding of v that has not a part for
// each dimension.
func misfit(v *ir.Value) bool {
	if v.Type == types.Unknown {
		return true
	}
	t, s := v.Tensor(), op.StatedSharding(v)
	return t != nil && s != nil && len(s.Dims) != t.Rank()
}

// known reports whether o is of the dialect and follows its rules.
func known(o *ir.Op) bool {
	if o.Name == op.Return || o.Name == op.Call || op.IsCheck(o) {
		return true
	}
	return op.Of(o) != nil && (op.Valid(o) || op.Grouped(o))
}

// size gives the values of f numbers for symbols.
func size(f *ir.Func, bind map[string]int64) {
	sizes := dim.Consts(bind)
	for _, v := range f.Args {
		v.Type = types.Sized(v.Type, sizes)
	}
	ir.WalkValues(f.Body.Ops, func(v *ir.Value) { v.Type = types.Sized(v.Type, sizes) })
	for i, t := range f.Results {
		f.Results[i] = types.Sized(t, sizes)
	}
}

// inlined puts what calls and gradients compute in their place, and leaves checks out, which only compare. An op has the
// place of the call (ir.Op.Span), to whose line its costs count, and its own head, where a person looks for it.
func inlined(ctx context.Context, m *ir.Module, f *ir.Func) *shard.Problem {
	left := budget.New(m, 0)
	if budget.SizesOf(m).Exceeds(f) {
		return &shard.Problem{At: f.Op, Msg: budget.Message(m, f.Name), Help: diag.Find(budget.Code).Help}
	}
	op.ResolveStages(f.Body.Ops)
	again := op.Regathers(f.Op)
	for {
		var calls, checks []*ir.Op
		ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
			switch {
			case o.Name == op.Call, o.Name == op.Grad:
				calls = append(calls, o)
			case op.IsCheck(o):
				checks = append(checks, o)
			}
			return true
		})
		for _, o := range slices.Backward(checks) {
			ir.Erase(o)
		}
		if len(calls) == 0 {
			return nil
		}
		for _, o := range calls {
			if err := ctx.Err(); err != nil {
				return refusal(o, err)
			}
			if o.Name == op.Grad && again {
				o.SetAttr(op.BackwardAttr, types.Unit{})
			}
			b := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
			start := b.Index
			vs, err := autodiff.Inline(m, b, o, left)
			if err != nil {
				return refusal(o, err)
			}
			ir.Walk(o.Parent.Ops[start:b.Index], func(p *ir.Op) bool {
				p.Span, p.Origin = o.Span, o.Origin
				return true
			})
			for i, r := range o.Results {
				if v := vs[i]; v.Op != nil && v.Op.Parent == o.Parent && len(v.Op.Results) == 1 && len(v.Uses) == 0 {
					v.Name = r.Name
				}
				if v := vs[i]; v.Op != nil && v.Op.Parent == o.Parent && len(v.Uses) == 0 {
					op.KeepSharding(r, v)
				}
				ir.ReplaceUses(r, vs[i])
			}
			ir.Erase(o)
		}
	}
}

func refusal(o *ir.Op, err error) *shard.Problem {
	var e *autodiff.Error
	if errors.As(err, &e) {
		return &shard.Problem{At: o, Msg: e.Msg, Help: e.Help}
	}
	return &shard.Problem{At: o, Msg: err.Error()}
}
