// Package regions is the pass that makes branches and loop bodies fit to be
// compiled apart from what is around them.
package regions

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Pass makes the regions of control flow fit to be compiled on their own. A copy
// of each number goes into those that use it, so that the
// kernels there hold it in their text and do not read it. What enters a region
// and what leaves it lies in memory as the op's results do.
func Pass() pass.Pass {
	return pass.Pass{Name: "regions", Summary: "branches and loop bodies hold the constants that they use, and yield values in their memory layout", Run: func(u *pass.Unit) error {
		return block(u.Func.Body)
	}}
}

// block arranges the control flow in b.
func block(b *ir.Block) error {
	for _, o := range slices.Clone(b.Ops) {
		if !pass.Controls(o) {
			continue
		}
		if err := arrange(o); err != nil {
			return err
		}
		for n := range o.Regions {
			if inner := o.Body(n); inner != nil {
				into(inner)
				if err := block(inner); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// arrange copies what o carries or yields in another order of dimensions than
// that of its results.
func arrange(o *ir.Op) error {
	ordered := func(at *ir.Op, vs []*ir.Value) error {
		for i, r := range o.Results {
			if i >= len(vs) || sameOrder(vs[i].Tensor(), r.Tensor()) {
				continue
			}
			b := pass.Before(at)
			c := b.Value("copy", []*ir.Value{vs[i]}, nil, r.Type)
			if b.Err() != nil {
				return pass.Errorf(at, "DM820", "%v", b.Err())
			}
			at.SetOperand(i, c)
		}
		return nil
	}
	carries := o.Name == op.While
	if carries {
		if err := ordered(o, o.Operands); err != nil {
			return err
		}
	}
	for n := range o.Regions {
		inner := o.Body(n)
		if inner == nil {
			continue
		}
		for i, r := range o.Results {
			if !carries || i >= len(inner.Args) || sameOrder(inner.Args[i].Tensor(), r.Tensor()) {
				continue
			}
			a := inner.Args[i]
			was := a.Type
			a.Type = r.Type
			if len(a.Uses) == 0 {
				continue
			}
			b := pass.Before(inner.Ops[0])
			c := b.Value("copy", []*ir.Value{a}, nil, was)
			if b.Err() != nil {
				return pass.Errorf(inner.Ops[0], "DM820", "%v", b.Err())
			}
			uses := a.Uses
			a.Uses = nil
			for _, u := range uses {
				if u.Op == c.Op {
					a.Uses = append(a.Uses, u)
					continue
				}
				u.Op.Operands[u.Index] = c
				c.Uses = append(c.Uses, u)
			}
		}
		if t := inner.Terminator(); t != nil && !(carries && n == 0) {
			if err := ordered(t, t.Operands); err != nil {
				return err
			}
		}
	}
	return nil
}

func sameOrder(a, b *types.Tensor) bool {
	return a == nil || b == nil || slices.Equal(op.OrderOf(a), op.OrderOf(b))
}

// into copies the numbers that b, the block of a region, takes from outside.
func into(b *ir.Block) {
	own := map[*ir.Op]bool{}
	ir.Walk(b.Ops, func(p *ir.Op) bool {
		own[p] = true
		return true
	})
	copies := map[*ir.Value]*ir.Value{}
	at := &ir.Builder{Block: b}
	for _, o := range slices.Clone(b.Ops) {
		ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
			for i, v := range p.Operands {
				if v.Op == nil || own[v.Op] || v.Op.Name != op.Constant || op.IsData(v.Op) {
					continue
				}
				if copies[v] == nil {
					copies[v] = ir.CloneOps(at, []*ir.Op{v.Op}, map[*ir.Value]*ir.Value{})[0].Results[0]
				}
				p.SetOperand(i, copies[v])
			}
			return true
		})
	}
}
