package cuda

import (
	"math/bits"
	"slices"

	"dmir/compile/kernel"
	"dmir/dialect/types"
)

// A kernel that reads an operand along another dimension than that of its results has
// neighbours far apart in memory: a warp fetches a sector for a few bytes of it. Such
// a kernel works on tiles. Its results' elements are planes of lines, chosen such that
// the operand lies side by side from line to line. A block copies the tiles of all
// such operands to shared memory, with lanes along the operands, and computes the
// results with lanes along theirs.

// tiling is a kernel, or those results of one that share a loop, in tiles.
type tiling struct {
	f             *kernel.Form // in planes
	outs          []kernel.Out
	planes        int64
	lines, length int64    // of a plane
	rows, cols    int64    // lines of a tile and elements of each, powers of two
	staged        []staged // what is read by tiles
}

// staged is a load whose elements are contiguous from line to line.
type staged struct {
	guarded
	w int64 // elements of an access to memory
}

const (
	sectorBytes = 32       // that memory moves at least
	lineBytes   = 128      // that a warp should access side by side
	tileBytes   = 8 << 10  // of an operand that a block should have under way
	mostTile    = 32 << 10 // of the shared memory of a block, such that a multiprocessor holds several
	accessBytes = 16
)

// tiled is the tiling of the results of f with those numbers, which share a loop, in at
// most room bytes of shared memory; nil where none reads fewer sectors.
func tiled(f *kernel.Form, which []int, room int64) *tiling {
	outs := pick(f.Outs, which)
	loop := outs[0].Loops[0]
	for _, o := range outs {
		if o.Value.Elem().Packed() || loop == nil {
			return nil
		}
	}
	least, _ := sizes(outs)
	warp := min(32*accessBytes/least, outs[0].Elements())
	var best *tiling
	var most int64
	for _, g := range loads(outs) {
		x := g.x
		length, lines := expanded(x.At, loop).LongestRunOf(loop)
		if length == 1 || lines*x.Elem.Bytes() < accessBytes || lines > 1<<30 || length > 1<<30 {
			continue
		}
		if !scattered(x, warp, func(i int64) map[*kernel.Atom]int64 { return map[*kernel.Atom]int64{loop: i} }, loop) {
			continue
		}
		t := newTiling(f, which, lines, length)
		if t != nil && t.bytes() > most && t.shared() <= room {
			best, most = t, t.bytes()
		}
	}
	return best
}

// newTiling is the tiling in planes of so many lines of that length; nil where it
// stages nothing.
func newTiling(f *kernel.Form, which []int, lines, length int64) *tiling {
	least, widest := sizes(pick(f.Outs, which))
	v := min(accessBytes/least, sectorBytes/widest)
	for length%v != 0 {
		v /= 2
	}
	h, err := f.Planes(v, lines, length)
	if err != nil {
		return nil
	}
	t := &tiling{f: h, outs: pick(h.Outs, which), lines: lines, length: length}
	if len(t.outs[0].Loops) != 3 {
		return nil
	}
	t.planes = t.outs[0].Elements() / (lines * length)
	last := h.Lane
	if last == nil {
		last = t.outs[0].Loops[2]
	}
	narrowest := int64(accessBytes)
	for _, g := range loads(t.outs) {
		x := g.x
		if w := t.access(g); w > 0 && x.DependsOn(last) && scattered(x, min(32*v, t.outs[0].Elements()), t.vars, last) {
			t.staged = append(t.staged, staged{g, w})
			narrowest = min(narrowest, x.Elem.Bytes())
		}
	}
	if len(t.staged) == 0 || !t.size(least, narrowest) {
		return nil
	}
	return t
}

