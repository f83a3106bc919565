package scope

import (
	"slices"
	"sort"
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Splice follows a change that has been put into the tree. ok is false where
// that is not possible: then the index is of no use any more.
func (x *Index) Splice(p *parse.Splice, src *source.File) (ok bool) {
	if p.Whole {
		return x.functions(p, src)
	}
	y, known := x.bodies[p.Block]
	if p.Block == nil {
		x.src, x.names = src, nil
		(&splicer{x: x, p: p}).shift()
		return true
	}
	if !known || !p.Plain() || x.symbols(y.in, p.Old, p.New, src) {
		return false
	}
	x.src, x.names = src, nil
	y.in.guesses = 0
	s := &splicer{x: x, r: y.r, p: p, b: &builder{x: x, in: y.in}, before: map[string]*Name{}, redo: map[*ast.Op]bool{}}
	s.shift()
	s.cut()
	s.defineNew()
	s.rebind()
	s.useAgain()
	s.release()
	return s.finish()
}

// finish sorts the findings. ok is false if there are so many unknown functions
// that which of them get a suggestion depends on the others.
func (s *splicer) finish() (ok bool) {
	sortDiags(s.x.Diags)
	return s.x.unknownFunctions() <= maxGuesses
}

func (x *Index) unknownFunctions() int {
	n := 0
	for _, d := range x.Diags {
		if d.Code == "DM169" {
			n++
		}
	}
	return n
}

type splicer struct {
	x      *Index
	r      *region // of the function's body
	p      *parse.Splice
	b      *builder
	before map[string]*Name // what the names that the change is about stood for, nil for nothing
	texts  []string         // those names
	less   []*Name          // that lost places
	redo   map[*ast.Op]bool // ops of the body whose uses are looked up again

	lo, hi int          // the occurrences of the ops that are gone, which those of the new ops replace
	fresh  []occurrence // of the new ops, until fill
}

// shift moves what was found behind the change.
func (s *splicer) shift() {
	s.x.Diags = s.p.Follow(s.x.Diags)
	by := int32(s.p.By())
	if by == 0 {
		return
	}
	// The text of the ops around the change after their regions.
	for _, o := range s.p.Path {
		end := o.Regions[0].Close
		tail := o.Attrs.Start > end // a name may stand there as a string
		for _, sym := range o.Symbols {
			tail = tail || sym.Span.Start > end
		}
		for _, a := range o.Aliases {
			tail = tail || a.Span.Start > end
		}
		if !tail {
			continue
		}
		move := func(pl *place) {
			if pl.op == o && pl.rel.Start > end-by {
				pl.rel.Start += by
				pl.rel.End += by
			}
		}
		for i := range s.x.occs {
			if occ := &s.x.occs[i]; occ.op == o && occ.rel.Start > end-by {
				n := s.x.all[occ.name]
				for j := range n.uses {
					if n.uses[j] == occ.place {
						move(&n.uses[j])
					}
				}
				for j := range n.defs {
					if n.defs[j] == occ.place {
						move(&n.defs[j])
					}
				}
				if n.first == occ.place {
					move(&n.first)
				}
				move(&occ.place)
			}
		}
	}
}

// touch notes that a name of the body may come to mean something else.
func (s *splicer) touch(text string) {
	if _, seen := s.before[text]; seen {
		return
	}
	s.before[text] = s.r.names[Value][text]
	s.texts = append(s.texts, text)
}

// cut finds the occurrences of the ops that are gone, and takes them from their names. They stay in the
// list, which is long, until fill.
func (s *splicer) cut() {
	occs := s.x.occs
	if len(s.p.Old) == 0 {
		if len(s.p.New) > 0 {
			s.lo = sort.Search(len(occs), func(i int) bool { return occs[i].start() >= s.p.New[0].Off })
			s.hi = s.lo
		}
		return
	}
	old := map[*ast.Op]bool{}
	ast.Walk(s.p.Old, func(o *ast.Op) bool { old[o] = true; return true })
	// What precedes begins before both, and what follows has moved, but not so far.
	from := min(s.p.Old[0].Off, s.p.Start)
	at := sort.Search(len(occs), func(i int) bool { return occs[i].start() >= from })
	end := at
	for end < len(occs) && old[occs[end].op] {
		end++
	}
	for _, o := range s.p.Old {
		for _, r := range o.Results {
			s.touch(r.Name)
		}
	}
	s.drop(occs[at:end])
	s.lo, s.hi = at, end
}

// take gives their places what the builder found in the new ops.
func (s *splicer) take() {
	for _, o := range s.b.found {
		s.x.add(o)
	}
	s.fresh = append(s.fresh, s.b.found...)
	s.b.found = nil
}

// fill puts the occurrences of the new ops where those of the old ones stood.
func (s *splicer) fill() {
	sortOccurrences(s.fresh)
	s.x.occs = slices.Replace(s.x.occs, s.lo, s.hi, s.fresh...)
	s.fresh, s.hi = nil, s.lo
}

// drop takes occurrences from their names.
func (s *splicer) drop(occs []occurrence) {
	for _, o := range occs {
		n := s.x.all[o.name]
		list := &n.uses
		if o.def {
			list = &n.defs
		}
		at := search(*list, o.start())
		for at < len(*list) && (*list)[at] != o.place {
			at++
		}
		if at == len(*list) { // the change has moved what it is sorted by
			at = slices.Index(*list, o.place)
		}
		*list = slices.Delete(*list, at, at+1)
		if o.def && len(n.defs) == 0 && n.home == s.r {
			delete(s.r.names[Value], n.Text)
		} else if o.def && len(n.defs) > 0 && n.first == o.place {
			n.first = n.defs[0]
		}
		s.less = append(s.less, n)
	}
}

// defineNew registers what the new ops define in the body.
func (s *splicer) defineNew() {
	for _, o := range s.p.New {
		for _, r := range o.Results {
			s.touch(r.Name)
		}
	}
	s.b.define(s.p.New, s.r)
	s.take()
}

// paste puts what the builder found in ops of the body in its place.
func (s *splicer) paste() {
	found := s.b.found
	s.b.found = nil
	sortOccurrences(found)
	for _, o := range found {
		s.x.add(o)
	}
	if len(found) == 0 {
		return
	}
	occs := s.x.occs
	first, last := found[0].start(), found[len(found)-1].start()
	lo := sort.Search(len(occs), func(i int) bool { return occs[i].start() >= first })
	hi := sort.Search(len(occs), func(i int) bool { return occs[i].start() > last })
	all := slices.Concat(occs[lo:hi], found)
	sortOccurrences(all)
	s.x.occs = slices.Replace(occs, lo, hi, all...)
}

// rebind marks the ops to which a name now means something else.
func (s *splicer) rebind() {
	for _, text := range s.texts {
		before, after := s.before[text], s.r.names[Value][text]
		if after != nil {
			after.first = after.defs[0]
		}
		if before == after {
			continue
		}
		if before != nil {
			s.again(before.uses)
		}
		if n := s.r.unknown[text]; n != nil {
			s.again(n.uses)
		}
		if after != nil {
			s.again(after.uses)
		}
		for _, o := range s.r.own[text] { // see useValue
			s.again([]place{{op: o}})
		}
	}
}

// again marks the ops of the body in which places are.
func (s *splicer) again(ps []place) {
	ops := s.p.Block.Ops
	for _, p := range ps {
		i := sort.Search(len(ops), func(i int) bool { return ops[i].Off > p.op.Off }) - 1
		if i >= 0 {
			s.redo[ops[i]] = true
		}
	}
}

// useAgain looks up the uses of the new ops and of those marked.
func (s *splicer) useAgain() {
	for _, o := range s.p.New {
		delete(s.redo, o)
	}
	s.x.work.Add("scope", len(s.p.Old)+len(s.p.New)+len(s.redo))
	if len(s.redo) == 0 { // as after most edits
		s.b.use(s.p.New, s.r)
		s.b.resolveAll()
		s.take()
		s.fill()
		return
	}
	s.fill()
	list := slices.Clone(s.p.New)
	for o := range s.redo {
		s.forget(o)
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *ast.Op) int { return a.Off - b.Off })
	s.b.use(list, s.r)
	s.b.resolveAll()
	s.paste()
}

