package history

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// document is a text whose log follows it, as a server has them.
type document struct {
	src *source.File
	log Log
}

func newDocument(text string) *document { return &document{src: source.New("f", text)} }

// change replaces bytes, and returns the entry that was recognized.
func (d *document) change(start, end int, text string) *Entry {
	before := d.src
	d.src = before.Edit(start, end, text)
	return d.log.Change(before, start, end, d.src)
}

// become replaces the whole text.
func (d *document) become(text string) *Entry { return d.change(0, d.src.Len(), text) }

// apply applies edits one by one, as an editor sends them, from the last to the first.
func (d *document) apply(edits []diag.Edit) (last *Entry) {
	edits = sorted(edits)
	for i := len(edits) - 1; i >= 0; i-- {
		last = d.change(edits[i].Span.Start, edits[i].Span.End, edits[i].Text)
	}
	return last
}

// replace are the edits that replace every old of the text by new.
func (d *document) replace(old, new string) (edits []diag.Edit) {
	text, at := d.src.Text(), 0
	for {
		i := strings.Index(text[at:], old)
		if i < 0 {
			return edits
		}
		edits = append(edits, diag.Edit{Span: source.Span{Start: at + i, End: at + i + len(old)}, Text: new})
		at += i + len(old)
	}
}

// act offers and applies an action.
func (d *document) act(t *testing.T, title, old, new string) *Entry {
	t.Helper()
	edits := d.replace(old, new)
	d.log.Offer(d.src, title, edits)
	e := d.apply(edits)
	if e == nil || e.Title != title {
		t.Fatalf("%s was not recognized: %+v", title, e)
	}
	return e
}

func (d *document) is(t *testing.T, e *Entry, want State) {
	t.Helper()
	if got := e.State(d.src); got != want {
		t.Errorf("%s: state %d, want %d, in %.200q", e.Title, got, want, d.src.Text())
	}
}

func (d *document) revert(t *testing.T, e *Entry, want string) {
	t.Helper()
	edits, ok := e.Revert(d.src)
	if !ok {
		t.Fatalf("%s cannot be reverted in %q", e.Title, d.src.Text())
	}
	d.apply(edits)
	if d.src.Text() != want {
		t.Errorf("reverted %s: %q, want %q", e.Title, d.src.Text(), want)
	}
	d.is(t, e, Reverted)
}

// What was laid out since, as on saving, is reverted all the same; a word more or less is an edit.
func TestRevertLaidOut(t *testing.T) {
	const (
		before = "f {\n  c   =  exp x\n  k = kernel {\n    r = relu   c\n  }\n}\n"
		after  = "f {\n  k = kernel {\n  c   =  exp x\n    r = relu   c\n  }\n}\n"
		tidy   = "f {\n  k = kernel {\n    c = exp x\n    r = relu c\n  }\n}\n"
	)
	act := func() (*document, *Entry) {
		d := newDocument(before)
		edits := append(d.replace("  c   =  exp x\n", ""), d.replace("    r =", "  c   =  exp x\n    r =")...)
		d.log.Offer(d.src, "fuse", edits)
		e := d.apply(edits)
		if e == nil || d.src.Text() != after {
			t.Fatalf("%+v, %q", e, d.src.Text())
		}
		return d, e
	}
	d, e := act()
	d.become(tidy)
	d.is(t, e, Applied)
	edits, ok := e.Revert(d.src)
	if d.apply(edits); !ok || strings.Join(strings.Fields(d.src.Text()), " ") != strings.Join(strings.Fields(before), " ") {
		t.Errorf("%v, %q", ok, d.src.Text())
	}
	d.is(t, e, Reverted)
	d, e = act()
	d.become(tidy)
	d.become(after) // as undo does
	d.is(t, e, Applied)
	d, e = act()
	d.become(strings.Replace(tidy, "exp x", "exp y", 1))
	d.is(t, e, Edited)

	d = newDocument("a  b\n")
	e = d.act(t, "spaces", "a  b", "a b")
	d.become("a   b\n")
	d.is(t, e, Edited)
}

