package stages

import (
	"fmt"
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// build writes the functions of all positions.
func (s *splitter) build() ([]pass.Part, error) {
	type slot struct {
		ops            []*node
		receive, sends []*crossing
	}
	slots := make([][]slot, s.devices)
	for d := range slots {
		slots[d] = make([]slot, s.last(d)+1)
	}
	for _, n := range s.ops {
		for d, position := range n.places {
			if position >= 0 {
				slots[d][position].ops = append(slots[d][position].ops, n)
			}
		}
	}
	for _, c := range s.cross {
		slots[c.from][c.at].sends = append(slots[c.from][c.at].sends, c)
		slots[c.to][c.need].receive = append(slots[c.to][c.need].receive, c)
	}
	parts := make([]pass.Part, s.devices)
	for d := range parts {
		w := s.writer(d)
		for position, l := range slots[d] {
			for _, c := range l.receive {
				w.receive(c, position)
			}
			for _, n := range l.ops {
				w.compute(n)
			}
			for _, c := range l.sends {
				w.send(c)
			}
		}
		var err error
		if parts[d], err = w.finish(); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// writer writes the function of one position.
type writer struct {
	*splitter
	device int
	part   pass.Part
	block  *ir.Block
	b      *op.Builder
	has    map[*ir.Value]*ir.Value
	args   map[int]int             // by argument of the step: the number of that of the function
	sent   map[*ir.Value]*ir.Value // in the sharding in which they are sent
}

func (s *splitter) writer(device int) *writer {
	f := s.fn
	o := &ir.Op{Name: op.Func, Attrs: slices.Clone(f.Op.Attrs), Span: f.Op.Span, Head: f.Op.Head}
	w := &writer{splitter: s, device: device, block: o.AddRegion(), has: map[*ir.Value]*ir.Value{}, args: map[int]int{}, sent: map[*ir.Value]*ir.Value{}}
	w.b = op.NewBuilder(&ir.Builder{Block: w.block}, verify.Op)
	name := fmt.Sprintf("%s.%s%d", f.Name, s.axis.Name, device)
	for _, a := range []string{op.PipelineAttr, op.ScheduleAttr, op.MicrobatchesAttr} {
		o.RemoveAttr(a)
	}
	o.SetAttr("sym_name", types.Str(name))
	only := op.Only{Mesh: s.on.Name, Axis: s.axis.Name, Position: device}
	o.SetAttr(op.OnlyAttr, only.Attr())
	for i, a := range f.Args {
		if !s.users[i][device] {
			continue
		}
		v := w.block.AddArg(a.Name, s.sharded(a, a.Type))
		v.Span = a.Span
		w.has[a], w.args[i] = v, len(w.part.Args)
		w.part.Args = append(w.part.Args, i)
	}
	w.part.Func = &ir.Func{Op: o, Name: name, Private: f.Private, Args: w.block.Args, Body: w.block}
	return w
}

// sharded is t with the sharding of v, or with that which it states. The devices on both sides of what is sent,
// and all that have an argument, so agree on their pieces.
func (s *splitter) sharded(v *ir.Value, t types.Type) types.Type {
	own, ok := t.(*types.Tensor)
	if !ok || own.At.Shard != nil {
		return t
	}
	r := *own
	if s.values == nil {
		r.At.Shard = &types.Sharding{Mesh: types.SymbolOf(s.on.Name), Dims: make([]types.Split, own.Rank())}
		return &r
	}
	l, _ := s.values.Of(v)
	l.Partial, l.Reduce = nil, types.Add
	r.At.Shard = s.values.Grid.Sharding(l)
	return &r
}

// in is v as the function has it, resharded to type t.
func (w *writer) in(v *ir.Value, t types.Type) *ir.Value {
	x := w.has[v]
	if types.Equal(x.Type, t) {
		return x
	}
	return w.b.Value(op.Reshard, []*ir.Value{x}, nil, t)
}

func (w *writer) compute(n *node) {
	w.b.At = n.op
	o := ir.CloneOps(w.b.Builder, []*ir.Op{n.op}, w.has)[0]
	for i, r := range n.op.Results {
		w.has[r] = o.Results[i]
	}
	if position := n.places[w.device]; !n.free {
		w.name(o, position)
	}
}

// clean takes the attributes away from which the order was made.
func clean(o *ir.Op) {
	for _, a := range ir.Marks {
		if a != op.TaskAttr && a != op.RegatheredAttr {
			o.RemoveAttr(a)
		}
	}
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			for _, inner := range b.Ops {
				clean(inner)
			}
		}
	}
}

// name states the task of a position.
func (w *writer) name(o *ir.Op, position int) {
	if t, ok := w.taskAt(w.device, position); ok && o != nil {
		o.SetAttr(op.TaskAttr, types.Str(t.String()))
	}
}

func (w *writer) point(c *crossing) []types.Named {
	integer := func(name string, n int) types.Named { return types.Named{Name: name, Value: types.Int{V: int64(n)}} }
	return []types.Named{
		integer("from", c.from), integer("to", c.to), integer("channel", c.channel),
		{Name: "axes", Value: mesh.Names([]types.Axis{w.axis})},
	}
}

func (w *writer) send(c *crossing) {
	w.b.At = c.maker.op
	x := w.sent[c.value]
	if x == nil {
		x = w.in(c.value, w.sharded(c.value, c.value.Type))
		w.sent[c.value] = x
		if x.Op != nil {
			w.name(x.Op, c.at)
		}
	}
	w.name(w.b.Make(op.Send, []*ir.Value{x}, w.point(c)), c.at)
}

func (w *writer) receive(c *crossing, position int) {
	w.b.At = c.maker.op
	o := w.b.Make(op.Recv, nil, w.point(c), w.sharded(c.value, c.value.Type))
	if o == nil {
		return
	}
	o.Results[0].Name = c.value.Name
	w.has[c.value] = o.Results[0]
	w.name(o, position)
}

// finish writes the return and the signature.
func (w *writer) finish() (pass.Part, error) {
	f, g := w.fn, w.part.Func
	last := w.body.Terminator()
	w.b.At = last
	state := op.State(f.Op)
	var outs []*ir.Value
	var args, results types.Array
	for _, i := range w.part.Args {
		args = append(args, own(f.Op, "arg_attrs", i))
	}
	for i, v := range last.Operands {
		if !slices.Contains(w.returns[i], w.device) {
			continue
		}
		t := w.sharded(v, f.Results[i])
		d := own(f.Op, "res_attrs", i)
		if i < len(state) && state[i] >= 0 {
			a := f.Args[state[i]]
			if r, ok := f.Results[i].(*types.Tensor); ok && r.At.Shard == nil {
				t = w.sharded(a, f.Results[i]) // the next value has the pieces of this one
			}
			d = renumbered(d, w.args, state[i])
		}
		outs, results = append(outs, w.in(v, t)), append(results, d)
		w.part.Results = append(w.part.Results, i)
	}
	if err := w.b.Err(); err != nil {
		return pass.Part{}, pass.Errorf(f.Op, "DM820", "a value cannot be sent: %s", err)
	}
	w.b.Builder.Op(op.Return, outs, nil)
	for _, o := range w.block.Ops {
		clean(o)
	}
	g.Retype()
	g.Op.SetAttr("arg_attrs", args)
	g.Op.SetAttr("res_attrs", results)
	ir.CountUses(w.block)
	return w.part, nil
}

// own is the dictionary of argument or result i of f in the attribute called list.
func own(f *ir.Op, list string, i int) types.Dict {
	all, _ := f.Attr(list).(types.Array)
	if i >= len(all) {
		return types.Dict{}
	}
	d, _ := all[i].(types.Dict)
	return d
}

// renumbered is the dictionary of a result that is the next value of argument n of the step.
func renumbered(d types.Dict, args map[int]int, n int) types.Dict {
	if at, ok := args[n]; ok {
		return op.WithState(d, types.Int{V: int64(at), Elem: types.I64})
	}
	return slices.DeleteFunc(slices.Clone(d), func(a types.Named) bool { return a.Name == op.StateAttr })
}
