package ptx

import (
	"math/bits"

	"dmir/gpu/artifact"
)

// mbarrier is a barrier in shared memory that counts arrivals and bytes.
type mbarrier struct {
	at      uint64
	agent   int
	count   int // arrivals of a phase
	pending int
	bytes   int // that are expected and have not been copied
	phase   int // that have ended
	init    stamp
	visible bool // a fence.mbarrier_init stands behind the initialisation
	fuzzy   bool
	peers   bool  // threads of other blocks have arrived, which add to global memory
	last    int   // instruction that changed bytes
	clock   clock // of the arrivals so far
	fenced  clock
	ended   clock // of the phases that have ended
	seen    clock // of these, fenced
}

// complete ends the phase if nothing is missing.
func (m *mbarrier) complete() {
	if m.pending > 0 || m.bytes != 0 && !m.fuzzy {
		return
	}
	m.phase++
	m.pending, m.bytes = m.count, 0
	m.clock.set(m.agent, uint32(m.phase))
	m.ended.join(m.clock)
	m.seen.join(m.fenced)
	m.seen.set(m.agent, uint32(m.phase))
}

// barrierAt is the mbarrier that an operand addresses, in the first thread of mask.
func (w *warp) barrierAt(o *op, at int, mask uint32, a arg) *mbarrier {
	r := w.get(a)
	if !r.known() {
		w.b.undecided(reasonAddress)
		w.b.fuzzy = true
		return nil
	}
	owner, address := w.reached(&access{o: o, at: at}, (r.each(bits.TrailingZeros32(mask))+uint64(a.off))&0xffffffff)
	if owner == nil {
		w.b.fuzzy = true
		return nil
	}
	m := owner.byAddr[address]
	if m == nil {
		if !w.b.fuzzy {
			w.b.find(o, at, BarrierInit, "no mbarrier is initialised at shared memory %d", int64(address)-sharedBase)
			w.b.fuzzy = true
		}
		return nil
	}
	if !w.before(m.init) {
		w.b.find(o, at, BarrierInit, "the mbarrier at shared memory %d is used without a barrier of threads behind its initialisation", address-sharedBase)
	}
	return m
}

func (w *warp) initBarrier(o *op, at int, mask uint32) {
	r, n := w.get(o.src[0]), w.get(o.src[1])
	if r.kind != uniform || n.kind != uniform || w.maybe > 0 {
		w.b.undecided(reasonAddress)
		w.b.fuzzy = true
		return
	}
	address := (r.u + uint64(o.src[0].off)) & 0xffffffff
	if address%8 != 0 {
		w.b.find(o, at, Bounds, "an mbarrier at shared memory %d, which is no multiple of 8", address-sharedBase)
	}
	if n.u == 0 || n.u >= 1<<20 {
		w.b.find(o, at, Arrivals, "an mbarrier with %d arrivals", n.u)
		n.u = 1
	}
	w.tick()
	w.writes(&access{o: o, at: at, by: w.now(), whole: true}, address, 8, 0)
	m := w.b.byAddr[address]
	if m == nil {
		m = &mbarrier{at: address, agent: len(w.b.group.blocks)*len(w.b.warps)*agentsPerWarp + w.b.group.barriers}
		w.b.group.barriers++
		w.b.barriers = append(w.b.barriers, m)
		w.b.byAddr[address] = m
	}
	m.count, m.pending, m.init = int(n.u), int(n.u), w.now()
	m.visible = false
	w.b.report.Checked[BarrierInit]++
}

// arrive is mbarrier.arrive, perhaps with expect_tx, and mbarrier.expect_tx: of each mbarrier that threads of the warp address.
func (w *warp) arrive(o *op, at int, mask uint32) {
	r := w.get(o.src[0])
	for mask != 0 {
		same := mask
		if r.known() {
			first := r.each(bits.TrailingZeros32(mask))
			for lane := range 32 {
				if r.each(lane) != first {
					same &^= 1 << lane
				}
			}
		}
		mask &^= same
		w.arriveAt(o, at, same)
	}
}