// Actions are recognized by the text they lead to, however the editor sends it.
func TestRecognized(t *testing.T) {
	const text = "one\ntwo\nthree\nfour\nfive\n"
	offer := func() (*document, []diag.Edit) {
		d := newDocument(text)
		edits := append(d.replace("two", "2"), d.replace("five", "5!")...)
		d.log.Offer(d.src, "other", d.replace("one", "1"))
		d.log.Offer(d.src, "numbers", edits)
		d.log.Offer(d.src, "nothing", d.replace("one", "one"))
		return d, edits
	}
	const done = "one\n2\nthree\nfour\n5!\n"
	d, edits := offer()
	if e := d.apply(edits); e == nil || e.Title != "numbers" || e.ID != 1 || len(e.Spans()) != 2 {
		t.Errorf("one by one: %+v", e)
	}
	d, _ = offer()
	if e := d.become(done); e == nil || e.Title != "numbers" {
		t.Errorf("the whole text: %+v", e)
	}
	d, _ = offer()
	if e := d.become("one\n2\nthree\nfour\n5?\n"); e != nil {
		t.Errorf("another text of the same length: %+v", e)
	}
	if e := d.become(done); e == nil {
		t.Error("the offer is gone after a change that was part of it")
	}
	d, _ = offer()
	d.change(0, 0, "// ")
	d.log.Offer(d.src, "newer", d.replace("two", "2"))
	d.change(0, 3, "")
	if e := d.become(done); e != nil {
		t.Errorf("an offer for an older text: %+v", e)
	}
	d, _ = offer()
	for range patience + 2 + 1 { // the actions have two edits
		d.change(0, 0, "x")
	}
	if d.log.base != nil {
		t.Error("offers are kept for ever")
	}
	for i := range 3 * maxOffers {
		d.log.Offer(d.src, fmt.Sprint(i), d.replace("four", fmt.Sprint(i)))
		d.log.Offer(d.src, "same", d.replace("four", "same"))
	}
	if len(d.log.offers) != maxOffers {
		t.Errorf("%d offers", len(d.log.offers))
	}
}

// A change that the editor undoes, redoes or undoes after others is followed, and
// makes no entry of its own.
func TestUndo(t *testing.T) {
	for _, whole := range []bool{false, true} {
		d := newDocument("one\ntwo\nthree\ntwo\nfour\n")
		texts := []string{d.src.Text()}
		set := func(text string) {
			t.Helper()
			var e *Entry
			if whole {
				e = d.become(text)
			} else {
				old := d.src.Text()
				lo := common(old, text)
				hi := commonEnd(old[lo:], text[lo:])
				e = d.change(lo, len(old)-hi, text[lo:len(text)-hi])
			}
			if e != nil {
				t.Errorf("recorded as %q", e.Title)
			}
		}
		a := d.act(t, "a", "two\n", "2\nand\n")
		texts = append(texts, d.src.Text())
		b := d.act(t, "b", "three\n", "")
		texts = append(texts, d.src.Text())
		c := d.act(t, "c", "2", "zwei")
		d.is(t, a, Edited)
		if !a.Touches(c) || a.Touches(&Entry{}) {
			t.Error("what keeps a from being reverted")
		}
		set(texts[2])
		d.is(t, a, Applied)
		d.is(t, c, Reverted)
		set(texts[1])
		d.is(t, b, Reverted)
		// The editor offers b again, and the user redoes it.
		d.log.Offer(d.src, "b", d.replace("three\n", ""))
		set(texts[2])
		d.is(t, b, Applied)
		set(texts[1])
		set(texts[0])
		d.is(t, a, Reverted)
		set(texts[1])
		d.is(t, a, Applied)
		d.is(t, b, Reverted)
		if n := len(d.log.Entries()); n != 3 {
			t.Errorf("%d entries", n)
		}
	}
}

