// Package flatten writes functions without tuples and sparse tensors: every tuple
// becomes its tensors, an op on the members of tuples as many ops, and dm.pack and
// dm.unpack vanish; ops on sparse tensors become dense ops on their components
// (op.LowerSparse). What executes, differentiates and compiles a program sees none
// of them; what shows a program to people works on the text's own ops, which From
// gives for those made of them.
package flatten

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// From is the ops that ops were made of.
type From map[*ir.Op]*ir.Op

// Of is the op that o was made of: o itself where none was.
func (f From) Of(o *ir.Op) *ir.Op {
	if was := f[o]; was != nil {
		return was
	}
	return o
}

// Func is f without tuples: f itself where it has none, else a new function in no
// module. The members of the argument %params are the arguments %params.0,
// %params.1 and so on, with its attributes. Functions that it calls must be
// flattened as well.
func Func(f *ir.Func) (*ir.Func, From) {
	from := From{}
	return flat(f, &flattener{from: from}), from
}

// Costed is Func for who asks what f costs; see op.LowerSparse.
func Costed(f *ir.Func) *ir.Func { return flat(f, &flattener{from: From{}, costs: true}) }

func flat(f *ir.Func, x *flattener) *ir.Func {
	if !grouped(f) {
		return f
	}
	x.values, x.blocks = map[*ir.Value][]*ir.Value{}, map[*ir.Block]*ir.Block{}
	g := *f
	g.Op = x.op(f.Op, nil)[0]
	g.Body = g.Op.Body(0)
	x.link()
	if x.joined { // nothing needs scores and probabilities
		op.RemoveDead(g.Body)
	}
	ty := &types.Func{Out: tensors(f.Results)}
	if g.Body != nil {
		g.Args = g.Body.Args
	} else {
		g.Args = nil
		for _, a := range f.Args {
			g.Args = append(g.Args, op.Parts(a)...)
		}
		for i, a := range g.Args {
			a.Index = i
		}
	}
	for _, a := range g.Args {
		ty.In = append(ty.In, a.Type)
	}
	g.Results = ty.Out
	first, n := make([]int, len(f.Args)), 0 // where the members of each argument begin
	for i, a := range f.Args {
		first[i] = n
		n += len(tensors([]types.Type{a.Type}))
	}
	attributes(g.Op, "arg_attrs", ir.Types(f.Args), nil)
	attributes(g.Op, "res_attrs", f.Results, first) // before the type: state is of the results as they were
	g.Op.SetAttr("function_type", types.TypeAttr{T: ty})
	return &g
}

// In is Func of f in the module m, with the functions that f may call: m itself
// where none has tuples, else a module that shares the functions without.
func In(m *ir.Module, f *ir.Func) (*ir.Module, *ir.Func, From) { return within(m, f, false) }

// Fused is In for who compiles: ops on sparse tensors that one kernel computes without
// what is between them in memory are one op.
func Fused(m *ir.Module, f *ir.Func) (*ir.Module, *ir.Func, From) { return within(m, f, true) }

func within(m *ir.Module, f *ir.Func, fused bool) (*ir.Module, *ir.Func, From) {
	from := From{}
	if m == nil || !slices.ContainsFunc(m.Funcs, grouped) {
		return m, flat(f, &flattener{from: from, fused: fused}), from
	}
	c := &ir.Module{Src: m.Src, Aliases: m.Aliases, Diags: m.Diags, Resources: m.Resources, Outer: m.Outer, Origin: m.Origin}
	ops := map[*ir.Op]*ir.Op{}
	for _, f := range m.Funcs {
		g := flat(f, &flattener{from: from, fused: fused})
		ops[f.Op] = g.Op
		c.AddFunc(g)
	}
	for _, o := range m.Ops {
		if flat := ops[o]; flat != nil {
			o = flat
		}
		c.Ops = append(c.Ops, o)
	}
	if m.Func(f.Name) == f {
		return c, c.Func(f.Name), from
	}
	return c, flat(f, &flattener{from: from, fused: fused}), from
}

func grouped(f *ir.Func) bool {
	if slices.ContainsFunc(f.Results, types.Compound) || slices.ContainsFunc(ir.Types(f.Args), types.Compound) {
		return true
	}
	if f.Body == nil {
		return false
	}
	found := false
	ir.Walk([]*ir.Op{f.Op}, func(o *ir.Op) bool {
		found = found || op.Grouped(o) || op.IsSparse(o) || o.Name == op.Pack || o.Name == op.Unpack
		return !found
	})
	return found
}

