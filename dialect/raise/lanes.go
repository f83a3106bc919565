package raise

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// lanes reads values as terms of single elements whose places are formulas: where parts of rows are taken and put side by
// side, the number behind is another one than the number before.
type lanes struct {
	x      *ir.Value // a leaf
	t      *types.Tensor
	sizes  []int64 // how far each axis goes, those of t's dimensions, the last one over pairs; 0: not known
	ids    map[*ir.Value]int
	visits int
	known  *tables
}

const maxLanes = 400

func newLanes(x *ir.Value, t *types.Tensor, known *tables) *lanes {
	r := &lanes{x: x, t: t, ids: map[*ir.Value]int{}, known: known}
	for _, d := range t.Shape {
		n, _ := d.Int()
		r.sizes = append(r.sizes, n)
	}
	r.sizes[t.Rank()-1] /= 2
	return r
}

// place is an index into a dimension: a sum of axes times numbers, and a number.
type place struct {
	steps  []int64 // by axis
	offset int64
}

func (r *lanes) at(offset int64) place { return place{make([]int64, len(r.sizes)), offset} }

// span is the largest index that p is, less its offset; ok is false where an axis has no known size, or runs backward.
func (r *lanes) span(p place) (n int64, ok bool) {
	for a, s := range p.steps {
		if s == 0 {
			continue
		}
		if r.sizes[a] == 0 || s < 0 {
			return 0, false
		}
		n += s * (r.sizes[a] - 1)
	}
	return n, true
}

func (p place) String() string { return fmt.Sprint(p.steps, p.offset) }

// pair are the two numbers of a pair of v, which has the type of the rows; nil where they cannot be told.
func (r *lanes) pair(v *ir.Value, pairs string) (first, second *term) {
	if v.Tensor() == nil || v.Tensor().Rank() != r.t.Rank() {
		return nil, nil
	}
	var out [2]*term
	for k := range out {
		at := make([]place, r.t.Rank())
		for d := range at {
			at[d] = r.at(0)
			if !isOne(r.t, d) {
				at[d].steps[d] = 1
			}
		}
		last := &at[len(at)-1]
		if last.offset = int64(k); pairs == "interleaved" {
			last.steps[len(at)-1] = 2
		} else {
			last.offset *= r.sizes[len(at)-1]
		}
		r.visits = 0
		if out[k] = r.term(v, at); out[k] == nil {
			return nil, nil
		}
	}
	return out[0], out[1]
}

// lanesOf are functions of one element that programs write tables in.
var lanesOf = map[string]bool{"dm.cos": true, "dm.sin": true, "dm.exp": true, "dm.log": true, "dm.abs": true, "dm.sqrt": true, "dm.rsqrt": true, "dm.pow": true, "dm.div": true}

// term is v at a place; nil where it cannot be told.
func (r *lanes) term(v *ir.Value, at []place) *term {
	if r.visits++; r.visits > maxLanes {
		return nil
	}
	o := v.Op
	if v == r.x || o == nil || !op.Valid(o) || len(o.Results) != 1 || v.Elem().Bits() < r.t.Elem.Bits() {
		return r.leaf(v, at)
	}
	if n, is := numberOf(v); is {
		return number(n)
	}
	switch name := o.Name; {
	case name == op.Constant:
		if t := r.elements(o, at); t != nil {
			return t
		}
	case name == "dm.convert" && o.Operands[0].Elem().IsFloat():
		return r.term(o.Operands[0], at)
	case name == "dm.add", name == "dm.sub", name == "dm.mul", name == "dm.neg", lanesOf[name]:
		in := make([]*term, len(o.Operands))
		for i, x := range o.Operands {
			if in[i] = r.term(x, r.broadcast(x.Tensor(), at)); in[i] == nil {
				return nil
			}
		}
		switch name {
		case "dm.add":
			return add(in...)
		case "dm.sub":
			return add(in[0], times(-1, in[1]))
		case "dm.mul":
			return mul(in...)
		case "dm.neg":
			return times(-1, in[0])
		}
		return newTerm(function, name, 0, in, nil)
	case name == "dm.slice":
		return r.slice(o, at)
	case name == "dm.concatenate":
		return r.part(o, at)
	case name == "dm.transpose":
		dims, ok := op.Dims(o, "dims", len(at))
		if !ok || len(dims) != len(at) {
			return nil
		}
		in := make([]place, len(at))
		for i, d := range dims {
			in[d] = at[i]
		}
		return r.term(o.Operands[0], in)
	case name == "dm.broadcast":
		dims, p := op.BroadcastDims(o)
		if p != nil {
			return nil
		}
		x := o.In(0)
		in := make([]place, x.Rank())
		for i, d := range dims {
			if in[i] = at[d]; isOne(x, i) {
				in[i] = r.at(0)
			}
		}
		return r.term(o.Operands[0], in)
	case name == "dm.reshape":
		if in, ok := r.reshaped(o.In(0).Shape, o.Out(0).Shape, at); ok {
			return r.term(o.Operands[0], in)
		}
		return nil
	}
	return r.leaf(v, at)
}