// size chooses the tile for results and staged operands whose smallest elements have so
// many bytes: 128 bytes of a line of each, and more while a block has less under way than
// it should. It reports whether the tile is worth a block.
func (t *tiling) size(result, operand int64) bool {
	t.rows = min(lineBytes/operand, above(t.lines))
	t.cols = max(t.f.V, min(lineBytes/result, above(t.length)))
	for t.shared() > mostTile {
		if t.rows >= t.cols {
			t.rows /= 2
		} else {
			t.cols /= 2
		}
	}
	for grown := true; grown && t.rows*t.cols*operand < tileBytes && 2*t.shared() <= mostTile; {
		switch {
		case t.rows < t.lines && (t.rows <= t.cols || t.cols >= t.length):
			t.rows *= 2
		case t.cols < t.length:
			t.cols *= 2
		default: // a plane is a single tile
			grown = false
		}
	}
	return t.rows*operand >= accessBytes && t.rows*t.cols/t.f.V >= blockThreads/2
}

// sizes are those of the smallest and the largest element of outs.
func sizes(outs []kernel.Out) (least, widest int64) {
	least = accessBytes
	for _, o := range outs {
		least, widest = min(least, o.Value.Elem().Bytes()), max(widest, o.Value.Elem().Bytes())
	}
	return least, widest
}

// pick are the elements of outs with those numbers.
func pick(outs []kernel.Out, which []int) (picked []kernel.Out) {
	for _, k := range which {
		picked = append(picked, outs[k])
	}
	return picked
}

// above is the least power of two that is n or more; n is positive.
func above(n int64) int64 { return 1 << bits.Len64(uint64(n-1)) }

// access is the number of elements that an access reads of a load that is contiguous
// from line to line, all of them or none under its conditions; 0 where it is not.
func (t *tiling) access(g guarded) int64 {
	line := t.outs[0].Loops[1]
	for w := accessBytes / g.x.Elem.Bytes(); w > 0; w /= 2 {
		if _, ok := contiguous(g.x.At, line, w); ok && t.lines%w == 0 && (w == 1 || !slices.ContainsFunc(g.conds, func(c kernel.Condition) bool { return divides(c, line, w) })) {
			return w
		}
	}
	return 0
}

// divides reports whether c may differ within w lines.
func divides(c kernel.Condition, line *kernel.Atom, w int64) bool {
	if !c.X.DependsOn(line) {
		return false
	}
	_, ok := contiguous(c.X, line, w)
	lo, hi := c.X.Bounds()
	return !ok || lo < c.Lo && c.Lo%w != 0 || hi >= c.Hi && c.Hi%w != 0
}

// scattered reports whether a warp that reads x for n neighbouring elements uses less
// than half of the sectors that it reads; vars are the variables of element i, and last
// the one that differs between neighbours.
func scattered(x *kernel.Expr, n int64, vars func(i int64) map[*kernel.Atom]int64, last *kernel.Atom) bool {
	byData := false
	x.At.Atoms(func(a *kernel.Atom) { byData = byData || a.Kind == kernel.Datum && a.E.DependsOn(last) })
	if byData {
		return true
	}
	elements, sectors := map[int64]bool{}, map[int64]bool{}
	for i := range n {
		at := x.At.Value(vars(i)) * x.Elem.Bytes()
		elements[at], sectors[at>>5] = true, true // below 0 where a condition does not hold
	}
	fetched, used := int64(len(sectors))*sectorBytes, int64(len(elements))*x.Elem.Bytes()
	return fetched > 2*used && fetched >= 8*sectorBytes
}

// vars are the variables of element i.
func (t *tiling) vars(i int64) map[*kernel.Atom]int64 {
	loops := t.outs[0].Loops
	return map[*kernel.Atom]int64{
		loops[0]: i / (t.lines * t.length), loops[1]: i / t.length % t.lines, loops[2]: i % t.length / t.f.V, t.f.Lane: i % t.f.V,
	}
}

// bytes are those that are staged for an element.
func (t *tiling) bytes() (n int64) {
	for _, s := range t.staged {
		n += s.x.Elem.Bytes()
	}
	return n
}

// shared is the bytes of shared memory.
func (t *tiling) shared() int64 { return t.rows * t.cols * t.bytes() }

// along and across are the numbers of tiles along the lines of a plane and across them.
func (t *tiling) along() int64  { return ceil(t.length, t.cols) }
func (t *tiling) across() int64 { return ceil(t.lines, t.rows) }

