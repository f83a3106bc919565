package lint

import (
	"fmt"
	"slices"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

// Saving is what a function's total loses when some of its entries go and
// others come in their place.
type Saving struct {
	Bytes dim.Dim
	Ns    float64
	timed bool  // false while a symbol is unbound
	Sent  int64 // bytes that a device sends less
}

// saving is the difference that replacing the entries removed by added makes.
// What lies in a loop counts as often as the loop runs.
func (c *Context) saving(removed, added []*cost.Entry) *Saving {
	s := &Saving{timed: true}
	count := func(es []*cost.Entry, sign int64) {
		for _, e := range es {
			trips := c.trips(e.Op)
			s.Bytes = s.Bytes.Add(e.Moved().Mul(trips).Scale(sign))
			t := e.Time(c.Machine)
			n, ok := trips.Int()
			s.Ns += float64(sign) * t.Ns * float64(n)
			s.timed = s.timed && t.Known && ok
		}
	}
	count(removed, 1)
	count(added, -1)
	return s
}

// trips is how often the loops around o run it.
func (c *Context) trips(o *ir.Op) dim.Dim {
	n := dim.Const(1)
	for loop := loopAround(o); loop != nil; loop = loopAround(loop) {
		if e := c.Cost.Find(loop); e != nil {
			n = n.Mul(e.Trips)
		}
	}
	return n
}

// replacement is the edits that put the values of to in the place of o's
// results and remove the ops in gone, and what that saves: the entries of
// these, and what users no longer read because they read the new value already.
func (c *Context) replacement(o *ir.Op, to []*ir.Value, gone ...*ir.Op) (*Saving, []diag.Edit, bool) {
	removed, added := c.entries(gone...), []*cost.Entry(nil)
	now := map[*ir.Value]*ir.Value{}
	for i, old := range o.Results {
		now[old] = to[i]
	}
	var edits []diag.Edit
	seen := map[*ir.Op]bool{}
	for _, old := range o.Results { // in order, so that sums of times do not depend on a map's
		more, ok := replaceAll(old, now[old])
		if !ok {
			return nil, nil, false
		}
		edits = append(edits, more...)
		for _, u := range old.Uses {
			user := u.Op
			if k := kernelOf(user); k != nil {
				user = k
			}
			if seen[user] || slices.Contains(gone, user) {
				continue
			}
			seen[user] = true
			switch e := c.entry(user); {
			case e != nil && len(e.Inner) == 0 || user.Name == op.Kernel && e != nil:
				removed = append(removed, e)
				added = append(added, cost.Replaced(c.Fn, c.Module, c.Bind, user, now))
			case e == nil && inBranch(user) && slices.Contains(ir.UsedValues(user), now[old]):
				return nil, nil, false // what a branch saves depends on the other branch
			}
		}
	}
	for _, o := range gone {
		edits = append(edits, c.remove(o)...)
	}
	return c.saving(removed, added), edits, true
}

// positive reports whether bytes are saved; a formula counts as positive when
// it is so with every symbol at a typical size.
func (s *Saving) positive() bool {
	bind := map[string]int64{}
	for _, name := range s.Bytes.Symbols() {
		bind[name] = cost.TypicalSize
	}
	n, ok := s.Bytes.Eval(bind).Int()
	return ok && n > 0
}

func (s *Saving) promise() (bytes int64, ns float64) {
	n, ok := s.Bytes.Int()
	if !ok {
		return 0, 0
	}
	return n, s.Ns
}

func (s *Saving) sentence(c *Context) string {
	if s.Bytes.IsZero() && s.Sent == 0 && !c.distributed() {
		return "moves nothing as it is"
	}
	if n, ok := s.Bytes.Int(); ok && n < 0 && s.Sent == 0 && !c.distributed() && s.timed {
		return fmt.Sprintf("saves %s of %s on %s, and moves %s more", units.Time(s.Ns), units.Time(c.total().Ns), c.Machine.Name, units.Bytes(-n))
	}
	text := "saves " + units.DimBytes(s.Bytes)
	switch n, ok := s.Bytes.Int(); {
	case s.Sent > 0 && (!ok || n > 0):
		text = "saves " + units.Bytes(s.Sent) + " sent by each device, " + units.DimBytes(s.Bytes) + " moved"
	case s.Sent > 0:
		text = "saves " + units.Bytes(s.Sent) + " sent by each device"
	case c.distributed() && ok && n <= 0:
		if !s.timed {
			return "sends as much as before"
		}
		return fmt.Sprintf("saves %s of %s on %s", units.Time(s.Ns), units.Time(c.total().Ns), c.Machine.Name)
	}
	if total := c.total(); s.timed && total.Known {
		text += fmt.Sprintf(" and %s of %s on %s", units.Time(s.Ns), units.Time(total.Ns), c.Machine.Name)
	}
	return text
}

func (c *Context) total() cost.Time {
	if c.time == nil {
		t := c.shown().Time(c.Machine)
		c.time = &t
	}
	return *c.time
}

// entry is the cost of o where it stands on a line of its own, nil where its
// cost is not known, inside a kernel, and in a branch, whose cost counts only
// when it is the costlier one.
func (c *Context) entry(o *ir.Op) *cost.Entry {
	if o == nil || kernelOf(o) != nil || inBranch(o) {
		return nil
	}
	if e := c.Cost.Find(o); e != nil && e.Known {
		return e
	}
	return nil
}

// entries collects the entries of ops that have one.
func (c *Context) entries(ops ...*ir.Op) []*cost.Entry {
	var es []*cost.Entry
	for _, o := range ops {
		if e := c.entry(o); e != nil {
			es = append(es, e)
		}
	}
	return es
}

// kernelOf is the dm.kernel around o, nil outside of kernels.
func kernelOf(o *ir.Op) *ir.Op { return around(o, op.Kernel) }

// loopAround is the loop around o, nil outside of loops.
func loopAround(o *ir.Op) *ir.Op { return around(o, op.While, op.Scan) }

func inBranch(o *ir.Op) bool { return around(o, op.If) != nil }

// around is the innermost op of one of the names whose regions hold o.
func around(o *ir.Op, names ...string) *ir.Op {
	for b := o.Parent; b != nil && b.Region != nil && b.Region.Op != nil; b = b.Region.Op.Parent {
		if slices.Contains(names, b.Region.Op.Name) {
			return b.Region.Op
		}
	}
	return nil
}

// ops visits the ops of the function's body, those in loops, branches and
// kernels included; kernels themselves come before what is in them.
func (c *Context) ops(visit func(*ir.Op)) {
	visits := 0
	defer func() { c.program.Work().Add("lint", visits) }()
	ir.Walk(c.Fn.Body.Ops, func(o *ir.Op) bool {
		if c.ctx.Err() != nil {
			return false
		}
		visits++
		if !o.Bad {
			visit(o)
		}
		return true
	})
}

// held says what a function holds at most, before and after a change; nothing where sizes are open or that is nearly the same.
func held(before, after *cost.Func) []string {
	was, ok1 := before.Peak().Int()
	is, ok2 := after.Peak().Int()
	if !ok1 || !ok2 || was-is <= was/100 {
		return nil
	}
	return []string{fmt.Sprintf("the peak of memory falls by %s, from %s to %s", units.Bytes(was-is), units.Bytes(was), units.Bytes(is))}
}
