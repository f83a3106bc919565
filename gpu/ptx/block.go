package ptx

import (
	"dmir/gpu/artifact"
)

// Launch is what a kernel is launched with.
type Launch struct {
	Grid      [3]int
	Threads   int
	Cluster   int                         // blocks of a cluster, along the first dimension of the grid; 0: one
	Shared    int                         // bytes of dynamic shared memory
	Maps      map[int]*artifact.TensorMap // by parameter
	Registers int                         // of a thread at the start, as the assembler chose them; 0: unknown
	Blocks    int                         // that share a multiprocessor; 0: one
	Dependent bool                        // the kernel may start before those before it have ended
}

// clock orders events: by agent, the last of its events that comes before. Agents
// are what acts on its own: each warp, its copies by cp.async, its wgmma, its
// bulk stores, and the bulk copies of each mbarrier.
type clock []uint32

func (c clock) at(agent int) uint32 {
	if agent < len(c) {
		return c[agent]
	}
	return 0
}

func (c *clock) set(agent int, v uint32) {
	for len(*c) <= agent {
		*c = append(*c, 0)
	}
	(*c)[agent] = max((*c)[agent], v)
}

func (c *clock) join(o clock) {
	for i, v := range o {
		c.set(i, v)
	}
}

// The agents of a warp, by their distance from the first.
const (
	agentThread = iota
	agentCopy
	agentProduct
	agentStore
	agentsPerWarp
)

// block is one block of threads that runs.
type block struct {
	c        *code
	launch   Launch
	index    [3]uint64
	group    *cluster
	rank     int // in it
	ended    bool
	touched  map[int]touched // by the agents of other blocks
	warps    []*warp
	shared   *shadow
	barriers []*mbarrier
	byAddr   map[uint64]*mbarrier
	named    [16]*gathering
	report   *Report
	seen     map[seenKey]bool
	loops    map[[2]int]bool
	budget   int
	fuzzy    bool // a synchronisation was not decided: what follows from counts is not reported
	blind    bool // shared memory was written at an address that is not known
	reduces  bool // the kernel's blocks are in clusters, and add to global memory by red
	deltas   map[[2]int]int64
	traffic  *Traffic
	counted  []int // by instruction, how often its accesses were counted
	read     footprint
	written  footprint
}

type seenKey struct {
	at   int
	rule Rule
}

// gathering is a barrier of threads that some warps have reached.
type gathering struct {
	warps   []*warp
	threads int // that it waits for
	clock   clock
	fenced  clock
}

func (b *block) find(o *op, at int, rule Rule, format string, args ...any) {
	if b.seen[seenKey{at, rule}] {
		return
	}
	b.seen[seenKey{at, rule}] = true
	b.c.find(b.report, o, rule, format, args...)
}

func (b *block) undecided(reason string) { b.report.Undecided[reason]++ }

func newBlock(c *code, l Launch, index [3]uint64, r *Report, budget int) *block {
	if r.Traffic[c.fn.Name] == nil {
		r.Traffic[c.fn.Name] = &Traffic{}
	}
	b := &block{c: c, launch: l, index: index, report: r, budget: budget, traffic: r.Traffic[c.fn.Name], counted: make([]int, len(c.list)), read: footprint{}, written: footprint{}, byAddr: map[uint64]*mbarrier{}, seen: map[seenKey]bool{}, loops: map[[2]int]bool{}, deltas: map[[2]int]int64{}}
	size := c.static
	for _, v := range c.vars {
		if v.open {
			size = int(v.at) - sharedBase + l.Shared
		}
	}
	b.shared = newShadow(size)
	for i := range c.list {
		b.reduces = b.reduces || c.list[i].kind == opReduce && l.Cluster > 1
	}
	return b
}

// reach brings a warp to a barrier of threads, and reports whether it may pass.
func (b *block) reach(w *warp, o *op, id, threads int) bool {
	g := b.named[id]
	if g == nil {
		g = &gathering{threads: threads}
		b.named[id] = g
	}
	if g.threads != threads {
		b.find(o, w.pc(), NamedBarrier, "barrier %d is for %d threads here, for %d where another warp waits", id, threads, g.threads)
		b.fuzzy = true
	}
	g.warps = append(g.warps, w)
	g.clock.join(w.clock)
	g.fenced.join(w.fenced)
	w.tick()
	b.open(id)
	return w.waiting < 0
}