// What an action wrote can be reverted as long as it is unchanged, wherever it is.
func TestRevert(t *testing.T) {
	d := newDocument("one\ntwo\nthree\n")
	a := d.act(t, "a", "two", "2")
	d.change(0, 0, "zero\n")
	d.change(d.src.Len(), d.src.Len(), "four\n")
	b := d.act(t, "b", "three\n", "3\n3\n")
	d.revert(t, a, "zero\none\ntwo\n3\n3\nfour\n")
	d.revert(t, b, "zero\none\ntwo\nthree\nfour\n")
	if _, ok := a.Revert(d.src); ok {
		t.Error("reverted twice")
	}
	d.change(9, 12, "TWO")
	d.is(t, a, Reverted)

	d = newDocument("one\ntwo\nthree\n")
	a = d.act(t, "a", "two", "number 2")
	d.change(5, 6, "U")
	d.is(t, a, Edited)
	if _, ok := a.Revert(d.src); ok {
		t.Error("an edit would be lost")
	}
	d.change(5, 6, "u")
	d.revert(t, a, "one\ntwo\nthree\n")

	// What is written right beside it stays.
	d = newDocument("one\ntwo\nthree\n")
	a = d.act(t, "a", "two", "2")
	d.change(4, 4, "< ")
	d.change(7, 7, " >")
	d.revert(t, a, "one\n< two >\nthree\n")
	// What makes another word of it does not.
	d = newDocument("T = f32, U = f32\n")
	a = d.act(t, "a", "f32", "f16")
	d.change(4, 4, "b")
	d.is(t, a, Edited)
	d.change(4, 5, "")
	d.revert(t, a, "T = f32, U = f32\n")

	// Text that contains the place is replaced and put back.
	d = newDocument("one\ntwo\nthree\nfour\n")
	a = d.act(t, "a", "two\n", "2\n")
	d.change(2, 12, "")
	d.is(t, a, Edited)
	d.change(2, 2, "e\n2\nthree\n"[:10])
	d.revert(t, a, "one\ntwo\nthree\nfour\n")

	// Line ends and letters of several bytes are not split.
	for _, c := range [][3]string{{"aé\r\nb\r\n", "é\r\n", "è\r\n"}, {"a\r\nb", "a\r\n", "a\n"}, {"x𝔻y", "𝔻", "𝔼"}} {
		d = newDocument(c[0])
		a = d.act(t, "a", c[1], c[2])
		edits, _ := a.Revert(d.src)
		for _, e := range edits {
			for _, enc := range []source.Encoding{source.UTF8, source.UTF16} {
				if at := d.src.Offset(d.src.Encode(e.Span.Start, enc), enc); at != e.Span.Start {
					t.Errorf("%q: an edit at %d, which editors have at %d", c[0], e.Span.Start, at)
				}
			}
		}
		d.revert(t, a, c[0])
	}
}

// The log is bounded by the number of its entries and by their text.
func TestBounds(t *testing.T) {
	d := newDocument("0\n")
	for i := range maxEntries + 20 {
		d.act(t, "a", fmt.Sprintf("%d\n", i), fmt.Sprintf("%d\n", i+1))
	}
	if es := d.log.Entries(); len(es) != maxEntries || es[0].ID != 21 || d.log.Find(20) != nil || d.log.Find(21) != es[0] {
		t.Errorf("%d entries from %d", len(es), es[0].ID)
	}
	d = newDocument("a")
	long := strings.Repeat("x", maxText*2/5)
	d.act(t, "a", "a", "b")
	d.act(t, "b", "b", long)
	d.act(t, "c", long, "c")
	d.act(t, "d", "c", strings.Repeat("y", len(long)))
	if es := d.log.Entries(); len(es) != 2 || es[0].Title != "c" {
		t.Errorf("%d entries of %d bytes", len(es), len(long))
	}
	// Of large texts, those of the oldest entries go, and these can still be reverted.
	d = newDocument("0\n" + strings.Repeat("x", maxWhole/16))
	for i := range 20 {
		d.act(t, "a", fmt.Sprintf("%d\n", i), fmt.Sprintf("%d\n", i+1))
	}
	whole := 0
	for _, e := range d.log.Entries() {
		if e.Before != nil {
			whole += e.Before.Len() + e.After.Len()
		}
	}
	if es := d.log.Entries(); len(es) != 20 || es[19].Before == nil || whole > maxWhole {
		t.Errorf("%d entries hold %d bytes", len(es), whole)
	}
	// Each change visits the places of all entries.
	d = newDocument(strings.Repeat("0\n", maxParts/3))
	for i := range 5 {
		d.act(t, "a", fmt.Sprintf("%d\n", i), fmt.Sprintf("%d\n", i+1))
	}
	if es := d.log.Entries(); len(es) != 3 || len(es[2].parts) != maxParts/3 {
		t.Errorf("%d entries of %d places", len(es), maxParts/3)
	}
	// What became too large is carried no further.
	d = newDocument("a" + strings.Repeat("x", maxPart))
	a := d.act(t, "a", "a", "b")
	text := d.src.Text()
	d.change(0, d.src.Len(), "c")
	d.change(0, 1, text)
	if _, ok := a.Revert(d.src); ok || a.State(d.src) != Edited {
		t.Error("a part beyond the bound is followed")
	}
}