// arriveAt is arrive where all threads of mask address one mbarrier.
func (w *warp) arriveAt(o *op, at int, mask uint32) {
	m := w.barrierAt(o, at, mask, o.src[0])
	if m == nil {
		return
	}
	if o.has("shared::cluster") && w.b.reduces {
		m.peers = true
		w.b.report.Checked[ClusterScope]++
		if !o.has("release") || !o.has("cluster") {
			w.b.find(o, at, ClusterScope, "blocks of the cluster add to the same memory, and the arrival does not make what the thread has added visible to the others")
		}
	}
	if w.maybe > 0 || o.has("noComplete") {
		w.b.undecided(reasonBranch)
		w.b.fuzzy, m.fuzzy = true, true
	}
	n := bits.OnesCount32(mask)
	if o.has("expect_tx") {
		bytes := register{}
		if len(o.src) > 1 {
			bytes = w.get(o.src[1])
		}
		if bytes.known() {
			for lane := range 32 {
				if mask>>lane&1 == 1 {
					m.bytes += int(bytes.each(lane) & 0xffffffff)
				}
			}
		} else {
			m.fuzzy = true
			w.b.undecided(reasonArgument)
		}
		m.last = at
		if o.words[1] == "expect_tx" {
			return
		}
	} else if len(o.src) > 1 {
		if k, ok := w.value(o.src[1]); ok {
			n *= int(k & 0xfffff)
		}
	}
	m.clock.join(w.clock)
	m.fenced.join(w.fenced)
	w.tick()
	m.pending -= n
	w.b.report.Checked[Arrivals]++
	if m.pending < 0 {
		if !w.b.fuzzy {
			w.b.find(o, at, Arrivals, "%d arrivals more than the %d of a phase", -m.pending, m.count)
		}
		m.pending = 0
	}
	m.complete()
}

// wait is mbarrier.try_wait, which here waits until the phase has ended.
func (w *warp) wait(o *op, at int, mask uint32) bool {
	m := w.barrierAt(o, at, mask, o.src[0])
	parity, ok := register{}, false
	if len(o.src) > 1 {
		parity = w.get(o.src[1])
		ok = parity.known()
	}
	if m == nil || !ok || !o.has("parity") || w.maybe > 0 {
		w.b.undecided(reasonArgument)
		w.b.fuzzy = true
		w.results(o, mask, register{kind: uniform, u: 1})
		return true
	}
	p := int(parity.each(bits.TrailingZeros32(mask)))
	if p != 0 && p != 1 {
		w.b.find(o, at, Phase, "a phase with parity %d", p)
		p &= 1
	}
	w.b.report.Checked[Phase]++
	if m.peers && (!o.has("acquire") || !o.has("cluster")) {
		w.b.find(o, at, ClusterScope, "blocks of the cluster add to the same memory, and the wait does not make what the others have added visible to the thread")
	}
	if m.phase&1 == p {
		w.blocked, w.parity = m, p
		return false
	}
	w.clock.join(m.ended)
	w.fenced.join(m.seen)
	w.results(o, mask, register{kind: uniform, u: 1})
	return true
}

// copyAsync is cp.async.
func (w *warp) copyAsync(o *op, at int, mask uint32) {
	if w.maybe > 0 {
		w.b.undecided(reasonBranch)
		w.b.blind = true
		return
	}
	to := w.get(o.src[0])
	n, ok := w.value(o.src[2])
	if !to.known() || !ok || n == 0 || n > 16 {
		w.b.undecided(reasonAddress)
		w.b.blind = true
		return
	}
	left := register{kind: uniform, u: n} // bytes that are read, the others are zeros
	if len(o.src) > 3 {
		left = w.get(o.src[3])
	}
	from := w.accesses(at, w.get(o.src[1]), o.src[1].off, mask, func(lane int) bool { return left.known() && left.each(lane) == 0 })
	w.b.traffic.Loads.sectors(w.b.read, from, int(n))
	a := &access{o: o, at: at, by: stamp{int32(w.agent(agentCopy)), w.copies[0] + 1}, whole: true}
	w.b.report.Checked[CopyGroup]++
	for lane := range 32 {
		if mask>>lane&1 == 1 {
			address := to.each(lane) + uint64(o.src[0].off)
			if address%n != 0 {
				w.b.find(o, at, Bounds, "%d bytes are copied to shared memory %d, which is no multiple", n, int64(address)-sharedBase)
			}
			w.writes(a, address&0xffffffff, int(n), 0)
		}
	}
}