// slice is the operand of a slice.
func (r *lanes) slice(o *ir.Op, at []place) *term {
	start, strides := op.Ints(o, "start_indices"), op.Ints(o, "strides")
	in := slices.Clone(at)
	for i := range start {
		d := i
		if op.Attr(o, "dims") != nil {
			dims, ok := op.Dims(o, "dims", len(at))
			if !ok || i >= len(dims) {
				return nil
			}
			d = dims[i]
		}
		step := int64(1)
		if i < len(strides) {
			step = strides[i]
		}
		in[d] = r.scaled(at[d], step)
		in[d].offset += start[i]
	}
	return r.term(o.Operands[0], in)
}

func (r *lanes) scaled(p place, by int64) place {
	q := r.at(p.offset * by)
	for a, s := range p.steps {
		q.steps[a] = s * by
	}
	return q
}

// leaf is an element of v.
func (r *lanes) leaf(v *ir.Value, at []place) *term {
	id, known := r.ids[v]
	if !known {
		id = len(r.ids)
		r.ids[v] = id
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d", id)
	for _, p := range at {
		b.WriteString(p.String())
	}
	return newTerm(leaf, b.String(), 0, nil, nil)
}

// broadcast is the place in an operand of type t of an element-wise op.
func (r *lanes) broadcast(t *types.Tensor, at []place) []place {
	if t == nil || t.Rank() > len(at) {
		return nil
	}
	in := slices.Clone(at[len(at)-t.Rank():])
	for i := range in {
		if isOne(t, i) {
			in[i] = r.at(0)
		}
	}
	return in
}

// part is the operand of a concatenation that the place lies in, if it lies in one.
func (r *lanes) part(o *ir.Op, at []place) *term {
	d, ok := op.Dim(o, "dim", len(at))
	span, known := r.span(at[d])
	if !ok || !known {
		return nil
	}
	from := int64(0)
	for i, v := range o.Operands {
		n, known := o.In(i).Shape[d].Int()
		if !known {
			return nil
		}
		if lo := at[d].offset - from; lo >= 0 && lo+span < n {
			in := slices.Clone(at)
			in[d] = r.scaled(at[d], 1)
			in[d].offset = lo
			return r.term(v, in)
		}
		from += n
	}
	return nil
}

// reshaped is the place in a tensor of sizes from, of which a reshape to sizes to has the place at. Sizes before and behind
// those that change may be symbols.
func (r *lanes) reshaped(from, to []dim.Dim, at []place) ([]place, bool) {
	before := 0
	for before < len(from) && before < len(to) && from[before].Equal(to[before]) {
		before++
	}
	behind := 0
	for behind < len(from)-before && behind < len(to)-before && from[len(from)-1-behind].Equal(to[len(to)-1-behind]) {
		behind++
	}
	index := r.at(0)
	for i := before; i < len(to)-behind; i++ {
		n, known := to[i].Int()
		if !known {
			return nil, false
		}
		index = r.scaled(index, n)
		index.offset += at[i].offset
		for a, s := range at[i].steps {
			index.steps[a] += s
		}
	}
	in := make([]place, len(from))
	copy(in, at[:before])
	copy(in[len(from)-behind:], at[len(to)-behind:])
	for i := len(from) - behind - 1; i >= before; i-- {
		n, known := from[i].Int()
		if !known || n <= 0 {
			return nil, false
		}
		rest := r.at(index.offset / n)
		in[i] = r.at(index.offset % n)
		for a, s := range index.steps {
			if s%n == 0 {
				rest.steps[a] = s / n
			} else {
				in[i].steps[a] = s
			}
		}
		if span, ok := r.span(in[i]); !ok || in[i].offset+span >= n {
			return nil, false
		}
		index = rest
	}
	return in, true
}