func (t *tiling) blocks() int64 { return t.planes * t.across() * t.along() }

// group is the number of vectors of a tile after which chunks of an operand are in
// another order: such that the lanes of a patch, which read it a vector apart, use all
// banks.
func (t *tiling) group(elem types.Elem) int64 {
	return max(1, 8*accessBytes/elem.Bytes()/(t.f.V*t.rows))
}

// patch is the shape of the part of a tile that a warp computes at a time: vectors along
// a line that are together 128 bytes of the narrowest result, and the lines that remain.
func (t *tiling) patch() (vectors, lines int64) {
	least, _ := sizes(t.outs)
	vectors = min(32, lineBytes/(least*t.f.V), t.cols/t.f.V)
	vectors = max(vectors, 32/t.rows)
	return vectors, 32 / vectors
}

// write writes the kernel of a block.
func (t *tiling) write(e *emitter) {
	loops := t.outs[0].Loops
	plane, line, step := e.name("plane"), e.name("line"), e.name("step")
	across, along := t.across(), t.along()
	if loops[0] != nil {
		e.line("const dm::i32 %s = dm::block() / %d", def(plane), across*along)
	}
	e.line("const dm::i32 %s = dm::block() / %d %% %d * %d", def(line), along, across, t.rows)
	e.line("const dm::i32 %s = dm::block() %% %d * %d", def(step), along, t.cols/t.f.V)
	e.bind(loops[0], cpp("%s", plane))
	tiles := map[*kernel.Expr]ident{}
	for _, s := range t.staged {
		tiles[s.x] = e.name("tile")
		e.lineOf(s.x.From, "DM_SHARED(%s, %s, %d)", storage(s.x.Elem), def(tiles[s.x]), t.rows*t.cols)
	}
	for _, s := range t.staged {
		t.stage(e, s, tiles[s.x], line, step)
	}
	e.line("dm::sync()")
	// The warps take patches along the lines.
	vectors, lines := t.patch()
	patches := t.cols / t.f.V / vectors
	units := t.rows * t.cols / t.f.V
	n, unit, row, col := e.name("j"), e.name("k"), e.name("line"), e.name("step")
	if units <= 2*blockThreads {
		e.pragma("DM_UNROLL")
	} else {
		e.pragma("DM_NO_UNROLL")
	}
	e.open("for (dm::i32 %s = 0; %s < %d; %s++)", def(n), n, ceil(units, blockThreads), n)
	e.line("const dm::u32 %s = dm::thread() + %s * %d", def(unit), n, blockThreads)
	if units < blockThreads {
		e.open("if (%s < %d)", unit, units)
	}
	e.line("const dm::i32 %s = %s / %d * %d + %s %% 32 / %d", def(row), unit, 32*patches, lines, unit, vectors)
	first := cpp("%s %% %d", unit, vectors)
	if patches > 1 {
		first = cpp("%s / 32 %% %d * %d + %s", unit, patches, vectors, first)
	}
	e.line("const dm::i32 %s = %s", def(col), first)
	inside := t.inside(cpp("%s + %s", line, row), cpp("(%s + %s) * %d", step, col, t.f.V))
	if inside.format != "" {
		e.open("if (%s)", inside)
	}
	e.bind(loops[1], cpp("(%s + %s)", line, row))
	e.bind(loops[2], cpp("(%s + %s)", step, col))
	outer := e.loaded
	e.loaded = func(x *kernel.Expr) (code, bool) {
		tile, ok := tiles[x]
		if !ok {
			return code{}, false
		}
		at, next := cpp("%s * %d + %s", col, t.f.V*t.rows, row), code{}
		if t.f.Lane != nil {
			next = cpp(" + %s * %d", e.atoms[t.f.Lane], t.rows)
		}
		chunk := accessBytes / x.Elem.Bytes()
		if t.rows < 8*chunk { // chunks of several lanes change places
			at, next = cpp("%s%s", at, next), code{}
		}
		at = cpp("dm::interleaved<%d>(%s, %s)%s", chunk, at, quotient(col, t.group(x.Elem)), next)
		return cpp("dm::wide(%s(%s[%s]))", storage(x.Elem), tile, at), true
	}
	l := e.lanes(t.f.Lane, t.f.V)
	l.skip = func(x *kernel.Expr) bool { _, ok := tiles[x]; return ok }
	l.store(t.outs)
	l.end()
	e.loaded = outer
	if inside.format != "" {
		e.close()
	}
	if units < blockThreads {
		e.close()
	}
	e.close()
}

