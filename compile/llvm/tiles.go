package llvm

import (
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/value"
)

// A transposition reads along one dimension and writes along another. Either way, rows
// that lie a power of two apart fall into few sets of a cache, and lines are evicted
// before they are used up. So a tile is computed along the dimension that is read, into
// scratch memory, and stored along the one that is written.

// The steps and the neighbours of a tile: a step's neighbours are whole cache lines of a
// result, a neighbour's steps one of an operand.
const (
	tileSteps      = 16
	tileNeighbours = 64
)

// transposes reports whether what l reads lies along its steps, with rows of neighbours
// far apart.
func (l *elementLoop) transposes() bool {
	step, lane := l.outs[0].Loops[0], l.form.Lane
	if step == nil || lane == nil || l.v < tileNeighbours || l.steps < tileSteps {
		return false
	}
	along, ok := false, true
	for _, o := range l.outs {
		ok = ok && len(o.If) == 0 && !o.Value.Elem().Packed()
		for _, x := range o.Exprs() {
			kernel.Walk(x, func(x *kernel.Expr) {
				if x.Op == kernel.Reduce {
					ok = false
				}
				if x.Op != kernel.Load || !x.At.DependsOn(lane) {
					return
				}
				far, _ := x.At.Along(lane)
				near, run := x.At.Along(step)
				if near == 1 && run >= tileSteps && (far >= tileSteps || far <= -tileSteps) {
					along = true
				} else {
					ok = false
				}
			})
		}
	}
	return along && ok
}

// scratch is the memory of a tile of each result.
func (l *elementLoop) scratch() (bytes int64) {
	if !l.tiled {
		return 0
	}
	for _, o := range l.outs {
		bytes += scratchBytes(kept(o.X.Elem), tileSteps*tileNeighbours)
	}
	return bytes
}

// writeTiles computes the steps from first on, below last, in tiles.
func (l *elementLoop) writeTiles(b *body, first, last value.Value) {
	tiles := make([]value.Value, len(l.outs))
	for i, o := range l.outs {
		tiles[i] = b.take(kept(o.X.Elem), tileSteps*tileNeighbours)
	}
	step, lane := l.outs[0].Loops[0], l.form.Lane
	// in is where the element of a tile is that is at the number of its step and of its
	// neighbour, counted from the tile's first.
	in := func(s, n value.Value) value.Value {
		return b.NewAdd(b.NewMul(n, code.Int(tileSteps)), s)
	}
	b.For(first, last, code.Loop{Step: tileSteps, Unroll: 1}, func(s0 value.Value) {
		s1 := b.least(b.NewAdd(s0, code.Int(tileSteps)), last)
		b.For(code.Int(0), code.Int(l.v), code.Loop{Step: tileNeighbours, Unroll: 1}, func(n0 value.Value) {
			n1 := b.least(b.NewAdd(n0, code.Int(tileNeighbours)), code.Int(l.v))
			b.loop(lane, n0, n1, code.Loop{Unroll: 1}, func(n value.Value) {
				b.loop(step, s0, s1, code.Loop{Vectorize: true}, func(s value.Value) {
					at := in(b.NewSub(s, s0), b.NewSub(n, n0))
					for i, o := range l.outs {
						b.lib.Store(b.Func, kept(o.X.Elem), tiles[i], at, b.value(o.X))
					}
				})
			})
			b.loop(step, s0, s1, code.Loop{Unroll: 1}, func(s value.Value) {
				b.loop(lane, n0, n1, code.Loop{Vectorize: true}, func(n value.Value) {
					at := in(b.NewSub(s, s0), b.NewSub(n, n0))
					for i, o := range l.outs {
						b.store(o, b.lib.Load(b.Func, kept(o.X.Elem), tiles[i], at))
					}
				})
			})
		})
	})
}
