package cuda

import (
	"slices"

	"dmir/compile/kernel"
	"dmir/gpu/artifact"
)

// held is what of a row a thread of a cluster holds in registers, and what its blocks have then.
type held struct {
	threads, blocks int // of a block; that share a multiprocessor
	registers       int64
}

// holdings are the ways to hold rows, of which each leaves about 50 registers that a row kernel computes with, or 80 beside many
// steps. Two blocks or more exchange results while the others' loads are in flight; one block holds the longest rows.
var holdings = []held{{512, 2, 16}, {256, 4, 16}, {256, 3, 32}, {192, 2, 88}, {384, 1, 88}}

// mostClusterCode bounds the operations of all steps of a thread, which are written out, since registers are indexed by
// constants: to what the instruction cache of a multiprocessor holds.
const mostClusterCode = 8192

// clusterSizes are the portable sizes that fill the groups of 16 or 18 multiprocessors which clusters lie in.
var clusterSizes = []int64{2, 4, 8}

// clusterRows is the plan in which the blocks of a cluster share a row: each reads its part once and holds it, and they
// exchange the results of each pass through distributed shared memory. It is the one that takes least time of those whose
// registers hold the row; nil where there is none, as on other architectures and for sums of columns.
func (t Target) clusterRows(f *kernel.Form) (best *rows) {
	if t.Arch != "sm_90a" || len(f.Nest.Columns) > 0 {
		return nil
	}
	all := rowsOf(f)
	all.cluster, all.arch, all.online, all.blocks = 1, t.Arch, true, f.Rows.Rows
	all.sweep(func(s *sweep) { s.steps = 1 })
	again := all.again(all.v)
	if len(again) < len(all.again(1)) { // single elements, which are read again
		return nil
	}
	for _, x := range f.Streams(reducedAll(all), all.v) {
		if _, run := x.At.Along(f.Rows.Col); run <= f.Rows.Col.Max {
			return nil // each step would compute where its part of the row lies
		}
	}
	all.resident = len(again) > 0
	registers, code := heldBy(again, all.v), all.written()
	var least float64
	for _, n := range clusterSizes {
		for _, h := range holdings {
			p := *all
			p.share, p.threads, p.perSM, p.cluster = int64(h.threads), h.threads, h.blocks, n
			steps := ceil(p.chunks, p.share*n)
			if p.resident && (steps*registers > h.registers || steps*code > mostClusterCode) {
				continue
			}
			p.sweeps = slices.Clone(all.sweeps)
			for i := range p.sweeps {
				p.sweeps[i].steps, p.sweeps[i].splits = steps, n
			}
			if !p.resident && !p.batched(h) || (n-1)*p.sweeps[0].steps*p.share >= p.chunks {
				continue // the last block has nothing
			}
			if s := p.seconds(t.Machine); best == nil || s < least {
				best, least = &p, s
			}
		}
	}
	return best
}

// reducedAll is what all sweeps compute.
func reducedAll(p *rows) (xs []*kernel.Expr) {
	for _, s := range p.sweeps {
		xs = append(xs, s.reads...)
	}
	return xs
}

// batched makes the only sweep that reads one with loads in flight together; it reports false where more than one reads.
func (p *rows) batched(h held) bool {
	reads := func(s sweep) bool { return len(p.f.Streams(s.reads, p.v)) > 0 }
	i := slices.IndexFunc(p.sweeps, reads)
	if i < 0 || h.registers > 16 || slices.ContainsFunc(p.sweeps[i+1:], reads) {
		return false
	}
	n := p.unrolled(p.sweeps[i].reads, p.sweeps[i].steps)
	steps := ceil(p.sweeps[i].steps, n) * n
	for k := range p.sweeps { // all have the same part of the row
		p.sweeps[k].steps = steps
	}
	p.sweeps[i].unroll = n
	return true
}

// written is how many operations are written out for each step where registers hold the row.
func (p *rows) written() (n int64) {
	for _, s := range p.sweeps {
		n += s.steps * p.v * p.f.Operations(s.reads)
	}
	return n
}

