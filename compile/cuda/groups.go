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
}

// lists are the parameters with a form's groups.
type lists struct{ starts, order ident }

// The rows of a block: few enough that its counters fit in shared memory, and as
// many as a block needs to be busy.
const (
	mostStripRows  = 4096
	leastStripRows = 256
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
// With groups an element visits the bounds of its own.
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
	ns := namesOf(nil, nil, "batch", "k", "counts", "found", "scratch")
	place := &kernel.Expr{Op: kernel.Count, Elem: types.I64, At: of.Place}
	kernel.Walk(place, func(x *kernel.Expr) {
		if x.Op == kernel.Load {
			ns.add(x.Buf, artifact.In)
		}
	})
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
		const batch, k, counts, found, scratch ident = "batch", "k", "counts", "found", "scratch"
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
		u.line("DM_SHARED(dm::u32, %s, %d)", def(found), g.threads*updatesOfThread)
		u.line("DM_SHARED(dm::i32, %s, 32)", def(scratch))
		u.line("dm::group_updates<%d, %d, %d, %d>(dm::block() / %d, dm::block() %% %d, %s, %s, %s, %s, %s, %s)",
			of.Rows, of.Updates, g.rows, updatesOfThread, g.strips, g.strips, literal(row, fields), starts, order, counts, found, scratch)
		return nil
	}
	return l
}

// eachUpdate opens the block in which x, a reduction, has its value for an update of
// its group: a loop over them, or only the first or the last where x selects it.
func (e *emitter) eachUpdate(x *kernel.Expr) {
	held, ok := e.lists[x.Groups]
	if !ok {
		e.fail("a reduction over grouped updates is in a kernel without groups")
		e.open("if (false)")
		return
	}
	at, j, end, k := e.index(x.At), e.name("j"), e.name("j"), e.name("k")
	from, to := cpp("%s[%s]", held.starts, at), cpp("%s[%s]", held.starts, e.index(x.At.Plus(1)))
	e.lineOf(x.From, "const dm::i32 %s = %s", def(end), to)
	switch x.Kind {
	case kernel.First:
		e.open("if (const dm::i32 %s = %s; %s < %s)", def(j), from, j, end)
	case kernel.Last:
		e.open("if (const dm::i32 %s = %s - 1; %s >= %s)", def(j), end, j, from)
	default:
		e.open("for (dm::i32 %s = %s; %s < %s; %s++)", def(j), from, j, end, j)
	}
	e.line("const dm::i32 %s = %s[%s]", def(k), held.order, j)
	e.bind(x.Vars[0], cpp("%s", k))
}