// waitGroups orders the groups of an agent, but the last ones, before what follows.
func (w *warp) waitGroups(o *op, agent int, groups *[2]uint32) {
	var left uint64
	if len(o.src) > 0 {
		n, ok := w.value(o.src[0])
		if !ok || w.maybe > 0 {
			w.b.undecided(reasonArgument)
			return
		}
		left = n
	}
	if uint64(groups[0]) > left {
		groups[1] = max(groups[1], groups[0]-uint32(left))
		w.clock.set(w.agent(agent), groups[1])
	}
}

// prefetch is prefetch.tensormap.
func (w *warp) prefetch(o *op, at int, mask uint32) {
	v, ok := w.lane(o.src[0], mask)
	if !ok {
		w.b.undecided(reasonAddress)
		return
	}
	w.b.report.Checked[Prefetch]++
	if param, ok := paramOf(v + uint64(o.src[0].off)); !ok || w.b.launch.Maps[param] == nil {
		w.b.find(o, at, Prefetch, "no tensor map is there")
	}
}

// paramOf is the parameter that a generic address is of.
func paramOf(v uint64) (int, bool) {
	if v < paramBase || v >= paramBase+1<<32 || v&(1<<paramShift-1) != 0 {
		return 0, false
	}
	return int((v - paramBase) >> paramShift), true
}

func elemBytes(m *artifact.TensorMap) uint64 {
	n, _ := m.ElemBytes()
	return uint64(n)
}

// boxOf is the bytes of a map's box, and what its address in shared memory is a multiple of.
func boxOf(tm *artifact.TensorMap) (bytes int, align uint64) {
	bytes = int(elemBytes(tm))
	for _, n := range tm.Box {
		bytes *= int(n)
	}
	return bytes, max(128, uint64(8*tm.Swizzle))
}

// bulk is cp.async.bulk.
func (w *warp) bulk(o *op, at int, mask uint32) {
	if w.maybe > 0 {
		w.b.undecided(reasonBranch)
		w.b.fuzzy, w.b.blind = true, true
		return
	}
	if bits.OnesCount32(mask) != 1 {
		w.b.undecided(reasonOperation) // each thread copies
		w.b.fuzzy, w.b.blind = true, true
		return
	}
	toShared := o.has("mbarrier::complete_tx::bytes") && o.has("global")
	if !o.has("tensor") || !toShared || o.has("im2col") {
		w.bulkOther(o, at, toShared)
		return
	}
	c, args := box{o: o, at: at}, o.src
	ranks := uint64(1) << w.b.rank
	if o.has("multicast::cluster") {
		var ok bool
		last := len(args) - 1
		if ranks, ok = w.lane(args[last], mask); !ok {
			w.b.undecided(reasonArgument)
			for _, b := range w.b.group.blocks {
				b.fuzzy, b.blind = true, true
			}
			return
		}
		args = args[:last]
		w.b.report.Checked[Multicast]++
		if n := len(w.b.group.blocks); ranks&0xffff == 0 || ranks>>n != 0 {
			w.b.find(o, at, Multicast, "the mask %#x of a multicast in a cluster of %d", ranks, n)
			return
		}
	}
	first := w.barrierAt(o, at, mask, args[len(args)-1])
	if first == nil {
		return
	}
	from, ok := w.lane(args[1], mask)
	param, isParam := paramOf(from)
	c.param, c.m = param, w.b.launch.Maps[param]
	if ok = ok && isParam && c.m != nil; !ok {
		w.b.undecided(reasonLaunch)
	} else if rank := len(args) - 3; rank != len(c.m.Box) {
		w.b.find(o, at, Descriptor, "%d coordinates for a tensor map of %d dimensions", rank, len(c.m.Box))
		return
	} else if c.to, c.placed = w.lane(args[0], mask); !c.placed {
		w.b.undecided(reasonAddress)
	} else {
		c.to = (c.to + uint64(args[0].off)) & 0xffffffff
		if _, align := boxOf(c.m); (c.to-sharedBase)%align != 0 {
			w.b.find(o, at, Bounds, "a box with a swizzle of %d bytes at shared memory %d, which is no multiple of %d", c.m.Swizzle, int64(c.to)-sharedBase, align)
		}
		for _, x := range args[2 : len(args)-1] {
			v, ok := w.lane(x, mask)
			if !ok {
				c.coordinates = nil
				break
			}
			c.coordinates = append(c.coordinates, int64(int32(v)))
		}
	}
	for rank, b := range w.b.group.blocks {
		if ranks>>rank&1 == 0 {
			continue
		}
		m := b.byAddr[first.at]
		if m == nil {
			w.b.find(o, at, Multicast, "no mbarrier is initialised at shared memory %d of block %d", int64(first.at)-sharedBase, rank)
			continue
		}
		w.lands(c, b, m, ok)
	}
}

