package ptx

import (
	"slices"

	"dmir/gpu/artifact"
)

// stamp is an event: of an agent, its number; 0: none.
type stamp struct {
	agent int32
	event uint32
}

// cell is what is known of four bytes of shared memory.
type cell struct {
	write   stamp
	copy    int32 // 1 + the number of the bulk copy that wrote it, 0: none
	readers *readers
}

// readers are the reads since a write, of each agent the last; nil: none. What is accessed together has the same, which therefore never
// change: with one more they are others.
type readers struct{ list []stamp }

func (r *readers) all() []stamp {
	if r == nil {
		return nil
	}
	return r.list
}

// with is the readers and one more.
func (r *readers) with(s stamp) *readers {
	list := slices.Clone(r.all())
	i := slices.IndexFunc(list, func(o stamp) bool { return o.agent == s.agent })
	switch {
	case i < 0:
		return &readers{append(list, s)}
	case list[i].event >= s.event:
		return r
	}
	list[i] = s
	return &readers{list}
}

// grown is what readers have become with one more.
type grown struct {
	from, to *readers
	by       stamp
}

const cellShift = 2

// granule is what is known of 16 bytes, as many as what is asynchronous accesses at once: of all of them the same, or of each four.
type granule struct {
	cell
	parts *[granuleCells]cell // nil: the same
}

const granuleCells = 4

// shadow is the block's shared memory. Its content is not kept, but who last wrote
// and read it.
type shadow struct {
	granules []granule
	size     int // cells
	copies   []copied
	grown    [4]grown // the last ones
	turn     int      // the oldest of them
}

// with is readers.with, the same where it was so lately.
func (s *shadow) with(r *readers, by stamp) grown {
	for _, g := range s.grown {
		if g.from == r && g.by == by && g.to != nil {
			return g
		}
	}
	g := &s.grown[s.turn]
	s.turn = (s.turn + 1) % len(s.grown)
	*g = grown{r, r.with(by), by}
	return *g
}

// copied is a bulk copy by a tensor map.
type copied struct {
	to    uint64
	at    []int64 // coordinates; nil: not known
	m     *artifact.TensorMap
	param int
	elem  uint64 // bytes
}

func newShadow(bytes int) *shadow {
	size := (bytes + 3) >> cellShift
	return &shadow{granules: make([]granule, (size+granuleCells-1)/granuleCells), size: size}
}

// span are the numbers of the cells of n bytes from an address on; ok is false outside of the block's memory.
func (s *shadow) span(at uint64, n int) (from, to int, ok bool) {
	if at < sharedBase {
		return 0, 0, false
	}
	first, end := (at-sharedBase)>>cellShift, (at-sharedBase+uint64(n)+3)>>cellShift
	if end > uint64(s.size) || first > end {
		return 0, 0, false
	}
	return int(first), int(end), true
}

// next is the first of the cells of a span, or what the first granule of it has in common, and the cell behind it.
func (s *shadow) next(from, to int) (c *cell, behind int) {
	g := &s.granules[from/granuleCells]
	switch {
	case g.parts != nil:
	case from%granuleCells == 0 && to-from >= granuleCells:
		return &g.cell, from + granuleCells
	default:
		g.parts = &[granuleCells]cell{g.cell, g.cell, g.cell, g.cell}
	}
	return &g.parts[from%granuleCells], from + 1
}

// join makes one of the cells of each granule of a span: what wrote there left them alike.
func (s *shadow) join(from, to int) {
	for i := (from + granuleCells - 1) / granuleCells; (i+1)*granuleCells <= to; i++ {
		if g := &s.granules[i]; g.parts != nil {
			*g = granule{cell: g.parts[0]}
		}
	}
}

// copyAt is the bulk copy that wrote what is at an address, by its number; 0: none.
func (s *shadow) copyAt(at uint64) int32 {
	from, _, ok := s.span(at, 1<<cellShift)
	if !ok {
		return 0
	}
	if g := &s.granules[from/granuleCells]; g.parts != nil {
		return g.parts[from%granuleCells].copy
	}
	return s.granules[from/granuleCells].copy
}

// kindOf is what kind of agent an agent is; of mbarriers agentsPerWarp.
func (b *block) kindOf(agent int32) int {
	if int(agent) >= len(b.group.blocks)*len(b.warps)*agentsPerWarp {
		return agentsPerWarp
	}
	return int(agent) % agentsPerWarp
}

// before reports whether an event comes before what a warp does now.
func (w *warp) before(s stamp) bool { return s.event == 0 || w.clock.at(int(s.agent)) >= s.event }

// access is one kind of access of shared memory.
type access struct {
	o     *op
	at    int
	by    stamp
	async bool // by the asynchronous proxy
	whole bool // it covers all of its cells
	last  cell // the last cell that it was checked with: one in the same state needs no check
	grown grown
}

// reads checks a read of n bytes.
func (w *warp) reads(a *access, at uint64, n int) {
	owner, at := w.reached(a, at)
	if owner == nil {
		return
	}
	from, to, ok := owner.shared.span(at, n)
	if !ok {
		if a.async || a.o.kind == opMatrix || owner != w.b {
			w.b.find(a.o, a.at, Bounds, "%d bytes at shared memory %d are outside of the block's", n, int64(at)-sharedBase)
		}
		return
	}
	for place := from; place < to; {
		c, behind := owner.shared.next(place, to)
		if c.write.event == 0 {
			if (a.async || a.o.kind == opMatrix || owner != w.b) && !owner.blind {
				w.b.find(a.o, a.at, Unwritten, "nothing has written shared memory %d", place<<cellShift)
				return
			}
		} else if c.write != a.last.write && (c.write.agent != w.thread || a.async) {
			w.ordered(a, c, place<<cellShift)
			a.last.write = c.write
		}
		if a.grown.to == nil || a.grown.from != c.readers {
			a.grown = owner.shared.with(c.readers, a.by)
		}
		c.readers = a.grown.to
		place = behind
	}
}