// tensors is ts with the tensors of tuples in their places.
func tensors(ts []types.Type) []types.Type {
	out := make([]types.Type, 0, len(ts))
	for _, t := range ts {
		if !types.Compound(t) {
			out = append(out, t)
			continue
		}
		for _, m := range types.Parts(t) {
			out = append(out, m.Tensor)
		}
	}
	return out
}

// attributes gives each part of an argument or a result its dictionary in the list
// called name. It is the one place where an attribute of a tuple, or of a sparse tensor, becomes
// those of its parts: the state of a result's part is the same part of the argument,
// counted from the argument's place in first. Arguments say which sparse tensor they store.
func attributes(f *ir.Op, name string, ts []types.Type, first []int) {
	list, ok := f.Attr(name).(types.Array)
	if name == "arg_attrs" && !ok && slices.ContainsFunc(ts, sparse) {
		list = slices.Repeat(types.Array{types.Dict{}}, len(ts))
	}
	if list == nil || len(list) != len(ts) {
		return
	}
	state := op.State(f)
	var flat types.Array
	for i, t := range ts {
		k := 0
		var shardings []types.Attr
		a := op.SignatureAttr(f, name, i, op.ShardingAttr)
		if a != nil {
			shardings = op.MemberShardings(a, t)
		}
		again := op.SignatureAttr(f, name, i, op.RegatherAttr)
		for n, m := range types.Members(t) {
			for _, own := range parts(list[i].(types.Dict), m.Tensor, name) {
				if again != nil {
					own = slices.DeleteFunc(slices.Clone(own), func(a types.Named) bool { return a.Name == op.RegatherAttr })
					if op.MemberRegather(again, n) {
						own = append(own, types.Named{Name: op.RegatherAttr, Value: types.Unit{}})
					}
				}
				if a != nil {
					own = op.WithSharding(own, shardings[k])
				}
				if first != nil && i < len(state) && state[i] >= 0 && state[i] < len(first) {
					own = op.WithState(own, types.Int{V: int64(first[state[i]] + k), Elem: types.I64})
				}
				flat = append(flat, own)
				k++
			}
		}
		if k == 0 { // of another type
			flat = append(flat, list[i])
		}
	}
	f.SetAttr(name, flat)
}

func sparse(t types.Type) bool {
	return slices.ContainsFunc(types.Members(t), func(m types.Member) bool { return m.Tensor.Format != nil })
}

// parts are the dictionaries of what stores t, which has the dictionary d in the list called name:
// what begins the values is of them alone, and the pattern, stated or counted, of the first one.
func parts(d types.Dict, t *types.Tensor, name string) []types.Dict {
	without := func(d types.Dict, names ...string) types.Dict {
		return slices.DeleteFunc(slices.Clone(d), func(a types.Named) bool { return slices.Contains(names, a.Name) })
	}
	if t.Format == nil {
		return []types.Dict{without(d, op.PatternAttr, op.CountedAttr, op.PieceRoomAttr, op.DivideByAttr)}
	}
	d = without(d, op.PieceRoomAttr, op.DivideByAttr)
	var out []types.Dict
	for i, c := range t.Components() {
		own := slices.Clone(d)
		if c.Level >= 0 {
			own = without(own, op.InitAttr, op.StddevAttr)
		}
		if i > 0 {
			own = without(own, op.PatternAttr, op.CountedAttr)
		}
		if name == "arg_attrs" {
			own = append(own, types.Named{Name: op.ComponentAttr, Value: types.TypeAttr{T: t}})
		}
		out = append(out, own)
	}
	return out
}

// flattener copies the ops of a function.
type flattener struct {
	values map[*ir.Value][]*ir.Value // what a value has become: its tensors, or one value
	blocks map[*ir.Block]*ir.Block
	from   From
	fused  bool // see Fused
	costs  bool // see Costed
	joined bool // an op does what several did
	made   []*ir.Op
}

// of is what v has become. A value that nothing before defines, as in a program with
// errors, becomes new ones.
func (x *flattener) of(v *ir.Value) []*ir.Value {
	vs, ok := x.values[v]
	if !ok {
		vs = op.Parts(v)
		x.values[v] = vs
	}
	return vs
}

func (x *flattener) all(vs []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, 0, len(vs))
	for _, v := range vs {
		out = append(out, x.of(v)...)
	}
	return out
}

