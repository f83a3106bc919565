// Package history follows the code actions that are applied to a document. The server
// makes the edits of an action, and the editor applies them without a word: the log
// recognizes the text that they lead to. It then carries what each action wrote along
// with later edits, so that it can be reverted alone as long as that is unchanged.
package history

import (
	"slices"
	"time"

	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// The bounds of a log.
const (
	maxEntries = 100      // of one document; the oldest are dropped
	maxText    = 8 << 20  // bytes of text that the entries can bring back
	maxParts   = 1 << 13  // places that the entries carry along with each change
	maxWhole   = 64 << 20 // bytes of the whole texts before and after, of which those of the oldest entries go first
	maxOffers  = 256      // for one text
	patience   = 64       // changes after which an offer is dropped, besides those of its edits, which editors may send one by one
)

// Log is the history of one document. The caller serializes its methods.
type Log struct {
	entries []*Entry
	last    int // the number of the newest entry

	base   *source.File // the text of the offers
	offers []offer
	since  int // changes since base
	awaits int // the most changes that an offer consists of
}

// offer is an action whose edits the editor has.
type offer struct {
	title string
	edits []diag.Edit
	size  int // of the text that they lead to
}

// Offer remembers the edits of an action on a text, which an editor was given. Those
// for another text are forgotten.
func (l *Log) Offer(src *source.File, title string, edits []diag.Edit) {
	if l.base != src {
		l.base, l.offers, l.since, l.awaits = src, nil, 0, 0
	}
	edits = sorted(edits)
	if len(edits) == 0 {
		return
	}
	size := src.Len()
	for i, e := range edits {
		if i > 0 && e.Span.Start < edits[i-1].Span.End || e.Span.End > src.Len() {
			return
		}
		size += len(e.Text) - e.Span.Len()
	}
	l.offers = slices.DeleteFunc(l.offers, func(o offer) bool { return o.title == title && slices.Equal(o.edits, edits) })
	if len(l.offers) == maxOffers {
		l.offers = slices.Delete(l.offers, 0, 1)
	}
	l.offers = append(l.offers, offer{title, edits, size})
	l.awaits = max(l.awaits, len(edits))
}

// sorted returns those of the edits that change something, in the order of the text.
// Of edits at one place the first stays first.
func sorted(edits []diag.Edit) []diag.Edit {
	edits = slices.DeleteFunc(slices.Clone(edits), func(e diag.Edit) bool { return e.Span.Len() == 0 && e.Text == "" })
	slices.SortStableFunc(edits, func(a, b diag.Edit) int { return a.Span.Start - b.Span.Start })
	return edits
}

// Change follows a change of the text: bytes [start, end) of before were replaced, and
// after is the result. It returns the entry of an action that after shows to be
// applied, nil where there is none.
func (l *Log) Change(before *source.File, start, end int, after *source.File) *Entry {
	var again []*Entry // that the change undid or redid
	if len(l.entries) > 0 {
		changes := refine(before, start, end, after)
		for _, e := range l.entries {
			if e.follow(before, changes, after) {
				again = append(again, e)
			}
		}
	}
	if l.base == nil {
		return nil
	}
	l.since++
	for _, o := range slices.Backward(l.offers) { // the editor asks last for the edits of the action that was chosen
		if o.size != after.Len() || !o.leads(l.base, after) {
			continue
		}
		base := l.base
		l.forget()
		parts := o.parts(base)
		if explained(parts, again) {
			return nil
		}
		l.last++
		e := &Entry{ID: l.last, Title: o.title, At: time.Now(), Before: base, After: after, parts: parts}
		l.entries = append(l.entries, e)
		l.trim()
		return e
	}
	if l.since >= patience+l.awaits {
		l.forget()
	}
	return nil
}

// explained reports whether all parts of an action are those of entries that were
// undone or redone.
func explained(parts []part, by []*Entry) bool {
	for _, p := range parts {
		if !slices.ContainsFunc(by, func(e *Entry) bool {
			return slices.ContainsFunc(e.parts, func(q part) bool { return q.span.Start <= p.span.Start && p.span.End <= q.span.End })
		}) {
			return false
		}
	}
	return true
}

func (l *Log) forget() { l.base, l.offers = nil, nil }

// trim drops the oldest entries beyond the bounds.
func (l *Log) trim() {
	size, parts, whole := 0, 0, 0
	for i := len(l.entries) - 1; i >= 0; i-- {
		e := l.entries[i]
		parts += len(e.parts)
		for _, p := range e.parts {
			size += len(p.old) + len(p.new)
		}
		if len(l.entries)-i > maxEntries || size > maxText || parts > maxParts {
			l.entries = slices.Clone(l.entries[i+1:])
			return
		}
		if e.Before != nil {
			whole += e.Before.Len() + e.After.Len()
		}
		if whole > maxWhole {
			e.Before, e.After = nil, nil
		}
	}
}

// leads reports whether the edits of o make after of base.
func (o offer) leads(base, after *source.File) bool {
	by := 0
	for _, e := range o.edits { // most offers differ in what they write
		at := e.Span.Start + by
		if after.Slice(source.Span{Start: at, End: at + len(e.Text)}) != e.Text {
			return false
		}
		by += len(e.Text) - e.Span.Len()
	}
	from, by := 0, 0
	for _, e := range append(slices.Clone(o.edits), diag.Edit{Span: source.Span{Start: base.Len(), End: base.Len()}}) {
		kept := source.Span{Start: from, End: e.Span.Start}
		if base.Slice(kept) != after.Slice(source.Span{Start: kept.Start + by, End: kept.End + by}) {
			return false
		}
		from, by = e.Span.End, by+len(e.Text)-e.Span.Len()
	}
	return true
}

// parts are the places that the edits of o change, in the text that they lead to.
// Edits that touch are one part.
func (o offer) parts(base *source.File) []part {
	var out []part
	by := 0
	for _, e := range o.edits {
		at := e.Span.Start + by
		p := part{span: source.Span{Start: at, End: at + len(e.Text)}, old: base.Slice(e.Span), new: e.Text}
		by += len(e.Text) - e.Span.Len()
		if p.old == p.new {
			continue
		}
		p.shrink()
		if n := len(out); n > 0 && out[n-1].span.End == p.span.Start {
			out[n-1].span.End = p.span.End
			out[n-1].old += p.old
			out[n-1].new += p.new
			continue
		}
		out = append(out, p)
	}
	return out
}

// Entries are those of the log, the oldest first.
func (l *Log) Entries() []*Entry { return l.entries }

// Find returns the entry with a number, nil where there is none.
func (l *Log) Find(id int) *Entry {
	for _, e := range l.entries {
		if e.ID == id {
			return e
		}
	}
	return nil
}
