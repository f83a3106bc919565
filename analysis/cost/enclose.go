package cost

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

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
	kernel := &ir.Op{Name: op.Kernel, Parent: b, Span: k.Span, Head: k.Head, Loc: k.Loc}
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
