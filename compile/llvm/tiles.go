package llvm

import (
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/scalar"
	"dmir/dialect/types"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// A transposition reads along one dimension and writes along another. Either way, rows
// that lie a power of two apart fall into few sets of a cache, and lines are evicted
// before they are used up. So a tile is computed along the dimension that is read, into
// scratch memory, and stored along the one that is written.

// The steps and the neighbours of a tile: a step's neighbours are whole cache lines of a
// result, a neighbour's steps one of an operand.
const (
	tileSteps      = 64
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

// scratch is the memory of a tile of each result, before and after it is transposed.
func (l *elementLoop) scratch() (bytes int64) {
	if !l.tiled {
		return 0
	}
	for _, o := range l.outs {
		bytes += 2 * scratchBytes(kept(o.X.Elem), tileSteps*tileNeighbours)
	}
	return bytes
}

// writeTiles computes the steps from first on, below last, in tiles: in scratch memory the
// neighbours of a step lie side by side after a tile's squares were transposed.
func (l *elementLoop) writeTiles(b *body, first, last value.Value) {
	tiles, turned := make([]value.Value, len(l.outs)), make([]value.Value, len(l.outs))
	for i, o := range l.outs {
		tiles[i] = b.take(kept(o.X.Elem), tileSteps*tileNeighbours)
		turned[i] = b.take(kept(o.X.Elem), tileSteps*tileNeighbours)
	}
	step, lane := l.outs[0].Loops[0], l.form.Lane
	tile := func(s0, s1, n0, n1 value.Value) {
		b.loop(lane, n0, n1, code.Loop{Unroll: 1}, func(n value.Value) {
			l.ahead(b, s0, n0, n)
			b.loop(step, s0, s1, code.Loop{Vectorize: true}, func(s value.Value) {
				at := b.NewAdd(b.NewMul(b.NewSub(n, n0), code.Int(tileSteps)), b.NewSub(s, s0))
				for i, o := range l.outs {
					b.lib.Store(b.Func, kept(o.X.Elem), tiles[i], at, b.value(o.X))
				}
			})
		})
		for i, o := range l.outs {
			b.turn(kept(o.X.Elem), tiles[i], turned[i])
		}
		b.loop(step, s0, s1, code.Loop{Unroll: 1}, func(s value.Value) {
			b.loop(lane, n0, n1, code.Loop{Vectorize: true}, func(n value.Value) {
				at := b.NewAdd(b.NewMul(b.NewSub(s, s0), code.Int(tileNeighbours)), b.NewSub(n, n0))
				for i, o := range l.outs {
					b.store(o, b.lib.Load(b.Func, kept(o.X.Elem), turned[i], at))
				}
			})
		})
	}
	b.For(first, last, code.Loop{Step: tileSteps, Unroll: 1}, func(s0 value.Value) {
		b.For(code.Int(0), code.Int(l.v), code.Loop{Step: tileNeighbours, Unroll: 1}, func(n0 value.Value) {
			// Whole tiles have loops of constant length, which need no calls to copy memory.
			s1, n1 := b.NewAdd(s0, code.Int(tileSteps)), b.NewAdd(n0, code.Int(tileNeighbours))
			whole := b.NewAnd(b.NewICmp(enum.IPredSLE, s1, last), b.NewICmp(enum.IPredSLE, n1, code.Int(l.v)))
			b.Choose(whole, func() []value.Value {
				tile(s0, s1, n0, n1)
				return nil
			}, func() []value.Value {
				tile(s0, b.least(s1, last), n0, b.least(n1, code.Int(l.v)))
				return nil
			})
		})
	})
}

// turn transposes a tile of neighbours, each a row of steps, to steps. Squares are transposed
// in registers, of elements that are large enough for as many registers as there are.
func (b *body) turn(elem types.Elem, from, to value.Value) {
	size := elem.Bytes()
	lanes := min(b.M.Vector/size, tileSteps)
	if size < 4 || lanes < 2 {
		b.For(code.Int(0), code.Int(tileSteps), code.Loop{Unroll: 1}, func(s value.Value) {
			b.For(code.Int(0), code.Int(tileNeighbours), code.Loop{Vectorize: true}, func(n value.Value) {
				x := b.lib.Load(b.Func, elem, from, b.NewAdd(b.NewMul(n, code.Int(tileSteps)), s))
				b.lib.Store(b.Func, elem, to, b.NewAdd(b.NewMul(s, code.Int(tileNeighbours)), n), x)
			})
		})
		return
	}
	t := scalar.Register(elem)
	vector := func(p, at value.Value) value.Value {
		return b.NewBitCast(b.Element(t, p, at), lltypes.NewPointer(lltypes.NewVector(uint64(lanes), t)))
	}
	b.For(code.Int(0), code.Int(tileNeighbours), code.Loop{Step: lanes, Unroll: 1}, func(n value.Value) {
		b.For(code.Int(0), code.Int(tileSteps), code.Loop{Step: lanes, Unroll: 1}, func(s value.Value) {
			square := make([]value.Value, lanes)
			for i := range square {
				p := vector(from, b.NewAdd(b.NewMul(b.NewAdd(n, code.Int(int64(i))), code.Int(tileSteps)), s))
				x := b.NewLoad(p.Type().(*lltypes.PointerType).ElemType, p)
				x.Align = ir.Align(size)
				square[i] = x
			}
			for i, x := range b.Transpose(square, size) {
				p := vector(to, b.NewAdd(b.NewMul(b.NewAdd(s, code.Int(int64(i))), code.Int(tileNeighbours)), n))
				b.NewStore(x, p).Align = ir.Align(size)
			}
		})
	})
}