// op is the ops that o becomes, in the block b.
func (x *flattener) op(o *ir.Op, b *ir.Block) []*ir.Op {
	switch {
	case o.Name == op.Pack && len(o.Results) == 1:
		if vs := x.all(o.Operands); len(vs) == len(op.Parts(o.Results[0])) {
			x.values[o.Results[0]] = vs
			return nil
		}
	case o.Name == op.Unpack && len(o.Operands) == 1:
		if x.unpack(o) {
			return nil
		}
	}
	if op.IsCheck(o) && op.Grouped(o) {
		return x.check(o, b)
	}
	if op.IsSparse(o) && !op.PassesOn(o) {
		in := make([][]*ir.Value, len(o.Operands))
		for i, v := range o.Operands {
			in[i] = x.of(v)
		}
		made, results := x.sparse(o, o, in, b)
		for i, v := range o.Results {
			x.values[v] = results[i]
		}
		return made
	}
	parts := op.Split(o)
	if parts == nil {
		return []*ir.Op{x.copied(o, x.all(o.Operands), b)}
	}
	results := make([][]*ir.Value, len(o.Results))
	var out []*ir.Op
	for i, p := range parts {
		in := make([][]*ir.Value, len(o.Operands))
		for j, v := range o.Operands {
			in[j] = member(v, i, x.of(v))
		}
		if op.IsSparse(p) {
			made, own := x.sparse(p, o, in, b)
			for j, vs := range own {
				results[j] = append(results[j], vs...)
			}
			out = append(out, made...)
			continue
		}
		for j, vs := range in {
			p.Operands[j] = vs[0]
		}
		p.Attrs, p.Parent = slices.Clone(o.Attrs), b
		if a := o.Attr(op.ShardingAttr); a != nil {
			p.RemoveAttr(op.ShardingAttr)
			if own := op.MemberSharding(a, ir.Types(o.Results), i); own != nil {
				p.SetAttr(op.ShardingAttr, own)
			}
		}
		x.note(p, o)
		for j, r := range p.Results {
			results[j] = append(results[j], r)
		}
		out = append(out, p)
	}
	for j, v := range o.Results {
		x.values[v] = results[j]
	}
	return out
}

// member are those of vs, what v has become, that member i of a tuple has; of other values all.
func member(v *ir.Value, i int, vs []*ir.Value) []*ir.Value {
	if !types.IsTuple(v.Type) {
		return vs
	}
	first := 0
	for k, m := range types.Members(v.Type) {
		n := len(types.Parts(m.Tensor))
		if k == i {
			return vs[first : first+n]
		}
		first += n
	}
	return vs
}

// sparse is o, which has sparse tensors and is a part of from, as dense ops. Of an op with
// errors the results are new values.
func (x *flattener) sparse(o, from *ir.Op, in [][]*ir.Value, b *ir.Block) ([]*ir.Op, [][]*ir.Value) {
	build := &ir.Builder{Block: &ir.Block{}, At: from, Loose: true}
	results, problem := x.lowered(build, o, in)
	if problem != nil {
		results = make([][]*ir.Value, len(o.Results))
		for i, v := range o.Results {
			results[i] = op.Parts(v)
		}
		return nil, results
	}
	for _, made := range build.Block.Ops {
		made.Parent = b
		x.note(made, from)
	}
	for i, v := range o.Results {
		for k, part := range types.Parts(v.Type) {
			if r := results[i][k]; r.Op != nil && r.Op.Parent == b && r.Name == "" {
				r.Name = op.MemberName(v.Name, part)
			}
		}
		if r := results[i][0]; !types.Compound(v.Type) && r.Op != nil && r.Op.Parent == b {
			op.KeepSharding(v, r)
		}
	}
	return build.Block.Ops, results
}

// lowered writes o at b, with ops before it that only it needs where that is better.
func (x *flattener) lowered(b *ir.Builder, o *ir.Op, in [][]*ir.Value) ([][]*ir.Value, *op.Problem) {
	if x.fused {
		if results, ok := op.LowerStoredAttention(b, o, x.of); ok {
			x.joined = true
			return results, nil
		}
	}
	return op.LowerSparse(b, o, in, x.costs)
}

// check is o, which compares tuples, as a check of each member.
func (x *flattener) check(o *ir.Op, b *ir.Block) []*ir.Op {
	var out []*ir.Op
	for i, m := range types.Members(o.Operands[0].Type) {
		var operands []*ir.Value
		for _, v := range o.Operands {
			if vs := x.of(v); i < len(vs) {
				operands = append(operands, vs[i])
			}
		}
		c := x.copied(o, operands, b)
		c.Verbatim = false
		c.SetAttr(op.MemberAttr, types.Str(m.Path))
		out = append(out, c)
	}
	return out
}

func (x *flattener) unpack(o *ir.Op) bool {
	vs, n := x.of(o.Operands[0]), 0
	for _, r := range o.Results {
		n += len(op.Parts(r))
	}
	if n != len(vs) {
		return false
	}
	for _, r := range o.Results {
		n := len(op.Parts(r))
		x.values[r], vs = vs[:n:n], vs[n:]
	}
	return true
}

