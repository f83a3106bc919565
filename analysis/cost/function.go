package cost

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dmir/analysis/memory"
	"dmir/dialect/autodiff"
	"dmir/dialect/dim"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Module is the cost of every function of m that has a body, in textual order.
// bind gives sizes to symbols and wins over a function's own dm.bind attribute.
func Module(m *ir.Module, bind map[string]int64) []*Func { return Open(m, bind).Funcs }

// Function is the cost of fn, which m holds, or which was taken from it and
// changed; m is where callees are looked up.
func Function(fn *ir.Func, m *ir.Module, bind map[string]int64) *Func {
	return newCoster(m, bind).function(fn)
}

// coster computes costs within one module and one set of bindings.
type coster struct {
	m       *ir.Module
	bind    map[string]int64
	data    atomic.Bool                   // whether there may be constants that are data
	late    sync.Mutex                    // for what is computed on first use
	bodies  map[*ir.Func]map[string]*body // by the sizes of the symbols; nil while being computed
	called  map[*ir.Func]bool             // functions that others call
	joint   map[*ir.Func]bool             // of these, those that gradients are taken of
	refused map[*ir.Op]*autodiff.Error    // see Refused
	derived map[*ir.Op]int                // ops of the gradients that others take
	ready   map[*ir.Block][]*Entry        // of bodies, by the places of their ops; see prepare
	fabrics fabrics
}

func newCoster(m *ir.Module, bind map[string]int64) *coster {
	return &coster{m: m, bind: bind, bodies: map[*ir.Func]map[string]*body{}, called: map[*ir.Func]bool{}, joint: map[*ir.Func]bool{}, refused: map[*ir.Op]*autodiff.Error{}, derived: map[*ir.Op]int{}}
}

// body is the cost of a function's body, shared by the calls that give its
// symbols the same sizes.
type body struct {
	entries []*Entry
	extra   []*Entry
	total   total
	lead    *Entry    // see leading
	odd     int       // entries that are not known
	fixed   dim.Dim   // bytes of arguments and results
	most    []dim.Dim // live bytes, arguments and results included; see peaks
	known   bool      // most is computed
	in      *scope
	fn      *ir.Func
	timed   sync.Map // *machine.Machine to Time
	read    sync.Map // *machine.Machine to the bytes of rows that are read by number; see rows
	once    sync.Once
	sends   sentTally // computed once: many may call it
	starts  sync.Once
	started launches // computed once, as sends
}

// tally is what a device sends to run b.
func (b *body) tally() *sentTally {
	b.once.Do(func() {
		b.sends.known = true
		for _, e := range b.entries {
			b.sends.entry(e, 1)
		}
	})
	return &b.sends
}

func (c *coster) function(fn *ir.Func) *Func {
	f := &Func{Func: fn, timed: new(sync.Map), overlap: new(sync.Map)}
	if fn.Body == nil {
		return f
	}
	env := sizes(fn, c.bind)
	b := c.body(fn, env)
	f.Entries, f.extra = b.entries, b.extra
	f.FLOP, f.Read, f.Written = b.total.flop, b.total.read, b.total.written
	f.body = b
	f.lead, f.odd = b.lead, b.odd
	f.Unknown = unknown(f.Entries)
	return f
}

// unknown is how many entries there are of which nothing is counted.
func unknown(entries []*Entry) int {
	n := 0
	walk(entries, func(e *Entry) {
		if !e.Known && len(e.Inner) == 0 {
			n++
		}
	})
	return n
}

// sizes is what fn's symbols stand for.
func sizes(fn *ir.Func, bind map[string]int64) map[string]dim.Dim {
	return dim.Consts(op.Bindings(fn, bind))
}

// body is the cost of fn with the sizes of env, nil if fn calls itself.
func (c *coster) body(fn *ir.Func, env map[string]dim.Dim) *body {
	key := text(env)
	if b, seen := c.bodies[fn][key]; seen {
		return b
	}
	if c.bodies[fn] == nil {
		c.bodies[fn] = map[string]*body{}
	}
	c.bodies[fn][key] = nil
	s := c.scopeOf(fn, env)
	b := &body{}
	if fn.Op != nil {
		for _, r := range fn.Op.Regions {
			for _, blk := range r.Blocks {
				ready := c.ready[blk]
				if ready != nil && key != text(sizes(fn, c.bind)) {
					ready = nil
				}
				b.entries = append(b.entries, s.block(blk.Ops, ready)...)
			}
		}
	}
	b.extra = s.extra
	b.total, b.lead = sum(b.entries), leading(b.entries)
	for _, e := range b.entries {
		if !e.Known {
			b.odd++
		}
	}
	b.in, b.fn = s, fn
	b.hold(s)
	c.bodies[fn][key] = b
	return b
}

// hold sums up the arguments and results.
func (b *body) hold(s *scope) {
	b.fixed = dim.Dim{}
	for _, vs := range [2][]*ir.Value{b.fn.Args, returned(b.fn)} {
		for _, v := range vs {
			b.fixed = b.fixed.Add(s.resident(v))
		}
	}
}

// peaks is what b holds at most. The coster must not be in use by others.
func (b *body) peaks() []dim.Dim {
	if !b.known {
		b.known = true
		fn, from := flatten.Func(b.fn)
		b.most = memory.Peak(fn, b.in.memory(from))
	}
	return b.most
}

func text(env map[string]dim.Dim) string {
	var k strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		k.WriteString(name + "=" + env[name].String() + "\x00")
	}
	return k.String()
}

// returned is the operands of fn's return, or of a region's yield.
func returned(fn *ir.Func) []*ir.Value {
	if t := fn.Body.Terminator(); t != nil && op.Ends(t) {
		return t.Operands
	}
	return nil
}

// total is the sum of entries.
type total struct{ flop, read, written dim.Dim }

func (t total) moved() dim.Dim { return t.read.Add(t.written) }

// times is t repeated n times.
func (t total) times(n dim.Dim) total {
	return total{t.flop.Mul(n), t.read.Mul(n), t.written.Mul(n)}
}

// sum adds in pairs of halves, so that adding many formulas with symbols of
// their own stays cheap.
func sum(entries []*Entry) total {
	switch len(entries) {
	case 0:
		return total{}
	case 1:
		e := entries[0]
		return total{e.FLOP, e.Read, e.Written}
	}
	a, b := sum(entries[:len(entries)/2]), sum(entries[len(entries)/2:])
	return total{a.flop.Add(b.flop), a.read.Add(b.read), a.written.Add(b.written)}
}