// quotient is x / n.
func quotient(x ident, n int64) code {
	if n == 1 {
		return cpp("%s", x)
	}
	return cpp("%s / %d", x, n)
}

// inside is the condition that an element of a tile is one of the plane.
func (t *tiling) inside(line, column code) (c code) {
	if t.lines%t.rows != 0 {
		c = cpp("%s < %d", line, t.lines)
	}
	if t.length%t.cols != 0 && c.format != "" {
		return cpp("%s && %s < %d", c, column, t.length)
	} else if t.length%t.cols != 0 {
		return cpp("%s < %d", column, t.length)
	}
	return c
}

// stage copies the tile of s from line and step on to shared memory. A thread reads up
// to eight vectors before it writes the first one.
func (t *tiling) stage(e *emitter, s staged, tile, line, step ident) {
	const most = 8
	loops, elem := t.outs[0].Loops, s.x.Elem
	accesses := t.rows * t.cols / s.w
	times := ceil(accesses, blockThreads)
	batch := min(times, most)
	from := cpp("dm::u32(dm::thread())")
	if times > batch {
		round := e.name("k")
		e.pragma("DM_NO_UNROLL")
		e.open("for (dm::u32 %s = dm::thread(); %s < %d; %s += %d)", def(round), round, accesses, round, batch*blockThreads)
		from = cpp("%s", round)
	}
	vec, n := e.name("v"), e.name("j")
	e.lineOf(s.x.From, "dm::Vec<%s, %d> %s[%d] = {}", storage(elem), s.w, def(vec), batch)
	each := func(body func(p code)) {
		e.pragma("DM_UNROLL")
		e.open("for (dm::i32 %s = 0; %s < %d; %s++)", def(n), n, batch, n)
		p := e.name("k")
		e.line("const dm::u32 %s = (%s + %s * %d) * %d", def(p), from, n, blockThreads, s.w)
		whole := accesses%(batch*blockThreads) == 0
		if !whole {
			e.open("if (%s < %d)", p, t.rows*t.cols)
		}
		body(cpp("%s", p))
		if !whole {
			e.close()
		}
		e.close()
	}
	each(func(p code) {
		row, col := e.name("line"), e.name("column")
		e.line("const dm::i32 %s = %s + dm::i32(%s %% %d)", def(row), line, p, t.rows)
		e.line("const dm::u32 %s = %s * %d + %s / %d", def(col), step, t.f.V, p, t.rows)
		inside := t.inside(cpp("%s", row), cpp("%s", col))
		if inside.format != "" {
			e.open("if (%s)", inside)
		}
		e.bind(loops[1], cpp("%s", row))
		e.bind(loops[2], cpp("dm::i32(%s)", quotient(col, t.f.V)))
		e.bind(t.f.Lane, cpp("dm::i32(%s %% %d)", col, t.f.V))
		read := func() {
			e.lineOf(s.x.From, "%s[%s] = %s.template load<%d>(%s)", vec, n, e.param(s.x.Buf), s.w, e.index(s.x.At))
		}
		if len(s.conds) > 0 {
			e.open("if (%s)", e.conditions(s.conds))
			read()
			e.close()
		} else {
			read()
		}
		if inside.format != "" {
			e.close()
		}
	})
	each(func(p code) {
		key := cpp("%s / %d", p, t.group(elem)*t.f.V*t.rows)
		e.lineOf(s.x.From, "%s.template store<%d>(dm::interleaved<%d>(%s, %s), %s[%s])", tile, s.w, accessBytes/elem.Bytes(), p, key, vec, n)
	})
	if times > batch {
		e.close()
	}
}
