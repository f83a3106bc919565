package parse

import (
	"slices"
	"sort"
	"strings"

	"dmir/base/parallel"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

// Change is an edit of a text: [Start, End) became Length bytes.
type Change struct{ Start, End, Length int }

// By is how far what follows the change moves.
func (c Change) By() int { return c.Length - (c.End - c.Start) }

// Moved is where a place outside of the change is after it.
func (c Change) Moved(off int) int {
	if off >= c.End {
		return off + c.By()
	}
	return off
}

// Splice is what a change does to a tree: in one block, the body of a function,
// some ops give way to others, and all that follows moves. A change between ops,
// of a comment or of white space, does no more than move what follows, wherever
// it is.
type Splice struct {
	Change
	Path  []*ast.Op  // the ops around the change, from the outside in; the last is the function
	Block *ast.Block // the function's body; nil for a change outside of functions
	At    int        // the place in Block.Ops of the first op replaced
	Old   []*ast.Op  // positions before the change
	New   []*ast.Op  // positions after it

	// Whole tells that Old and New are functions, and p.At their place among the
	// items of the file.
	Whole bool

	src   *source.File
	ops   []*ast.Op // that the change is among
	items []*ast.Op // see Items
}

const (
	margin   = 4 << 10 // text after the change that is read beyond the end in the tree
	maxFresh = 2048    // ops that a change may bring before reading all of the text is as good
)

// Replan finds out what change c, which led to src, does to f, the tree of the
// text before it. It changes nothing. ok is false where the change reaches
// beyond the ops of one function's body, and the text is to be read afresh.
func Replan(f *ast.File, src *source.File, c Change) (p *Splice, ok bool) {
	if _, bad := unreadable(src.Slice(source.Span{Start: c.Start, End: c.Start + c.Length})); bad || src.Len() >= maxFile || len(f.Diags) >= maxDiags || f.Crooked {
		return nil, false
	}
	if len(f.Items) == 0 {
		return nil, false
	}
	p = &Splice{Change: c, src: src}
	if !p.descend(f.Items) {
		return whole(f, src, c)
	}
	ops := p.ops
	if !p.begins() {
		return nil, false
	}
	for size := margin; ; size *= 16 {
		done, short := p.rescan(size)
		if done {
			p.trim()
			if p.Block == nil {
				return p, len(p.Old)+len(p.New) == 0
			}
			return p, len(ops)-len(p.Old)+len(p.New) > 0 // an empty body is another matter
		}
		if !short || size > 64*margin {
			return nil, false
		}
	}
}

// begins finds the first op that the change may give another end.
func (p *Splice) begins() bool {
	ops := p.ops
	p.At = sort.Search(len(ops), func(i int) bool { return ops[i].Off > p.Start }) - 1
	// Where an op ends may depend on how the next one begins; what could not be
	// read may end anywhere.
	for back := 0; p.At >= 0; back++ {
		p.At--
		if p.At < 0 || ops[p.At].Form != ast.Bad && ops[p.At].Span().End <= p.Start && lineBetween(p.src, ops[p.At].Off, p.Start) {
			break
		}
		if back > 8 {
			return false
		}
	}
	p.At = max(p.At, 0)
	return true
}

func lineBetween(src *source.File, start, end int) bool {
	return strings.IndexByte(src.Slice(source.Span{Start: start, End: end}), '\n') >= 0
}

// descend goes from the ops of a block to the body of the function that the
// change lies in, or to the ops that it lies between.
func (p *Splice) descend(ops []*ast.Op) bool {
	p.ops = ops
	i := sort.Search(len(ops), func(i int) bool { return ops[i].Off > p.Start }) - 1
	if i < 0 || ops[i].Span().End <= p.Start {
		return true
	}
	o := ops[i]
	if len(o.Regions) != 1 || len(o.Diags) > 0 || o.Form == ast.Bad || o.Form == ast.Custom {
		return false
	}
	r := o.Regions[0]
	if r.Close < 0 || len(r.Blocks) != 1 || p.Start <= o.Off+int(r.Open) || p.End > o.Off+int(r.Close) {
		return false
	}
	b := r.Blocks[0]
	p.Path, p.ops = append(p.Path, o), b.Ops
	switch o.Name {
	case "func.func":
		p.Block = b
		return len(b.Ops) > 0 && p.Start >= p.begin()
	case "module", "builtin.module":
		return len(b.Ops) > 0 && b.Label == "" && p.descend(b.Ops)
	}
	return false
}

// owner is the op around the change, nil for the file.
func (p *Splice) owner() *ast.Op {
	if len(p.Path) == 0 {
		return nil
	}
	return p.Path[len(p.Path)-1]
}

// begin is where the text of the ops may begin: behind the brace or, in generic
// form, behind the line of the label.
func (p *Splice) begin() int {
	switch o := p.owner(); {
	case o == nil:
		return 0
	case p.Block != nil && p.Block.Label != "":
		return p.ops[0].Off
	default:
		return o.Off + int(o.Regions[0].Open) + 1
	}
}

// closing is where the brace behind the ops stands after the change, the end of
// the text where there is none.
func (p *Splice) closing() int {
	if o := p.owner(); o != nil {
		return p.Moved(o.Off + int(o.Regions[0].Close))
	}
	return p.src.Len()
}

// rescan cuts the text from the first op replaced on into ops, until one begins
// where one began before. short tells that the text ended too early.
func (p *Splice) rescan(size int) (done, short bool) {
	ops := p.ops
	from := p.begin()
	if p.At > 0 {
		from = ops[p.At].Off
	}
	if from > p.Start {
		return false, false
	}
	base := p.src.LineStart(p.src.Pos(from).Line)
	closing := p.closing()
	first := sort.Search(len(ops), func(i int) bool { return ops[i].Off >= p.End })
	end := closing
	if next := first + 2; next < len(ops) {
		end = min(end, p.Moved(ops[next].Off))
	}
	end = min(max(end, p.Start+p.Length)+size, p.src.Len())
	text := strings.Clone(p.src.Slice(source.Span{Start: base, End: end}))
	s := &scanner{cur: lex.New(text, from-base, len(text)), askew: -1, done: func(*ast.Op) {}, depth: len(p.Path), inFunc: p.Block != nil}
	s.cur.Line = strings.TrimLeft(text[:from-base], " \t") == ""
	s.cur.Mode = lex.Splits
	s.advance()
	p.New = nil
	for {
		t := s.tok
		at := base + t.Start
		switch {
		case t.Kind == lex.EOF && (end < p.src.Len() || p.owner() != nil):
			return false, end < p.src.Len()
		case t.Kind == lex.EOF || t.Kind == lex.RBrace && at == closing:
			if s.crooked {
				return false, false
			}
			p.Old = ops[p.At:]
			p.fill(s, text, base)
			return true, false
		case t.Kind == lex.Split || t.Kind == lex.Label || t.Kind == lex.Resource || t.Kind == lex.RBrace:
			return false, false
		}
		for first < len(ops) && p.Moved(ops[first].Off) < at {
			first++
		}
		if changed := p.Start + p.Length - base; t.First && t.Start > changed && strings.IndexByte(text[changed:t.Start], '\n') >= 0 &&
			first < len(ops) && p.Moved(ops[first].Off) == at {
			if end < p.src.Len() && len(text)-t.Start < margin/2 { // how an op ends is seen behind it
				return false, true
			}
			if s.crooked {
				return false, false
			}
			p.Old = ops[p.At:first]
			p.fill(s, text, base)
			return true, false
		}
		if len(p.New) > maxFresh || p.Whole && len(s.ops) > maxFresh || p.Block != nil && t.Kind == lex.Ident && t.First && s.slice(t) == "func.func" {
			return false, false
		}
		p.New = append(p.New, s.op())
	}
}

// fill reads the details of the new ops and puts them in their places.
func (p *Splice) fill(s *scanner, text string, base int) {
	details := pool{work: func(d *detailer, op *ast.Op) {
		d.op(op, text[op.Off:op.Off+int(op.Len)])
		op.Off += base
	}}
	for _, op := range s.ops {
		details.add(op)
	}
	details.wait()
}

// trim leaves out of the splice what stays as it is at either end.
func (p *Splice) trim() {
	same := func(o, n *ast.Op, by int) bool {
		return n.Off == o.Off+by && n.Len == o.Len && n.Form == o.Form && len(n.Diags) == len(o.Diags)
	}
	for len(p.Old) > 0 && len(p.New) > 0 && p.Old[0].Span().End <= p.Start && same(p.Old[0], p.New[0], 0) {
		p.Old, p.New = p.Old[1:], p.New[1:]
		p.At++
	}
	for n, m := len(p.Old), len(p.New); n > 0 && m > 0 && p.Old[n-1].Off >= p.End && same(p.Old[n-1], p.New[m-1], p.By()); n, m = len(p.Old), len(p.New) {
		p.Old, p.New = p.Old[:n-1], p.New[:m-1]
	}
}

// wideMove is the number of ops from which moving them is worth a goroutine.
const wideMove = 4096

// Apply makes f the tree of the text after the change: what Replan found is put
// in place, and what follows moves. f must not be in use.
func (p *Splice) Apply(f *ast.File) {
	by := p.By()
	p.Old = slices.Clone(p.Old) // a part of what is overwritten
	f.Work.Add("parse", len(p.Old)+len(p.New))
	f.Diags = p.diags(f.Diags)
	if by != 0 {
		move := func(ops []*ast.Op) {
			parallel.Parts(len(ops), wideMove, func(from, to int) {
				moved := 0
				ast.Walk(ops[from:to], func(o *ast.Op) bool {
					o.Off += by
					moved++
					return true
				})
				f.Work.Add("moved", moved)
			})
		}
		move(p.ops[p.At+len(p.Old):])
		for i := len(p.Path) - 1; i >= 0; i-- {
			o := p.Path[i]
			shiftTail(o, int32(p.Start-o.Off), int32(by))
			siblings := f.Items
			if i > 0 {
				siblings = p.Path[i-1].Regions[0].Blocks[0].Ops
			}
			at := sort.Search(len(siblings), func(i int) bool { return siblings[i].Off > p.Start })
			move(siblings[at:])
		}
	}
	if p.Block != nil {
		p.Block.Ops = slices.Replace(p.Block.Ops, p.At, p.At+len(p.Old), p.New...)
	}
	if p.Whole {
		f.Items = slices.Replace(f.Items, p.At, p.At+len(p.Old), p.New...)
	}
	p.items = f.Items
	f.Src = p.src
}

// diags are the diagnostics of the tree after the change.
func (p *Splice) diags(ds []diag.Diagnostic) []diag.Diagnostic {
	out := p.Follow(ds)
	if fresh := collect(all(p.New)); len(fresh) > 0 {
		out = append(out, fresh...)
		sort.SliceStable(out, func(i, j int) bool { return out[i].Span.Start < out[j].Span.Start })
	}
	return out
}

func all(ops []*ast.Op) []*ast.Op {
	var out []*ast.Op
	ast.Walk(ops, func(o *ast.Op) bool { out = append(out, o); return true })
	return out
}

// gone reports whether a place of the text before the change lies in an op that
// is replaced.
func (p *Splice) gone(off int) bool {
	if len(p.Old) == 0 {
		return false
	}
	return p.Old[0].Off <= off && off < p.Old[len(p.Old)-1].Span().End
}

// Follow is diagnostics of the text before the change as they stand after it,
// without those of the ops that are replaced.
func (p *Splice) Follow(ds []diag.Diagnostic) []diag.Diagnostic {
	var kept []diag.Diagnostic
	for _, d := range ds {
		if !p.gone(d.Span.Start) {
			kept = append(kept, p.shift(d))
		}
	}
	return kept
}

// shift is a diagnostic of the text before the change as it stands after it.
func (p *Splice) shift(d diag.Diagnostic) diag.Diagnostic {
	d.Span = p.MoveSpan(d.Span)
	if len(d.Related) > 0 {
		d.Related = slices.Clone(d.Related)
		for i := range d.Related {
			d.Related[i].Span = p.MoveSpan(d.Related[i].Span)
		}
	}
	if len(d.Fixes) > 0 {
		d.Fixes = slices.Clone(d.Fixes)
		for i := range d.Fixes {
			d.Fixes[i].Edits = slices.Clone(d.Fixes[i].Edits)
			for j := range d.Fixes[i].Edits {
				d.Fixes[i].Edits[j].Span = p.MoveSpan(d.Fixes[i].Edits[j].Span)
			}
		}
	}
	return d
}

// Plain reports whether neither the ops that go nor those that come define
// anything but values and labels.
func (p *Splice) Plain() bool {
	return plain(p.Old) && plain(p.New)
}

func plain(ops []*ast.Op) bool {
	plain := true
	ast.Walk(ops, func(o *ast.Op) bool {
		switch {
		case o.Form == ast.AttrAlias || o.Form == ast.TypeAlias || o.Form == ast.Split || o.Form == ast.Resource,
			o.Func != nil, o.Name == "func.func", o.Name == "module", o.Name == "builtin.module",
			slices.ContainsFunc(o.Symbols, func(s ast.Symbol) bool { return s.Def }):
			plain = false
		}
		return plain
	})
	return plain
}

// MoveSpan is where a span is after the change. One that ends where the change
// begins stays.
func (c Change) MoveSpan(s source.Span) source.Span {
	to := source.Span{Start: c.Moved(s.Start), End: s.End}
	if s.End > c.Start {
		to.End = c.Moved(s.End)
	}
	to.End = max(to.Start, to.End)
	return to
}

// shiftTail moves the positions in an op after at, a place in its first region, by so
// many bytes.
func shiftTail(o *ast.Op, at, by int32) {
	o.Len += by
	o.Regions[0].Close += by
	move := func(r *ast.Rel) {
		if r.Start >= at {
			r.Start += by
			r.End += by
		}
	}
	for _, r := range []*ast.Rel{&o.Props, &o.Attrs, &o.Sig, &o.Loc} {
		move(r)
	}
	if n := len(o.Symbols); n > 0 && o.Symbols[n-1].Span.Start >= at {
		o.Own().Symbols = slices.Clone(o.Symbols)
		for i := range o.Symbols {
			move(&o.Symbols[i].Span)
		}
	}
	if n := len(o.Aliases); n > 0 && o.Aliases[n-1].Span.Start >= at {
		o.Own().Aliases = slices.Clone(o.Aliases)
		for i := range o.Aliases {
			move(&o.Aliases[i].Span)
		}
	}
}
