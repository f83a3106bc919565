package cuda

import (
	"slices"

	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/types"
)

// operand is an operand of a contraction as its kernel loads it.
type operand struct {
	*contraction
	which          int        // 0 is A, 1 is B
	row            ident      // the row's index: "m" or "n"
	elem           types.Elem // in shared memory
	alongK         bool
	v              int64
	xs             []*kernel.Expr
	flat           kernel.Flat
	fields         []assemble.Param
	direct         [][3]kernel.Index // the parts of addresses, where elements are copied to shared memory
	window         *window           // the conditions under which they are; nil: none
	boxes          [][]boxDim        // of tensor maps, where those copy it
	metadata       *kernel.Expr      // of a structured operand: where the word at z, the row and number k is
	words          kernel.Flat       // the variables of it
	extraRegisters int               // for data on its way to shared memory
}

// at returns the operand's expressions with vectors of v along k or the row.
func (p *contraction) at(which int, alongK bool, v int64) ([]*kernel.Expr, kernel.Flat) {
	along := "k"
	if !alongK {
		along = [2]string{"m", "n"}[which]
	}
	if which == 0 {
		x, flat := p.t.A(along, v)
		return []*kernel.Expr{x}, flat
	}
	return p.t.B(along, v)
}

func rowOf(which int, flat kernel.Flat) *kernel.Atom {
	if which == 0 {
		return flat.M
	}
	return flat.N
}

// orderOf is whether an operand is contiguous along k or along the row, and the
// width of a load.
func orderOf(which int, xs []*kernel.Expr, flat kernel.Flat, limit int64) (alongK bool, v int64) {
	row := rowOf(which, flat)
	vk, vr := limit, limit
	var stepK, stepR int64
	for _, x := range xs {
		main := kernel.LargestLoad(x)
		if main == nil {
			return true, 1
		}
		vk, vr = min(vk, main.At.Vector(flat.K, limit)), min(vr, main.At.Vector(row, limit))
		if flat.K != nil {
			stepK, _ = main.At.Along(flat.K)
		}
		if row != nil {
			stepR, _ = main.At.Along(row)
		}
	}
	switch {
	case vk != vr:
		return vk > vr, max(vk, vr)
	case stepK == 1 || stepR == 1:
		return stepK == 1, vk
	}
	return stepR == 0 || stepK != 0 && stepK <= stepR, vk
}

// operand is operand A (0) or B (1) of the product, whose parameters are in ns.
func (p *contraction) operand(which int, ns *names) (*operand, error) {
	s := &operand{contraction: p, which: which, row: [2]ident{"m", "n"}[which], elem: p.t.Elems[0]}
	limit := int64(8)
	if p.c.Path == Fma {
		limit = 4
		s.elem = p.t.Elems[which]
		s.elem = s.elem.Stored()
	} else if e, ok := shapeOf(p.t).elem(p.c, which); ok {
		s.elem = e
		limit = 16 / e.Bytes() // that a chunk has
	}
	s.xs, s.flat = p.at(which, true, 1)
	if p.c.Path.bulk() || p.c.Path == Gather && p.mapped(which) {
		return s, s.maps(ns)
	}
	s.arrange(limit)
	if s.direct = s.addresses(); s.direct == nil {
		s.extraRegisters = s.registers()
	}
	if s.elem == types.TF32 && !s.alongK && which == 0 { // the addresses of numbers that lanes read one by one
		s.extraRegisters += 16
	}
	reads := s.xs
	if s.c.Path == MmaSp && s.structured() {
		s.metadata, s.words = s.t.Metadata()
		reads = append(slices.Clone(reads), s.metadata)
	}
	s.fields = append(ns.read(reads, nil), s.bounds(ns)...)
	return s, nil
}

// structured reports whether the operand has two of each four elements along k.
func (s *operand) structured() bool { return s.t.Structured() && s.t.Turned() == (s.which == 1) }

// writeMetadata writes where the metadata of a structured operand are.
func (s *operand) writeMetadata(t *text) {
	const r, w = operandRow, ident("w")
	u := t.before
	u.line("static constexpr bool structured = %t", s.metadata != nil)
	if s.metadata == nil {
		return
	}
	u.function(cpp("%s", t.named[s.metadata.Buf]), "DM_FN auto metadata() const")
	e := t.emitter(u)
	e.bind(s.words.Z, cpp("%s", batch))
	e.bind(rowOf(s.which, s.words), cpp("%s", r))
	e.bind(s.words.K, cpp("%s", w))
	u.function(cpp("dm::i64(%s)", e.index(s.metadata.At)), "DM_FN dm::i64 word(dm::i32 %s, dm::i32 %s, dm::i32 %s) const", def(batch), def(r), def(w))
}

