package cuda

import (
	"math"
	"slices"

	"dmir/compile/kernel"
)

// window is where an operand that is copied to shared memory has elements; it is zero
// elsewhere. A coordinate of the image is the sum of a part that depends on the operand's
// row and one that depends on k, the position of the window and a tap of it, so that both
// are computed once for several elements.
type window struct {
	coordinates [][3]kernel.Index
	sums        []kernel.Index // of the parts
	inside      []bound
	strided     []strided
	narrow      bool // offsets have 32 bits
}

// bound is lo <= coordinate < hi or, where every is not 0, that it is a multiple.
type bound struct {
	of            int
	lo, hi, every int64
}

// strided is a term of an offset: a coordinate divided by a number, of which it is a
// multiple, and multiplied by another.
type strided struct {
	of       int
	n, times int64
}

func (w *window) count() int {
	if w == nil {
		return 0
	}
	return len(w.coordinates)
}

// taps reports whether coordinates depend on k, so that elements are met again.
func (w *window) taps() bool {
	return w != nil && slices.ContainsFunc(w.coordinates, func(parts [3]kernel.Index) bool { return len(parts[2].Terms) > 0 })
}

// summed is x with bounded sums written out.
func summed(x kernel.Index) kernel.Index {
	out := kernel.Const(x.C)
	for _, t := range x.Terms {
		y := kernel.IndexOf(t.Atom)
		if t.Atom.Kind == kernel.Within {
			y = summed(t.Atom.X)
		}
		out = out.Add(y.Times(t.Coef))
	}
	return out
}

// windowed is addresses for an operand x that is read under conditions and else zero.
// It sets s.window.
func (s *operand) windowed(x *kernel.Expr) [][3]kernel.Index {
	w := &window{}
	along := s.flat.K
	if !s.alongK {
		along = rowOf(s.which, s.flat)
	}
	for ; x.Op == kernel.Guard; x = x.Args[0] {
		if no := x.Args[1]; no.Op != kernel.Number || no.Int != 0 || no.Num != 0 || math.Signbit(no.Num) {
			return nil
		}
		for _, c := range x.If {
			if step, run := c.X.Along(along); step != 0 || run%s.v != 0 || !s.under(w, c) {
				return nil
			}
		}
	}
	if x.Op != kernel.Load || x.Elem != s.elem.Stored() {
		return nil
	}
	offset := summed(x.At)
	lo, hi := extent(offset)
	var plain kernel.Index
	plain.C = offset.C
	for _, t := range offset.Terms {
		term := kernel.IndexOf(t.Atom).Times(t.Coef)
		if _, ok := s.partition(term); ok {
			plain = plain.Add(term)
			continue
		}
		if t.Atom.Kind != kernel.Div {
			return nil
		}
		of, ok := s.coordinate(w, t.Atom.X)
		if !ok {
			return nil
		}
		w.strided = append(w.strided, strided{of, t.Atom.N, t.Coef})
	}
	parts, ok := s.partition(plain)
	if !ok {
		return nil
	}
	if !w.bounded(0) { // the condition that the row exists
		lo, hi := w.sums[0].Bounds()
		w.inside = append(w.inside, bound{lo: lo, hi: hi + 1})
	}
	w.narrow = lo >= math.MinInt32 && hi <= math.MaxInt32
	s.window = w
	return [][3]kernel.Index{parts}
}

// under adds a condition to w; it reports whether it is one of a coordinate.
func (s *operand) under(w *window, c kernel.Condition) bool {
	x, b := c.X, bound{lo: c.Lo, hi: c.Hi}
	if len(x.Terms) == 1 && x.C == 0 && x.Terms[0].Coef == 1 && x.Terms[0].Atom.Kind == kernel.Mod && c.Lo == 0 && c.Hi == 1 {
		x, b = x.Terms[0].Atom.X, bound{every: x.Terms[0].Atom.N}
	}
	var ok bool
	b.of, ok = s.coordinate(w, x)
	w.inside = append(w.inside, b)
	return ok
}

// coordinate is the number of x among w's coordinates.
func (s *operand) coordinate(w *window, x kernel.Index) (int, bool) {
	x = summed(x)
	for i, y := range w.sums {
		if x.Equal(y) {
			return i, true
		}
	}
	parts, ok := s.partition(x)
	lo, hi := extent(x)
	if !ok || len(parts[0].Terms) > 0 || lo < -nowhere || hi > nowhere {
		return 0, false
	}
	parts[1].C, parts[0].C = parts[0].C, 0
	w.coordinates, w.sums = append(w.coordinates, parts), append(w.sums, x)
	return len(w.sums) - 1, true
}

// nowhere is beyond all coordinates; that of a row which does not exist is -2 * nowhere.
const nowhere = 1 << 29

// bounded reports whether coordinate i has bounds.
func (w *window) bounded(i int) bool {
	for _, b := range w.inside {
		if b.of == i && b.every == 0 {
			return true
		}
	}
	return false
}

// write writes the functions of a window; index is the code of a part of an index.
func (w *window) write(u *unit, offset string, index func(part kernel.Index, at code) code) {
	const c, r, k ident = "c", operandRow, "k"
	for _, f := range []struct {
		name string
		part int
		of   ident
	}{{"place", 1, r}, {"tap", 2, k}} {
		u.enter(block, "DM_FN void "+f.name+"(dm::i32 (&%s)[%d], dm::i32 %s) const", def(c), len(w.coordinates), def(f.of))
		for i, parts := range w.coordinates {
			x := index(parts[f.part], cpp("%s", f.of))
			if i == 0 && f.part == 1 {
				x = cpp("has(%s) ? %s : %d", r, x, -2*nowhere)
			}
			u.line("%s[%d] = %s", c, i, x)
		}
		u.leave()
	}
	var inside code
	for i, b := range w.inside {
		holds := cpp("%s[%d] %% %d == 0", c, b.of, b.every)
		if b.every == 0 {
			holds = cpp("dm::u32(%s) < %d", plus(cpp("%s[%d]", c, b.of), -b.lo), b.hi-b.lo)
		}
		if i > 0 {
			holds = cpp("%s && %s", inside, holds)
		}
		inside = holds
	}
	u.function(inside, "DM_FN static bool inside(const dm::i32 (&%s)[%d])", def(c), len(w.coordinates))
	far := cpp("0")
	for _, t := range w.strided {
		far = cpp("%s + %s(%s[%d] / %d) * %d", far, offset, c, t.of, t.n, t.times)
	}
	u.function(far, "DM_FN static %s far(const dm::i32 (&%s)[%d])", offset, def(c), len(w.coordinates))
}