// simulate applies random actions and edits to a text, reverts and undoes them in any
// order, and compares the text with one in which each line follows alone what happens
// to it.
func simulate(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	const lines = 12
	model := make([]string, lines) // the text, line by line
	for i := range model {
		model[i] = fmt.Sprintf("line %d é\n", i)
	}
	join := func(m []string) string { return strings.Join(m, "") }
	d := newDocument(join(model))
	type act struct {
		e        *Entry
		old, new map[int]string // by line
		touched  bool           // its lines were others since
	}
	var acts []*act
	// write has the document become the model, by one change or by one for each line.
	write := func(next []string, offer string) *Entry {
		var edits []diag.Edit
		at := 0
		for i, line := range next {
			if line != model[i] {
				lo := common(model[i], line)
				hi := commonEnd(model[i][lo:], line[lo:])
				edits = append(edits, diag.Edit{Span: source.Span{Start: at + lo, End: at + len(model[i]) - hi}, Text: line[lo : len(line)-hi]})
			}
			at += len(model[i])
		}
		if offer != "" {
			d.log.Offer(d.src, offer, edits)
		}
		copy(model, next)
		switch r.IntN(3) {
		case 0:
			return d.become(join(model))
		case 1:
			if len(edits) > 0 { // one change from the first to the last place
				first, last := edits[0].Span.Start, edits[len(edits)-1].Span.End
				behind := d.src.Len() - last
				text := join(model)
				return d.change(first, last, text[first:len(text)-behind])
			}
		}
		return d.apply(edits)
	}
	unique := 0
	fresh := func() string { unique++; return strings.Repeat(string(rune('ā'+unique)), 1+r.IntN(6)) + "\n" }
	var past [][]string
	for range 60 {
		next := append([]string(nil), model...)
		past = append(past, append([]string(nil), model...))
		switch k := r.IntN(10); {
		case k < 3: // an action on some lines
			a := &act{old: map[int]string{}, new: map[int]string{}}
			for range 1 + r.IntN(3) {
				i := r.IntN(lines)
				a.old[i], next[i] = model[i], fresh()
				a.new[i] = next[i]
			}
			if a.e = write(next, fmt.Sprint("action ", unique)); a.e == nil {
				t.Fatalf("seed %d: an action was not recognized", seed)
			}
			acts = append(acts, a)
		case k < 5: // an edit
			next[r.IntN(lines)] = fresh()
			write(next, "")
		case k < 6 && len(past) > 2: // the editor goes back to a text of before
			if e := write(past[r.IntN(len(past))], ""); e != nil {
				t.Fatalf("seed %d: going back is recorded as %q", seed, e.Title)
			}
		case len(acts) > 0: // a revert
			a := acts[r.IntN(len(acts))]
			whole := true
			for i, text := range a.new {
				whole = whole && model[i] == text
			}
			edits, ok := a.e.Revert(d.src)
			// Text that was changed and put back may be offered, or not.
			if ok && !whole || !ok && whole && !a.touched {
				t.Fatalf("seed %d: revert of %q offered: %v, its text is there: %v\n%q\n%+v", seed, a.e.Title, ok, whole, d.src.Text(), a.e.parts)
			}
			if ok {
				for i, text := range a.old {
					model[i] = text
				}
				d.apply(edits)
			}
		}
		for _, a := range acts {
			for i, text := range a.new {
				a.touched = a.touched || model[i] != text
			}
		}
		if d.src.Text() != join(model) {
			t.Fatalf("seed %d: the text is\n%s\nand should be\n%s", seed, d.src.Text(), join(model))
		}
	}
}

func TestRandom(t *testing.T) {
	for seed := range uint64(400) {
		simulate(t, seed)
	}
}

// Actions alone, reverted from the last to the first, leave the text before each of
// them. No letter stands twice: of equal ones it is not certain which an edit took out.
func FuzzRevertAll(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{0, 0, 3, 1, 9, 9, 2, 2, 2, 200, 1})
	f.Fuzz(func(t *testing.T, moves []byte) {
		letter := 'ā'
		word := func(n byte) (text string) {
			for range n {
				text += string(letter)
				letter++
			}
			return text
		}
		d := newDocument(word(40))
		texts := []string{d.src.Text()}
		for len(moves) >= 3 && len(texts) < 30 {
			n := d.src.Len() + 1
			place := func(off int) int { return d.src.Offset(d.src.Encode(off, source.UTF16), source.UTF16) }
			start, end := place(int(moves[0])*7%n), place(int(moves[1])*7%n)
			edits := []diag.Edit{{Span: source.Span{Start: min(start, end), End: max(start, end)}, Text: word(moves[2] % 8)}}
			moves = moves[3:]
			d.log.Offer(d.src, "a", edits)
			if d.apply(edits) != nil {
				texts = append(texts, d.src.Text())
			} else if d.src.Text() != texts[len(texts)-1] {
				return // it undid or redid another
			}
		}
		for i := len(texts) - 1; i > 0; i-- {
			edits, ok := d.log.entries[i-1].Revert(d.src)
			if !ok {
				return // where the place of what was taken out is not certain
			}
			d.apply(edits)
			if d.src.Text() != texts[i-1] {
				t.Fatalf("reverted %d of %d to %q, want %q", i, len(texts)-1, d.src.Text(), texts[i-1])
			}
		}
	})
}