// copied is o with the operands given and its tuples as their tensors.
func (x *flattener) copied(o *ir.Op, operands []*ir.Value, b *ir.Block) *ir.Op {
	c := *o
	c.Operands, c.Parent, c.Attrs = operands, b, slices.Clone(o.Attrs)
	c.Results = nil
	for _, v := range o.Results {
		vs := fresh(v)
		for _, r := range vs {
			r.Op, r.Index = &c, len(c.Results)
			c.Results = append(c.Results, r)
		}
		x.values[v] = vs
	}
	if o.Name == op.Grad && (op.Grouped(o) || op.IsSparse(o)) {
		x.gradients(&c, o)
	}
	if a := o.Attr(op.ShardingAttr); a != nil && slices.ContainsFunc(o.Results, func(v *ir.Value) bool { return types.Compound(v.Type) }) {
		c.RemoveAttr(op.ShardingAttr)
		if flat := op.FlatSharding(a, ir.Types(o.Results)); flat != nil {
			c.SetAttr(op.ShardingAttr, flat)
		}
	}
	if n := op.Carries(o); o.Name == op.Scan && op.Grouped(o) {
		c.SetAttr("carries", types.Int{V: int64(len(tensors(ir.Types(o.Operands[:n]))))})
	}
	c.Regions = make([]*ir.Region, len(o.Regions))
	for i, r := range o.Regions {
		c.Regions[i] = x.region(r, &c)
	}
	x.note(&c, o)
	return &c
}

// fresh is copies of v, or values for its tensors.
func fresh(v *ir.Value) []*ir.Value {
	if types.Compound(v.Type) {
		return op.Parts(v)
	}
	n := *v
	n.Uses = nil
	return []*ir.Value{&n}
}

// gradients counts the arguments of a dm.grad in tensors. The gradient by a sparse tensor
// is one by its values, stored as the tensor is; so is a cotangent.
func (x *flattener) gradients(c, o *ir.Op) {
	wrt, cotangents := op.Gradients(o)
	c.SetAttr("wrt", op.IntList(wrt...))
	if cotangents > 0 {
		c.SetAttr("cotangents", types.Int{V: cotangents})
	}
	args, _ := op.GradArgs(o)
	own := len(o.Results) - len(args)
	if own < 0 {
		return
	}
	c.Results, c.Operands = nil, nil
	for i, v := range o.Operands {
		vs := x.of(v)
		if i >= len(o.Operands)-int(op.Int(o, "cotangents")) {
			vs = slices.DeleteFunc(slices.Clone(vs), func(v *ir.Value) bool { return !v.Elem().IsFloat() })
		}
		c.Operands = append(c.Operands, vs...)
	}
	for i, v := range o.Results {
		vs := x.values[v]
		for k, r := range vs {
			if i >= own && !r.Elem().IsFloat() {
				vs[k] = x.of(o.Operands[args[i-own]])[k]
				continue
			}
			r.Op, r.Index = c, len(c.Results)
			c.Results = append(c.Results, r)
		}
	}
}

func (x *flattener) note(o, from *ir.Op) {
	x.from[o] = from
	x.made = append(x.made, o)
}

func (x *flattener) region(r *ir.Region, owner *ir.Op) *ir.Region {
	c := &ir.Region{Op: owner, Blocks: make([]*ir.Block, len(r.Blocks))}
	for i, b := range r.Blocks {
		c.Blocks[i] = &ir.Block{Label: b.Label, Region: c}
		x.blocks[b] = c.Blocks[i]
	}
	for i, b := range r.Blocks {
		n := c.Blocks[i]
		for _, v := range b.Args {
			vs := fresh(v)
			for _, a := range vs {
				a.Block, a.Index = n, len(n.Args)
				n.Args = append(n.Args, a)
			}
			x.values[v] = vs
		}
		var begins types.Attr // the stage that an op which vanishes begins
		for _, o := range b.Ops {
			made := x.op(o, n)
			if stage := o.Attr(op.StageAttr); stage != nil {
				begins = stage
			}
			if len(made) > 0 && begins != nil {
				if !op.Ends(o) {
					made[0].SetAttr(op.StageAttr, begins)
				}
				begins = nil
			}
			n.Ops = append(n.Ops, made...)
		}
	}
	return c
}

// link records the uses of every value and the successors of every op.
func (x *flattener) link() {
	for _, o := range x.made {
		for i, v := range o.Operands {
			v.Uses = append(v.Uses, ir.Use{Op: o, Index: i})
		}
		if len(o.Succs) > 0 {
			o.Succs = slices.Clone(o.Succs)
		}
		for i, b := range o.Succs {
			if n := x.blocks[b]; n != nil {
				o.Succs[i] = n
			}
		}
	}
}
