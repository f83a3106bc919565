// Package stacks cuts a loop over layers, a dm.scan whose stacks are the weights of equal layers, into as many loops as a
// pipeline has stages. What has an element for each layer along its first dimension, as those weights, their gradients and
// the states of their optimizers, becomes a tuple of pieces, each of which is that of one stage: the arguments and results
// of the step, element-wise ops and optimizers between these and the loop, and gradients. Package flatten then makes of
// pieces values of their own, so that what follows sees layers as those of equal calls.
//
// What another op needs is put together from the pieces, and what another op makes is sliced. An argument of the step that
// an op needs whole stays whole.
package stacks

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// A Loop is a dm.scan in the body of a function.
type Loop struct {
	Func *ir.Func
	Op   *ir.Op
}

// Stated is the loop that the text has cut into stages (op.StagesAttr), of fn or of a function that it calls or
// differentiates, and into how many; nil where there is none.
func Stated(m *ir.Module, fn *ir.Func) (l *Loop, n int, problem *shard.Problem) {
	for _, f := range reached(m, fn) {
		ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
			k := int(o.Int(op.StagesAttr, 0))
			if k < 1 || o.Name != op.Scan || problem != nil {
				return true
			}
			switch {
			case l != nil:
				problem = &shard.Problem{At: o, Msg: "a second loop is cut into stages", Help: "the stages of a step are those of one loop: take " + op.StagesAttr + " away from the others"}
			case o.Parent != f.Body:
				problem = &shard.Problem{At: o, Msg: "the loop is cut into stages and stands inside another op", Help: "put it in the body of a function"}
			}
			l, n = &Loop{f, o}, k
			return true
		})
	}
	if problem == nil && l != nil {
		problem = l.Problem(n)
	}
	return l, n, problem
}

// A Place is that of an argument or a result of a step with pieces: the number of the one of the text that it is, or is a
// piece of, and which piece, or -1.
type Place struct{ Whole, Piece int }

// Places are those of the arguments, or results, of types ts that list of f ("arg_attrs", "res_attrs") describes, and how many pieces
// those have that have most.
func Places(f *ir.Op, list string, ts []types.Type) (out []Place, most int) {
	for whole := 0; len(out) < len(ts); whole++ {
		k := Pieces(f, list, len(out), ts[len(out)])
		if k < 1 {
			out = append(out, Place{whole, -1})
			continue
		}
		for piece := range k {
			out = append(out, Place{whole, piece})
		}
		most = max(most, k)
	}
	return out, most
}

// Pieces is how many pieces there are of what argument or result i, of type t, is a piece of; 0 where it is none.
func Pieces(f *ir.Op, list string, i int, t types.Type) int {
	all := Size(f, list, i)
	x, ok := t.(*types.Tensor)
	if all == 0 || !ok || x.Rank() == 0 {
		return 0
	}
	k, _ := x.Shape[0].Int()
	return int((all + k - 1) / max(k, 1))
}

// Size is that of the whole that argument or result i is a piece of, along its first dimension; 0 where it is none (op.StackedAttr).
func Size(f *ir.Op, list string, i int) int64 {
	n, _ := op.SignatureAttr(f, list, i, op.StackedAttr).(types.Int)
	return n.V
}

// Problem is why l cannot be cut into n parts, nil where it can.
func (l *Loop) Problem(n int) *shard.Problem {
	msg, help := op.CutProblem(l.Op, n)
	if msg == "" {
		return nil
	}
	return &shard.Problem{At: l.Op, Msg: msg, Help: help}
}

// Over is the loop over layers of a step: of the loops in the body of fn and of functions that it calls or
// differentiates the one that computes most and one of whose stacks is an argument of fn, or computed from such
// element by element, for which want holds. It is nil where there is none.
func Over(m *ir.Module, fn *ir.Func, want func(arg int) bool) *Loop {
	var best *Loop
	most := int64(-1)
	for _, f := range reached(m, fn) {
		for _, o := range f.Body.Ops {
			if o.Name != op.Scan || !op.Valid(o) {
				continue
			}
			n, _ := op.Trips(o)
			trips, ok := n.Int()
			if !ok || trips < 2 {
				continue
			}
			l := &Loop{f, o}
			if l.Problem(int(trips)) != nil {
				continue
			}
			c := newCutter(m, fn, l, int(trips))
			c.link()
			if !slices.ContainsFunc(fn.Args, func(a *ir.Value) bool { return c.cut[a] && !c.spoiled(fn, a) && want(a.Index) }) {
				continue
			}
			flop, _ := op.FLOP(o).Int()
			if flop > most {
				best, most = l, flop
			}
		}
	}
	return best
}

