package history

import (
	"slices"
	"strings"
	"time"

	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/source"
)

// Entry is an action that was applied.
type Entry struct {
	ID    int
	Title string
	At    time.Time

	// Before and After are the texts that it was applied to and that it led to, nil
	// where later entries have taken their memory.
	Before, After *source.File

	parts   []part // in the order of the text; no two touch
	settled State  // the last one that was not Edited
	lost    bool   // its parts became too large to be carried along
}

// part is a place where the action changed the text. It is carried along with later
// edits; one that reaches beyond it makes it larger, by the text around it.
type part struct {
	span     source.Span // in the text of now
	old, new string      // what stood here before the action, and what it wrote
	touched  bool        // by the change that is being followed
	edited   bool        // the text has neither
}

// touches reports whether a change is one of the part. What is inserted right before
// or behind it is none if a blank is between them, unless it may bring back what was
// taken out there.
func (p *part) touches(c change, before *source.File) bool {
	s := p.span
	switch {
	case s.Len() == 0 || p.edited:
		return c.start <= s.End && s.Start <= c.end
	case c.start == c.end && c.start == s.Start:
		return !blank(c.text[len(c.text)-1]) && !blank(before.Slice(source.Span{Start: s.Start, End: s.Start + 1})[0])
	case c.start == c.end && c.start == s.End:
		return !blank(c.text[0]) && !blank(before.Slice(source.Span{Start: s.End - 1, End: s.End})[0])
	}
	return c.start < s.End && s.Start < c.end
}

// has reports whether text is what the action wrote, or what stood there before. White
// space counts only between the two: what was laid out since is the same.
func (p *part) has(text string) (isNew, isOld bool) {
	if isNew, isOld = text == p.new, text == p.old; isNew || isOld || format.SameVisible(p.new, p.old) {
		return isNew, isOld
	}
	return format.SameVisible(text, p.new), format.SameVisible(text, p.old)
}

// maxPart is the size of old and new beyond which a part is carried no further.
const maxPart = 4 << 20

// State is how a text stands to an action.
type State int

// The states.
const (
	Applied  State = iota // the text has what the action wrote
	Reverted              // it has what stood there before, or came from a text that has
	Edited                // what the action wrote was edited since
)

// State compares the text of now with what the action wrote.
func (e *Entry) State(now *source.File) State {
	state := e.compare(now)
	if state == Edited && e.settled == Reverted {
		return Reverted
	}
	return state
}

func (e *Entry) compare(now *source.File) State {
	applied, reverted := true, true
	for _, p := range e.parts {
		isNew, isOld := p.has(now.Slice(p.span))
		applied = applied && isNew
		reverted = reverted && isOld
		if !applied && !reverted {
			return Edited
		}
	}
	switch {
	case e.lost:
		return Edited
	case applied:
		return Applied
	}
	return Reverted
}

// Spans are the places in the text of now that the action changed.
func (e *Entry) Spans() []source.Span {
	var out []source.Span
	for _, p := range e.parts {
		out = append(out, p.span)
	}
	return out
}

// Revert returns the edits of the text of now that take the action back; ok is false
// unless the text has all that the action wrote.
func (e *Entry) Revert(now *source.File) (edits []diag.Edit, ok bool) {
	if e.compare(now) != Applied {
		return nil, false
	}
	for _, p := range e.parts {
		edits = append(edits, diag.Edit{Span: p.span, Text: p.old})
	}
	return edits, true
}

// Touches reports whether places that two actions changed overlap or touch.
func (e *Entry) Touches(other *Entry) bool {
	for _, p := range e.parts {
		for _, q := range other.parts {
			if p.span.Start <= q.span.End && q.span.Start <= p.span.End {
				return true
			}
		}
	}
	return false
}

// follow carries e over the changes that made after of before, which are in the order
// of the text. It reports whether they undid the action or did it again.
func (e *Entry) follow(before *source.File, changes []change, after *source.File) (again bool) {
	if e.lost {
		return false
	}
	for i := len(changes) - 1; i >= 0; i-- { // so that the text before the next one is as it was
		e.carry(before, changes[i])
	}
	touched := false
	for i := range e.parts {
		p := &e.parts[i]
		if !p.touched {
			continue
		}
		touched, p.touched = true, false
		e.lost = e.lost || len(p.old)+len(p.new) > maxPart
		text := after.Slice(p.span)
		switch { // what was inserted beside the text that the action wrote is no part of it
		case p.new == "" || text == p.old:
		case strings.HasPrefix(text, p.new) && len(text) > len(p.new) && (blank(text[len(p.new)]) || blank(text[len(p.new)-1])):
			p.span.End, text = p.span.Start+len(p.new), p.new
		case strings.HasSuffix(text, p.new) && len(text) > len(p.new) && (blank(text[len(text)-len(p.new)-1]) || blank(p.new[0])):
			p.span.Start, text = p.span.End-len(p.new), p.new
		}
		isNew, isOld := p.has(text)
		switch { // laid out since, as on saving
		case isNew && !isOld:
			p.new = text
		case isOld && !isNew:
			p.old = text
		}
		if p.edited = !isNew && !isOld; !p.edited {
			p.shrink()
		}
	}
	if !touched {
		return false
	}
	if state := e.compare(after); state != Edited && state != e.settled {
		e.settled = state
		return true
	}
	return false
}

// carry brings the parts over a change. Those that it touches become one, which
// contains all of the change.
func (e *Entry) carry(before *source.File, c change) {
	by := len(c.text) - (c.end - c.start)
	first, last := -1, -1
	for i := range e.parts {
		switch p := &e.parts[i]; {
		case p.touches(c, before):
			if first < 0 {
				first = i
			}
			last = i
		case p.span.Start >= c.end:
			p.span.Start += by
			p.span.End += by
		}
	}
	if first < 0 {
		return
	}
	p := e.parts[first]
	for _, q := range e.parts[first+1 : last+1] {
		between := before.Slice(source.Span{Start: p.span.End, End: q.span.Start})
		p.old += between + q.old
		p.new += between + q.new
		p.span.End = q.span.End
	}
	if c.start < p.span.Start {
		around := before.Slice(source.Span{Start: c.start, End: p.span.Start})
		p.old, p.new, p.span.Start = around+p.old, around+p.new, c.start
	}
	if c.end > p.span.End {
		around := before.Slice(source.Span{Start: p.span.End, End: c.end})
		p.old, p.new, p.span.End = p.old+around, p.new+around, c.end
	}
	p.span.End += by
	p.touched = true
	e.parts[first] = p
	e.parts = slices.Delete(e.parts, first+1, last+1)
}

// shrink takes what both versions begin and end with out of the part, which the text
// has as well. It splits no word.
func (p *part) shrink() {
	lo := common(p.old, p.new)
	for lo > 0 && !blank(p.old[lo-1]) && (lo < len(p.old) && !blank(p.old[lo]) || lo < len(p.new) && !blank(p.new[lo])) {
		lo--
	}
	old, new := p.old[lo:], p.new[lo:]
	hi := commonEnd(old, new)
	for hi > 0 && !blank(old[len(old)-hi]) && (hi < len(old) && !blank(old[len(old)-hi-1]) || hi < len(new) && !blank(new[len(new)-hi-1])) {
		hi--
	}
	p.span.Start += lo
	p.span.End -= hi
	p.old, p.new = old[:len(old)-hi], new[:len(new)-hi]
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