// forget takes out what an op of the body and what is inside it use.
func (s *splicer) forget(o *ast.Op) {
	span := o.Span()
	occs := s.x.occs
	lo := sort.Search(len(occs), func(i int) bool { return occs[i].start() >= span.Start })
	hi := lo + sort.Search(len(occs)-lo, func(i int) bool { return occs[lo+i].start() >= span.End })
	own := func(c occurrence) bool { return c.op == o && c.def && s.x.all[c.name].home == s.r }
	var gone, stay []occurrence
	for _, c := range occs[lo:hi] {
		if own(c) {
			stay = append(stay, c)
		} else {
			gone = append(gone, c)
		}
	}
	s.drop(gone)
	s.x.occs = slices.Replace(occs, lo, hi, stay...)
	s.x.Diags = slices.DeleteFunc(s.x.Diags, func(d diag.Diagnostic) bool {
		return span.Start <= d.Span.Start && d.Span.Start < span.End &&
			!slices.ContainsFunc(stay, func(c occurrence) bool { return c.span() == d.Span })
	})
}

// symbols reports whether ops that go or come, or what is inside them, define
// symbols by a string among their attributes.
func (x *Index) symbols(in *section, gone, fresh []*ast.Op, src *source.File) bool {
	found := false
	ast.Walk(gone, func(o *ast.Op) bool {
		found = found || in.symbols[o] != nil
		return !found
	})
	ast.Walk(fresh, func(o *ast.Op) bool {
		if text, _ := symName(o, src); text != "" {
			found = true
		}
		return !found
	})
	return found
}

// release lets names that have no place any more hold nothing of the text that
// they had one in. They stay names: their numbers may come back.
func (s *splicer) release() {
	for _, n := range s.less {
		if len(n.defs)+len(n.uses) > 0 {
			continue
		}
		text := strings.Clone(n.Text)
		if n.home != nil {
			for _, names := range []map[string]*Name{n.home.names[n.Kind], n.home.unknown} {
				if names[text] == n { // a map keeps the key that it was first given
					delete(names, text)
					names[text] = n
				}
			}
			if s.p.Whole && n.home != s.r { // the region went with its function
				n.home = nil
			}
		}
		n.Text, n.first, n.defs, n.uses = text, noPlace, nil, nil
	}
}
