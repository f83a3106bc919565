package ptx

import "math/bits"

// execute does what an instruction does, and reports whether the warp has passed
// it; it then moves the path on.
func (w *warp) execute(o *op, at int, mask uint32) bool {
	p := w.top()
	switch o.kind {
	case opBranch:
		w.branch(o, at)
		return true
	case opExit:
		if w.maybe > 0 {
			w.b.undecided(reasonBranch)
			p.pc = p.until
			return true
		}
		w.exit(mask)
		p.pc++
		return true
	case opWait:
		if !w.wait(o, at, mask) {
			return false
		}
		p.pc++
		return true
	case opCluster:
		if !w.meet(o, at, mask) {
			return false
		}
		p.pc++
		return true
	case opBarrier:
		p.pc++
		w.barrier(o, at, mask)
		return true
	}
	w.simple(o, at, mask)
	p.pc++
	return true
}

// simple executes an instruction that does not wait or branch.
func (w *warp) simple(o *op, at int, mask uint32) {
	switch o.kind {
	case opALU:
		w.alu(o, mask)
	case opSelect:
		w.choose(o, mask)
	case opLoad:
		w.load(o, at, mask)
	case opStore:
		switch o.space {
		case "shared", "":
			w.local(o, at, mask, true)
		case "global":
			w.b.traffic.Stores.sectors(w.b.written, w.accesses(at, w.get(o.src[0]), o.src[0].off, mask, nil), o.bytes)
		}
	case opReduce:
		w.b.traffic.Stores.sectors(w.b.written, w.accesses(at, w.get(o.src[0]), o.src[0].off, mask, nil), o.bytes)
	case opCopy:
		w.copyAsync(o, at, mask)
	case opCopyCommit:
		w.copies[0]++
	case opCopyWait:
		w.waitGroups(o, agentCopy, &w.copies)
	case opBulkCommit:
		w.stores[0]++
		w.storing = 0
	case opBulkWait:
		w.waitGroups(o, agentStore, &w.stores)
	case opInit:
		w.initBarrier(o, at, mask)
	case opArrive:
		w.arrive(o, at, mask)
		w.results(o, mask, register{kind: varying})
	case opBulk:
		w.bulk(o, at, mask)
	case opPrefetch:
		w.prefetch(o, at, mask)
	case opFence:
		w.fence(o)
	case opProduct:
		w.product(o, at, mask)
	case opProductFence:
		w.whole(o, at, mask)
		w.fences++
	case opProductCommit:
		w.whole(o, at, mask)
		w.groups[0]++
		w.open = false
	case opProductWait:
		w.whole(o, at, mask)
		w.b.report.Checked[InFlight]++
		w.waitGroups(o, agentProduct, &w.groups)
	case opRegisters:
		w.setRegisters(o, at, mask)
	case opMatrix:
		w.matrices(o, at, mask)
		w.results(o, mask, register{kind: varying})
	case opWarp:
		if o.has("aligned") {
			w.whole(o, at, mask)
		}
		w.b.blind = w.b.blind || o.words[0] == "stmatrix"
		w.results(o, mask, register{kind: varying})
	case opForeign:
		w.b.undecided(reasonOperation)
		w.b.fuzzy, w.b.blind = true, true
	case opElect:
		v := &w.tmp
		lead := bits.TrailingZeros32(mask)
		for i := range v {
			v[i] = 0
		}
		v[lead] = 1
		w.put(o.dst[0], mask, register{kind: uniform, u: uint64(lead)})
		if len(o.dst) > 1 {
			w.put(o.dst[1], mask, register{kind: lanes, v: v})
		}
	case opUnknown, opCall:
		w.b.blind = w.b.blind || o.space == "shared" || o.kind == opCall // an atomic operation, or a store
		w.results(o, mask, register{kind: w.unknown(o)})
	}
}

