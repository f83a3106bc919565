package flatten

import (
	"fmt"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// Divided is f, a function of m, with the sparse arguments of which the text says that devices divide them in as many
// pieces as there are devices, and so is what has their patterns: in f, and in copies of the functions that it calls with
// them. Where the text divides none these are m and f themselves. Sizes of symbols are those of bind, and of f's own.
func Divided(m *ir.Module, f *ir.Func, bind map[string]int64) (*ir.Module, *ir.Func, *shard.Problem) {
	return Cut(m, f, bind, nil)
}

// Cut is Divided of f with further sparse arguments in pieces, of which the text states no sharding: of is how many, by the place of
// the argument.
func Cut(m *ir.Module, f *ir.Func, bind map[string]int64, of map[int]int64) (*ir.Module, *ir.Func, *shard.Problem) {
	if m == nil || m.Func(f.Name) != f || f.Body == nil || len(of) == 0 && !slices.ContainsFunc(f.Args, divides) {
		return m, f, nil
	}
	c := &cutter{m: m.Clone(), bind: bind, whole: map[*ir.Value]*types.Tensor{}}
	g := c.m.Func(f.Name)
	size(g, op.Bindings(g, bind))
	for i, a := range g.Args {
		if !divides(a) && of[i] == 0 {
			continue
		}
		t, problem := c.argument(g, i, of[i])
		if problem != nil {
			return m, f, problem
		}
		c.whole[a], a.Type = a.Tensor(), t
	}
	c.function(g)
	if c.problem != nil {
		return m, f, c.problem
	}
	return c.m, g, nil
}

// divides reports whether the text states a sharding of a sparse tensor of v.
func divides(v *ir.Value) bool {
	stated := op.StatedShardings(v)
	for i, m := range types.Members(v.Type) {
		if m.Tensor.Format != nil && i < len(stated) && stated[i] != nil {
			return true
		}
	}
	return false
}

// size gives the values of f numbers for symbols.
func size(f *ir.Func, bind map[string]int64) {
	op.Resize(f, dim.Consts(bind))
	sized(f)
}

// sized takes what f says of its symbols away, which have numbers.
func sized(f *ir.Func) {
	f.Op.RemoveAttr(op.BindAttr)
	f.Op.RemoveAttr(op.SizesAttr)
}

// cutter gives values pieces.
type cutter struct {
	m       *ir.Module
	bind    map[string]int64
	whole   map[*ir.Value]*types.Tensor // what a value in pieces is of
	made    int
	problem *shard.Problem
}

func (c *cutter) fail(at *ir.Op, help, format string, args ...any) {
	if c.problem == nil {
		c.problem = &shard.Problem{At: at, Msg: fmt.Sprintf(format, args...), Help: help}
	}
}

// argument is the type of argument i of f in pieces: in n, or where that is 0 in as many as the text divides it into.
func (c *cutter) argument(f *ir.Func, i int, n int64) (*types.Tensor, *shard.Problem) {
	v := f.Args[i]
	t, s := v.Tensor(), op.StatedSharding(v)
	if t == nil {
		c.fail(f.Op, "make it an argument of its own", "%s is a tuple, of which devices divide no sparse member", v.Name)
		return nil, c.problem
	}
	count := func(axes []types.Axis) int { return len(axes) * int(n) } // of axes that are one, or none
	if n == 0 {
		name, _ := s.Mesh.Name()
		on := mesh.Find(c.m, name)
		if on == nil || on.Problem(s) != "" {
			c.fail(f.Op, "", "%s is divided over no mesh of the file", v.Name)
			return nil, c.problem
		}
		count = on.Count
	} else {
		s = &types.Sharding{Dims: make([]types.Split, t.Rank())}
		s.Dims[t.Format.Outermost()].Axes = []types.Axis{{}}
	}
	pieces, byEntries, msg, help := op.ArgumentPieces(f, i, t, s, count)
	if msg != "" {
		c.fail(f.Op, help, "%s", msg)
		return nil, c.problem
	}
	n = pieces.Count()
	room := op.RoomOf(op.ArgAttr(f, i, op.PieceRoomAttr), len(t.Format.Stored))
	r, g := *t, *t.Format
	g.Pieces, g.Stored, g.ByEntries = pieces, slices.Clone(t.Format.Stored), byEntries
	for k, d := range g.Stored {
		if k < len(room) {
			g.Stored[k] = dim.Const(room[k])
			continue
		}
		e, ok := d.Int()
		if !ok {
			c.fail(f.Op, "bind it, or state dm.piece_room of the argument", "%s has room for %s elements, and a device's piece for a number", v.Name, d)
			return nil, c.problem
		}
		if last, ok := t.Format.Stored[len(g.Stored)-1].Int(); ok && g.ByEntries { // a row has an entry or more
			e = min(e*n, last)
		}
		g.Stored[k] = dim.Const(mesh.Piece(e, int(n)))
	}
	r.Format = &g
	return &r, nil
}

// function gives what is computed of arguments in pieces its own.
func (c *cutter) function(f *ir.Func) {
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		if c.problem == nil && slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return c.whole[v] != nil }) {
			c.op(o)
		}
		return c.problem == nil
	})
	if c.problem == nil {
		f.Retype()
	}
}

