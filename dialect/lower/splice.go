package lower

import (
	"maps"
	"slices"
	"sort"

	"dmir/dialect/ir"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Change is what a Splice did to a module.
type Change struct {
	Module *ir.Module
	// Whole tells that Gone and New are functions of the module; Func and Block
	// are nil then.
	Whole bool
	Func  *ir.Op
	Block *ir.Block
	Gone  []*ir.Op // ops that the block no longer holds, with their last positions
	New   []*ir.Op // ops that it holds instead, in the order of the text; an op may be in both
}

// maxAgain bounds how many ops are lowered again because of one change.
const maxAgain = 4096

// Splice follows a change that has been put into the tree. Only the ops that the
// change brought are lowered, and those to which a name now means something
// else; the others keep their identity. ok is false where that is not possible:
// then the unit is of no use any more. The result is nil for a change of white
// space and comments outside of functions.
func (u *Unit) Splice(p *parse.Splice, src *source.File) (c *Change, ok bool) {
	if p.Whole {
		return u.functions(p, src)
	}
	if p.Block == nil {
		for _, l := range u.sections {
			if len(p.Path) > 0 && (l.m.Outer == nil || origin.Tree(l.m.Outer) != p.Path[0]) {
				return nil, false
			}
		}
		u.shift(p, src, nil, 0)
		return nil, true
	}
	l, fn := u.find(p.Path[len(p.Path)-1])
	if fn == nil || !p.Plain() || len(l.root.names) > 0 {
		return nil, false
	}
	block := fn.Regions[0].Blocks[0]
	at := sort.Search(len(block.Ops), func(i int) bool { return block.Ops[i].Span.Start >= oldStart(p) })
	old := block.Ops[at:min(at+len(p.Old), len(block.Ops))]
	if !slices.EqualFunc(old, p.Old, func(o *ir.Op, t *ast.Op) bool { return origin.Tree(o) == t }) {
		return nil, false
	}
	y := u.bodies[block]
	if y == nil {
		l.m.Work.Add("lower", len(block.Ops))
		y = newBody(block)
		u.bodies[block] = y
	}
	if len(y.open) > maxPending/2 {
		return nil, false
	}
	l.slab = slab{}
	s := &splicer{l: l, y: y, gone: map[*ir.Op]bool{}, dirty: map[*ir.Op]bool{}, change: &Change{Module: l.m, Func: fn, Block: block}}
	window := &job{at: newStart(p), gone: slices.Clone(old), trees: p.New, place: at}
	var guessed []*ir.Value
	for _, o := range old {
		guessed = append(guessed, unlink(o)...)
	}
	u.shift(p, src, fn, at+len(old))
	block.Ops = slices.Delete(block.Ops, at, at+len(old))
	for _, o := range window.gone {
		s.gone[o] = true
	}
	for _, v := range guessed {
		s.markUsers(v)
	}
	l.guessed = guessed
	s.firsts(p.Old)
	s.enqueue(window)
	if !s.run() {
		return nil, false
	}
	l.m.Work.Add("lower", len(old)+s.again)
	s.nextUnknown(p.New)
	s.touched()
	slices.SortFunc(s.change.New, func(a, b *ir.Op) int { return a.Span.Start - b.Span.Start })
	return s.change, true
}

func oldStart(p *parse.Splice) int {
	if len(p.Old) > 0 {
		return p.Old[0].Off
	}
	return p.End
}

// newStart is where the new ops begin: nothing before it is theirs.
func newStart(p *parse.Splice) int {
	if len(p.New) > 0 {
		return p.New[0].Off
	}
	return p.Start
}

// splicer lowers some ops of one body again.
type splicer struct {
	l      *lowerer
	y      *body
	jobs   []*job // by position
	gone   map[*ir.Op]bool
	dirty  map[*ir.Op]bool // unlinked, and to be lowered again
	again  int
	stirs  bool // names came or went
	stuck  bool // the order matters in a way that only lowering everything gets right
	change *Change
}

// job is a run of ops to be lowered where others were.
type job struct {
	at    int // offset where the run begins
	gone  []*ir.Op
	trees []*ast.Op
	place int // in the block
}

func (s *splicer) run() bool {
	for len(s.jobs) > 0 {
		j := s.jobs[0]
		s.jobs = s.jobs[1:]
		if s.again += 1 + len(j.trees); s.again > maxAgain {
			return false
		}
		if !s.do(j) || s.stuck {
			return false
		}
		if len(s.jobs) == 0 && s.stirs {
			// What is guessed for a name without definition depends on the names around it.
			s.stirs = false
			for _, list := range s.y.open {
				for _, o := range list {
					s.mark(o)
				}
			}
		}
	}
	return true
}

// mark has an op of the block lowered again.
func (s *splicer) mark(o *ir.Op) {
	if s.dirty[o] || s.gone[o] {
		return
	}
	s.dirty[o] = true
	guessed := unlink(o)
	j := &job{at: o.Span.Start, gone: []*ir.Op{o}, trees: []*ast.Op{origin.Tree(o)}}
	s.enqueue(j)
	s.l.guessed = append(s.l.guessed, guessed...)
	for _, v := range guessed {
		s.markUsers(v)
	}
}

func (s *splicer) enqueue(j *job) {
	at, _ := slices.BinarySearchFunc(s.jobs, j.at, func(k *job, at int) int { return k.at - at })
	s.jobs = slices.Insert(s.jobs, at, j)
}

func (s *splicer) markUsers(v *ir.Value) {
	for _, use := range slices.Clone(v.Uses) {
		if o := s.y.top(use.Op); o != nil {
			s.mark(o)
		}
	}
}

// unlink removes the uses by o, and by what is inside it, from their values.
// Those whose types were guessed from uses have none until their uses are
// lowered again, in order.
func unlink(o *ir.Op) (guessed []*ir.Value) {
	ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
		for i, v := range p.Operands {
			v.DropUse(ir.Use{Op: p, Index: i})
			if v.Guessed {
				v.Type, v.Guessed = types.Unknown, false
				guessed = append(guessed, v)
			}
		}
		return true
	})
	return guessed
}

