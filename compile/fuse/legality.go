package fuse

import (
	"encoding/binary"
	"fmt"
	"slices"

	"dmir/analysis/cost"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// legality is what the rules find about a kernel.
type legality struct {
	how       cost.Running // on the target
	known, ok bool
}

// legalities are what the rules found about kernels by their forms: of kernels that are equal up to the values
// that they read, as those of equal layers or the updates of parameters of one shape, the rules are asked about one.
type legalities struct {
	kinds map[string]int // see kindOf
	kind  map[*ir.Op]int
	found map[string][]found // by form
}

// found is what the rules found about kernels of a form that read so many bytes of some of their values.
type found struct {
	legality
	asked []asked
}

// asked is what a kernel reads of the value with that number in its form.
type asked struct {
	value int
	bytes int64
}

func newLegalities() *legalities {
	return &legalities{kinds: map[string]int{}, kind: map[*ir.Op]int{}, found: map[string][]found{}}
}

// legality asks the rules about s, once for equal kernels.
func (g *graph) legality(s *candidate) legality {
	ops, over := g.surrounded(s), g.over(s)
	form, values := g.form(s, ops, over)
	reads := g.readsOf(ops)
	for _, f := range g.legal.found[form] {
		if !slices.ContainsFunc(f.asked, func(a asked) bool { return reads(values[a.value]) != a.bytes }) {
			return f.legality
		}
	}
	outs := make([]*ir.Value, len(s.outs))
	for i, v := range s.outs {
		outs[i] = g.values[v].v
	}
	g.counts.Add("legal", len(s.nodes))
	g.counts.Add("legal kernels", 1)
	var f found
	f.how, f.known, f.ok = g.rules.Legal(ops, outs, over, target.Moved{Read: s.read, Written: s.written, Of: func(v *ir.Value) int64 {
		n := reads(v)
		if i := slices.Index(values, v); i >= 0 {
			f.asked = append(f.asked, asked{i, n})
		}
		return n
	}})
	g.legal.found[form] = append(g.legal.found[form], f)
	return f.legality
}

// form identifies s, whose ops these are, up to the values that it reads: the rules find the same about kernels of one form
// if they read as many bytes of each value. The values of s are in the order of their numbers in the form.
func (g *graph) form(s *candidate, ops []*ir.Op, over map[*ir.Value]bool) (form string, values []*ir.Value) {
	b := binary.AppendVarint(binary.AppendVarint(nil, s.read), s.written)
	number := make(map[*ir.Value]uint64, 3*len(ops))
	var refer func(v *ir.Value)
	refer = func(v *ir.Value) {
		n, known := number[v]
		if !known {
			n = uint64(len(values))
			number[v] = n
			values = append(values, v)
		}
		if b = binary.AppendUvarint(b, n); known {
			return
		}
		// New here, it is computed outside. Of that, kernels know what it is a view of, and constants.
		switch {
		case v.Op != nil && v.Op.Name == op.Constant:
			b = binary.AppendUvarint(append(b, 1), uint64(g.legal.kindOf(v.Op)))
		case v.Op != nil && op.IsView(v.Op):
			b = append(b, 2)
			refer(op.Source(v))
		default:
			b = append(b, 0)
		}
	}
	for _, o := range ops {
		b = binary.AppendUvarint(b, uint64(g.legal.kindOf(o)))
		for _, v := range o.Operands {
			refer(v)
		}
		if len(o.Regions) > 0 {
			b = binary.AppendUvarint(b, uint64(g.position[o]))
			for _, v := range ir.CapturedValues(o.Regions...) {
				refer(v)
			}
		}
		for _, v := range o.Results {
			number[v] = uint64(len(values))
			values = append(values, v)
		}
	}
	for _, v := range s.outs {
		if b = append(b, 0); over[g.values[v].v] {
			b[len(b)-1] = 1
		}
		refer(g.values[v].v)
	}
	return string(b), values
}

// kindOf numbers ops by name, attributes and types, and data, which may be long, one by one.
func (l *legalities) kindOf(o *ir.Op) int {
	n, known := l.kind[o]
	if !known {
		key := fmt.Sprint(len(l.kind))
		if !op.IsData(o) {
			key = kindOf(o)
		}
		n = intern(l.kinds, key)
		l.kind[o] = n
	}
	return n
}
