package cost

import (
	"runtime"

	"dmir/base/parallel"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

const (
	batch   = 1024      // ops that are costed together
	several = 4 * batch // ops from which more than one core is worth it
)

// stretch is a part of the body of a function, with room for its entries.
type stretch struct {
	fn   *ir.Func
	env  map[string]dim.Dim
	ops  []*ir.Op
	into []*Entry
}

// prepare costs on all cores what can be costed by itself, if there is much of
// it: ops without regions and callees, which are nearly all there are.
func (c *coster) prepare() {
	workers := runtime.GOMAXPROCS(0)
	total := 0
	for _, fn := range c.m.Funcs {
		if fn.Body != nil {
			total += len(fn.Body.Ops)
		}
	}
	if workers == 1 || total < several {
		return
	}
	c.ready = map[*ir.Block][]*Entry{}
	var parts []stretch
	for _, fn := range c.m.Funcs {
		if fn.Body == nil {
			continue
		}
		ops, into := fn.Body.Ops, make([]*Entry, len(fn.Body.Ops))
		c.ready[fn.Body] = into
		for env := sizes(fn, c.bind); len(ops) > 0; {
			n := min(batch, len(ops))
			parts = append(parts, stretch{fn, env, ops[:n], into[:n]})
			ops, into = ops[n:], into[n:]
		}
	}
	parallel.Each(workers, len(parts), func(i int) { c.stretch(&parts[i]) })
}

func (c *coster) stretch(p *stretch) {
	s := c.scopeOf(p.fn, p.env)
	room := make([]Entry, len(p.ops))
	for i, o := range p.ops {
		if !counts(o, false) || !alone(o) {
			continue
		}
		s.fill(&room[i], o, false)
		p.into[i] = &room[i]
	}
}

// alone reports whether the cost of o depends on nothing but o.
func alone(o *ir.Op) bool {
	switch o.Name {
	case op.Call, op.Grad, op.Kernel, op.If, op.While, op.Scan:
		return false
	}
	return len(o.Regions) == 0 && op.Of(o) != nil && op.Valid(o) && !op.Updates(o)
}