// Backward is the loop of f that goes back through another one, as a step that states its backward pass itself has it: from the last
// layer to the first, over what the first loop has kept of each. It is nil where there is none.
func Backward(f *ir.Func) *ir.Op {
	for _, o := range f.Body.Ops {
		if o.Name != op.Scan || !op.Valid(o) || !op.Bool(o, "reverse") {
			continue
		}
		n, _ := op.Trips(o)
		for _, v := range o.Operands[op.Carries(o):] {
			if v.Op == nil || v.Op.Name != op.Scan || op.Bool(v.Op, "reverse") || v.Index < op.Carries(v.Op) {
				continue
			}
			if k, _ := op.Trips(v.Op); k.Equal(n) {
				return o
			}
		}
	}
	return nil
}

// reached are fn and the functions that it calls or differentiates, those with bodies.
func reached(m *ir.Module, fn *ir.Func) []*ir.Func {
	var out []*ir.Func
	var visit func(f *ir.Func)
	visit = func(f *ir.Func) {
		if f == nil || f.Body == nil || f.Body.Terminator() == nil || slices.Contains(out, f) {
			return
		}
		out = append(out, f)
		ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
			if o.Name == op.Call || o.Name == op.Grad {
				visit(m.Func(o.Str("callee")))
			}
			return true
		})
	}
	visit(fn)
	return out
}

// cutter cuts a loop.
type cutter struct {
	m     *ir.Module
	fn    *ir.Func // the step
	loop  *Loop
	ahead map[*ir.Op]bool // the ops before the loop in its function
	n     int
	size  int64 // of what is cut, along its first dimension
	each  int64 // of a piece; the last one is padded to it
	funcs []*ir.Func
	cut   map[*ir.Value]bool
	// whole are the functions whose results stay whole, since they are differentiated with cotangents.
	whole map[*ir.Func]bool
	kept  map[*ir.Value]bool // arguments of the step that stay whole
}

func newCutter(m *ir.Module, fn *ir.Func, l *Loop, n int) *cutter {
	trips, _ := op.Trips(l.Op)
	size, _ := trips.Int()
	c := &cutter{m: m, fn: fn, loop: l, ahead: map[*ir.Op]bool{}, n: n, size: size, each: int64(op.StageLayers(int(size), n)), funcs: reached(m, fn), cut: map[*ir.Value]bool{}, whole: map[*ir.Func]bool{}, kept: map[*ir.Value]bool{}}
	for _, o := range l.Func.Body.Ops[:l.Op.Position()] {
		c.ahead[o] = true
	}
	for _, f := range c.funcs {
		for _, o := range f.Body.Ops {
			if o.Name == op.Grad && op.Int(o, "cotangents") > 0 {
				c.whole[c.callee(o)] = true
			}
		}
	}
	return c
}

// callee is the function that o calls or differentiates; nil for other ops, and where it has no body.
func (c *cutter) callee(o *ir.Op) *ir.Func {
	if o.Name != op.Call && o.Name != op.Grad {
		return nil
	}
	f := c.m.Func(o.Str("callee"))
	if f == nil || f.Body == nil || f.Body.Terminator() == nil {
		return nil
	}
	return f
}

// link finds the values that are cut: the stacks of the loop, its stacked results, and what corresponds to these element by
// element.
func (c *cutter) link() {
	next := map[*ir.Value][]*ir.Value{}
	link := func(a, b *ir.Value) {
		next[a], next[b] = append(next[a], b), append(next[b], a)
	}
	for _, f := range c.funcs {
		for _, o := range f.Body.Ops {
			if g := c.callee(o); g != nil {
				for k, v := range o.Operands[:min(len(o.Operands), len(g.Args))] {
					link(v, g.Args[k])
				}
				results := g.Body.Terminator().Operands
				for k, v := range results {
					if k < len(o.Results) && !c.whole[g] {
						link(v, o.Results[k])
					}
				}
				for k, r := range gradients(o, len(results)) {
					link(k, r)
				}
				continue
			}
			if f == c.loop.Func && !c.ahead[o] || !c.memberwise(o) {
				continue
			}
			for _, v := range slices.Concat(o.Operands, o.Results) {
				if c.layered(v, o) {
					link(o.Results[0], v)
				}
			}
		}
	}
	outs := c.fn.Body.Terminator().Operands
	for i, a := range op.State(c.fn.Op) {
		if a >= 0 && a < len(c.fn.Args) && i < len(outs) {
			link(outs[i], c.fn.Args[a])
		}
	}
	carries := op.Carries(c.loop.Op)
	queue := slices.Concat(c.loop.Op.Operands[carries:], c.loop.Op.Results[carries:])
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		if !c.cut[v] {
			c.cut[v] = true
			queue = append(queue, next[v]...)
		}
	}
}