// bounds are the parameters from which A reads where groups begin.
func (s *operand) bounds(ns *names) []assemble.Param {
	if g := s.t.Grouping(); g != nil && s.which == 0 {
		return ns.read(g.Reads(), nil)
	}
	return nil
}

// arrange sets whether the operand is contiguous along k, and the width of a load. In a grouped product, in which groups begin anywhere, or at blocks, no
// vector lies across where one does.
func (s *operand) arrange(limit int64) {
	s.alongK, s.v = orderOf(s.which, s.xs, s.flat, limit)
	g := s.t.Grouping()
	if g == nil {
		return
	}
	along := func(a *kernel.Atom) int64 {
		v := limit
		for _, x := range s.xs {
			if main := kernel.LargestLoad(x); main != nil {
				v = min(v, main.At.Vector(a, limit))
			} else {
				v = 1
			}
		}
		return v
	}
	switch {
	case !g.Rows && s.alongK && kernel.GCD(g.Block, s.v) > 1:
		s.v = kernel.GCD(g.Block, s.v)
	case !g.Rows:
		s.alongK, s.v = false, along(rowOf(s.which, s.flat))
	case s.which == 0:
		s.alongK, s.v = true, along(s.flat.K)
	}
}

// name is the suffix of the functor's name.
func (s *operand) name() string { return [2]string{"_A", "_B"}[s.which] }

func (s *operand) literal() code { return literal(s.name(), s.fields) }

// write writes the functor.
func (s *operand) write(t *text) {
	u := t.before
	u.of(s.f.Main)
	u.enter(closed, "struct %s", local(s.name()))
	u.line("using Elem = %s", storage(s.elem))
	if f := s.t.PhasePart(); f != nil && s.which == 0 {
		u.line("static constexpr dm::i32 channels = %d", s.t.Channels())
		writePart(t, f.Z, f.Begin, f.End)
	}
	if s.boxes != nil {
		s.writeMaps(t)
	} else {
		u.line("static constexpr bool along_k = %t, direct = %t", s.alongK, s.direct != nil)
		u.line("static constexpr int vector = %d", s.v)
		u.declare(s.fields)
		s.writeRows(u)
		if s.c.Path == MmaSp {
			s.writeMetadata(t)
		}
		if s.direct != nil {
			s.writeAddresses(t)
		} else {
			s.writeLoad(t)
		}
	}
	if g := s.t.Grouping(); g != nil && s.which == 0 {
		writePart(t, g.Z, g.First, g.End)
	}
	u.leave()
}

// registers estimates those for loading the operand through registers: the
// tensor cores' chunks, and addresses that are not affine.
func (s *operand) registers() int {
	n := 0
	if s.c.Path == Mma || s.c.Path == MmaSp {
		n = 40
	}
	for _, x := range s.xs {
		kernel.Walk(x, func(y *kernel.Expr) {
			y.At.Atoms(func(a *kernel.Atom) {
				if a.Kind != kernel.Var {
					n += 8
				}
			})
		})
	}
	return min(n, 80)
}

// two reports whether rows of the operand belong to two products.
func (s *operand) two() bool { return s.which == 1 && s.t.Products == 2 }

// operandRow is the index of a row of an operand, which may interleave the rows
// of two products.
const operandRow ident = "r"

// writeRows writes the function that maps rows.
func (s *operand) writeRows(u *unit) {
	const r = operandRow
	count := s.t.Rows
	if s.which == 1 {
		count = s.t.Cols
	}
	if !s.two() {
		u.function(cpp("%s < %d", r, count), "DM_FN bool has(dm::i32 %s) const", def(r))
		return
	}
	g := s.group()
	u.function(s.column(), "DM_FN static dm::i32 column(dm::i32 %s)", def(r))
	u.function(cpp("%s / %d %% 2 != 0", r, g), "DM_FN static bool second(dm::i32 %s)", def(r))
	u.function(cpp("column(%s) < %d", r, count), "DM_FN bool has(dm::i32 %s) const", def(r))
}

// writePart writes the functions of where the part of a group or a phase, number z, begins and ends.
func writePart(t *text, z *kernel.Atom, begin, end kernel.Index) {
	for _, f := range []struct {
		name string
		at   kernel.Index
	}{{"begin", begin}, {"end", end}} {
		u := t.before
		u.enter(block, "DM_FN dm::i32 %s(dm::i32 %s) const", code{format: f.name}, def(batch))
		e := t.emitter(u)
		e.bind(z, cpp("%s", batch))
		u.line("return %s", e.index(f.at))
		u.leave()
	}
}