// heldBy are the registers of v elements of each load.
func heldBy(loads []*kernel.Expr, v int64) (n int64) {
	for _, x := range loads {
		n += ceil(v*x.Elem.Bytes(), 4)
	}
	return n
}

// beginCluster finds the row of the cluster and the block's part of it. The other blocks have begun, and are waited for, by
// the time of the first exchange.
func (k *rowKernel) beginCluster() {
	p, cols := k.p, k.f.Rows.Cols
	k.line("dm::cluster_begin()")
	k.line("const dm::i32 %s = dm::cluster_rank()", def(rank))
	k.line("const %s %s = %s + dm::thread()", counter(cols), def(first), scaled(cpp("%s", rank), p.sweeps[0].steps*p.share, cols))
}

// exchange gives the block's results of a pass to all blocks of the cluster, and combines those of all, each in the same
// order. What is written to another block's memory has arrived when that one passes the barrier, so that blocks may end
// behind the last exchange.
func (k *rowKernel) exchange(level []*kernel.Expr, again bool) {
	p := k.p
	slots := map[*kernel.Expr]ident{}
	for _, x := range level {
		elem := scratchElem(x.Elem)
		slots[x] = k.name("given")
		k.lineOf(x.From, "DM_SHARED(%s, %s, %d)", storage(elem), def(slots[x]), p.cluster)
	}
	if !again {
		k.line("dm::cluster_wait()")
	}
	k.open("if (dm::thread() < %d)", p.cluster)
	for _, x := range level {
		k.lineOf(x.From, "dm::peer(%s, dm::thread()).store(%s, %s(%s))", slots[x], rank, storage(scratchElem(x.Elem)), k.given[x])
	}
	k.close()
	k.line("dm::cluster_sync()")
	for _, x := range level {
		k.of(x.From)
		acc := k.accumulator(x)
		k.pragma("DM_UNROLL")
		k.open("for (int %s = 0; %s < %d; %s++)", def(part), part, p.cluster, part)
		one := func(x *kernel.Expr) code {
			n, held := k.name("f"), storage(scratchElem(x.Elem))
			value := cpp("%s(%s[%s])", held, slots[x], part)
			if held != register(x.Elem) {
				value = cpp("%s(%s)", register(x.Elem), value)
			}
			k.line("const %s %s = %s", register(x.Elem), def(n), value)
			return cpp("%s", n)
		}
		value := one(x)
		if b := k.Base[x]; b != nil {
			value = k.relative(b, value, one(b), k.elements(k.sweep, cpp("%s", part)))
		}
		k.assign(x.From, acc, combined(x.Kind, x.Elem, acc, value))
		k.close()
		k.given[x] = cpp("%s", acc)
	}
	k.keepPacked()
}

// keepPacked keeps the compiler from holding the row in a second, wider form between two uses.
func (k *rowKernel) keepPacked() {
	if k.p.cluster == 0 {
		return
	}
	for _, x := range k.order() {
		if n, ok := k.cache[x]; ok && k.unrolled {
			k.pragma("DM_UNROLL")
			k.add(count(along, 0, k.p.sweeps[0].steps, &stmt{head: cpp("dm::keep_packed(%s[%s])", n, along)}))
		}
	}
}

// relative is the sum `value` of a part of a row with so many elements, whose base there is `of`, relative to the base b of the whole row.
func (k *rowKernel) relative(b *kernel.Expr, value, of, elements code) code {
	if b.Kind == "max" {
		return cpp("%s * dm::rebase(%s, %s)", value, of, k.given[b])
	}
	return cpp("%s + dm::spread(%s(%s), %s, %s(%d), %s)", value, register(b.Elem), elements, of, register(b.Elem), k.f.Rows.Cols, k.given[b])
}

// gridOf is how many blocks the rows have, and which a cluster has.
func (p *rows) gridOf() (artifact.Block, [3]int) {
	b := artifact.Block{Threads: p.threads}
	if p.cluster > 0 {
		b.Cluster = int(p.cluster)
	}
	return b, [3]int{int(p.blocks * max(1, p.cluster)), 1, 1}
}
