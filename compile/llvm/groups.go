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

// grouping is the launch that groups the updates of a scatter by row, in their
// order: a counting sort, in which each task has a batch.
type grouping struct {
	of *kernel.Groups
	// starts is, for each group, where its updates begin in order, and at the end
	// of a batch, where the last ones end; order has the numbers of the updates.
	starts, order *assemble.Temp
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
		all = append(all, &grouping{of, &assemble.Temp{Elem: types.I32, N: starts, Own: true}, &assemble.Temp{Elem: types.I32, N: order, Own: true}})
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

// launch makes the groups; it is number i of its plan.
func (g *grouping) launch(i int) *launch {
	place := &kernel.Expr{Op: kernel.Count, Elem: types.I64, At: g.of.Place}
	ps := newParams()
	ps.reads(loads(place))
	ps.temp("starts", g.starts, artifact.Out)
	ps.temp("order", g.order, artifact.Out)
	suffix := "_groups"
	if i > 0 {
		suffix += fmt.Sprint(i + 1)
	}
	return newLaunch(suffix, kernel.ClassLoop, g.of.Batches, ps.list, func(b *body) error {
		g.write(b)
		return nil
	})
}

func (g *grouping) write(b *body) {
	of := g.of
	i32 := lltypes.I32
	b.loop(of.Batch, b.first, b.last, code.Loop{}, func(batch value.Value) {
		begin := b.NewMul(batch, code.Int(of.Rows+1))
		start := func(row value.Value) value.Value {
			return b.Element(i32, b.memory[g.starts], b.NewAdd(begin, row))
		}
		// row calls f with the row of update k if there is such a row.
		row := func(k value.Value, f func(at value.Value)) {
			b.within(func() {
				b.bind(of.Update, k)
				r := b.index(of.Place)
				b.If(b.NewICmp(enum.IPredULT, r, code.Int(of.Rows)), func() { f(start(r)) })
			})
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