func (c *cutter) op(o *ir.Op) {
	before := ir.Types(o.Results)
	switch {
	case o.Name == op.Return:
		return
	case o.Name == op.Call || o.Name == op.Grad:
		c.call(o)
	case op.Of(o) == nil || len(o.Regions) > 0 || o.Name == op.Pack || o.Name == op.Unpack || op.Grouped(o):
		c.fail(o, "take the sharding away", "%s takes no sparse tensors that devices divide", o.Name)
	default:
		if p := op.InPieces(o); p != nil {
			c.fail(o, p.Help, "%s", p.Msg)
		}
	}
	for i, r := range o.Results {
		if t := r.Tensor(); t != nil && t.Format != nil && t.Format.Pieces.Count() > 0 {
			c.whole[r], _ = before[i].(*types.Tensor)
		}
	}
}

// call makes o call a copy of its function for the pieces.
func (c *cutter) call(o *ir.Op) {
	callee := c.m.Func(o.Str("callee"))
	if callee == nil || callee.Body == nil {
		c.fail(o, "", "there is no function @%s", o.Str("callee"))
		return
	}
	n := len(o.Operands)
	own := len(o.Results)
	var args []int // of which there are gradients
	if o.Name == op.Grad {
		var p *op.Problem
		if args, p = op.GradArgs(o); p != nil {
			c.fail(o, p.Help, "%s", p.Msg)
			return
		}
		n -= int(op.Int(o, "cotangents"))
		own -= len(args)
	}
	if n != len(callee.Args) || own < 0 {
		c.fail(o, "", "the call does not match the signature of @%s", callee.Name)
		return
	}
	whole := ir.Types(o.Operands[:n])
	for i, v := range o.Operands[:n] {
		if t := c.whole[v]; t != nil {
			whole[i] = t
		}
	}
	g := callee.Clone()
	bound, _ := op.Bound(g, whole, c.bind)
	op.Resize(g, bound.Sizes)
	sized(g)
	for c.made++; ; c.made++ {
		g.Name = fmt.Sprintf("%s_in_pieces_%d", callee.Name, c.made)
		if c.m.AddFunc(g) {
			break
		}
	}
	g.Op.SetAttr("sym_name", types.Str(g.Name))
	c.m.Ops = append(c.m.Ops, g.Op)
	for i, v := range o.Operands[:n] {
		if c.whole[v] != nil {
			c.whole[g.Args[i]], g.Args[i].Type = g.Args[i].Tensor(), v.Type
		}
	}
	c.function(g)
	if c.problem != nil {
		return
	}
	o.SetAttr("callee", types.SymbolOf(g.Name))
	for i, r := range o.Results {
		switch {
		case i >= own:
			if v := o.Operands[args[i-own]]; c.whole[v] != nil {
				r.Type = v.Type
			}
		default:
			if t, ok := g.Results[i].(*types.Tensor); ok && t.Format != nil && t.Format.Pieces.Count() > 0 {
				r.Type = t
			}
		}
	}
}