// column is the column of the product that a row belongs to, where there are
// two products.
func (s *operand) column() code {
	g := s.group()
	return cpp("%s / %d * %d + %s %% %d", operandRow, 2*g, g, operandRow, g)
}

// addresses splits the address of each expression into the parts that depend on
// z, the row and k, if the operand is a plain tensor, or one with zeros around it, that
// is copied to shared memory in chunks of 16 bytes; else it is nil.
func (s *operand) addresses() (parts [][3]kernel.Index) {
	if s.c.Path == Fma || s.v != 16/s.elem.Bytes() {
		return nil
	}
	for _, x := range s.xs {
		if x.Op == kernel.Guard && len(s.xs) == 1 {
			return s.windowed(x)
		}
		if x.Op != kernel.Load || x.Elem != s.elem.Stored() {
			return nil
		}
		part, ok := s.parts(x.At, (s.c.Path == Mma || s.c.Path == MmaSp) && !s.two())
		if !ok {
			return nil
		}
		parts = append(parts, part)
	}
	if s.two() {
		// Rows tell the products apart, so their parts also hold what constants differ in.
		a, b := &parts[0], &parts[1]
		b[1].C += b[0].C - a[0].C
		b[0].C = a[0].C
		if !a[0].Equal(b[0]) || !a[2].Equal(b[2]) {
			return nil
		}
	}
	return parts
}

// partition splits x into the parts that depend on z, the row and k.
func (s *operand) partition(x kernel.Index) (parts [3]kernel.Index, ok bool) {
	return s.parts(x, false)
}

// parts is partition; read: a part may also depend on an integer in memory that is read at one of the three, as the number of a row is.
func (s *operand) parts(x kernel.Index, read bool) (parts [3]kernel.Index, ok bool) {
	return partition(x, read, s.flat.Z, rowOf(s.which, s.flat), s.flat.K)
}

// partition splits x into parts each of which depends on at most one of three
// variables, with integers in memory or without; constants are in the first.
func partition(x kernel.Index, read bool, vars ...*kernel.Atom) (parts [3]kernel.Index, ok bool) {
	parts[0].C = x.C
	for _, t := range x.Terms {
		unsplit := kernel.Index{Terms: []kernel.Term{t}}
		at, data := 0, false
		count := 0
		for i, v := range vars {
			found := false
			unsplit.Atoms(func(a *kernel.Atom) {
				found = found || v != nil && (a == v || a.Kind == kernel.Datum && a.E.DependsOn(v))
				data = data || a.Kind == kernel.Datum && !read
			})
			if found {
				at = i
				count++
			}
		}
		if count > 1 || data {
			return parts, false
		}
		parts[at].Terms = append(parts[at].Terms, t)
	}
	return parts, true
}

// indirect reports whether x depends on an integer in memory.
func indirect(x kernel.Index) (found bool) {
	x.Atoms(func(a *kernel.Atom) { found = found || a.Kind == kernel.Datum })
	return found
}

// run is how many neighbours along k lie side by side, in one tap of a window, from each multiple of it on.
func (s *operand) run() int64 {
	if !s.alongK {
		return 1
	}
	_, n := s.direct[0][2].Along(s.flat.K)
	if s.window != nil {
		for _, parts := range s.window.coordinates {
			step, same := parts[2].Along(s.flat.K)
			if step != 0 {
				return 1
			}
			n = kernel.GCD(n, same)
		}
	}
	return n
}

// order is the order in which steps visit the taps of a window that moves by several elements, four bits for each: those that meet
// elements of one plane follow each other, so that the level-1 cache keeps that plane alone. It is 0 where that is the order of k.
func (s *operand) order() (order uint64) {
	run := s.run()
	n := s.t.Depth / run
	if s.window == nil || s.t.Phases() > 0 || run%64 != 0 || s.t.Depth%run != 0 || n > machine.OrderedTaps {
		return 0
	}
	planes := make([][]int64, n)
	taps := make([]int64, n)
	for t := range n {
		taps[t] = t
		for _, parts := range s.window.coordinates {
			var step int64
			for _, term := range parts[1].Terms {
				step = kernel.GCD(step, max(term.Coef, -term.Coef))
			}
			at := parts[2].Value(map[*kernel.Atom]int64{s.flat.K: t * run})
			planes[t] = append(planes[t], ((at%max(step, 1))+max(step, 1))%max(step, 1))
		}
	}
	slices.SortStableFunc(taps, func(a, b int64) int { return slices.Compare(planes[a], planes[b]) })
	if slices.IsSorted(taps) {
		return 0
	}
	for i, t := range taps {
		order |= uint64(t) << (4 * i)
	}
	return order
}

