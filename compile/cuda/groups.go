package cuda

import (
	"fmt"
	"math"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// grouping is the launch that groups the updates of a scatter by row, in their
// order: a counting sort, in which each block has a strip of the rows of a batch
// and reads all indices of the batch twice.
type grouping struct {
	of *kernel.Groups
	// starts is, for each group, where its updates begin in order, and at the end
	// of a batch, where the last ones end; order has the numbers of the updates.
	starts, order *assemble.Temp
	strips, rows  int64 // of a batch; of a strip
	threads       int
	placers       int64 // warps that share the updates of a strip where there are many
}

// lists are the parameters with a form's groups.
type lists struct{ starts, order ident }

// The rows of a block: few enough that the counters of its warps fit in shared memory, and as
// many as a block needs to be busy.
const (
	mostStripRows  = 2048
	leastStripRows = 256
	mostCounters   = 8192 // of 16 bits, beside one of 32 for each row
)

// updatesOfThread is the number of indices that a thread reads at a time.
const updatesOfThread = 8

// groupings are the launches that make gs, nil where their numbers exceed 32 bits.
func (t Target) groupings(gs []*kernel.Groups) (all []*grouping) {
	for _, of := range gs {
		g := &grouping{of: of, strips: max(1, min(of.Rows/leastStripRows, t.multiprocessors()/of.Batches))}
		g.rows = min(ceil(of.Rows, g.strips), mostStripRows)
		g.strips = ceil(of.Rows, g.rows)
		g.threads = 64
		for g.threads < 512 && int64(g.threads) < max(of.Updates/updatesOfThread, g.rows/4) {
			g.threads *= 2
		}
		for g.placers = int64(g.threads / 32); g.placers*g.rows > mostCounters; {
			g.placers /= 2
		}
		starts, order := of.Batches*(of.Rows+1), of.Batches*of.Updates
		if max(starts, order) > math.MaxInt32-1<<20 {
			return nil
		}
		g.starts = &assemble.Temp{Elem: types.I32, N: starts, Own: true}
		g.order = &assemble.Temp{Elem: types.I32, N: order, Own: true}
		all = append(all, g)
	}
	return all
}

// groupingPays reports whether making the groups takes less time than comparing
// each element's row with all updates, by estimates in cycles: of the additional
// launches, which also count and store every row, and of the visits, which take
// the latency of a step each or, with many threads, the time of its instructions.
// With groups an element visits the bounds of its own. Launches that reduce pieces are left out: where
// no group is long, their threads end at once.
func groupingPays(gs []*grouping, visits, threads, sms int64) bool {
	const launchCycles, stepCycles, stepInstructions, lanes, rowsPerCycle = 8192, 24, 8, 128, 128
	var grouping int64
	for _, g := range gs {
		grouping += launchCycles + g.starts.N/rowsPerCycle
		visits -= 2
	}
	return len(gs) > 0 && visits*max(stepCycles, threads*stepInstructions/(sms*lanes)) > grouping
}

// launch makes the groups; it is number i of its plan.
func (g *grouping) launch(i int) *launch {
	of := g.of
	ns := namesOf(nil, nil, "batch", "k", "counts", "parts", "found", "scratch")
	ns.loads(&kernel.Expr{Op: kernel.Count, At: of.Place})
	l := &launch{
		Launch: assemble.Launch{
			Suffix: "_groups", Class: string(kernel.ClassLoop), Block: artifact.Block{Threads: g.threads}, Grid: [3]int{int(g.strips * of.Batches), 1, 1},
		},
		include: "scatter.cuh", named: ns.of,
	}
	if i > 0 {
		l.Suffix += fmt.Sprint(i + 1)
	}
	fields := ns.params
	starts, order := ns.addTemp("starts", g.starts, artifact.Out), ns.addTemp("order", g.order, artifact.Out)
	l.Params = ns.params
	l.write = func(t *text) error {
		const row = "_Row"
		const batch, k, counts, parts, found, scratch ident = "batch", "k", "counts", "parts", "found", "scratch"
		t.before.enter(closed, "struct %s", local(row))
		t.before.declare(fields)
		e := t.emitter(t.before)
		e.open("DM_FN dm::i64 operator()(dm::i32 %s, dm::i32 %s) const", def(batch), def(k))
		e.bind(of.Batch, cpp("%s", batch))
		e.bind(of.Update, cpp("%s", k))
		e.line("return %s", e.index(of.Place))
		e.close()
		t.before.leave()

		u := t.body
		u.line("DM_SHARED(dm::i32, %s, %d)", def(counts), g.rows)
		u.line("DM_SHARED(dm::u16, %s, %d)", def(parts), g.placers*g.rows)
		u.line("DM_SHARED(dm::u32, %s, %d)", def(found), g.threads*updatesOfThread)
		u.line("DM_SHARED(dm::i32, %s, 32)", def(scratch))
		u.line("dm::group_updates<%d, %d, %d, %d, %d>(dm::block() / %d, dm::block() %% %d, %s, %s, %s, %s, %s, %s, %s)",
			of.Rows, of.Updates, g.rows, updatesOfThread, g.placers, g.strips, g.strips, literal(row, fields), starts, order, counts, parts, found, scratch)
		return nil
	}
	return l
}

// eachUpdate writes the loops of x, a reduction over the updates of a group, around what
// body writes for a value of it: over the updates, but for those of whole pieces, over
// the sums of pieces of each level; only the first or the last update where x selects it.
func (e *emitter) eachUpdate(x *kernel.Expr, body func(y *kernel.Expr)) {
	held, ok := e.lists[x.Groups]
	if !ok {
		e.fail("a reduction over grouped updates is in a kernel without groups")
		return
	}
	at, from, to := e.index(x.At), e.name("from"), e.name("to")
	next := e.index(x.At.Plus(1))
	e.lineOf(x.From, "dm::i32 %s = %s[%s], %s = %s[%s]", def(from), held.starts, at, def(to), held.starts, next)
	update := func(j any) {
		k := e.name("k")
		e.line("const dm::i32 %s = %s[%s]", def(k), held.order, j)
		e.bind(x.Vars[0], cpp("%s", k))
		body(x.Args[0])
		e.close()
	}
	if selects(x) {
		e.open("if (%s < %s)", from, to)
		if x.Kind == kernel.First {
			update(from)
		} else {
			update(cpp("%s - 1", to))
		}
		return
	}
	levels := e.sums[x.Pieces]
	for level := range len(levels) + 1 {
		n := e.name("j")
		j := cpp("%s", n)
		if level == len(levels) {
			e.pragma("DM_UNROLL_BY(8)")
			e.open("for (dm::i32 %s = %s; %s < %s; %s++)", def(n), from, n, to, n)
		} else {
			rest := e.name("rest")
			e.line("const dm::Range %s = dm::cut<%d>(%s, %s)", def(rest), pieceUpdates, from, to)
			e.pragma("DM_UNROLL_BY(8)")
			e.open("for (dm::i32 %s = 0; %s < %s.count; %s++)", def(n), n, rest, n)
			j = cpp("%s[%s]", rest, n)
		}
		if level == 0 {
			update(j)
			continue
		}
		sum, piece := x.Pieces.Sum(levels[level-1].of, levels[level-1].n, x)
		e.bind(piece, j)
		body(sum)
		e.close()
	}
}
