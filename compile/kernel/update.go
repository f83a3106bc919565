package kernel

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// OfOver is Of for a kernel that writes the results for which over is true in
// place of their operands; each is the result of an op that op.InPlace does in
// place. Of these results the kernel stores only the updated part.
func OfOver(ops []*ir.Op, outs []*ir.Value, over map[*ir.Value]bool) (*Form, error) {
	return of(&Form{Ops: ops, Outputs: outs, V: 1, Over: over})
}

// Updating are the results of o, a dm.kernel or a single op, that are written
// in place, for OfOver: of a kernel the values that it yields for them.
func Updating(p *op.InPlace, o *ir.Op) map[*ir.Value]bool {
	if o.Name == op.While {
		return nil
	}
	var out map[*ir.Value]bool
	for i, v := range o.Results {
		if p.Updated(o, i) == nil {
			continue
		}
		if o.Name == op.Kernel {
			v = o.Body(0).Terminator().Operands[i]
		}
		if out == nil {
			out = map[*ir.Value]bool{}
		}
		out[v] = true
	}
	return out
}

// part is a part of a result that the kernel stores.
type part struct {
	of    *ir.Value               // whose elements it holds
	place func(idx []Index) Index // where the element at idx lies in the result's memory; nil where that is data
	at    func(idx []Index) Out   // the element stored
}

// stored are the parts of v that f stores: all of it, or those that the updates
// in place of v's memory replace.
func (f *Form) stored(v *ir.Value) []part {
	e := f.eval
	if !f.Over[v] {
		place := func(idx []Index) Index { return Place(v, idx) }
		return []part{{v, place, func(idx []Index) Out { return Out{Value: v, At: place(idx), X: e.at(v, idx)} }}}
	}
	var out []part
	for _, u := range op.UpdatesIn(f.Ops, v) {
		if !replaces(u) {
			out = append(out, part{u.Operands[2], nil, func(idx []Index) Out { return e.scattered(v, u, idx) }})
			continue
		}
		x := u.Operands[1]
		place := func(idx []Index) Index {
			at := make([]Index, len(idx))
			for d, start := range e.starts(u, 2, shapeOf(x)) {
				at[d] = start.Add(idx[d])
			}
			return Place(u.Results[0], at)
		}
		out = append(out, part{x, place, func(idx []Index) Out {
			return Out{Value: v, At: place(idx), X: e.at(x, idx), N: Product(shapeOf(x))}
		}})
	}
	return out
}

// Elements is the number of elements of v, a result of f, that f stores.
func (f *Form) Elements(v *ir.Value) (n int64) {
	for _, part := range f.stored(v) {
		n += Product(shapeOf(part.of))
	}
	return n
}

// starts are the start indices, in each dimension, of a part of that size of
// o's first operand: operand number first and those after it, clamped so that
// the part lies inside. A start that can only be 0 is not read.
func (e *evaluator) starts(o *ir.Op, first int, size []int64) []Index {
	out := make([]Index, len(size))
	for d, n := range shapeOf(o.Operands[0]) {
		if n > size[d] {
			out[d] = e.datum(e.at(o.Operands[first+d], nil), n-size[d]+1)
		}
	}
	return out
}