// ordered checks that a read comes behind the write that it sees.
func (w *warp) ordered(a *access, c *cell, place int) {
	kind := w.b.kindOf(c.write.agent)
	if !w.before(c.write) {
		switch kind {
		case agentsPerWarp:
			w.b.find(a.o, a.at, Landed, "shared memory %d is read while a bulk copy may still write it", place)
		case agentCopy:
			w.b.find(a.o, a.at, CopyGroup, "shared memory %d is read while cp.async may still write it", place)
		default:
			if !a.whole && !a.async {
				return
			}
			w.b.find(a.o, a.at, SharedRace, "shared memory %d is read without a barrier behind warp %d's write", place, int(c.write.agent)/agentsPerWarp)
		}
		return
	}
	if a.async && kind != agentsPerWarp && w.fenced.at(int(c.write.agent)) < c.write.event {
		w.b.find(a.o, a.at, ProxyFence, "shared memory %d is read by %s without fence.proxy.async behind the write", place, a.o.words[0])
	}
}

// writes checks a write of n bytes and marks them.
func (w *warp) writes(a *access, at uint64, n, copy int) {
	owner, at := w.reached(a, at)
	if owner == nil {
		return
	}
	from, to, ok := owner.shared.span(at, n)
	if !ok {
		if a.async || a.o.kind == opCopy || owner != w.b {
			w.b.find(a.o, a.at, Bounds, "%d bytes at shared memory %d are outside of the block's", n, int64(at)-sharedBase)
		}
		return
	}
	for place := from; place < to; {
		c, behind := owner.shared.next(place, to)
		if *c != a.last {
			a.last = *c
			w.replaces(a, c, place<<cellShift, copy)
		}
		*c = cell{write: a.by, copy: int32(copy)}
		place = behind
	}
	owner.shared.join(from, to)
}

// replaces checks that a write comes behind what was written to a place before, and behind those who read that.
func (w *warp) replaces(a *access, c *cell, place, copy int) {
	for _, r := range c.readers.all() {
		if r.agent == w.thread && !a.async || w.before(r) {
			continue
		}
		kind := w.b.kindOf(r.agent)
		if kind == agentThread && !a.async && a.o.kind != opCopy {
			if a.whole {
				w.b.find(a.o, a.at, SharedRace, "shared memory %d is written without a barrier behind warp %d's read", place, int(r.agent)/agentsPerWarp)
			}
			continue
		}
		w.b.find(a.o, a.at, Reused, "shared memory %d is written while warp %d may still read it", place, int(r.agent)/agentsPerWarp)
	}
	if s := c.write; s.event > 0 && !w.before(s) && (s != a.by || c.copy != int32(copy)) {
		switch kind := w.b.kindOf(s.agent); {
		case kind != agentThread || a.async:
			w.b.find(a.o, a.at, Reused, "shared memory %d is written while %s may still write it", place, []string{"a warp", "cp.async", "wgmma", "a bulk store", "a bulk copy"}[kind])
		case a.whole && s.agent != w.thread:
			w.b.find(a.o, a.at, SharedRace, "shared memory %d is written without a barrier behind warp %d's write", place, int(s.agent)/agentsPerWarp)
		}
	} else if a.async && s.event > 0 && w.b.kindOf(s.agent) != agentsPerWarp && w.fenced.at(int(s.agent)) < s.event {
		w.b.find(a.o, a.at, ProxyFence, "shared memory %d is replaced by %s without fence.proxy.async behind an ordinary write", place, a.o.words[0])
	}
}

// now is the event of what a warp does now.
func (w *warp) now() stamp {
	return stamp{w.thread, w.clock.at(int(w.thread))}
}

// local checks a load or a store of ordinary instructions.
func (w *warp) local(o *op, at int, mask uint32, store bool) {
	base := w.get(o.src[0])
	if !base.known() {
		if o.space == "shared" {
			w.b.undecided(reasonAddress)
		}
		for _, b := range w.b.group.blocks { // an address that is not known may be of any block
			b.blind = b.blind || store && (b == w.b || o.has("shared::cluster"))
		}
		return
	}
	if o.space == "shared" {
		w.b.traffic.Shared.passes(w.accesses(at, base, o.src[0].off, mask, nil), o.bytes)
	}
	a := &access{o: o, at: at, by: w.now(), whole: o.bytes >= 4}
	for lane := range 32 {
		if mask>>lane&1 == 0 {
			continue
		}
		address := base.each(lane) + uint64(o.src[0].off)
		if o.space == "" {
			if address < sharedGen || address >= sharedGen+1<<24 {
				return // another space
			}
			address -= sharedGen
		} else {
			address &= 0xffffffff
		}
		if w.maybe > 0 {
			w.b.undecided(reasonBranch)
			w.b.blind = w.b.blind || store
			return
		}
		if store {
			w.writes(a, address, o.bytes, 0)
		} else {
			w.reads(a, address, o.bytes)
		}
		if base.kind == uniform {
			return
		}
	}
}