// box is a bulk copy by a tensor map.
type box struct {
	o           *op
	at          int // of the instruction
	m           *artifact.TensorMap
	param       int
	to          uint64
	placed      bool    // that is known
	coordinates []int64 // nil: they are not
}

// lands copies a box to a block, at whose mbarrier its bytes count; known is whether the map is.
func (w *warp) lands(c box, b *block, m *mbarrier, known bool) {
	if !w.before(m.init) || !m.visible && w.fenced.at(int(m.init.agent)) < m.init.event {
		w.b.find(c.o, c.at, BarrierInit, "the copy engine uses the mbarrier at shared memory %d without a fence behind its initialisation", m.at-sharedBase)
	}
	m.last = c.at
	if !known {
		m.fuzzy, b.blind = true, true
		return
	}
	w.b.report.Checked[Transactions]++
	by := &access{o: c.o, at: c.at, by: stamp{int32(m.agent), uint32(m.phase) + 1}, async: true, whole: true}
	bytes, _ := boxOf(c.m)
	if c.placed {
		b.shared.copies = append(b.shared.copies, copied{to: c.to, at: c.coordinates, m: c.m, param: c.param, elem: elemBytes(c.m)})
		to := c.to
		if b != w.b {
			to = peerAddress(c.to, uint64(b.rank), 0)
		}
		w.writes(by, to, bytes, len(b.shared.copies))
	} else {
		b.blind = true
	}
	m.bytes -= bytes
	m.complete()
}

// bulkOther is a copy that is not a box to shared memory: a store reads its bytes
// where they are known, another is not followed.
func (w *warp) bulkOther(o *op, at int, toShared bool) {
	if toShared || !o.has("bulk_group") {
		w.b.undecided(reasonOperation)
		w.b.fuzzy, w.b.blind = true, true
		return
	}
	source, size, align := o.src[len(o.src)-1], 0, uint64(16)
	if o.has("tensor") {
		param, ok := paramOf(w.get(o.src[0]).u)
		if tm := w.b.launch.Maps[param]; ok && tm != nil {
			size, align = boxOf(tm)
			if rank := len(o.src) - 2; rank != len(tm.Box) {
				w.b.find(o, at, Descriptor, "%d coordinates for a tensor map of %d dimensions", rank, len(tm.Box))
				return
			}
		}
	} else if n, ok := w.value(o.src[2]); ok {
		source, size = o.src[1], int(n)
	}
	from := w.get(source)
	if size == 0 || !from.known() {
		w.b.undecided(reasonAddress)
		return
	}
	address := (from.each(bits.TrailingZeros32(w.top().mask)) + uint64(source.off)) & 0xffffffff
	if (address-sharedBase)%align != 0 {
		w.b.find(o, at, Bounds, "a bulk store from shared memory %d, which is no multiple of %d", int64(address)-sharedBase, align)
	}
	w.b.report.Checked[BulkGroup]++
	w.storing, w.stored = at+1, at
	by := stamp{int32(w.agent(agentStore)), w.stores[0] + 1}
	w.reads(&access{o: o, at: at, by: by, async: true, whole: true}, address, size)
}

// lane is an operand in the first thread of mask.
func (w *warp) lane(a arg, mask uint32) (uint64, bool) {
	r := w.get(a)
	return r.each(bits.TrailingZeros32(mask)), r.known()
}
