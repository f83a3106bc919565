package attention

import (
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// state is what lies between a softmax and the product of queries and keys.
type state struct {
	scale  float64  // of the products
	behind float64  // what a masked score is multiplied with afterwards
	masks  []masked // from the softmax back to the products
	causal *causal
}

// masked is a mask: a tensor that is added to the scores, or of i1 one that chooses a number in a score's
// place, and its axes.
type masked struct {
	v      *ir.Value
	x      axes
	behind float64 // of what is added: what it is multiplied with afterwards
	want   bool    // of i1: what it is where scores are seen
	put    float64 // of i1: what stands in place of the others, multiplied with what is behind
}

func (m masked) chooses() bool { return m.v.Tensor().Elem == types.I1 }

// scores goes back from the operand of the softmax to the first contraction.
func (f *finder) scores(v *ir.Value, x axes, s state) bool {
	for !f.tired() {
		v = origin(v)
		o := v.Op
		if o == nil || !op.Valid(o) || !f.wide(v) {
			return false
		}
		switch o.Name {
		case "dm.einsum", "dm.matmul":
			return f.products(o, x, s)
		case "dm.transpose", "dm.reshape", "dm.convert":
			var ok bool
			if v, x, ok = f.back(o, x); !ok {
				return f.no("a reshape of the scores cuts across their dimensions")
			}
			continue
		case "dm.mul", "dm.div":
			for i := range 2 {
				n, ok := numberOf(o.Operands[1-i])
				if !ok || o.Name == "dm.div" && i == 1 || !shaped(o.Operands[i], v) {
					continue
				}
				if o.Name == "dm.div" {
					n = 1 / n
				}
				s.scale *= n
				s.behind *= n
				if math.IsNaN(s.scale) || math.IsInf(s.scale, 0) || s.scale == 0 {
					return f.no("the scale is %g", s.scale)
				}
				return f.scores(o.Operands[i], x, s)
			}
			return f.no("the scores are multiplied by a value that is not a constant number")
		case "dm.add":
			for i := range 2 {
				if shaped(o.Operands[i], v) && f.leads(o.Operands[i]) {
					return f.adds(o, i, x, s)
				}
			}
			return f.no("the scores are not a product of queries and keys")
		case "dm.select":
			return f.selects(o, x, s)
		}
		return f.no("%s is between the product of queries and keys and the softmax", o.Name)
	}
	return f.no("there are too many ops between the product of queries and keys and the softmax")
}

// leads reports whether v comes from a contraction through what scores goes back
// through.
func (f *finder) leads(v *ir.Value) bool {
	for !f.tired() {
		v = origin(v)
		if v.Op == nil || !op.Valid(v.Op) {
			return false
		}
		next := 0
		switch v.Op.Name {
		case "dm.einsum", "dm.matmul":
			return len(v.Op.Operands) == 2
		case "dm.transpose", "dm.reshape", "dm.convert":
		case "dm.mul", "dm.div":
			if _, ok := numberOf(v.Op.Operands[0]); ok {
				next = 1
			}
		case "dm.add":
			if shaped(v.Op.Operands[1], v) && f.leads(v.Op.Operands[1]) {
				return true
			}
		case "dm.select":
			if _, ok := numberOf(v.Op.Operands[1]); ok {
				next = 2
			} else {
				next = 1
			}
		default:
			return false
		}
		v = v.Op.Operands[next]
	}
	return false
}

// products reads the first contraction, whose result has the axes x, and tries
// its operands as queries and keys.
func (f *finder) products(o *ir.Op, x axes, s state) bool {
	c, ok := f.contraction(o, x)
	if !ok {
		return f.no("the scores are not a product of two tensors")
	}
	f.product, f.scored = o, x
	for i := range 2 {
		q, k := c.operands[i], c.operands[1-i]
		if f.attention(o.Operands[i], q, o.Operands[1-i], k, s) {
			return true
		}
	}
	return false
}

// product is a contraction of two operands: their axes and the result's.
type product struct {
	operands [2]axes
	result   axes
}

// contraction reads o; result is the axes of its result, nil for atoms of their
// own. Loops that only one operand has and the result lacks are sums of that
// operand, which no attention has.
func (f *finder) contraction(o *ir.Op, result axes) (*product, bool) {
	d := op.Of(o)
	if d == nil || len(o.Operands) != 2 || len(o.Results) != 1 || o.Bad || o.Name != "dm.einsum" && o.Name != "dm.matmul" ||
		op.Str(o, "accumulate") == "f16" || !plain(o.Operands[0]) || !plain(o.Operands[1]) || !plain(o.Results[0]) {
		return nil, false
	}
	it := d.Maps(o)
	if it == nil {
		return nil, false
	}
	loops := make([][]*atom, len(it.Loops))
	for i, n := range it.Loops {
		loops[i] = []*atom{{size: n}}
	}
	for i, l := range it.Results[0] {
		if l >= 0 && result != nil {
			loops[l] = result[i]
		}
	}
	p := &product{}
	seen := make([]int, len(loops))
	for i, m := range it.Operands {
		own := make([]bool, len(loops))
		for _, l := range m {
			if l < 0 {
				p.operands[i] = append(p.operands[i], nil)
				continue
			}
			if own[l] { // a diagonal
				return nil, false
			}
			own[l] = true
			seen[l]++
			p.operands[i] = append(p.operands[i], loops[l])
		}
	}
	for _, l := range it.Results[0] {
		p.result = append(p.result, loops[l])
	}
	for l, reduces := range it.Reduces {
		if reduces && seen[l] != 2 {
			return nil, false
		}
	}
	return p, true
}