// do lowers one run and finds out to whom that matters.
func (s *splicer) do(j *job) bool {
	block, y := s.y.block, s.y
	before := map[string]definition{}
	var names []string
	affected := func(name string, _ []*ir.Value) {
		if _, seen := before[name]; !seen {
			before[name] = y.defs[name]
			names = append(names, name)
		}
	}
	fresh := len(j.trees) > 0 && len(j.gone) == 1 && origin.Tree(j.gone[0]) == j.trees[0]
	if fresh {
		j.place = sort.Search(len(block.Ops), func(i int) bool { return block.Ops[i].Span.Start >= j.at })
		if j.place == len(block.Ops) || block.Ops[j.place] != j.gone[0] {
			return false
		}
		s.forget(j.gone[0].Span)
	}
	for _, o := range j.gone {
		results(o, affected)
	}
	for _, o := range j.gone {
		y.remove(o)
		s.gone[o] = true
		o.Parent = nil
		delete(s.dirty, o)
	}
	ops := s.lower(j)
	if fresh {
		block.Ops[j.place] = ops[0]
	} else {
		block.Ops = slices.Insert(block.Ops, j.place, ops...)
	}
	for _, o := range ops {
		if len(o.Results) < len(origin.Tree(o).Results) {
			return false
		}
		seen := map[string]bool{}
		twice := false
		results(o, func(name string, v []*ir.Value) {
			affected(name, v)
			twice = twice || seen[name]
			seen[name] = true
		})
		if twice {
			return false
		}
		y.add(o)
	}
	s.record(j.gone, ops)
	for _, v := range s.l.outrun { // now another use is the first
		if v.Guessed {
			v.Type, v.Guessed = types.Unknown, false
			s.l.guessed = append(s.l.guessed, v)
			s.markUsers(v)
		}
	}
	s.l.outrun = nil
	for _, name := range names {
		s.rebind(name, before[name])
		if d := y.defs[name]; d.op != nil && d.op != before[name].op && !slices.Contains(ops, d.op) {
			s.mark(d.op) // it was a second definition, and is the first now
		}
	}
	return true
}

// record notes which ops came and went. What came and went again in one change
// is not spoken of.
func (s *splicer) record(gone, ops []*ir.Op) {
	for _, o := range gone {
		if i := slices.Index(s.change.New, o); i >= 0 {
			s.change.New = slices.Delete(s.change.New, i, i+1)
		} else {
			s.change.Gone = append(s.change.Gone, o)
		}
	}
	s.change.New = append(s.change.New, ops...)
}

