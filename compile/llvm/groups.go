package llvm

import (
	"fmt"
	"math"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/dialect/types"
	"dmir/gpu/artifact"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// grouping is the launches that group the updates of a scatter by row, in their
// order: a counting sort, in which each task has a batch or, where there are few,
// a chunk of one. The chunks do not depend on the number of threads, nor does the order on them.
type grouping struct {
	of     *kernel.Groups
	chunks int64 // of a batch
	// starts is, for each group, where its updates begin in order, and at the end
	// of a batch, where the last ones end; order has the numbers of the updates.
	starts, order *assemble.Temp
	// counts has, for each chunk and row, how many updates there are, then where the next one lies
	// in order; nil where there is one chunk.
	counts *assemble.Temp
}

// mostChunks bounds the chunks of the updates that are grouped.
const mostChunks = 16

// chunksOf is into how many chunks a batch is divided: a task counts some updates for each count that the
// launch between them, which one task makes, adds up.
func chunksOf(of *kernel.Groups) int64 {
	if of.Batches > 1 || of.Updates < 16*task {
		return 1
	}
	return max(1, min(mostChunks, of.Updates/of.Rows))
}

// lists are the memory with a form's groups.
type lists struct{ starts, order value.Value }

// groupings are the launches that make gs, nil where their numbers exceed 32 bits.
func groupings(gs []*kernel.Groups) (all []*grouping) {
	for _, of := range gs {
		starts, order := of.Batches*(of.Rows+1), of.Batches*of.Updates
		if max(starts, order) > math.MaxInt32 {
			return nil
		}
		list := func(n int64) *assemble.Temp { return &assemble.Temp{Elem: types.I32, N: n, Own: true} }
		g := &grouping{of: of, chunks: chunksOf(of), starts: list(starts), order: list(order)}
		if g.chunks > 1 {
			g.counts = list(g.chunks * of.Rows)
		}
		all = append(all, g)
	}
	return all
}

// groupingPays reports whether making the groups takes less time than comparing the
// row of each of n elements with all updates.
func groupingPays(gs []*grouping, visits, n int64) bool {
	var work int64
	for _, g := range gs {
		work += 2*g.starts.N + 4*g.order.N
	}
	return len(gs) > 0 && visits*n > work+2*n
}

// temps are the memory of g.
func (g *grouping) temps() []*assemble.Temp {
	if g.counts == nil {
		return []*assemble.Temp{g.starts, g.order}
	}
	return []*assemble.Temp{g.starts, g.order, g.counts}
}

// launches make the groups; they are number i of their plan.
func (g *grouping) launches(i int) []*launch {
	place := &kernel.Expr{Op: kernel.Count, Elem: types.I64, At: g.of.Place}
	suffix := "_groups"
	if i > 0 {
		suffix += fmt.Sprint(i + 1)
	}
	made := func(suffix string, tasks int64, reads bool, starts, order, counts artifact.Mode, write func(b *body)) *launch {
		ps := newParams()
		if reads {
			ps.reads(loads(place))
		}
		for _, p := range []struct {
			name string
			temp *assemble.Temp
			mode artifact.Mode
		}{{"starts", g.starts, starts}, {"order", g.order, order}, {"counts", g.counts, counts}} {
			if p.mode != "" {
				ps.temp(p.name, p.temp, p.mode)
			}
		}
		return newLaunch(suffix, kernel.ClassLoop, tasks, ps.list, func(b *body) error {
			write(b)
			return nil
		})
	}
	if g.chunks == 1 {
		return []*launch{made(suffix, g.of.Batches, true, artifact.Out, artifact.Out, "", g.write)}
	}
	return []*launch{
		made(suffix+"_counts", g.chunks, true, "", "", artifact.Out, g.writeCounts),
		made(suffix+"_starts", 1, false, artifact.Out, "", artifact.InOut, g.writeStarts),
		made(suffix, g.chunks, true, "", artifact.Out, artifact.InOut, g.writeOrder),
	}
}

// named calls f with the row of update k if there is such a row.
func (g *grouping) named(b *body, k value.Value, f func(row value.Value)) {
	b.within(func() {
		b.bind(g.of.Update, k)
		r := b.index(g.of.Place)
		b.If(b.NewICmp(enum.IPredULT, r, code.Int(g.of.Rows)), func() { f(r) })
	})
}

// count is the count of a row in a chunk.
func (g *grouping) count(b *body, chunk, row value.Value) value.Value {
	return b.Element(lltypes.I32, b.memory[g.counts], b.NewAdd(b.NewMul(chunk, code.Int(g.of.Rows)), row))
}

// eachChunk calls f with the chunks of the body's tasks and the updates of each.
func (g *grouping) eachChunk(b *body, f func(chunk, from, to value.Value)) {
	size := ceil(g.of.Updates, g.chunks)
	b.loop(nil, b.first, b.last, code.Loop{}, func(chunk value.Value) {
		from, to := b.span(chunk, b.NewAdd(chunk, code.Int(1)), size, g.of.Updates)
		f(chunk, from, to)
	})
}

func (g *grouping) writeCounts(b *body) {
	i32 := lltypes.I32
	g.eachChunk(b, func(chunk, from, to value.Value) {
		b.For(code.Int(0), code.Int(g.of.Rows), code.Loop{Vectorize: true}, func(r value.Value) {
			b.NewStore(constant.NewInt(i32, 0), g.count(b, chunk, r))
		})
		b.For(from, to, code.Loop{}, func(k value.Value) {
			g.named(b, k, func(row value.Value) {
				at := g.count(b, chunk, row)
				b.NewStore(b.NewAdd(b.NewLoad(i32, at), constant.NewInt(i32, 1)), at)
			})
		})
	})
}

// writeStarts makes each count the place of the first update that the chunk has of the row.
func (g *grouping) writeStarts(b *body) {
	i32 := lltypes.I32
	start := func(r value.Value) value.Value { return b.Element(i32, b.memory[g.starts], r) }
	end := b.Fold(code.Int(0), code.Int(g.of.Rows), code.Loop{}, []value.Value{constant.NewInt(i32, 0)}, func(r value.Value, acc []value.Value) []value.Value {
		b.NewStore(acc[0], start(r))
		return b.Fold(code.Int(0), code.Int(g.chunks), code.Loop{}, acc, func(chunk value.Value, acc []value.Value) []value.Value {
			at := g.count(b, chunk, r)
			n := b.NewLoad(i32, at)
			b.NewStore(acc[0], at)
			return []value.Value{b.NewAdd(acc[0], n)}
		})
	})
	b.NewStore(end[0], start(code.Int(g.of.Rows)))
}

func (g *grouping) writeOrder(b *body) {
	i32 := lltypes.I32
	g.eachChunk(b, func(chunk, from, to value.Value) {
		b.For(from, to, code.Loop{}, func(k value.Value) {
			g.named(b, k, func(row value.Value) {
				at := g.count(b, chunk, row)
				to := b.NewLoad(i32, at)
				b.NewStore(b.NewAdd(to, constant.NewInt(i32, 1)), at)
				b.NewStore(b.NewTrunc(k, i32), b.Element(i32, b.memory[g.order], b.NewSExt(to, code.Index)))
			})
		})
	})
}

// write groups the updates of each batch in one task.
func (g *grouping) write(b *body) {
	of := g.of
	i32 := lltypes.I32
	b.loop(of.Batch, b.first, b.last, code.Loop{}, func(batch value.Value) {
		begin := b.NewMul(batch, code.Int(of.Rows+1))
		start := func(row value.Value) value.Value {
			return b.Element(i32, b.memory[g.starts], b.NewAdd(begin, row))
		}
		row := func(k value.Value, f func(at value.Value)) {
			g.named(b, k, func(r value.Value) { f(start(r)) })
		}
		b.For(code.Int(0), code.Int(of.Rows+1), code.Loop{Vectorize: true}, func(r value.Value) {
			b.NewStore(constant.NewInt(i32, 0), start(r))
		})
		b.For(code.Int(0), code.Int(of.Updates), code.Loop{}, func(k value.Value) {
			row(k, func(at value.Value) {
				b.NewStore(b.NewAdd(b.NewLoad(i32, at), constant.NewInt(i32, 1)), at)
			})
		})
		// Each count becomes the end of its row, which the updates, last first, move
		// to its start.
		total := b.NewTrunc(b.NewMul(batch, code.Int(of.Updates)), i32)
		b.Fold(code.Int(0), code.Int(of.Rows+1), code.Loop{}, []value.Value{total}, func(r value.Value, acc []value.Value) []value.Value {
			at := start(r)
			end := b.NewAdd(acc[0], b.NewLoad(i32, at))
			b.NewStore(end, at)
			return []value.Value{end}
		})
		b.For(code.Int(0), code.Int(of.Updates), code.Loop{}, func(i value.Value) {
			k := b.NewSub(code.Int(of.Updates-1), i)
			row(k, func(at value.Value) {
				to := b.NewSub(b.NewLoad(i32, at), constant.NewInt(i32, 1))
				b.NewStore(to, at)
				b.NewStore(b.NewTrunc(k, i32), b.Element(i32, b.memory[g.order], b.NewSExt(to, code.Index)))
			})
		})
	})
}

// updates are where those of the group of x, a reduction over one, begin and end in the order of all, and the number of the update
// at a place there.
func (e *emitter) updates(x *kernel.Expr) (from, to value.Value, number func(j value.Value) value.Value) {
	held, ok := e.lists[x.Groups]
	if !ok {
		none := e.fail(code.Index, "a reduction over grouped updates is in a kernel without groups")
		return none, none, func(value.Value) value.Value { return none }
	}
	i32 := lltypes.I32
	read := func(p, at value.Value) value.Value {
		return e.NewSExt(e.NewLoad(i32, e.Element(i32, p, at)), code.Index)
	}
	at := e.index(x.At)
	return read(held.starts, at), read(held.starts, e.NewAdd(at, code.Int(1))), func(j value.Value) value.Value { return read(held.order, j) }
}

// eachUpdate is the reduction x over the updates of its group: all of them, or only
// the first or the last where x selects it.
func (e *emitter) eachUpdate(x *kernel.Expr) value.Value {
	t := e.begin(x)
	from, to, number := e.updates(x)
	one := func(j, acc value.Value) (out value.Value) {
		e.within(func() {
			e.bind(x.Vars[0], number(j))
			out = e.accumulate(x, acc, x.Args[0])
		})
		return out
	}
	if !selects(x) {
		acc := e.Fold(from, to, code.Loop{}, []value.Value{t}, func(j value.Value, acc []value.Value) []value.Value {
			return []value.Value{one(j, acc[0])}
		})[0]
		return e.end(x, acc)
	}
	return e.Choose(e.NewICmp(enum.IPredSLT, from, to), func() []value.Value {
		j := from
		if x.Kind == kernel.Last {
			j = e.NewSub(to, code.Int(1))
		}
		return []value.Value{one(j, t)}
	}, func() []value.Value { return []value.Value{t} })[0]
}
