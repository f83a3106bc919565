// Package partition makes of a function of whole tensors, whose text states how some of
// them are divided over the devices of a mesh, the function that each device runs: with the shapes of
// its pieces, and with collectives where a piece is needed that another device has.
//
// An op runs on pieces as its factors allow (op.FactorsOf); which factors are divided is chosen
// for each op by what it makes the devices send and compute. A value is kept as it was
// computed, partial sums included, until an op needs it otherwise; what was converted once serves all
// later ops. Values whose sharding the text states have that sharding. Dimensions that are not
// divided evenly are padded at the end; what the padding holds is not defined, and reductions mask it.
package partition

import (
	"context"
	"fmt"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// Func is the function that one device runs of f, a function of m without tuples, calls and
// gradients, whose sizes are numbers. It has f's name and belongs to no module; f stays as it is. It is
// nil where the text of f divides nothing. Once ctx has ended the problem says only that, and the caller
// asks ctx.
func Func(ctx context.Context, m *ir.Module, f *ir.Func) (*ir.Func, *shard.Problem) {
	g, _, problem := Divide(ctx, m, f)
	return g, problem
}

// Made is the sharding in which the devices first have the result of an op, which has the op's
// name and place: partial where it has not been reduced yet.
type Made struct {
	Value *ir.Value
	Shard *types.Sharding
}

// Divide is Func, with the shardings of the results of f's ops.
func Divide(ctx context.Context, m *ir.Module, f *ir.Func) (*ir.Func, []Made, *shard.Problem) {
	if _, stated, problem := shard.Stated(m, f); problem != nil || len(stated) == 0 {
		return nil, nil, problem
	}
	whole := f.Clone()
	op.ShardingsInTypes(whole)
	values, problem := shard.Propagate(m, whole)
	if problem != nil {
		return nil, nil, problem
	}
	d, problem := follow(ctx, values, whole, false)
	if problem != nil {
		return nil, nil, problem
	}
	return d.Func, d.made, nil
}

// Division is a function that one device runs, and what its ops and values are pieces of.
type Division struct {
	Func *ir.Func
	// From is, for each op of its body but the last, the op of whole tensors that it was made for.
	From map[*ir.Op]*ir.Op
	// Of is the whole value that a value is a form of: pieces, parts of a sum, or all of it.
	Of map[*ir.Value]*ir.Value
	// Own are the slices by which a device takes, by its position, its own piece of what every device
	// has, with the dimension that they divide.
	Own map[*ir.Op]int
	// Expanded is, for the ops that were written out in simpler ones, the op that each of these stands
	// for; and for the values that are its results, those results.
	Expanded map[*ir.Op]*ir.Op
	Renamed  map[*ir.Value]*ir.Value

	made []Made
}

// Follow divides f by the layouts of its values, which have been propagated, with what its ops and values come
// from. Composite ops whose inner steps are divided are expanded in f itself. If reduce is true, whatever can be is
// computed without other collectives than reductions, also where these send more.
func Follow(values *shard.Values, f *ir.Func, reduce bool) (*Division, *shard.Problem) {
	return follow(context.Background(), values, f, reduce)
}

func follow(ctx context.Context, values *shard.Values, f *ir.Func, reduce bool) (*Division, *shard.Problem) {
	p := &partitioner{
		ctx: ctx, grid: values.Grid, values: values, fn: f, sums: reduce, sum: map[*ir.Value]int64{},
		have: map[*ir.Value][]version{}, makers: map[*ir.Value]maker{}, ids: map[string]*ir.Value{},
		Division: &Division{
			From: map[*ir.Op]*ir.Op{}, Of: map[*ir.Value]*ir.Value{}, Own: map[*ir.Op]int{},
			Expanded: map[*ir.Op]*ir.Op{}, Renamed: map[*ir.Value]*ir.Value{},
		},
	}
	g, problem := p.function()
	if problem != nil {
		return nil, problem
	}
	p.Func = g
	return p.Division, nil
}

// version is one form in which the devices have a value.
type version struct {
	layout shard.Layout
	piece  *ir.Value
	level  int // of the region that it stands in
}

// maker computes a piece of a value that needs no operands, in any layout without partial
// axes.
type maker func(l shard.Layout) *ir.Value

type partitioner struct {
	ctx    context.Context
	grid   *shard.Grid
	values *shard.Values
	fn     *ir.Func // of whole tensors; composite ops are expanded in it
	b      *op.Builder
	levels []*op.Builder       // those of the regions that b stands in, from the function's on
	entry  *ir.Block           // of the new function
	head   int                 // how many ops of entry are positions of the device
	at     *ir.Op              // the op that is being divided
	sum    map[*ir.Value]int64 // see terms
	sums   bool                // other collectives than reductions are to be avoided

	have    map[*ir.Value][]version
	journal []grown // to forget the versions of a region behind it
	*Division
	makers map[*ir.Value]maker
	ids    map[string]*ir.Value // positions along axes

	problem *shard.Problem
}

// grown is that a value got a version in the region of a level.
type grown struct {
	v     *ir.Value
	level int
}

func (p *partitioner) fail(format string, args ...any) {
	if p.problem == nil {
		p.problem = &shard.Problem{At: p.at, Msg: fmt.Sprintf(format, args...)}
	}
}

// function builds the new function.
func (p *partitioner) function() (*ir.Func, *shard.Problem) {
	f := p.fn
	o := &ir.Op{Name: op.Func, Attrs: slices.Clone(f.Op.Attrs), Span: f.Op.Span, Head: f.Op.Head}
	p.entry = o.AddRegion()
	p.b = op.NewBuilder(&ir.Builder{Block: p.entry}, verify.Op)
	p.levels = []*op.Builder{p.b}
	ins := make(types.Array, len(f.Args))
	for i, a := range f.Args {
		l, _ := p.values.Of(a)
		t := a.Tensor()
		if t == nil {
			return nil, &shard.Problem{At: f.Op, Msg: fmt.Sprintf("argument %s is %s, which cannot be divided", a.Name, a.Type)}
		}
		piece := p.entry.AddArg(a.Name, p.local(t, l))
		piece.Span = a.Span
		p.add(a, l, piece)
		ins[i] = p.global(f.Op, "arg_attrs", i, t, l)
	}
	outs := p.results()
	if p.problem == nil && p.b.Err() != nil {
		p.fail("it cannot be divided: %s", p.b.Err())
	}
	if p.problem != nil {
		if p.problem.At == nil {
			p.problem.At = f.Op
		}
		return nil, p.problem
	}
	p.b.Builder.Op(op.Return, outs.pieces, nil)
	p.unbatch()
	g := &ir.Func{Op: o, Name: f.Name, Private: f.Private, Args: p.entry.Args, Body: p.entry}
	g.Retype()
	results := make(types.Array, len(outs.layouts))
	for i, l := range outs.layouts {
		results[i] = p.global(f.Op, "res_attrs", i, f.Body.Terminator().Operands[i].Tensor(), l)
	}
	o.SetAttr("arg_attrs", ins)
	o.SetAttr("res_attrs", results)
	o.SetAttr(op.MeshAttr, types.SymbolOf(p.grid.Mesh.Name))
	op.RemoveDead(p.entry)
	ir.CountUses(p.entry)
	return g, nil
}

// global is the dictionary of argument or result i with the type of the whole.
func (p *partitioner) global(f *ir.Op, list string, i int, t *types.Tensor, l shard.Layout) types.Dict {
	var d types.Dict
	if all, ok := f.Attr(list).(types.Array); ok && i < len(all) {
		own, _ := all[i].(types.Dict)
		d = slices.Clone(own)
	}
	whole := *t
	whole.At.Shard = p.grid.Sharding(l)
	if only, all := op.OnlyOf(f), op.SignatureAttr(f, list, i, op.StackedAttr); only != nil && all != nil {
		// Its devices have the pieces of one stage, and those of the other stages are beside these.
		axis := types.Axis{Name: only.Axis}
		whole.Shape = slices.Clone(t.Shape)
		whole.Shape[0] = dim.Const(all.(types.Int).V)
		s := *whole.At.Shard
		s.Dims = slices.Clone(s.Dims)
		s.Dims[0].Axes = append([]types.Axis{axis}, s.Dims[0].Axes...)
		whole.At.Shard = &s
		d = slices.DeleteFunc(d, func(a types.Named) bool { return a.Name == op.StackedAttr })
	}
	return append(d, types.Named{Name: op.GlobalAttr, Value: types.TypeAttr{T: &whole}})
}

// results divides the body of the function. What it returns has the shardings of its signature, or
// else the layout that propagation found, without partial axes.
func (p *partitioner) results() handed {
	last := p.fn.Body.Terminator()
	layouts := make([]shard.Layout, len(last.Operands))
	for i, v := range last.Operands {
		layouts[i] = p.settled(v)
		if r, ok := p.fn.Results[i].(*types.Tensor); ok && r.At.Shard != nil {
			layouts[i] = p.grid.Layout(r.At.Shard, r.Rank())
		}
	}
	return p.inside(p.fn.Body, layouts, nil)
}

// local is the type of a piece of t.
func (p *partitioner) local(t *types.Tensor, l shard.Layout) *types.Tensor {
	r := *t
	r.At.Shard = nil
	r.Shape = slices.Clone(t.Shape)
	for i, n := range p.grid.Piece(p.shape(t), l) {
		if len(l.Dims[i]) > 0 {
			r.Shape[i] = dim.Const(n)
		}
	}
	return &r
}

// shape is the sizes of t, 1 for what is no number, which is a failure where it is
// divided.
func (p *partitioner) shape(t *types.Tensor) []int64 {
	out := make([]int64, t.Rank())
	for i, d := range t.Shape {
		n, ok := d.Int()
		if !ok {
			n = 1
			p.fail("the size %s of %s is no number", d, t)
		}
		out[i] = n
	}
	return out
}

// add records that the devices have v in layout l.
func (p *partitioner) add(v *ir.Value, l shard.Layout, piece *ir.Value) {
	if len(p.have[v]) == 0 && v.Op != nil {
		p.made = append(p.made, Made{v, p.grid.Sharding(l)})
	}
	if p.Of[piece] == nil {
		p.Of[piece] = v
	}
	level := slices.Index(p.levels, p.b)
	p.have[v] = append(p.have[v], version{l, piece, level})
	p.journal = append(p.journal, grown{v, level})
}

// scope runs f, which builds in a region; the versions of values that stand there are
// forgotten behind it.
func (p *partitioner) scope(block *ir.Block, f func()) {
	outer, start, level := p.b, len(p.journal), len(p.levels)
	p.b = op.NewBuilder(&ir.Builder{Block: block}, verify.Op)
	p.levels = append(p.levels, p.b)
	f()
	if err := p.b.Err(); err != nil {
		p.fail("it cannot be divided: %s", err)
	}
	kept := p.journal[:start]
	for _, g := range p.journal[start:] {
		if g.level < level {
			kept = append(kept, g)
			continue
		}
		p.have[g.v] = slices.DeleteFunc(p.have[g.v], func(v version) bool { return v.level == level })
	}
	p.journal, p.levels, p.b = kept, p.levels[:level], outer
}

// cost is what it sends, in bytes of all devices, to have v in layout l, and from which
// version.
func (p *partitioner) cost(v *ir.Value, l shard.Layout) (sent int64, from int, plan *shard.Plan) {
	t := v.Tensor()
	from = -1
	if p.makers[v] != nil && len(l.Partial) == 0 {
		return 0, -1, nil
	}
	shape := p.shape(t)
	for i, have := range p.have[v] {
		next := p.grid.Plan(shape, have.layout, l)
		if plan == nil || next.Sent < plan.Sent || next.Sent == plan.Sent && len(next.Moves) < len(plan.Moves) {
			plan, from = next, i
		}
	}
	if plan == nil {
		return 0, -1, nil
	}
	return plan.Sent * t.Elem.Bits() / 8, from, plan
}

// get is v in layout l. What it takes to convert a value from outside of a loop stands
// outside, so that devices send it once.
func (p *partitioner) get(v *ir.Value, l shard.Layout) *ir.Value {
	for _, have := range p.have[v] {
		if have.layout.Equal(l) {
			return have.piece
		}
	}
	_, from, plan := p.cost(v, l)
	if plan == nil {
		make := p.makers[v]
		if make == nil {
			p.fail("%s has no value here", v.Name)
			return &ir.Value{Type: p.local(v.Tensor(), l)}
		}
		piece := make(l)
		p.add(v, l, piece)
		return piece
	}
	have := p.have[v][from]
	piece, at := have.piece, have.layout
	inner := p.b
	p.b = p.levels[have.level]
	defer func() { p.b = inner }()
	for _, m := range plan.Moves {
		before := piece
		piece = p.move(v.Tensor(), piece, at, m)
		regathered(v, before, piece)
		if piece.Name == "" && piece.Op != nil {
			piece.Name = v.Name
		}
		at = m.Into
		p.add(v, at, piece)
	}
	return piece
}

// regathered marks what a move made of before if v is a form of an argument that is gathered several times.
func regathered(v, before, piece *ir.Value) {
	if v.Op == nil || v.Op.Name != op.Reshard {
		return
	}
	mark := v.Op.Attr(op.RegatheredAttr)
	for o := piece.Op; mark != nil && piece != before && o != nil; o = piece.Op {
		o.SetAttr(op.RegatheredAttr, mark)
		piece = o.Operands[0]
	}
}
