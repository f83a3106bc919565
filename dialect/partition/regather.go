package partition

import (
	"cmp"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// A use is the part of a step that reads an argument: the forward or the backward pass of a micro-batch, or no micro-batch.
type use struct {
	arg      *ir.Value
	micro    int64
	backward bool
}

// Regather gives each argument of f with op.RegatherAttr to the forward and the backward ops of each micro-batch under a value of its own,
// a dm.reshard that leaves it as it lies. The partitioner gathers each of them where it is used, and none outlives its users.
func Regather(f *ir.Func) {
	lie := map[*ir.Value]*types.Tensor{} // the arguments that are gathered again, as they lie
	for _, a := range f.Args {
		if s, t := op.StatedSharding(a), a.Tensor(); s != nil && t != nil && op.Regathered(a) {
			r := *t
			r.At.Shard = s
			lie[a] = &r
		}
	}
	if len(lie) == 0 {
		return
	}
	behind := map[*ir.Value]bool{} // the backward pass and what is computed of it
	forms := map[use]*ir.Value{}
	for _, o := range slices.Clone(f.Body.Ops) {
		read := ir.UsedValues(o)
		back := o.Attr(op.BackwardAttr) != nil
		late := back || slices.ContainsFunc(read, func(v *ir.Value) bool { return behind[v] })
		for _, r := range o.Results {
			behind[r] = late
		}
		if late && !back || op.Ends(o) {
			continue // an update reads the argument as it lies
		}
		read = slices.DeleteFunc(read, func(v *ir.Value) bool { return lie[v] == nil })
		slices.SortFunc(read, func(a, b *ir.Value) int { return cmp.Compare(a.Index, b.Index) })
		again := map[*ir.Value]*ir.Value{}
		for _, a := range read {
			k := use{a, o.Int(op.MicroAttr, -1), back}
			if forms[k] == nil {
				b, t := &ir.Builder{Block: f.Body, Index: o.Position(), At: o}, *lie[a]
				made := b.Op(op.Reshard, []*ir.Value{a}, []types.Named{{Name: op.RegatheredAttr, Value: types.Int{V: int64(len(forms)), Elem: types.I64}}}, &t)
				made.RemoveAttr(op.RecomputedAttr)
				made.Results[0].Name = a.Name
				forms[k] = made.Results[0]
			}
			again[a] = forms[k]
		}
		if len(again) == 0 {
			continue
		}
		ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
			for n, v := range p.Operands {
				if w := again[v]; w != nil {
					p.SetOperand(n, w)
				}
			}
			return true
		})
	}
}