// open lets the warps at a barrier pass if all have come.
func (b *block) open(id int) bool {
	g := b.named[id]
	come := 32 * len(g.warps)
	if id == 0 && g.threads == b.launch.Threads {
		for _, w := range b.warps {
			if w.done {
				come += 32
			}
		}
	}
	if come < g.threads {
		for _, w := range g.warps {
			w.waiting = id
		}
		return false
	}
	for _, w := range g.warps {
		w.waiting = -1
		w.clock.join(g.clock)
		w.fenced.join(g.fenced)
	}
	b.named[id] = nil
	return true
}

// release opens barriers that wait for warps that have ended.
func (b *block) release() bool {
	for id, g := range b.named {
		if g != nil && b.open(id) {
			return true
		}
	}
	return false
}

// stuck says why no warp can go on.
func (b *block) stuck() {
	if b.fuzzy {
		b.undecided(reasonBranch)
		return
	}
	before := len(b.report.Findings)
	defer func() {
		if len(b.report.Findings) == before {
			b.undecided(reasonOperation)
		}
	}()
	for id, g := range b.named {
		if g == nil {
			continue
		}
		w := g.warps[0]
		b.find(w.op(), w.pc(), NamedBarrier, "barrier %d waits for %d threads, and %d come", id, g.threads, 32*len(g.warps))
	}
	for _, w := range b.warps {
		if w.done || w.waiting >= 0 {
			continue
		}
		o := w.op()
		m := w.blocked
		if m == nil {
			if o.kind == opCluster {
				b.find(o, w.pc(), ClusterBarrier, "the barrier of the cluster waits for warps that do not come")
			}
			continue
		}
		switch {
		case m.pending == 0 && m.bytes != 0:
			b.find(o, w.pc(), Transactions, "the phase expects %d bytes more than its bulk copies write (at shared memory %d)", m.bytes, m.at-sharedBase)
		case m.pending < m.count:
			b.find(o, w.pc(), Arrivals, "the phase has %d of %d arrivals, and no more come (at shared memory %d)", m.count-m.pending, m.count, m.at-sharedBase)
		default:
			b.find(o, w.pc(), Phase, "no phase with parity %d ends: %d have ended (at shared memory %d)", w.parity, m.phase, m.at-sharedBase)
		}
	}
}

// end checks what must hold when all warps have ended.
func (b *block) end() {
	b.outlived()
	total, changed := 0, false
	first := b.launch.Registers
	if first == 0 {
		first = 65536 / max(1, b.launch.Blocks) / max(1, b.launch.Threads) / 8 * 8
	}
	for i, w := range b.warps {
		mine := first
		if w.registers > 0 {
			mine, changed = w.registers, true
		}
		total += 32 * mine
		if w.pendingProducts() && !b.fuzzy {
			b.find(w.op(), w.last, InFlight, "the kernel ends with wgmma that nothing has waited for")
		}
		if (w.storing > 0 || w.stores[0] != w.stores[1]) && w.stored > 0 && !b.fuzzy {
			b.find(&b.c.list[w.stored], w.stored, BulkGroup, "the kernel ends with a bulk store of its shared memory that nothing has waited for")
		}
		if lead := b.warps[i/4*4]; lead != w && (lead.products != w.products || lead.registers != w.registers) && !b.fuzzy {
			b.find(&b.c.list[w.last], w.last, Aligned, "the warps of a warpgroup execute %d and %d wgmma, and have %d and %d registers", lead.products, w.products, lead.registers, w.registers)
		}
	}
	if changed {
		b.report.Checked[Registers]++
		limit := 65536 / max(1, b.launch.Blocks)
		if b.launch.Registers > 0 {
			limit = min(limit, b.launch.Registers*32*len(b.warps))
		}
		if total > limit {
			w := b.warps[len(b.warps)-1]
			b.find(&b.c.list[w.regsAt], w.regsAt, Registers, "the warps of the block ask for %d registers of %d", total, limit)
		}
	}
	for _, m := range b.barriers {
		if m.bytes != 0 && !m.fuzzy && !b.fuzzy {
			b.find(&b.c.list[m.last], m.last, Transactions, "the kernel ends with a phase that expects %d bytes more than its bulk copies write", m.bytes)
		}
	}
}
