package ptx

import "math/bits"

// What is known of a register in the threads of a warp.
const (
	unset   = iota // not written yet
	varying        // unknown
	same           // unknown, but the same in all threads
	uniform        // u, in all threads
	lanes          // v, by thread
)

type register struct {
	kind  uint8
	u     uint64
	v     *[32]uint64
	group uint32 // of wgmma that use it and that nothing has waited for; 0: none
	fence uint32 // 1 + the number of wgmma.fence before it was written
}

// path is a part of a warp's threads that runs until it meets the others.
type path struct {
	pc, until int
	mask      uint32
	maybe     int   // 1 + the branch on data that leads here; 0: none
	wrote     []int // registers, on a path that may not be
}

// warp is 32 threads that run together.
type warp struct {
	b         *block
	index     int
	thread    int32 // its first agent
	regs      []register
	paths     []path
	clock     clock // what has happened before
	fenced    clock // of it, the writes that the asynchronous proxy sees
	done      bool
	waiting   int // the barrier of threads that it waits at, -1: none
	blocked   *mbarrier
	parity    int
	maybe     int
	last      int       // instruction
	copies    [2]uint32 // groups of cp.async: closed, waited for
	stores    [2]uint32 // the same of bulk stores
	storing   int       // 1 + the bulk store since the last group; 0: none
	stored    int       // the last bulk store
	groups    [2]uint32 // the same of wgmma
	open      bool      // wgmma since the last group
	fences    uint32    // wgmma.fence
	products  int
	arrived   int  // phases of the barrier of the cluster that it has arrived for
	between   bool // it has not waited for the last one yet
	met       bool // it has passed the barrier of the cluster
	registers int  // by setmaxnreg; 0: as at the start
	regsAt    int
	tmp, mix  [32]uint64 // results of one instruction
	addresses [32]uint64
	lines     []line // of an operand of a product
}

func newWarp(b *block, index, threads int) *warp {
	w := &warp{b: b, index: index, regs: make([]register, b.c.regs), waiting: -1}
	w.paths = []path{{mask: uint32(1<<threads - 1), until: len(b.c.list)}}
	if len(b.c.list) == 0 {
		w.done = true
	}
	w.thread = int32((b.rank*((b.launch.Threads+31)/32) + index) * agentsPerWarp)
	w.tick()
	return w
}

func (w *warp) agent(kind int) int { return int(w.thread) + kind }

// tick starts a new event of the warp.
func (w *warp) tick() { w.clock.set(w.agent(agentThread), w.clock.at(w.agent(agentThread))+1) }

func (w *warp) top() *path { return &w.paths[len(w.paths)-1] }
func (w *warp) pc() int    { return min(w.top().pc, len(w.b.c.list)-1) }
func (w *warp) op() *op {
	if len(w.paths) == 0 {
		return &w.b.c.list[w.last]
	}
	return &w.b.c.list[w.pc()]
}

// all is the mask of the threads that have not ended.
func (w *warp) all() uint32 { return w.paths[0].mask }

// run executes until the warp waits or ends.
func (w *warp) run() {
	w.blocked = nil
	for !w.done && w.waiting < 0 && w.b.budget > 0 {
		p := w.top()
		if p.pc == p.until || p.mask == 0 || p.pc >= len(w.b.c.list) {
			w.pop()
			continue
		}
		if !w.step(p) {
			return
		}
	}
}

// pop ends the path on top.
func (w *warp) pop() {
	p := w.paths[len(w.paths)-1]
	if len(w.paths) == 1 {
		w.done = true
		w.paths = w.paths[:0]
		return
	}
	w.paths = w.paths[:len(w.paths)-1]
	if p.maybe > 0 {
		w.maybe--
		for _, r := range p.wrote {
			w.regs[r].kind = varying
		}
		for i := len(w.paths) - 1; i >= 0; i-- {
			if q := &w.paths[i]; q.maybe > 0 && q.maybe != p.maybe {
				q.wrote = append(q.wrote, p.wrote...)
				break
			}
		}
	}
}

