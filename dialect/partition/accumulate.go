package partition

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// accumulated is the layout of the value that loop o carries in position i, where it is a sum to which each
// iteration adds a part that is partial, as the gradient of a weight in a loop over time: the devices then reduce the
// sum once, behind the loop. ok is false of other values. Such a value begins as zeros, and nothing in the loop reads
// it but the addition.
func (p *partitioner) accumulated(o *ir.Op, i int) (l shard.Layout, ok bool) {
	body := op.LoopBody(o)
	last := body.Terminator()
	if last == nil || i >= len(last.Operands) || i >= len(body.Args) || !zeros(o.Operands[i]) {
		return l, false
	}
	if o.Name == op.While && len(o.Body(0).Args[i].Uses) > 0 {
		return l, false
	}
	arg, next := body.Args[i], last.Operands[i]
	add := next.Op
	if add == nil || add.Name != "dm.add" || len(next.Uses) != 1 || len(arg.Uses) != 1 || arg.Uses[0].Op != add {
		return l, false
	}
	if _, stated := p.values.Of(o.Results[i]); stated {
		return l, false
	}
	part := add.Operands[1-arg.Uses[0].Index]
	atoms := p.reducing(part)
	settled := p.settled(o.Results[i])
	if len(atoms) == 0 || slices.ContainsFunc(atoms, settled.Uses) || !types.Equal(plain(part), plain(arg)) || len(part.Uses) != 1 {
		return l, false
	}
	settled.Partial, settled.Reduce = atoms, types.Add
	return settled, true
}

// terms is how many values are added up, one after the other or in pairs, in the sum that v is a term of, with
// nothing else reading them: if they are partial, the devices reduce the sum once.
func (p *partitioner) terms(v *ir.Value) int64 {
	if n := p.sum[v]; n > 0 {
		return n
	}
	root := v
	for adds(root) {
		root = root.Uses[0].Op.Results[0]
	}
	all, leaves := []*ir.Value{root}, int64(0)
	for i := 0; i < len(all); i++ {
		if o := all[i].Op; o != nil && o.Name == "dm.add" && adds(o.Operands[0]) && adds(o.Operands[1]) {
			all = append(all, o.Operands...)
		} else {
			leaves++
		}
	}
	for _, x := range all {
		p.sum[x] = leaves
	}
	return leaves
}

// adds reports whether v is read by nothing but a sum of values of its type.
func adds(v *ir.Value) bool {
	if len(v.Uses) != 1 || v.Uses[0].Op.Name != "dm.add" {
		return false
	}
	o := v.Uses[0].Op
	return types.Equal(plain(v), plain(o.Operands[1-v.Uses[0].Index])) && types.Equal(plain(v), plain(o.Results[0]))
}

// plain is the type of v without its placement.
func plain(v *ir.Value) types.Type {
	if t := v.Tensor(); t != nil {
		return t.With(t.Shape...)
	}
	return v.Type
}

// zeros reports whether all elements of v are 0.
func zeros(v *ir.Value) bool {
	d := splat(v)
	return d != nil && d.Len() > 0 && d.Float(0) == 0
}

// reducing are the atoms, ascending, over which factors are divided that the op of v reduces by adding.
func (p *partitioner) reducing(v *ir.Value) []int {
	if v.Op == nil || len(v.Op.Results) != 1 {
		return nil
	}
	x := factorsOf(v.Op)
	if x.f.Combine != types.Add {
		return nil
	}
	var out []int
	for i, operand := range v.Op.Operands {
		if operand.Tensor() == nil {
			continue
		}
		l, _ := p.values.Of(operand)
		for n, atoms := range p.grid.Factors(l, x.operand(i), x.f.Sizes, x.pieces) {
			if x.f.Kinds[n] == op.Reduced && !op.Divided(x.result(0), n) {
				out = append(out, atoms...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