// touched adds to the change the ops that give or use a value whose type was
// guessed or is no longer: they are what they were, but mean something else.
func (s *splicer) touched() {
	seen := map[*ir.Op]bool{}
	for _, o := range s.change.New {
		seen[o] = true
	}
	touch := func(o *ir.Op) {
		if o == nil {
			return
		}
		if o = s.y.top(o); o != nil && !seen[o] {
			seen[o] = true
			s.change.Gone = append(s.change.Gone, o)
			s.change.New = append(s.change.New, o)
		}
	}
	for _, v := range s.l.guessed {
		touch(v.Op)
		for _, u := range v.Uses {
			touch(u.Op)
		}
	}
	s.l.guessed = nil
}

// forget drops the diagnostics about the ops in a span that are lowered again. The
// one about an unknown op covers all ops of that name, and stays.
func (s *splicer) forget(at source.Span) {
	s.l.m.Diags = slices.DeleteFunc(s.l.m.Diags, func(d diag.Diagnostic) bool {
		return at.Start <= d.Span.Start && d.Span.Start < at.End && d.Code != "DM167"
	})
}

// lower lowers a run in the place where it stands.
func (s *splicer) lower(j *job) []*ir.Op {
	l := s.l
	kept := l.m.Diags
	clear(l.badTypes)
	l.m.Diags = nil
	untyped := l.untyped
	l.region, l.began = s.y.block.Region, 0
	l.blocks = nil
	if s.y.block.Label != "" {
		l.blocks = map[string]*ir.Block{s.y.block.Label: s.y.block}
	}
	l.scope = newScope(l.root)
	l.scope.barrier, l.scope.body, l.scope.before = outside, s.y, j.at
	var ops []*ir.Op
	for _, t := range j.trees {
		ops = append(ops, l.op(t, s.y.block))
	}
	for _, name := range slices.Sorted(maps.Keys(l.scope.pending)) {
		d, ok := s.y.defs[name]
		if !ok {
			continue
		}
		if slices.ContainsFunc(d.values, func(v *ir.Value) bool { return v.Guessed || v.Type == types.Type(types.Unknown) }) {
			s.stuck = true // its type is that of the first use to be met, and this one is met late
		}
		for _, p := range l.scope.pending[name] {
			l.late(p, d.values, d.values[0].Span)
		}
		delete(l.scope.pending, name)
	}
	l.unresolved()
	l.scope, l.region, l.blocks, l.untyped = l.root, nil, nil, untyped
	l.insideOf, l.insideNames = nil, nil
	l.m.Diags = append(kept, l.m.Diags...)
	sortDiags(l.m.Diags)
	return ops
}

// rebind sees to the uses of a name whose definition was another one before.
func (s *splicer) rebind(name string, before definition) {
	y := s.y
	after := y.defs[name]
	if slices.Equal(before.values, after.values) {
		s.markAll(y.more[name])
		return
	}
	if len(before.values) == 0 || len(after.values) == 0 {
		s.stirs = true
	}
	if s.gone[before.op] && len(after.values) > 0 && alike(before, after) && after.precedes(before.values) {
		for i, v := range before.values {
			uses := v.Uses
			v.Uses = nil
			after.values[i].AddUses(uses)
			for _, use := range uses {
				use.Op.Operands[use.Index] = after.values[i]
			}
			for _, use := range slices.Clone(uses) {
				if top := y.top(use.Op); top != nil && s.spoken(top.Span) {
					s.mark(top)
				}
			}
		}
	} else {
		for _, v := range before.values {
			s.markUsers(v)
		}
		for _, o := range slices.Clone(y.open[name]) {
			s.mark(o)
		}
		for _, o := range slices.Clone(y.inner[name]) {
			s.mark(o)
		}
	}
	s.markAll(y.more[name])
}

func (s *splicer) markAll(ds []definition) {
	for _, d := range slices.Clone(ds) {
		if d.op != nil {
			s.mark(d.op)
		}
	}
}

// spoken reports whether a diagnostic is in a span.
func (s *splicer) spoken(at source.Span) bool {
	ds := s.l.m.Diags
	i := sort.Search(len(ds), func(i int) bool { return ds[i].Span.Start >= at.Start })
	return i < len(ds) && ds[i].Span.Start < at.End
}