// again reports whether several taps of a window meet an element, so that the level-1 cache keeps it.
func (s *operand) again() bool {
	rows := int64([2]int{s.c.BM, s.c.BN}[s.which])
	return s.alongK && s.window.taps() && shapeOf(s.t).product().Again(rows) < 1
}

// writeAddresses writes the functions of a direct operand.
func (s *operand) writeAddresses(t *text) {
	const r, k = operandRow, ident("k")
	u, parts := t.before, s.direct
	index := func(part kernel.Index, at code) code {
		e := t.emitter(u)
		for _, a := range []*kernel.Atom{s.flat.Z, rowOf(s.which, s.flat), s.flat.K} {
			if a != nil {
				e.bind(a, at) // the one that the part depends on
			}
		}
		return e.index(part)
	}
	wide := "dm::i64"
	if s.window != nil && s.window.narrow {
		wide = "dm::i32"
	}
	address := func(part kernel.Index, at code) code { return cpp("%s(%s)", wide, index(part, at)) }
	main := s.xs[0]
	for main.Op == kernel.Guard {
		main = main.Args[0]
	}
	source := cpp("%s", t.named[main.Buf])
	var row code
	if s.two() {
		source = cpp("second(%s) ? %s : %s", r, t.named[s.xs[1].Buf], source)
		row = address(parts[0][1], cpp("column(%s)", r))
		if !parts[0][1].Equal(parts[1][1]) {
			row = cpp("second(%s) ? %s : %s", r, address(parts[1][1], cpp("column(%s)", r)), row)
		}
	}
	u.line("using Offset = %s", wide)
	u.line("static constexpr int coordinates = %d", s.window.count())
	if s.c.Path == Gather {
		u.line("static constexpr int run = %d", s.run())
		u.line("static constexpr bool again = %t", s.again())
		u.line("static constexpr dm::u64 order = 0x%xull", s.order())
	}
	u.function(source, "DM_FN auto source(dm::i32 %s) const", def(r))
	for i, f := range []struct {
		name string
		of   ident
	}{{"outer", batch}, {"row", r}, {"col", k}} {
		head := cpp("DM_FN %s "+f.name+"(dm::i32 %s) const", wide, def(f.of))
		switch {
		case i == 1 && s.two():
			u.function(row, "%s", head)
		case indirect(parts[0][i]):
			u.enter(block, "%s", head)
			u.line("return %s", address(parts[0][i], cpp("%s", f.of)))
			u.leave()
		default:
			u.function(address(parts[0][i], cpp("%s", f.of)), "%s", head)
		}
	}
	if s.window != nil {
		s.window.write(u, wide, index)
	}
}

// writeLoad writes the function that loads a vector through registers, with the
// computation of the prologue.
func (s *operand) writeLoad(t *text) {
	const to, k = ident("to"), ident("k")
	u := t.before
	arg := s.row
	if s.two() {
		arg = operandRow
	}
	xs, flat := s.at(s.which, s.alongK, s.v)
	u.enter(block, "DM_FN void load(%s (&%s)[%d], dm::i32 %s, dm::i32 %s, dm::i32 %s) const", storage(s.elem), def(to), s.v, def(batch), def(arg), def(k))
	body := func(x *kernel.Expr) {
		e := t.emitter(u)
		e.bind(flat.Z, cpp("%s", batch))
		if s.alongK {
			e.bind(rowOf(s.which, flat), cpp("%s", s.row))
			e.along(flat.K, k, s.v)
		} else {
			e.along(rowOf(s.which, flat), s.row, s.v)
			e.bind(flat.K, cpp("%s", k))
		}
		l := e.lanes(flat.Lane, s.v)
		l.ready(x)
		l.each(func(j code) { e.assign(x.From, cpp("%s[%s]", to, j), l.element16(x, s.elem)) })
	}
	if s.two() {
		u.line("const dm::i32 %s = column(%s)", def(s.row), arg)
		u.enter(block, "if (!second(%s))", arg)
		body(xs[0])
		u.leave()
		u.enter(elseBlock, "else")
		body(xs[1])
		u.leave()
	} else {
		body(xs[0])
	}
	u.leave()
}

// element16 is x as stored in shared memory; an element without computation is
// copied.
func (l *lanes) element16(x *kernel.Expr, elem types.Elem) code {
	if elem = elem.Stored(); x.Op == kernel.Load && x.Elem == elem {
		if n, ok := l.vecs[x]; ok && l.n == width(x.Elem, l.n) {
			return cpp("%s[%s]", n, l.atoms[l.lane])
		} else if !ok {
			return cpp("%s[%s]", l.param(x.Buf), l.index(x.At))
		}
	}
	if elem.IsFloat() {
		return cpp("dm::narrow<%s>(%s)", storage(elem), l.value(x))
	}
	return l.value(x)
}
