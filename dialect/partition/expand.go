package partition

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// expand writes o out in simpler ops where what it computes as a whole is divided, such as
// the rows of a softmax: these are divided then, with partial maxima and sums (Megatron's
// parallel cross entropy is that of cross_entropy). It reports whether these stand in the place of o.
func (p *partitioner) expand(o *ir.Op) bool {
	d := op.Of(o)
	if d == nil || d.Expand == nil || !op.Valid(o) || !p.broken(o) {
		return false
	}
	p.at = o
	start := o.Position()
	b := &ir.Builder{Block: o.Parent, Index: start, At: o}
	vs := d.Expand(b, o)
	if vs == nil {
		return false
	}
	for i, r := range o.Results {
		p.values.Rename(r, vs[i])
		p.Renamed[vs[i]] = r
		if vs[i].Op != nil && vs[i].Name == "" {
			vs[i].Name = r.Name
		}
		ir.ReplaceUses(r, vs[i])
	}
	ops := slices.Clone(o.Parent.Ops[start:b.Index])
	for _, step := range ops {
		p.Expanded[step] = o
	}
	ir.EraseAll(o)
	p.values.Extend(ops)
	return true
}

// broken reports whether a dimension of an operand that o needs whole is divided, or o draws
// random numbers by positions in a tensor that is.
func (p *partitioner) broken(o *ir.Op) bool {
	x := factorsOf(o)
	for i, v := range o.Operands {
		if v.Tensor() == nil {
			continue
		}
		l, _ := p.values.Of(v)
		dims := x.operand(i)
		of := p.grid.Factors(l, dims, x.f.Sizes, x.pieces)
		for d, list := range dims {
			if len(p.grid.Join(list, of, x.f.Sizes)) < len(l.Dims[d]) {
				return true
			}
		}
	}
	return false
}

// unbatch writes ops on segments whose positions have leading dimensions, of which a device has its own, without these.
func (p *partitioner) unbatch() {
	var found []*ir.Op
	ir.Walk(p.entry.Ops, func(o *ir.Op) bool {
		if op.HasBatches(o) {
			found = append(found, o)
		}
		return true
	})
	ir.CountUses(p.entry)
	for _, o := range found {
		start := o.Position()
		b := &ir.Builder{Block: o.Parent, Index: start, At: o}
		vs := op.Unbatched(b, o)
		if vs == nil {
			continue
		}
		for _, made := range o.Parent.Ops[start:b.Index] {
			p.From[made] = p.From[o]
		}
		for i, r := range o.Results {
			if vs[i].Op != nil && vs[i].Name == "" {
				vs[i].Name = r.Name
			}
			p.Of[vs[i]] = p.Of[r]
			ir.ReplaceUses(r, vs[i])
		}
		delete(p.From, o)
		ir.EraseAll(o)
	}
}