func (w *warp) load(o *op, at int, mask uint32) {
	kind := w.unknown(o)
	switch o.space {
	case "param":
		if len(o.src) == 1 && o.src[0].known && o.bytes == 8 && len(o.dst) == 1 && o.src[0].off == 0 {
			if p, ok := paramOf(o.src[0].value); ok {
				w.put(o.dst[0], mask, register{kind: uniform, u: globalBase + uint64(p+1)<<globalShift})
				return
			}
		}
	case "global":
		w.b.traffic.Loads.sectors(w.b.read, w.accesses(at, w.get(o.src[0]), o.src[0].off, mask, nil), o.bytes)
		if o.acquires() { // a flag, which is set at last
			w.results(o, mask, register{kind: uniform, u: 1})
			return
		}
	case "shared", "":
		w.local(o, at, mask, false)
	}
	w.results(o, mask, register{kind: kind})
}

// fence makes the writes so far visible to the asynchronous proxy; of mbarriers'
// initialisation alone fence.mbarrier_init does.
func (w *warp) fence(o *op) {
	if w.maybe > 0 {
		w.b.undecided(reasonBranch)
		return
	}
	switch {
	case o.starts("fence.proxy.async"):
		w.fenced.join(w.clock)
		w.tick()
	case o.starts("fence.mbarrier_init"):
		for _, m := range w.b.barriers {
			m.visible = m.visible || w.before(m.init)
		}
	}
}

// barrier is bar.sync and its kin.
func (w *warp) barrier(o *op, at int, mask uint32) {
	id, threads := uint64(0), uint64(w.b.launch.Threads)
	args := o.src
	if o.has("red") && len(args) > 0 {
		args = args[:1]
	}
	ok := true
	if len(args) > 0 {
		id, ok = w.value(args[0])
	}
	if ok && len(args) > 1 {
		threads, ok = w.value(args[1])
	}
	kind := uint8(varying)
	if o.has("red") {
		kind = same
	}
	w.results(o, mask, register{kind: kind})
	if !ok || o.has("cluster") || o.has("arrive") {
		w.b.undecided(reasonArgument)
		w.b.fuzzy = true
		return
	}
	w.b.report.Checked[NamedBarrier]++
	if id > 15 || threads == 0 || threads%32 != 0 || threads > uint64(w.b.launch.Threads+31)/32*32 {
		w.b.find(o, at, NamedBarrier, "barrier %d for %d threads in a block of %d", id, threads, w.b.launch.Threads)
		w.b.fuzzy = true
		return
	}
	w.whole(o, at, mask)
	w.b.reach(w, o, int(id), int(threads))
}

func (w *warp) setRegisters(o *op, at int, mask uint32) {
	if !w.whole(o, at, mask) || len(o.src) != 1 {
		return
	}
	n, ok := w.value(o.src[0])
	if !ok || w.maybe > 0 {
		w.b.undecided(reasonArgument)
		return
	}
	if n%8 != 0 || n < 24 || n > 256 {
		w.b.find(o, at, Registers, "%d registers", n)
		return
	}
	before := w.registers
	if before == 0 {
		before = w.b.launch.Registers
	}
	if before > 0 && (o.has("inc") && int(n) < before || o.has("dec") && int(n) > before) {
		w.b.find(o, at, Registers, "from %d to %d registers by %s", before, n, o.in.Op)
	}
	w.registers, w.regsAt = int(n), at
}

// matrices is ldmatrix: its threads pass the addresses of rows of 16 bytes.
func (w *warp) matrices(o *op, at int, mask uint32) {
	if !w.whole(o, at, mask) {
		return
	}
	n := 8
	if o.has("x2") {
		n = 16
	} else if o.has("x4") {
		n = 32
	}
	base := w.get(o.src[0])
	if !base.known() || w.maybe > 0 {
		w.b.undecided(reasonAddress)
		return
	}
	w.b.traffic.Shared.passes(w.accesses(at, base, o.src[0].off, mask, func(lane int) bool { return lane >= n }), 16)
	a := &access{o: o, at: at, by: w.now(), whole: true}
	for lane := range n {
		address := (base.each(lane) + uint64(o.src[0].off)) & 0xffffffff
		if address%16 != 0 {
			w.b.find(o, at, Bounds, "a row of a matrix at shared memory %d, which is no multiple of 16", int64(address)-sharedBase)
		}
		w.reads(a, address, 16)
	}
}
