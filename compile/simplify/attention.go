package simplify

import (
	"fmt"

	"dmir/compile/inline"
	"dmir/compile/pass"
	"dmir/dialect/attention"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Attention is the pass that finds attentions that are written out, in the
// function and in those that it takes gradients of, whose calls are inlined for
// that, and replaces them by dm.attention: neither they nor their gradients, for which it runs before
// reverse mode, then have the matrix of scores in memory. fits reports whether
// code can be generated for a dm.attention and its gradient, or for an op of the family of sparse
// tensors or a product with a 2:4 operand, which are written out where it cannot.
//
// Unlike the rules of simplify this may change how half precision is rounded:
// dm.attention rounds once, where the ops written out round every step.
func Attention(fits func(u *pass.Unit, o *ir.Op) bool) pass.Pass {
	return pass.Pass{
		Name: "attention", Summary: "attentions that are written out as dm.attention, without their matrix of scores",
		Run: func(u *pass.Unit) error {
			for _, f := range pass.Reached(u.Module, u.Func) {
				if f.Body == nil {
					continue
				}
				if f != u.Func { // whose calls are inlined already
					g := *u
					g.Func = f
					if inline.Pass().Run(&g) != nil {
						continue // reverse mode reports the error
					}
				}
				if err := attentions(u, f, fits); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// WriteOut writes out the ops of f of the family of sparse tensors, and products with a 2:4 operand, that do not fit.
func WriteOut(u *pass.Unit, f *ir.Func, fits func(*pass.Unit, *ir.Op) bool) {
	var written []*ir.Op
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		if d := op.Of(o); d != nil && (d.Family == op.SparseTensors || op.IsStructured(o)) && d.Expand != nil && op.Valid(o) && !fits(u, o) {
			written = append(written, o)
		}
		return true
	})
	for _, o := range written {
		b := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
		if vs := op.Of(o).Expand(b, o); vs != nil {
			pass.Replace(o, vs...)
		}
	}
}

func attentions(u *pass.Unit, f *ir.Func, fits func(*pass.Unit, *ir.Op) bool) error {
	op.RemoveDead(f.Body) // what only dead code needs is no reason to keep scores
	var seconds, stated []*ir.Op
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		switch o.Name {
		case "dm.einsum", "dm.matmul":
			seconds = append(seconds, o)
		case "dm.attention":
			stated = append(stated, o)
		}
		return true
	})
	found := false
	WriteOut(u, f, fits)
	for _, o := range stated {
		if operands, attrs, ok := attention.Causal(o); ok && plain(o) {
			b := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
			var results []types.Type
			for _, v := range o.Results {
				results = append(results, v.Type)
			}
			now := b.Op(o.Name, operands, attrs, results...)
			for i, v := range o.Results {
				now.Results[i].Name = v.Name
				ir.ReplaceUses(v, now.Results[i])
			}
			ir.Erase(o)
			found = true
		}
	}
	for _, o := range seconds {
		if o.Parent == nil || !plain(o) {
			continue
		}
		a, _ := attention.FindAttention(o)
		if a == nil || !fits(u, a.Main) {
			continue
		}
		if err := a.Put(); err != nil {
			return fmt.Errorf("@%s: %w", f.Name, pass.Errorf(a.Root, "DM820", "%v", err))
		}
		ir.EraseAll(a.Root)
		found = true
	}
	if found {
		op.RemoveDead(f.Body)
	}
	return nil
}
