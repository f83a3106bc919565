package cost

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/source"
)

// lines is the cost of device by the ops of fn that its ops were made of.
func lines(fn *ir.Func, device *Func, c *coster) *Func {
	s := c.scope(nil)
	g := &grouper{s: s, of: map[source.Span]*ir.Op{}}
	ir.Walk(fn.Body.Ops, func(o *ir.Op) bool {
		if o.Span.Len() > 0 {
			g.of[o.Span] = o
		}
		return true
	})
	f := &Func{
		Func: fn, FLOP: device.FLOP, Read: device.Read, Written: device.Written, Unknown: device.Unknown,
		body: device.body, timed: device.timed, overlap: device.overlap, device: device,
	}
	f.Entries = g.block(fn.Body, device.Entries)
	if rest := g.rest; len(rest) > 0 {
		e := g.line(fn.Op, rest)
		f.Entries = append([]*Entry{e}, f.Entries...)
	}
	return f
}

// grouper sorts the entries of a divided function by the ops of the text.
type grouper struct {
	s    *scope
	of   map[source.Span]*ir.Op
	rest []*Entry // of no op of the text
}

// block is an entry for each op of b that has a cost in the text or in one of entries.
func (g *grouper) block(b *ir.Block, entries []*Entry) []*Entry {
	made := map[*ir.Op][]*Entry{}
	for _, e := range entries {
		o := g.of[e.Op.Span]
		if o != nil {
			o = b.Ancestor(o)
		}
		switch {
		case o != nil:
			made[o] = append(made[o], e)
		case !e.FLOP.IsZero() || !e.Moved().IsZero() || e.talks():
			g.rest = append(g.rest, e)
		}
	}
	var out []*Entry
	for i, o := range b.Ops {
		if parts := made[o]; len(parts) > 0 || counts(o, i == len(b.Ops)-1) {
			out = append(out, g.line(o, parts))
		}
	}
	return out
}

// line is the entry of o, which parts were made of.
func (g *grouper) line(o *ir.Op, parts []*Entry) *Entry {
	w := &Within{Trips: dim.Const(1), parts: parts}
	e := &Entry{Op: o, in: g.s.m, Known: true, Class: op.ClassMovement, Within: w}
	var compute []*Entry
	for _, p := range parts {
		e.FLOP, e.Read, e.Written = e.FLOP.Add(p.FLOP), e.Read.Add(p.Read), e.Written.Add(p.Written)
		e.Known = e.Known && p.Known
		if p.Comm == nil {
			compute = append(compute, p)
		}
	}
	e.Class, e.Elem = strongest(compute)
	if d := op.Of(o); d != nil && len(o.Regions) == 0 && o.Name != op.Call && o.Name != op.Grad {
		e.Class = d.Class
	}
	if parts == nil {
		w.parts = []*Entry{}
	}
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			var inner []*Entry
			for _, p := range parts {
				for _, i := range p.Inner {
					if at := g.of[i.Op.Span]; at != nil && b.Ancestor(at) != nil {
						inner = append(inner, i)
					}
				}
				if len(p.Op.Regions) > 0 && p.Op.Name == o.Name && o.Name != op.Kernel {
					w.Trips = p.Trips
				}
			}
			if len(inner) > 0 {
				w.Inner = append(w.Inner, g.block(b, inner)...)
			}
		}
	}
	if o.Name == op.Kernel {
		e.Fused = true
		walk(e.Inner, func(i *Entry) { i.inside, i.Read, i.Written = true, dim.Dim{}, dim.Dim{} })
	}
	return e
}

// Parts are the entries of the ops that e's op was made into, of a line of a divided
// function; nil of others.
func (e *Entry) Parts() []*Entry { return e.parts }
