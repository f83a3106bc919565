package cuda

import (
	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
)

const (
	// flightRows is how many rows a thread has in flight: the compiler unrolls the loop over them so often.
	flightRows = 4
	// leastRun is the fewest bytes of a row that a block reads, two sectors: a burst of memory.
	leastRun = 64
)

// clusterColumns is the plan in which the blocks that share p's rows are clusters, and combine their sums through distributed shared memory,
// in one launch; nil where it is not faster than with sums in memory. A cluster has few blocks, so that the machine is filled by
// blocks that have few columns each.
func (t Target) clusterColumns(p *columns) (best *columns) {
	if !dependent(t.Arch) || len(p.f.Nest.Totals) > 0 {
		return nil
	}
	plain := *p
	plain.partition(t)
	if plain.splits == 1 {
		return nil
	}
	least := plain.pressed(t.Machine)
	for _, n := range clusterSizes {
		for wide := p.wide; wide == p.wide || wide*p.v*widestOf(p.f) >= leastRun; wide /= 2 {
			c := *p
			c.cluster, c.arch, c.splits = true, t.Arch, n
			c.wide, c.deep, c.tiles = wide, blockThreads/wide, ceil(p.chunks, wide)
			if (n-1)*c.deep >= p.f.Rows.Rows {
				continue // the last block has nothing
			}
			if s := c.pressed(t.Machine); s < least {
				best, least = &c, s
			}
		}
	}
	return best
}

// perMultiprocessor is how many blocks of a cluster share a multiprocessor: as many as leave a thread 64 registers, or 80 where more
// than 16 are sums.
func (p *columns) perMultiprocessor() int {
	if int64(len(p.f.Nest.Columns))*p.v > 16 {
		return 3
	}
	return 4
}

// streaming is what p's kernels move, besides partial sums, and how long they take for it on m. Each thread waits for the
// rows that it has in flight before it loads others, so many times.
func (p *columns) streaming(m *machine.Machine) (bytes int64, seconds, rounds float64) {
	r := p.f.Rows
	var reads []*kernel.Expr
	for _, o := range levelOuts(p.f, kernel.PerElement) {
		reads = append(reads, o.X)
		bytes += r.Rows * r.Cols * o.Value.Elem().Bytes()
	}
	reads = append(reads, reduced(p.f.Nest.Columns, p.f.Nest.Totals)...)
	var read, wide int64
	for _, x := range p.f.Streams(reads, 1) {
		n := r.Cols * x.Elem.Bytes()
		if r.Row == nil || x.DependsOn(r.Row) {
			n *= r.Rows
		}
		read += n
		wide += x.Elem.Bytes()
	}
	bytes += read
	blocks := p.tiles * p.splits
	at := int64(max(m.SMs, 1))
	if p.cluster {
		at = max(1, at/p.splits) * p.splits // a group of multiprocessors has whole clusters
	}
	rounds = 1
	if read > 0 {
		running := min(blocks, int64(p.perMultiprocessor())*at)
		rounds = max(1, float64(read)/float64(running*blockThreads*flightRows*p.v*wide))
	}
	seconds = m.Streamed(bytes, bytes, min(blocks, at), rounds)
	if p.cluster {
		seconds += clusterWaits * m.MemoryLatency
	}
	return bytes, seconds, rounds
}

// clusterWaits is how often the blocks of a cluster wait for each other, no longer than for a load from memory: before they read each
// other's sums, and before they end.
const clusterWaits = 2

// count is the number of p's launches.
func (p *columns) count() int { return 1 + min(len(p.sums), 1) + min(len(p.totals), 1) }

// seconds is how long p's kernels take on m.
func (p *columns) seconds(m *machine.Machine) float64 {
	_, t, _ := p.streaming(m)
	return t + float64(p.count())*m.Start()
}

// pressed is what plans are compared by: of two that take as long the better one has more loads in flight, as these take longer
// where memory is busy.
func (p *columns) pressed(m *machine.Machine) float64 {
	_, _, rounds := p.streaming(m)
	return p.seconds(m) + rounds*m.MemoryLatency/16
}

// pace is how fast p's kernels run, for the cost model.
func (p *columns) pace(m *machine.Machine) assemble.Pace {
	bytes, t, _ := p.streaming(m)
	pace := assemble.Pace{Launches: p.count()}
	if t > float64(bytes)/m.Reach() {
		pace.Bandwidth = float64(bytes) / t
	}
	return pace
}

// combine adds up the sums of a column's threads, one thread to a column, and then those of the cluster's blocks, in the order of their
// ranks; the first block stores the results.
func (p *columns) combine(e *emitter, acc map[*kernel.Expr]ident, all []*kernel.Expr) {
	const at, sum, peer ident = "at", "sum", "k"
	f, v, columns := p.f, p.v, p.wide*p.v
	for i, x := range all {
		e.of(x.From)
		e.pragma("DM_UNROLL")
		e.add(count(near, 0, v, &stmt{head: cpp("%s[dm::thread() * %d + %s] = %s[%s]", sharedSums(i), v, near, acc[x], near)}))
	}
	e.line("dm::sync()")
	e.line("const dm::i32 %s = dm::thread()", def(at))
	given := make([]ident, len(all))
	for i, x := range all {
		given[i] = e.name("given")
		e.lineOf(x.From, "DM_SHARED(%s, %s, %d)", storage(scratchElem(x.Elem)), def(given[i]), columns)
	}
	e.open("if (%s < %d)", at, columns)
	for i, x := range all {
		own := e.name("own")
		e.lineOf(x.From, "%s %s = %s[%s]", register(x.Elem), def(own), sharedSums(i), at)
		e.add(count(part, 1, p.deep, &stmt{head: cpp("%s = %s", own, combined(x.Kind, x.Elem, own, cpp("%s[%s * %d + %s]", sharedSums(i), part, columns, at)))}))
		e.line("%s[%s] = %s(%s)", given[i], at, storage(scratchElem(x.Elem)), own)
	}
	e.close()
	e.line("dm::cluster_sync()")
	column := cpp("(%s + %s)", scaled(cpp("dm::block() / %d", p.splits), columns, f.Rows.Cols), at)
	e.open("if (%s == 0 && %s < %d && %s < %d)", rank, at, columns, column, f.Rows.Cols)
	for i, x := range f.Nest.Columns {
		total := e.name("total")
		e.lineOf(x.From, "%s %s = %s", register(x.Elem), def(total), identity(x.Kind, x.Elem))
		e.pragma("DM_UNROLL")
		e.add(count(peer, 0, p.splits, &stmt{head: cpp("%s = %s", total, combined(x.Kind, x.Elem, total, cpp("%s(dm::peer(%s, %s).load(%s))", register(x.Elem), given[i], peer, at)))}))
		e.given[x] = cpp("%s", total)
	}
	e.bind(f.Rows.Col, column)
	e.finish(levelOuts(f, kernel.PerColumn))
	e.close()
	e.line("dm::cluster_sync()")
}
