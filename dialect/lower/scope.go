package lower

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/source"
)

// scope is the value names of one isolated op: a function, or the section's
// top level. Regions inside see the names around them, and what they define
// is undone at their end, so that sibling regions may use the same names.
type scope struct {
	outer   *scope
	names   map[string]entry
	log     []undo
	barrier int // names logged before it may be hidden: they lie outside a region of an unknown op
	pending map[string][]pendingUse
	waiting int   // pending uses so far, which numbers them
	body    *body // of which only some ops are lowered again; nil where all are
	before  int   // the place in the body's block of the first op that is
}

// entry is the values that one name stands for: several for "%r:2".
type entry struct {
	values []*ir.Value
	logged int
}

type undo struct {
	name string
	old  entry // without values where the name was free
}

// pendingUse is a use before any definition was seen.
type pendingUse struct {
	number  int
	op      *ir.Op
	operand int
	name    string // "%x" without "#n"
	index   int32  // of "#n", -1 where none is written
	want    types.Type
	span    source.Span
	form    ast.Form // of the op
	own     bool     // a region of the op defines the name
	hidden  bool     // the name is known outside of the isolated op
	guess   string
}

// hides reports whether a scope around s knows name.
func (s *scope) hides(name string) bool {
	for s = s.outer; s != nil; s = s.outer {
		if s.lookup(name).values != nil {
			return true
		}
	}
	return false
}

func newScope(outer *scope) *scope {
	return &scope{outer: outer, names: map[string]entry{}, pending: map[string][]pendingUse{}}
}

// renew makes s, whose names have no references any more, a new scope, with room
// for n names.
func (s *scope) renew(outer *scope, n int) *scope {
	if s.names == nil || n > cap(s.log) || cap(s.log) > 8*(n+slabSize) { // to empty a large table takes long
		return &scope{outer: outer, names: make(map[string]entry, n), log: make([]undo, 0, n), pending: map[string][]pendingUse{}}
	}
	clear(s.names)
	clear(s.pending)
	*s = scope{outer: outer, names: s.names, log: s.log[:0], pending: s.pending}
	return s
}

// lookup is what name stands for so far.
func (s *scope) lookup(name string) entry {
	e := s.names[name]
	if e.values == nil && s.body != nil {
		return entry{s.body.earlier(name, s.before), outside}
	}
	return e
}

// outside is when the names of a body whose ops are not lowered again were
// logged: before any other.
const outside = -1

// nearby is the first and the last names defined so far, sorted.
func (s *scope) nearby() []string {
	var all []string
	if s.body != nil {
		all = s.body.names(s.before)
	}
	for _, u := range s.log {
		all = append(all, u.name)
	}
	if len(all) > firstNames+lastNames {
		all = slices.Concat(all[:firstNames], all[len(all)-lastNames:])
	}
	slices.Sort(all)
	return all
}

// define makes name stand for values. It returns the first value that name
// stood for already, if it may not be hidden.
func (s *scope) define(name string, values []*ir.Value) (taken *ir.Value) {
	old := s.lookup(name)
	if old.values != nil && old.logged >= s.barrier {
		return old.values[0]
	}
	s.names[name] = entry{values, len(s.log)}
	s.log = append(s.log, undo{name, old})
	return nil
}

// mark is the state to return to at the end of a region.
func (s *scope) mark() int { return len(s.log) }

func (s *scope) release(mark int) {
	if mark == 0 {
		clear(s.names) // all that is in it was logged
		s.log = s.log[:0]
		return
	}
	for i := len(s.log) - 1; i >= mark; i-- {
		if u := s.log[i]; u.old.values == nil {
			delete(s.names, u.name)
		} else {
			s.names[u.name] = u.old
		}
	}
	s.log = s.log[:mark]
}

// slab hands out ops, values and lists of values and uses from large blocks: a
// file of 100,000 ops needs a few hundred allocations instead of as many as it
// has ops.
type slab struct {
	ops    []ir.Op
	values []ir.Value
	lists  []*ir.Value
	uses   []ir.Use
	room   int // how many were made the last time
}

func (s *slab) more() int {
	s.room = min(max(2*s.room, 4), slabSize)
	return s.room
}

const slabSize = 256

func (s *slab) op() *ir.Op {
	if len(s.ops) == 0 {
		s.ops = make([]ir.Op, s.more())
	}
	o := &s.ops[0]
	s.ops = s.ops[1:]
	return o
}

func (s *slab) value() *ir.Value {
	if len(s.values) == 0 {
		s.values = make([]ir.Value, s.more())
	}
	v := &s.values[0]
	s.values = s.values[1:]
	return v
}

func (s *slab) list(n int) []*ir.Value {
	if n == 0 {
		return nil
	}
	if n > len(s.lists) {
		s.lists = make([]*ir.Value, max(n, s.more()))
	}
	l := s.lists[:n:n]
	s.lists = s.lists[n:]
	return l
}

// use is an empty list with room for one use: most values have no more.
func (s *slab) use() []ir.Use {
	if len(s.uses) == 0 {
		s.uses = make([]ir.Use, s.more())
	}
	l := s.uses[:0:1]
	s.uses = s.uses[1:]
	return l
}