// step executes an instruction, and reports whether the warp has passed it.
func (w *warp) step(p *path) bool {
	at := p.pc
	o := &w.b.c.list[at]
	w.last = at
	mask := p.mask
	guess := false // whether the threads that execute it are not known
	if o.guard >= 0 && o.kind != opBranch {
		truth, known := w.truth(o.guard, o.in.Negate)
		if known {
			mask &= truth
		} else {
			guess = true
		}
		if mask == 0 {
			w.b.budget--
			w.b.report.Steps++
			p.pc++
			return true
		}
	}
	if w.groups[0] != w.groups[1] || w.open {
		w.touched(o, at)
	}
	if guess {
		w.maybe++
	}
	passed := w.execute(o, at, mask)
	if guess {
		w.maybe--
		for _, r := range o.dst {
			if r >= 0 && o.kind != opWait {
				w.regs[r].kind = varying
			}
		}
	}
	if !passed {
		return false
	}
	w.b.budget--
	w.b.report.Steps++
	return true
}

// truth is the threads of which a predicate holds.
func (w *warp) truth(r int, negate bool) (mask uint32, known bool) {
	switch reg := &w.regs[r]; reg.kind {
	case uniform:
		if reg.u&1 == 1 {
			mask = ^uint32(0)
		}
	case lanes:
		for i, v := range reg.v {
			mask |= uint32(v&1) << i
		}
	default:
		return 0, false
	}
	if negate {
		mask = ^mask
	}
	return mask, true
}

// branch splits the path on top.
func (w *warp) branch(o *op, at int) {
	p := w.top()
	if o.guard < 0 {
		p.pc = o.target
		return
	}
	mask, known := w.truth(o.guard, o.in.Negate)
	until := w.b.c.after[at]
	if !known {
		w.both(o, at, until)
		return
	}
	taken, not := p.mask&mask, p.mask&^mask
	switch {
	case not == 0:
		p.pc = o.target
	case taken == 0:
		p.pc = at + 1
	default:
		p.pc = until
		w.paths = append(w.paths, path{pc: at + 1, until: until, mask: not}, path{pc: o.target, until: until, mask: taken})
	}
}

// both follows both sides of a branch on data, one after the other; of a loop one
// turn more.
func (w *warp) both(o *op, at, until int) {
	p := w.top()
	for i := range w.paths {
		if w.paths[i].maybe == at+1 {
			p.pc = at + 1
			if w.again(at, at+1, until) {
				p.pc = o.target
			}
			return
		}
	}
	mask := p.mask
	p.pc = until
	for _, pc := range []int{at + 1, o.target} {
		w.maybe++
		w.paths = append(w.paths, path{pc: pc, until: until, mask: mask, maybe: at + 1})
	}
}

// again reports whether the way from pc leads back to the branch.
func (w *warp) again(at, pc, until int) bool {
	key := [2]int{at, pc}
	back, known := w.b.loops[key]
	if !known {
		if pc != until {
			seen := 0
			back, seen = reaches(w.b.c.list, pc, at, until)
			w.b.budget -= seen
		}
		w.b.loops[key] = back
	}
	return back
}

// exit ends the threads of mask.
func (w *warp) exit(mask uint32) {
	for i := range w.paths {
		w.paths[i].mask &^= mask
	}
}

// get is what is known of an operand.
func (w *warp) get(a arg) register {
	switch {
	case a.reg >= 0:
		return w.regs[a.reg]
	case a.reg == -1 && a.known:
		return register{kind: uniform, u: a.value}
	case a.reg == -1:
		return register{kind: same}
	}
	l := w.b.launch
	n := func(v int) register { return register{kind: uniform, u: uint64(v)} }
	switch name := specials[-2-a.reg]; name {
	case "%tid.x":
		var v [32]uint64
		for i := range v {
			v[i] = uint64(w.index*32 + i)
		}
		return register{kind: lanes, v: &v}
	case "%laneid":
		var v [32]uint64
		for i := range v {
			v[i] = uint64(i)
		}
		return register{kind: lanes, v: &v}
	case "%warpid":
		return n(w.index)
	case "%tid.y", "%tid.z":
		return n(0)
	case "%ntid.x":
		return n(l.Threads)
	case "%ntid.y", "%ntid.z":
		return n(1)
	case "WARP_SZ":
		return n(32)
	case "%cluster_ctarank":
		return n(w.b.rank)
	case "%cluster_nctarank":
		return n(len(w.b.group.blocks))
	case "%ctaid.x", "%ctaid.y", "%ctaid.z":
		return register{kind: uniform, u: w.b.index[name[7]-'x']}
	default: // %nctaid
		if l.Grid[name[8]-'x'] == 0 {
			return register{kind: same}
		}
		return n(l.Grid[name[8]-'x'])
	}
}

// value is an operand in all threads, if it is the same and known.
func (w *warp) value(a arg) (uint64, bool) {
	r := w.get(a)
	return r.u, r.kind == uniform
}

