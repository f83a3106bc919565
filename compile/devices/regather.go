package devices

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Regather is the pass that gives an argument with op.RegatherAttr to the forward and the backward ops of each micro-batch under
// a value of its own, a dm.reshard that leaves it as it lies. The partitioner gathers each of them where it is used, and none
// outlives its users. Behind it ops have no op.BackwardAttr, but those of stages.
func Regather() pass.Pass {
	return pass.Pass{Name: "regather", Summary: "arguments that are gathered again for the backward pass", Run: runRegather}
}

// A use is the part of a step that reads an argument: the forward or the backward pass of a micro-batch, or no micro-batch.
type use struct {
	arg      int
	micro    int64
	backward bool
}

func runRegather(u *pass.Unit) error {
	f := u.Func
	if f.Body == nil {
		return nil
	}
	if !alone(u) && op.Regathers(f.Op) {
		regather(f)
	}
	if !op.Staged(f.Body.Ops) {
		for _, o := range f.Body.Ops {
			o.RemoveAttr(op.BackwardAttr)
		}
	}
	return nil
}

func regather(f *ir.Func) {
	behind := map[*ir.Value]bool{} // the backward pass and what is computed of it
	forms := map[use]*ir.Value{}
	for _, o := range slices.Clone(f.Body.Ops) {
		back := o.Attr(op.BackwardAttr) != nil
		late := back || slices.ContainsFunc(ir.UsedValues(o), func(v *ir.Value) bool { return behind[v] })
		for _, r := range o.Results {
			behind[r] = late
		}
		if late && !back || op.Ends(o) {
			continue // an update reads the argument as it lies
		}
		for i, a := range f.Args {
			s, t := op.StatedSharding(a), a.Tensor()
			if s == nil || t == nil || !op.Regathered(a) {
				continue
			}
			k := use{i, o.Int(op.MicroAttr, -1), back}
			ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
				for n, v := range p.Operands {
					if v != a {
						continue
					}
					if forms[k] == nil {
						r := *t
						r.At.Shard = s
						b := &ir.Builder{Block: f.Body, Index: o.Position(), At: o}
						made := b.Op(op.Reshard, []*ir.Value{a}, []types.Named{{Name: op.RegatheredAttr, Value: types.Int{V: int64(len(forms)), Elem: types.I64}}}, &r)
						made.RemoveAttr(op.RecomputedAttr)
						made.Results[0].Name = a.Name
						forms[k] = made.Results[0]
					}
					p.SetOperand(n, forms[k])
				}
				return true
			})
		}
	}
}
