package cost

import (
	"errors"
	"slices"

	"dmir/dialect/autodiff"
	"dmir/dialect/dim"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/partition"
	"dmir/dialect/shard"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// Divided is a function whose text divides values over the devices of a mesh, as each device
// runs it.
type Divided struct {
	Mesh   *mesh.Mesh
	Fn     *ir.Func // what a device runs: shapes of pieces, collectives
	Device *Func    // its cost

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

// Divide is f as each device of its mesh runs it, computed on first use; nil where its text
// divides nothing. The problem is why it cannot be divided.
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
	if problem != nil || len(stated) == 0 {
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
	device, made, problem := partition.Divide(m, whole)
	if device == nil {
		return nil, problem
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

// enclose puts what stands between collectives of a kernel of the text, whose ops stand alone
// in the divided function, into kernels again.
func enclose(text, device *ir.Func) {
	var kernels []*ir.Op // in textual order; they do not nest
	ir.Walk(text.Body.Ops, func(o *ir.Op) bool {
		if o.Name == op.Kernel {
			kernels = append(kernels, o)
			return false
		}
		return true
	})
	if len(kernels) == 0 {
		return
	}
	of := func(o *ir.Op) *ir.Op {
		d := op.Of(o)
		if d == nil || d.Is(op.Terminator) || d.Is(op.Collective) || o.Span.Len() == 0 {
			return nil
		}
		i, found := slices.BinarySearchFunc(kernels, o.Span.Start, func(k *ir.Op, at int) int { return k.Span.Start - at })
		if !found {
			i--
		}
		if i >= 0 && kernels[i].Span.Contains(o.Span.Start) {
			return kernels[i]
		}
		return nil
	}
	var visit func(b *ir.Block)
	visit = func(b *ir.Block) {
		var out []*ir.Op
		for i := 0; i < len(b.Ops); {
			k, n := of(b.Ops[i]), i+1
			for k != nil && n < len(b.Ops) && of(b.Ops[n]) == k {
				n++
			}
			if k == nil {
				for _, r := range b.Ops[i].Regions {
					for _, inner := range r.Blocks {
						visit(inner)
					}
				}
				out = append(out, b.Ops[i])
			} else {
				out = append(out, enclosed(k, b, b.Ops[i:n]))
			}
			i = n
		}
		b.Ops = out
	}
	visit(device.Body)
	ir.CountUses(device.Body)
}

// enclosed is the kernel of ops of b, which gives what others use.
func enclosed(k *ir.Op, b *ir.Block, ops []*ir.Op) *ir.Op {
	kernel := &ir.Op{Name: op.Kernel, Parent: b, Span: k.Span, Head: k.Head}
	body := kernel.AddRegion()
	members := map[*ir.Op]bool{}
	for _, o := range ops {
		members[o] = true
	}
	inside := func(o *ir.Op) bool {
		for o != nil && !members[o] && o.Parent != nil && o.Parent.Region != nil {
			o = o.Parent.Region.Op
		}
		return members[o]
	}
	var outs []*ir.Value
	for _, o := range ops {
		o.Parent = body
		body.Ops = append(body.Ops, o)
	}
	for _, o := range ops {
		for _, v := range o.Results {
			if !slices.ContainsFunc(v.Uses, func(u ir.Use) bool { return !inside(u.Op) }) {
				continue
			}
			r := &ir.Value{Name: v.Name, Type: v.Type, Op: kernel, Index: len(kernel.Results), Span: v.Span}
			kernel.Results = append(kernel.Results, r)
			outs = append(outs, v)
			var kept []ir.Use
			for _, u := range v.Uses {
				if inside(u.Op) {
					kept = append(kept, u)
					continue
				}
				u.Op.Operands[u.Index] = r
				r.Uses = append(r.Uses, u)
			}
			v.Uses = kept
		}
	}
	yield := &ir.Builder{Block: body, Index: len(body.Ops), At: k}
	yield.Op(op.Yield, outs, nil)
	return kernel
}

// lines is the cost of device by the ops of fn that its ops were made of.
func lines(fn *ir.Func, device *Func, c *coster) *Func {
	s := c.scope(nil)
	g := &grouper{s: s, of: map[source.Span]*ir.Op{}}
	ir.Walk(fn.Body.Ops, func(o *ir.Op) bool {
		if o.Span.Len() > 0 {
			g.of[o.Span] = o
		}
		return true
	})
	f := &Func{
		Func: fn, FLOP: device.FLOP, Read: device.Read, Written: device.Written, Unknown: device.Unknown,
		body: device.body, timed: device.timed, overlap: device.overlap, device: device,
	}
	f.Entries = g.block(fn.Body, device.Entries)
	if rest := g.rest; len(rest) > 0 {
		e := g.line(fn.Op, rest)
		f.Entries = append([]*Entry{e}, f.Entries...)
	}
	return f
}

// grouper sorts the entries of a divided function by the ops of the text.
type grouper struct {
	s    *scope
	of   map[source.Span]*ir.Op
	rest []*Entry // of no op of the text
}

// block is an entry for each op of b that has a cost in the text or in one of entries.
func (g *grouper) block(b *ir.Block, entries []*Entry) []*Entry {
	made := map[*ir.Op][]*Entry{}
	for _, e := range entries {
		o := g.of[e.Op.Span]
		if o != nil {
			o = b.Ancestor(o)
		}
		switch {
		case o != nil:
			made[o] = append(made[o], e)
		case !e.FLOP.IsZero() || !e.Moved().IsZero() || e.talks():
			g.rest = append(g.rest, e)
		}
	}
	var out []*Entry
	for i, o := range b.Ops {
		if parts := made[o]; len(parts) > 0 || counts(o, i == len(b.Ops)-1) {
			out = append(out, g.line(o, parts))
		}
	}
	return out
}

// line is the entry of o, which parts were made of.
func (g *grouper) line(o *ir.Op, parts []*Entry) *Entry {
	e := &Entry{Op: o, Line: g.s.line(o), Known: true, Trips: dim.Const(1), Class: op.ClassMovement, parts: parts}
	var compute []*Entry
	for _, p := range parts {
		e.FLOP, e.Read, e.Written = e.FLOP.Add(p.FLOP), e.Read.Add(p.Read), e.Written.Add(p.Written)
		e.Known = e.Known && p.Known
		if p.Comm == nil {
			compute = append(compute, p)
		}
	}
	e.Class, e.Elem = strongest(compute)
	if d := op.Of(o); d != nil && len(o.Regions) == 0 && o.Name != op.Call && o.Name != op.Grad {
		e.Class = d.Class
	}
	if parts == nil {
		e.parts = []*Entry{}
	}
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			var inner []*Entry
			for _, p := range parts {
				for _, i := range p.Inner {
					if at := g.of[i.Op.Span]; at != nil && b.Ancestor(at) != nil {
						inner = append(inner, i)
					}
				}
				if len(p.Op.Regions) > 0 && p.Op.Name == o.Name && o.Name != op.Kernel {
					e.Trips = p.Trips
				}
			}
			if len(inner) > 0 {
				e.Inner = append(e.Inner, g.block(b, inner)...)
			}
		}
	}
	if o.Name == op.Kernel {
		e.Fused = true
		walk(e.Inner, func(i *Entry) { i.inside, i.Read, i.Written = true, dim.Dim{}, dim.Dim{} })
	}
	return e
}

// Parts are the entries of the ops that e's op was made into, of a line of a divided
// function; nil of others.
func (e *Entry) Parts() []*Entry { return e.parts }