// each is an operand by thread.
func (r register) each(lane int) uint64 {
	if r.kind == lanes {
		return r.v[lane]
	}
	return r.u
}

func (r register) known() bool { return r.kind >= uniform }

// put writes a register in the threads of mask.
func (w *warp) put(r int, mask uint32, n register) {
	if r < 0 {
		return
	}
	d := &w.regs[r]
	if w.b.c.sums[r] {
		d.fence = w.fences + 1
	}
	if w.maybe > 0 {
		for i := len(w.paths) - 1; i >= 0; i-- {
			if p := &w.paths[i]; p.maybe > 0 {
				p.wrote = append(p.wrote, r)
				break
			}
		}
	}
	if mask == w.all() || d.kind == unset || d.kind == n.kind && !n.known() {
		w.set(d, n)
		return
	}
	if !d.known() || !n.known() {
		d.kind = varying
		return
	}
	v := &w.mix
	for i := range v {
		if v[i] = d.each(i); mask>>i&1 == 1 {
			v[i] = n.each(i)
		}
	}
	w.set(d, collapse(v))
}

func (w *warp) set(d *register, n register) {
	if n.kind == lanes {
		if d.v == nil {
			d.v = new([32]uint64)
		}
		*d.v = *n.v
	}
	d.kind, d.u = n.kind, n.u
}

// collapse is the values of threads, as one where they are equal.
func collapse(v *[32]uint64) register {
	for _, x := range v {
		if x != v[0] {
			return register{kind: lanes, v: v}
		}
	}
	return register{kind: uniform, u: v[0]}
}

// alu computes an instruction whose function is known.
func (w *warp) alu(o *op, mask uint32) {
	var x [3]register
	n := min(len(o.src), 3)
	all, flat := true, true
	for i := range n {
		x[i] = w.get(o.src[i])
		all = all && x[i].known()
		flat = flat && x[i].kind == uniform
	}
	out := register{}
	switch {
	case flat:
		out = register{kind: uniform, u: o.f(x[0].u, x[1].u, x[2].u)}
	case all:
		v := &w.tmp
		for i := range v {
			v[i] = o.f(x[0].each(i), x[1].each(i), x[2].each(i))
		}
		out = collapse(v)
	default:
		out.kind = w.unknown(o)
		for i := range n { // 0 & x, true | x
			if x[i].kind == uniform && (o.eager == '&' && x[i].u == 0 || o.eager == '|' && o.has("pred") && x[i].u == 1) {
				out = x[i]
			}
		}
	}
	w.put(o.dst[0], mask, out)
	if len(o.dst) > 1 { // p|q of setp
		w.put(o.dst[1], mask, register{kind: w.unknown(o)})
	}
}

// unknown is what is known of the result of unknown operands.
func (w *warp) unknown(o *op) uint8 {
	for _, a := range o.src {
		if k := w.get(a).kind; k != same && k != uniform {
			return varying
		}
	}
	return same
}

func (w *warp) choose(o *op, mask uint32) {
	if len(o.src) != 3 {
		w.results(o, mask, register{kind: varying})
		return
	}
	x, y, p := w.get(o.src[0]), w.get(o.src[1]), w.get(o.src[2])
	switch {
	case p.kind == uniform && p.u&1 == 1:
		w.put(o.dst[0], mask, x)
	case p.kind == uniform:
		w.put(o.dst[0], mask, y)
	case p.kind == lanes && x.known() && y.known():
		v := &w.tmp
		for i := range v {
			if v[i] = y.each(i); p.v[i]&1 == 1 {
				v[i] = x.each(i)
			}
		}
		w.put(o.dst[0], mask, collapse(v))
	default:
		w.results(o, mask, register{kind: w.unknown(o)})
	}
}

// results writes all results.
func (w *warp) results(o *op, mask uint32, v register) {
	for _, r := range o.dst {
		w.put(r, mask, v)
	}
}

// whole reports whether all threads of the warp are there, and finds a violation of
// rule Aligned else.
func (w *warp) whole(o *op, at int, mask uint32) bool {
	w.b.report.Checked[Aligned]++
	if mask == w.all() && bits.OnesCount32(mask) == 32 {
		return true
	}
	if w.maybe > 0 {
		w.b.undecided(reasonBranch)
	} else {
		w.b.find(o, at, Aligned, "%d of the warp's threads execute %s", bits.OnesCount32(mask), o.in.Op)
	}
	return false
}
