package stacks

import (
	"fmt"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// Stages is fn with the loop that its text has cut into stages as as many loops, in a module of its own, without tuples; m
// and fn themselves where there is none. Arguments and results of fn that have become pieces have op.StackedAttr, here and
// in Layers.
func Stages(m *ir.Module, fn *ir.Func) (*ir.Module, *ir.Func, *shard.Problem) {
	l, n, problem := Stated(m, fn)
	if l == nil || problem != nil {
		return m, fn, problem
	}
	return cut(m, fn, l, n, true)
}

// Layers is fn, without tuples, with l as what it repeats, once for each layer.
func Layers(m *ir.Module, fn *ir.Func, l *Loop) (*ir.Module, *ir.Func, *shard.Problem) {
	n, _ := op.Trips(l.Op)
	trips, _ := n.Int()
	return cut(m, fn, l, int(trips), false)
}

func cut(m *ir.Module, fn *ir.Func, l *Loop, n int, staged bool) (*ir.Module, *ir.Func, *shard.Problem) {
	at := l.Op.Position()
	own := m.Clone()
	g := own.Func(l.Func.Name)
	w := &writer{cutter: newCutter(own, own.Func(fn.Name), &Loop{g, g.Body.Ops[at]}, n), staged: staged}
	w.link()
	for _, a := range w.fn.Args {
		w.kept[a] = w.cut[a] && w.spoiled(w.fn, a)
	}
	w.write()
	if w.problem != nil {
		return m, fn, w.problem
	}
	own, flat, _ := flatten.In(own, w.fn)
	return own, flat, nil
}

// writer rewrites the functions that a cutter cuts.
type writer struct {
	*cutter
	staged  bool
	problem *shard.Problem
}

// pieces is the type of a value of type t in pieces.
func (w *writer) pieces(t *types.Tensor) *types.Tuple {
	out := &types.Tuple{}
	for range w.n {
		out.Of = append(out.Of, w.piece(t))
	}
	return out
}

func (w *writer) piece(t *types.Tensor) *types.Tensor {
	r := t.With(slices.Concat([]dim.Dim{dim.Const(w.each)}, t.Shape[1:])...)
	r.At = t.At
	return r
}

// A value that is cut, and what uses it.
type found struct {
	v            *ir.Value
	makes        bool // in pieces
	takes, needs []ir.Use
}

// write changes all functions. What each value is and how it is used is found before any of them changes.
func (w *writer) write() {
	type body struct {
		f        *ir.Func
		values   []found
		reduces  []*ir.Op
		computes map[*ir.Op]bool
	}
	bodies := make([]body, len(w.funcs))
	for i, f := range w.funcs {
		b := body{f: f, computes: map[*ir.Op]bool{}}
		note := func(v *ir.Value) {
			if !w.cut[v] {
				return
			}
			x := found{v: v, makes: w.makes(f, v)}
			for _, u := range v.Uses {
				if w.takes(f, u) {
					x.takes = append(x.takes, u)
				} else {
					x.needs = append(x.needs, u)
				}
			}
			b.values = append(b.values, x)
		}
		for _, a := range f.Args {
			note(a)
		}
		for _, o := range f.Body.Ops {
			for _, r := range o.Results {
				note(r)
			}
			switch {
			case w.computes(f, o):
				b.computes[o] = true
			case f != w.loop.Func && w.reduces(o) && w.cut[o.Operands[0]]:
				b.reduces = append(b.reduces, o)
			}
		}
		bodies[i] = b
	}
	for _, b := range bodies {
		if len(b.values) == 0 {
			continue
		}
		if b.f == w.loop.Func {
			w.loopFunction(b.f, b.values, b.computes)
		} else {
			for _, x := range b.values {
				w.divide(b.f, x)
			}
			for o := range b.computes {
				o.RemoveAttr(op.GradientShardingAttr)
				w.repeat(o, op.ShardingAttr)
			}
			for _, o := range b.reduces {
				w.reduce(o)
			}
		}
		w.signature(b.f)
	}
}

// divide gives x the type of its pieces, and what needs it whole, or in pieces where it is whole, what it needs.
func (w *writer) divide(f *ir.Func, x found) {
	t := x.v.Tensor()
	b := w.behind(f, x.v)
	if !x.makes {
		if len(x.takes) > 0 {
			p := b.Value("pack", w.slices(b, x.v), nil)
			use(p, x.takes)
		}
		return
	}
	x.v.Type = w.pieces(t)
	if len(x.needs) > 0 {
		use(w.joined(b, w.unpacked(b, x.v, t)), x.needs)
	}
}

// use makes v the operand of uses.
func use(v *ir.Value, uses []ir.Use) {
	for _, u := range uses {
		u.Op.SetOperand(u.Index, v)
	}
}

// behind is a builder behind what makes v.
func (w *writer) behind(f *ir.Func, v *ir.Value) *op.Builder {
	b := &ir.Builder{Block: f.Body}
	if v.Op != nil {
		b.Index, b.At = v.Op.Position()+1, v.Op
	} else {
		b.At = f.Body.Terminator()
	}
	return op.NewBuilder(b, nil)
}

// slices are the pieces of x, a tensor.
func (w *writer) slices(b *op.Builder, x *ir.Value) []*ir.Value {
	out := make([]*ir.Value, w.n)
	for i := range out {
		start := int64(i) * w.each
		out[i] = w.padded(b, w.layers(b, x, start, start+w.count(i)))
		out[i].Name = numbered(x.Name, i)
	}
	return out
}

// count is how many layers piece i has.
func (w *writer) count(i int) int64 { return min(w.each, w.size-int64(i)*w.each) }

// layers are those of x from start to limit.
func (w *writer) layers(b *op.Builder, x *ir.Value, start, limit int64) *ir.Value {
	if n, _ := x.Tensor().Shape[0].Int(); start == 0 && limit == n {
		return x
	}
	return b.Value("slice", []*ir.Value{x}, []types.Named{
		{Name: "start_indices", Value: op.IntList(int(start))},
		{Name: "limit_indices", Value: op.IntList(int(limit))},
		{Name: "dims", Value: op.IntList(0)},
	})
}

// padded is x, layers of a piece, with as many as pieces have, those behind its own zeros.
func (w *writer) padded(b *op.Builder, x *ir.Value) *ir.Value {
	n, _ := x.Tensor().Shape[0].Int()
	if n == w.each {
		return x
	}
	low, high := make([]int, x.Tensor().Rank()), make([]int, x.Tensor().Rank())
	high[0] = int(w.each - n)
	zero := b.Splat(&types.Tensor{Elem: x.Elem()}, 0)
	return b.Value("pad", []*ir.Value{x, zero}, []types.Named{{Name: "low", Value: op.IntList(low...)}, {Name: "high", Value: op.IntList(high...)}})
}

// numbered is the name of piece i of the value called name.
func numbered(name string, i int) string {
	if name == "" {
		return ""
	}
	return op.MemberName(name, types.Member{Path: fmt.Sprintf(".%d", i)})
}

// unpacked are the pieces of v, which was of type t and is a tuple of them.
func (w *writer) unpacked(b *op.Builder, v *ir.Value, t *types.Tensor) []*ir.Value {
	ts := make([]types.Type, w.n)
	for i := range ts {
		ts[i] = w.piece(t)
	}
	return b.Builder.Op(op.Unpack, []*ir.Value{v}, nil, ts...).Results
}

// joined is a tensor of pieces.
func (w *writer) joined(b *op.Builder, pieces []*ir.Value) *ir.Value {
	pieces = slices.Clone(pieces)
	pieces[w.n-1] = w.layers(b, pieces[w.n-1], 0, w.count(w.n-1))
	return b.Value("concatenate", pieces, []types.Named{{Name: "dim", Value: types.Int{V: 0}}})
}

// repeat states the attribute of o called name, of each of its results, for each piece.
func (w *writer) repeat(o *ir.Op, name string) {
	list := types.Array{o.Attr(name)}
	if len(o.Results) > 1 {
		list, _ = o.Attr(name).(types.Array)
	}
	if o.Attr(name) == nil || len(list) != len(o.Results) {
		return
	}
	of := make(types.Array, len(list))
	for i, a := range list {
		of[i] = slices.Repeat(types.Array{a}, w.n)
	}
	if len(of) == 1 {
		o.SetAttr(name, of[0])
	} else {
		o.SetAttr(name, of)
	}
}

// reduce makes of o, a reduction of a value in pieces, one of each piece, and one of these.
func (w *writer) reduce(o *ir.Op) {
	b := op.NewBuilder(&ir.Builder{Block: o.Parent, Index: o.Position(), At: o}, nil)
	v := o.Operands[0]
	t, ok := v.Type.(*types.Tuple)
	if !ok {
		return
	}
	parts := b.Builder.Op(op.Unpack, []*ir.Value{v}, nil, t.Of...).Results
	var all *ir.Value
	for i, p := range parts {
		p = w.layers(b, p, 0, w.count(i))
		r := ir.CloneOps(b.Builder, []*ir.Op{o}, map[*ir.Value]*ir.Value{v: p})[0].Results[0]
		r.Name = ""
		if all == nil {
			all = r
			continue
		}
		all = b.Value(op.Str(o, "kind"), []*ir.Value{all, r}, nil)
	}
	all.Name = o.Results[0].Name
	ir.ReplaceUses(o.Results[0], all)
	ir.Erase(o)
}

// signature gives f the types of what it takes and returns, and the attributes that belong to them.
func (w *writer) signature(f *ir.Func) {
	outs := f.Body.Terminator().Operands
	f.Retype()
	for _, l := range []struct {
		name  string
		types []types.Type
	}{{"arg_attrs", ir.Types(f.Args)}, {"res_attrs", ir.Types(outs)}} {
		own, _ := f.Op.Attr(l.name).(types.Array)
		own = slices.Clone(own)
		for len(own) < len(l.types) {
			own = append(own, types.Dict{})
		}
		for i, t := range l.types {
			if !types.IsTuple(t) {
				continue
			}
			d, _ := own[i].(types.Dict)
			if a := op.SignatureAttr(f.Op, l.name, i, op.ShardingAttr); a != nil {
				d = op.WithSharding(d, slices.Repeat(types.Array{a}, w.n))
			}
			if f == w.fn {
				d = append(slices.Clone(d), types.Named{Name: op.StackedAttr, Value: types.Int{V: w.size, Elem: types.I64}})
			}
			own[i] = d
		}
		f.Op.SetAttr(l.name, own)
	}
}

// loopFunction writes the loop as one for each piece, and in front of each of them what leads to it alone.
func (w *writer) loopFunction(f *ir.Func, values []found, computes map[*ir.Op]bool) {
	loop := w.loop.Op
	if w.staged {
		w.resolve(f)
	}
	pieces := map[*ir.Value][]*ir.Value{}
	for _, x := range values {
		switch {
		case x.v.Op == loop:
		case x.v.Op != nil && computes[x.v.Op]:
		case !x.makes && len(x.takes) > 0:
			pieces[x.v] = w.slices(w.behind(f, x.v), x.v)
		case x.makes:
			t := x.v.Tensor()
			x.v.Type = w.pieces(t)
			b := w.behind(f, x.v)
			pieces[x.v] = w.unpacked(b, x.v, t)
			if len(x.needs) > 0 {
				use(w.joined(b, pieces[x.v]), x.needs)
			}
		}
	}
	var ahead []*ir.Op
	for _, o := range f.Body.Ops {
		if computes[o] {
			ahead = append(ahead, o)
		}
	}
	b := op.NewBuilder(&ir.Builder{Block: f.Body, Index: loop.Position(), At: loop}, nil)
	c := op.Carries(loop)
	carried := slices.Clone(loop.Operands[:c])
	stacked := make([][]*ir.Value, len(loop.Results)-c)
	for i := range w.n {
		start := b.Index
		own := map[*ir.Value]*ir.Value{}
		for v, ps := range pieces {
			own[v] = ps[i]
		}
		for _, o := range ahead {
			p := ir.CloneOps(b.Builder, []*ir.Op{o}, own)[0]
			for k, r := range p.Results {
				r.Type, r.Name = w.piece(r.Tensor()), numbered(r.Name, i)
				own[o.Results[k]] = r
			}
		}
		stacks := make([]*ir.Value, 0, len(loop.Operands)-c)
		for _, v := range loop.Operands[c:] {
			stacks = append(stacks, own[v])
		}
		var ys []*ir.Value
		if carried, ys = w.iterate(b, i, carried, stacks); w.problem != nil {
			return
		}
		for k, y := range ys {
			stacked[k] = append(stacked[k], y)
		}
		if w.staged {
			for _, o := range f.Body.Ops[start:b.Index] {
				o.SetAttr(op.StageAttr, types.Int{V: int64(i), Elem: types.I64})
			}
		}
	}
	if w.staged { // what puts pieces together stands behind the last one
		loop.SetAttr(op.StageAttr, types.Int{V: int64(w.n - 1), Elem: types.I64})
	}
	for k, r := range loop.Results[:c] {
		if carried[k].Op != nil && carried[k].Op != loop {
			carried[k].Name = r.Name
		}
		ir.ReplaceUses(r, carried[k])
	}
	for _, x := range values {
		if x.v.Op != loop {
			continue
		}
		ps := stacked[x.v.Index-c]
		if len(x.takes) > 0 {
			use(b.Value("pack", ps, nil), x.takes)
		}
		if len(x.needs) > 0 {
			use(w.joined(b, ps), x.needs)
		}
	}
	ir.EraseAll(loop)
	for _, o := range slices.Backward(ahead) {
		ir.Erase(o)
	}
	if b.Err() != nil {
		w.problem = &shard.Problem{At: loop, Msg: "the loop cannot be cut: " + b.Err().Error()}
	}
}

// iterate writes the iterations of piece i: what the values carried into them become, and what they stack. A single one is
// written out.
func (w *writer) iterate(b *op.Builder, i int, carried, stacks []*ir.Value) (next, stacked []*ir.Value) {
	loop := w.loop.Op
	c, n := op.Carries(loop), w.count(i)
	args := slices.Clone(carried)
	for _, x := range stacks {
		args = append(args, w.layers(b, x, 0, n))
	}
	if n == 1 {
		for k, x := range args[c:] {
			args[c+k] = b.Reshape(x, x.Tensor().Shape[1:]...)
		}
		next = ir.CloneBlock(b.Builder, loop.Body(0), args)
		for _, y := range next[c:] {
			stacked = append(stacked, b.Reshape(y, slices.Concat([]dim.Dim{dim.Const(1)}, y.Tensor().Shape)...))
		}
		next = next[:c:c]
	} else {
		o := ir.CloneOps(b.Builder, []*ir.Op{loop}, map[*ir.Value]*ir.Value{})[0]
		o.SetOperands(args...)
		o.RemoveAttr(op.StagesAttr)
		if op.Attr(o, "length") != nil {
			o.SetAttr("length", types.Int{V: n})
		}
		for k, r := range o.Results {
			r.Name = numbered(r.Name, i)
			if k >= c {
				t := r.Tensor()
				r.Type = t.With(slices.Concat([]dim.Dim{dim.Const(n)}, t.Shape[1:])...)
			}
		}
		next, stacked = o.Results[:c:c], slices.Clone(o.Results[c:])
	}
	for k, y := range stacked {
		stacked[k] = w.padded(b, y)
		stacked[k].Name = numbered(loop.Results[c+k].Name, i)
	}
	return next, stacked
}

// resolve gives each op of f its stage: before the loop the first one, unless the text says otherwise, and behind it the last one.
func (w *writer) resolve(f *ir.Func) {
	stage := types.Attr(types.Int{Elem: types.I64})
	for _, o := range f.Body.Ops {
		if a := o.Attr(op.StageAttr); a != nil {
			stage = a
		} else if !op.Ends(o) {
			o.SetAttr(op.StageAttr, stage)
		}
		if o == w.loop.Op {
			stage = types.Int{V: int64(w.n - 1), Elem: types.I64}
		}
	}
}
