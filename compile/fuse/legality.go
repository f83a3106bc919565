package fuse

import (
	"encoding/binary"
	"slices"
	"sync"

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
	*findings
	kind    map[*ir.Op]int
	regions map[*ir.Op]int // see inRegions
}

// findings are legalities without the ops of a function: those of one are of use for the next one, which may be an edit of it.
type findings struct {
	mu      sync.Mutex
	numbers int
	kinds   map[string]int     // see kindOf
	found   map[string][]found // by form
	bytes   int                // of the forms
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
	return &legalities{&findings{kinds: map[string]int{}, found: map[string][]found{}}, map[*ir.Op]int{}, map[*ir.Op]int{}}
}

// lasting are the findings of this process, by what rules they are of.
var lasting = struct {
	sync.Mutex
	of map[any]*findings
}{of: map[any]*findings{}}

const (
	lastingRules = 8       // how many rules have findings that last
	lastingBytes = 8 << 20 // of the forms of one of them, beyond which they are found again
)

// legalitiesOf are what is known of the rules.
func legalitiesOf(rules Rules) *legalities {
	l := newLegalities()
	k, ours := rules.(kernels)
	if !ours || k.times.Of == nil {
		return l
	}
	lasting.Lock()
	defer lasting.Unlock()
	f := lasting.of[k.times.Of]
	if f != nil && f.size() <= lastingBytes {
		l.findings = f
		return l
	}
	if len(lasting.of) >= lastingRules {
		clear(lasting.of)
	}
	lasting.of[k.times.Of] = l.findings
	return l
}

func (f *findings) size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
}

// lookUp is what was found about a kernel of this form that reads so much.
func (f *findings) lookUp(form string, reads func(value int) int64) (legality, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.found[form] {
		if !slices.ContainsFunc(x.asked, func(a asked) bool { return reads(a.value) != a.bytes }) {
			return x.legality, true
		}
	}
	return legality{}, false
}

func (f *findings) add(form string, x found) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found[form] = append(f.found[form], x)
	f.bytes += len(form)
}

// number is that of a kind, a new one where the kind is of one op alone.
func (f *findings) number(kind string, alone bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, known := f.kinds[kind]; known && !alone {
		return n
	}
	if f.numbers++; !alone {
		f.kinds[kind] = f.numbers
	}
	return f.numbers
}

// legality asks the rules about s, once for equal kernels.
func (g *graph) legality(s *candidate) legality {
	ops, over := g.surrounded(s), g.over(s)
	form, values := g.form(s, ops, over)
	reads := g.readsOf(ops)
	if known, ok := g.legal.lookUp(form, func(value int) int64 { return reads(values[value]) }); ok {
		return known
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
	g.legal.add(form, f)
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
			b = binary.AppendUvarint(b, uint64(g.legal.inRegions(o)))
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
		if op.IsData(o) {
			n = l.number("", true)
		} else {
			n = l.number(kindOf(o), false)
		}
		l.kind[o] = n
	}
	return n
}

// inRegions numbers ops with regions one by one.
func (l *legalities) inRegions(o *ir.Op) int {
	n, known := l.regions[o]
	if !known {
		n = l.number("", true)
		l.regions[o] = n
	}
	return n
}