// gradients are those that o, a dm.grad of a function with so many results, takes, by what they are taken by.
func gradients(o *ir.Op, results int) map[*ir.Value]*ir.Value {
	out := map[*ir.Value]*ir.Value{}
	if o.Name != op.Grad {
		return out
	}
	args, _ := op.GradArgs(o)
	for i, a := range args {
		if a < len(o.Operands) && results+i < len(o.Results) {
			out[o.Operands[a]] = o.Results[results+i]
		}
	}
	return out
}

// layered reports whether v, an operand or a result of the element-wise op o, has an element for each layer.
func (c *cutter) layered(v *ir.Value, o *ir.Op) bool {
	t, r := v.Tensor(), o.Results[0].Tensor()
	if t == nil || t.Rank() == 0 || t.Rank() != r.Rank() {
		return false
	}
	n, ok := t.Shape[0].Int()
	return ok && n == c.size
}

// memberwise reports whether o computes each layer's part of its results from that layer's parts of its operands.
func (c *cutter) memberwise(o *ir.Op) bool {
	d := op.Of(o)
	if d == nil || !d.Is(op.Memberwise) || len(o.Regions) > 0 || len(o.Results) == 0 || o.Results[0].Tensor() == nil || !c.layered(o.Results[0], o) {
		return false
	}
	rank := o.Results[0].Tensor().Rank()
	fits := func(v *ir.Value) bool {
		t := v.Tensor()
		if t == nil || t.Rank() > rank {
			return false
		}
		n, ok := int64(1), true
		if t.Rank() == rank {
			n, ok = t.Shape[0].Int()
		}
		return ok && (n == 1 || n == c.size)
	}
	for _, r := range o.Results {
		if !c.layered(r, o) {
			return false
		}
	}
	return !slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return !fits(v) })
}

// reduces reports whether o is a reduction along the layers, which is one of each piece and then one of these.
func (c *cutter) reduces(o *ir.Op) bool {
	if o.Name != op.Prefix+"reduce" || len(o.Operands) != 1 {
		return false
	}
	_, named := types.ReductionOf(op.Str(o, "kind"))
	exact := !o.Operands[0].Elem().IsFloat() || o.Operands[0].Elem().Bits() >= 32 // what a piece gives of half precision is rounded
	dims := op.Ints(o, "dims")
	return named && exact && (op.Attr(o, "dims") == nil || slices.Contains(dims, 0))
}

// takes reports whether the op of u, a use in f of a value that is cut, takes it in pieces.
func (c *cutter) takes(f *ir.Func, u ir.Use) bool {
	o := u.Op
	switch {
	case o.Parent != f.Body:
		return false
	case o == c.loop.Op:
		return u.Index >= op.Carries(o)
	case o.Name == op.Return:
		if f != c.fn {
			return !c.whole[f]
		}
		state := op.State(f.Op)
		return u.Index >= len(state) || state[u.Index] < 0 || !c.kept[f.Args[state[u.Index]]]
	}
	if g := c.callee(o); g != nil {
		return u.Index < len(g.Args)
	}
	return c.computes(f, o) || f != c.loop.Func && c.reduces(o)
}

// computes reports whether o, in f, is computed piece by piece. In the function of the loop only what leads to it is, since
// each piece is computed in the stage of its layers.
func (c *cutter) computes(f *ir.Func, o *ir.Op) bool {
	if !c.memberwise(o) || !c.cut[o.Results[0]] {
		return false
	}
	if f != c.loop.Func {
		return true
	}
	if !c.ahead[o] {
		return false
	}
	for _, r := range o.Results {
		if slices.ContainsFunc(r.Uses, func(u ir.Use) bool { return u.Op.Name == op.Return || !c.takes(f, u) }) {
			return false
		}
	}
	return true
}

// makes reports whether v, a value of f that is cut, is made in pieces.
func (c *cutter) makes(f *ir.Func, v *ir.Value) bool {
	if v.Op == nil {
		return !c.kept[v]
	}
	if v.Op == c.loop.Op {
		return true
	}
	if g := c.callee(v.Op); g != nil {
		return v.Index >= len(g.Body.Terminator().Operands) || !c.whole[g]
	}
	return c.computes(f, v.Op)
}

// spoiled reports whether an op needs v, an argument of f, whole.
func (c *cutter) spoiled(f *ir.Func, v *ir.Value) bool {
	for _, u := range v.Uses {
		if !c.takes(f, u) {
			return true
		}
		if g := c.callee(u.Op); g != nil && c.spoiled(g, g.Args[u.Index]) {
			return true
		}
	}
	return false
}
