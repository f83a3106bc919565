package cost

import (
	"errors"
	"slices"

	"dmir/dialect/autodiff"
	"dmir/dialect/dim"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/microbatch"
	"dmir/dialect/op"
	"dmir/dialect/partition"
	"dmir/dialect/shard"
	"dmir/dialect/types"
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
// over which the text divides values; nil where there is none.
func (f *Func) Mesh() *mesh.Mesh {
	if f.body == nil {
		return nil
	}
	if f.body.in.mesh != nil {
		return f.body.in.mesh
	}
	on, _, _ := shard.Stated(f.body.in.m, f.Func)
	return on
}

// Microbatches is into how many micro-batches the text cuts the batch of f; 0 where it does not.
func (f *Func) Microbatches() int { return microbatch.Count(f.Func) }

// Divide is f as each device of its mesh runs it, computed on first use; nil where its text
// divides nothing, nor its batch. The problem is why it cannot be divided.
func (f *Func) Divide() (*Divided, *shard.Problem) {
	if f.body == nil || f.device != nil || f.body.in.mesh != nil {
		return nil, nil
	}
	c := f.body.in.coster
	c.late.Lock()
	defer c.late.Unlock()
	if !f.tried {
		f.tried = true
		f.divided, f.undivided = c.divide(f.Func)
	}
	return f.divided, f.undivided
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
	if !f.spread {
		f.spread = true
		f.shardings, f.unshardable = f.memo.Propagate(c.m, f.Func)
	}
	return f.shardings, f.unshardable
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

// mostOps bounds what calls of calls may grow to.
const mostOps = 1 << 18

// divide divides fn as the compiler does.
func (c *coster) divide(fn *ir.Func) (*Divided, *shard.Problem) {
	if c.m == nil {
		return nil, nil
	}
	on, stated, problem := shard.Stated(c.m, fn)
	cut := microbatch.Count(fn) > 1
	if problem != nil || len(stated) == 0 && !cut {
		return nil, problem
	}
	if o := unsound(c.m, fn, map[*ir.Func]bool{}); o != nil {
		return nil, &shard.Problem{At: o, Msg: "it has errors", Help: "fix these first"}
	}
	m, flat, _ := flatten.In(c.m, fn)
	whole := flat.Clone()
	size(whole, op.Bindings(fn, c.bind))
	if problem := inlined(m, whole); problem != nil {
		return nil, problem
	}
	size(whole, op.Bindings(fn, c.bind))
	if cut {
		step, problem := microbatch.Split(m, whole)
		if problem != nil {
			return nil, problem
		}
		whole = step
	}
	device, made, problem := partition.Divide(m, whole)
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
		case o.Bad, !known(o):
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

// known reports whether o is of the dialect and follows its rules.
func known(o *ir.Op) bool {
	if o.Name == op.Return || o.Name == op.Call || op.IsCheck(o) {
		return true
	}
	return op.Of(o) != nil && (op.Valid(o) || op.Grouped(o))
}

// size gives the values of f numbers for symbols.
func size(f *ir.Func, bind map[string]int64) {
	sizes := map[string]dim.Dim{}
	for name, n := range bind {
		sizes[name] = dim.Const(n)
	}
	for _, v := range f.Args {
		v.Type = types.Sized(v.Type, sizes)
	}
	ir.WalkValues(f.Body.Ops, func(v *ir.Value) { v.Type = types.Sized(v.Type, sizes) })
	for i, t := range f.Results {
		f.Results[i] = types.Sized(t, sizes)
	}
}

// inlined puts what calls and gradients compute in their place, with their places in the text,
// and leaves checks out, which only compare.
func inlined(m *ir.Module, f *ir.Func) *shard.Problem {
	total := 0
	op.ResolveStages(f.Body.Ops)
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
			b := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
			start := b.Index
			vs, err := autodiff.Inline(m, b, o)
			if err != nil {
				return refusal(o, err)
			}
			ir.Walk(o.Parent.Ops[start:b.Index], func(p *ir.Op) bool {
				p.Span, p.Head, p.Origin = o.Span, o.Head, o.Origin
				total++
				return true
			})
			if total > mostOps {
				return &shard.Problem{At: o, Msg: "the functions that it calls are too large to be divided", Help: "call fewer functions, or use a loop (dm.while)"}
			}
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
