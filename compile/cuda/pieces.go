package cuda

import (
	"fmt"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// pieces are the launches that reduce the pieces of all updates' order that lie in one
// group, before the kernel that reduces groups: those of pieceUpdates updates, then those
// of as many pieces of the level before, and so on. Where a piece begins does not depend on
// the groups, so that a group is always reduced in the same order. A loop over a group takes
// no more than mostPieces steps, or in front of whole pieces and behind them less than
// twice pieceUpdates.
type pieces struct {
	of     *kernel.Pieces
	groups *grouping
	sums   []*assemble.Temp // of each level, one for each piece and cell
}

// levelSums are the sums of a level as a parameter.
type levelSums struct {
	of *ir.Value
	n  int64 // of pieces
}

const (
	pieceUpdates = 64
	// The most updates, or pieces of the last level, that a thread reduces in a loop.
	mostPieces = 128
)

// levels is the number of levels of pieces where groups have up to n updates.
func levels(n int64) (all int) {
	for ; n > mostPieces; n /= pieceUpdates {
		all++
	}
	return all
}

// piecesOf are the pieces of f's reductions, whose groups are gs.
func piecesOf(f *kernel.Form, gs []*grouping) (all []*pieces) {
	for _, of := range f.Pieces {
		p := &pieces{of: of}
		for _, g := range gs {
			if g.of == of.Of {
				p.groups = g
			}
		}
		n := of.Of.Batches * of.Of.Updates
		for range levels(of.Of.Updates) {
			n /= pieceUpdates
			p.sums = append(p.sums, &assemble.Temp{Elem: accumulatorElem(of.X.Elem), N: n * of.Cells, Own: true})
		}
		all = append(all, p)
	}
	return all
}

// level makes the sums t of a level a parameter that is read.
func (p *pieces) level(ns *names, t *assemble.Temp) levelSums {
	v := &ir.Value{Name: "sums", Type: &types.Tensor{Elem: t.Elem}}
	ns.of[v] = ns.addTemp(v.Name, t, artifact.In)
	return levelSums{v, t.N / p.of.Cells}
}

// launches are those that make the sums of number i of the pieces of q.
func (p *pieces) launches(q *elementwise, i int) (all []*launch, err error) {
	for level, sums := range p.sums {
		threads := sums.N / q.v
		if threads > (1<<31-1)*blockThreads {
			return nil, fmt.Errorf("%d sums of updates exceed the limit of a launch", threads)
		}
		ns := namesOf(nil, nil, "piece", "end", "own")
		ns.loads(&kernel.Expr{Op: kernel.Count, At: p.of.Of.Place})
		var from levelSums
		if level == 0 {
			ns.loads(p.of.X)
		} else {
			from = p.level(ns, p.sums[level-1])
		}
		held := lists{ns.addTemp("starts", p.groups.starts, artifact.In), ns.addTemp("order", p.groups.order, artifact.In)}
		for j := range ns.params {
			ns.params[j].Instead = true
		}
		to := ns.addTemp("sums", sums, artifact.Out)
		l := &launch{
			Launch: assemble.Launch{
				Suffix: "_pieces", Class: string(kernel.ClassLoop), Block: artifact.Block{Threads: blockThreads}, Grid: [3]int{int(ceil(threads, blockThreads)), 1, 1}, Params: ns.params,
			},
			include: "scatter.cuh", named: ns.of, blocks: 4,
		}
		if n := i*len(p.sums) + level; n > 0 {
			l.Suffix += fmt.Sprint(n + 1)
		}
		l.write = func(t *text) error {
			f, err := widened(q.f, q.v)
			if err == nil {
				writePieces(t, f, f.Pieces[i], level, threads, held, from, to)
			}
			return err
		}
		all = append(all, l)
	}
	return all, nil
}

// writePieces writes the kernel that makes the sums of the pieces of a level: of updates, or
// of the sums of smaller pieces.
func writePieces(t *text, f *kernel.Form, p *kernel.Pieces, level int, threads int64, held lists, from levelSums, to ident) {
	const i, piece, first, end, own, row, sum, n ident = "i", "piece", "first", "end", "own", "row", "sum", "n"
	of, steps, each := p.Of, p.Cells/f.V, int64(1)
	for range level + 1 {
		each *= pieceUpdates
	}
	e := t.emitter(t.body)
	e.of(p.X.From)
	count := counter(threads + blockThreads)
	e.line("const %s %s = %s(dm::block()) * %d + dm::thread()", count, def(i), count, blockThreads)
	e.oneLine(cpp("return"), "if (%s >= %d)", i, threads)
	e.line("const dm::i32 %s = dm::i32(%s / %d)", def(piece), i, steps)
	e.line("const dm::i32 %s = %s * %d", def(first), piece, each)
	e.line("const dm::i32 %s = %s + %d", def(end), first, each)
	// The groups of a batch begin its part of the order; behind them there is nothing.
	batch, lists := cpp("0"), cpp("0")
	if of.Batches > 1 {
		batch = cpp("(%s / %d)", first, of.Updates)
		lists = cpp("%s * %d", batch, of.Rows+1)
		if of.Updates%each != 0 {
			e.oneLine(cpp("return"), "if (%s != (%s - 1) / %d)", batch, end, of.Updates)
		}
	}
	e.oneLine(cpp("return"), "if (%s > %s[%s + %d])", end, held.starts, lists, of.Rows)
	e.line("const dm::i32 %s = %s[%s]", def(own), held.order, first)
	e.bind(of.Batch, batch)
	e.bind(of.Update, cpp("%s", own))
	e.line("const dm::i32 %s = dm::i32(%s)", def(row), e.index(of.Place))
	e.oneLine(cpp("return"), "if (%s > %s[%s + %s + 1])", end, held.starts, lists, row)

	e.bind(p.Batch, batch)
	e.bind(p.Cell, cpp("%s(%s %% %d)", counter(steps), i, steps))
	l := e.lanes(f.Lane, f.V)
	x := &kernel.Expr{Op: kernel.Reduce, Kind: p.Kind, Elem: p.X.Elem, From: p.X.From}
	e.line("%s %s[%d]", register(x.Elem), def(sum), f.V)
	l.each(func(j code) { l.assign(x.From, cpp("%s[%s]", sum, j), l.begin(x)) })
	e.pragma("DM_UNROLL_BY(8)")
	e.open("for (dm::i32 %s = 0; %s < %d; %s++)", def(n), n, pieceUpdates, n)
	if level == 0 {
		k := e.name("k")
		e.line("const dm::i32 %s = %s[%s + %s]", def(k), held.order, first, n)
		e.bind(p.Update, cpp("%s", k))
		l.add(x, sum, p.X)
	} else {
		y, at := p.Sum(from.of, from.n, nil)
		e.bind(at, cpp("(%s * %d + %s)", piece, pieceUpdates, n))
		l.add(x, sum, y)
	}
	e.close()
	l.end()
	at := cpp("dm::i64(%s) * %d", i, f.V)
	if f.V == 1 {
		e.line("%s.store(%s, %s[0])", to, at, sum)
		return
	}
	w, out := width(accumulatorElem(x.Elem), f.V), e.name("out")
	e.line("dm::Vec<%s, %d> %s[%d]", register(x.Elem), w, def(out), f.V/w)
	l.each(func(j code) { e.line("%s[%s / %d][%s %% %d] = %s[%s]", out, j, w, j, w, sum, j) })
	for k := range f.V / w {
		e.line("%s.template store<%d>(%s, %s[%d])", to, w, plus(at, k*w), out, k)
	}
}
