package ptx

// cluster is the blocks of a cluster, which run together and access each other's shared
// memory; a block of a kernel without clusters is alone.
type cluster struct {
	blocks   []*block
	turns    []gathering // at the barrier of the cluster, one for each phase
	barriers int         // mbarriers of all blocks
}

// peerShift is where an address of shared memory has 1 + the block that it is of; 0 is the own one.
const peerShift = 24

// peerAddress is mapa: the place of an address in the shared memory of a block.
func peerAddress(at, rank, _ uint64) uint64 { return at&(1<<peerShift-1) | (rank+1)<<peerShift }

// touched is the last access of an agent to the shared memory of another block.
type touched struct {
	o     *op
	at    int
	event uint32
}

// newCluster makes the blocks of a cluster from index on.
func newCluster(c *code, l Launch, index [3]uint64, r *Report, budget int) *cluster {
	g := &cluster{}
	n := max(1, l.Cluster)
	budget = max(budget/n, min(budget, share))
	for rank := range n {
		b := newBlock(c, l, index, r, budget)
		b.index[0] += uint64(rank)
		b.group, b.rank = g, rank
		g.blocks = append(g.blocks, b)
	}
	for _, b := range g.blocks {
		n := (l.Threads + 31) / 32
		for i := range n {
			b.warps = append(b.warps, newWarp(b, i, min(32, l.Threads-32*i)))
		}
	}
	return g
}

// run runs the warps of all blocks until all have ended, or none can go on.
func (g *cluster) run() {
	defer func() {
		for _, b := range g.blocks {
			b.traffic.Read.add(b.read.moved())
			b.traffic.Written.add(b.written.moved())
		}
	}()
	g.sized()
	for {
		moved, done := false, true
		for _, b := range g.blocks {
			if b.ended {
				continue
			}
			ended := true
			for _, w := range b.warps {
				if b.budget <= 0 {
					b.undecided(reasonLong)
					return
				}
				was := b.budget
				w.run()
				moved = moved || b.budget < was
				ended = ended && w.done
			}
			if ended {
				b.ended = true
				b.end()
			}
			done = done && ended
		}
		if done {
			return
		}
		if !moved && !g.release() {
			for _, b := range g.blocks {
				if !b.ended {
					b.stuck()
				}
			}
			return
		}
	}
}

// release opens barriers of threads that wait for warps that have ended.
func (g *cluster) release() bool {
	for _, b := range g.blocks {
		if b.release() {
			return true
		}
	}
	return false
}

// sized checks that the kernel is launched in the clusters that it is compiled for.
func (g *cluster) sized() {
	b := g.blocks[0]
	if len(b.c.list) == 0 {
		return
	}
	for _, d := range b.c.fn.Attrs {
		if d.Name != ".reqnctapercluster" || len(d.Words) == 0 {
			continue
		}
		b.report.Checked[ClusterSize]++
		if n, ok := number(d.Words[0]); !ok || int(n) != len(g.blocks) || b.launch.Grid[0]%len(g.blocks) != 0 {
			b.find(&b.c.list[0], 0, ClusterSize, "a kernel for clusters of %s is launched in clusters of %d, in a grid of %d", d.Words[0], len(g.blocks), b.launch.Grid[0])
		}
	}
}

// place is the block whose shared memory has an address, and the address there; nil where
// there is no such block.
func (w *warp) place(at uint64) (*block, uint64) {
	rank := at >> peerShift
	if rank == 0 {
		return w.b, at
	}
	if rank > uint64(len(w.b.group.blocks)) {
		return nil, at
	}
	return w.b.group.blocks[rank-1], at & (1<<peerShift - 1)
}

// reached is place for an access, which the block must have begun for.
func (w *warp) reached(a *access, at uint64) (*block, uint64) {
	if at>>peerShift == 0 {
		return w.b, at
	}
	b, place := w.place(at)
	switch {
	case b == nil:
		w.b.find(a.o, a.at, Bounds, "shared memory of block %d of a cluster of %d", at>>peerShift-1, len(w.b.group.blocks))
		return nil, 0
	case !a.o.has("shared::cluster"):
		w.b.find(a.o, a.at, Bounds, "%s takes an address of the own shared memory, not of a block of the cluster", a.o.in.Op)
		return nil, 0
	case b == w.b:
		return b, place
	}
	w.alive(a, b)
	by := a.by
	if by.event == 0 {
		by = w.now()
	}
	if b.touched == nil {
		b.touched = map[int]touched{}
	}
	b.touched[int(by.agent)] = touched{a.o, a.at, by.event}
	return b, place
}

// alive checks that another block, whose shared memory is accessed, has begun and has not ended.
func (w *warp) alive(a *access, b *block) {
	w.b.report.Checked[ClusterLife]++
	begun := w.met
	for _, other := range b.warps {
		begun = begun || w.clock.at(other.agent(agentThread)) > 0
	}
	switch {
	case !begun:
		w.b.find(a.o, a.at, ClusterLife, "shared memory of block %d of the cluster is accessed, which may not have begun", b.rank)
	case b.ended:
		w.b.find(a.o, a.at, ClusterLife, "shared memory of block %d of the cluster is accessed, which may have ended", b.rank)
	}
}

// outlived checks that a block that has ended has waited for the accesses of others to its memory.
func (b *block) outlived() {
	var known clock
	for _, w := range b.warps {
		known.join(w.clock)
	}
	for n, t := range b.touched {
		if known.at(n) < t.event {
			b.find(t.o, t.at, ClusterLife, "shared memory of block %d of the cluster is accessed, which waits for nothing behind the access and may have ended", b.rank)
		}
	}
}

// meet is the barrier of the cluster: its arrival, or its wait, which reports whether the warp has passed.
func (w *warp) meet(o *op, at int, mask uint32) bool {
	g := w.b.group
	if w.maybe > 0 {
		w.b.undecided(reasonBranch)
		w.b.fuzzy = true
		return true
	}
	if o.has("aligned") {
		w.whole(o, at, mask)
	}
	w.b.report.Checked[ClusterBarrier]++
	if o.has("arrive") {
		if w.between {
			w.b.find(o, at, ClusterBarrier, "the warp arrives twice without a wait between")
		}
		for len(g.turns) <= w.arrived {
			g.turns = append(g.turns, gathering{})
		}
		if t := &g.turns[w.arrived]; !o.has("relaxed") {
			t.clock.join(w.clock)
			t.fenced.join(w.fenced)
		}
		w.tick()
		w.arrived++
		w.between = true
		return true
	}
	if !w.between {
		w.b.find(o, at, ClusterBarrier, "the warp waits without having arrived")
		return true
	}
	for _, b := range g.blocks {
		for _, other := range b.warps {
			if !other.done && other.arrived < w.arrived {
				return false
			}
		}
	}
	t := &g.turns[w.arrived-1]
	w.clock.join(t.clock)
	w.fenced.join(t.fenced)
	w.between, w.met = false, true
	return true
}
