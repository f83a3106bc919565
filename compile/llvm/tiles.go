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

// The most steps and neighbours of a tile: a step's neighbours are whole cache lines of a
// result, a neighbour's steps one of an operand.
const (
	tileSteps      = 64
	tileNeighbours = 64
)

// leastTurned is the fewest steps and neighbours that are worth a tile.
const leastTurned = 16

// tiling is how the steps of a loop are divided into tiles, nil for no tiles: step is the variable along which what is read
// lies side by side, run, which may be nil, that of what is computed one after the other.
type tiling struct {
	run, step *kernel.Atom
	runs      int64 // values of run
	stride    int64 // values of run after which steps follow those of the first one
	steps     int64
}

// turn makes l a loop over tiles if what it reads lies along its steps, or along some of them, with neighbours far apart.
func (l *elementLoop) turn() {
	step, lane := l.outs[0].Loops[0], l.form.Lane
	if step == nil || lane == nil || l.v < leastTurned || l.steps < leastTurned {
		return
	}
	if transposes(l.outs, lane, step) {
		l.tiles = &tiling{step: step, runs: 1, stride: 1, steps: l.steps}
		return
	}
	stride, n := int64(0), int64(0)
	eachLoad(exprsOf(l.outs), func(x *kernel.Expr) {
		if far, _ := x.At.Along(lane); n == 0 && (far >= leastTurned || far <= -leastTurned) {
			stride, n = x.At.RunOf(step)
		}
	})
	if n < leastTurned || len(l.form.Outs) != len(l.outs) {
		return
	}
	f, err := l.form.Turn(stride, n)
	if err != nil || !transposes(f.Outs, f.Lane, f.Outs[0].Loops[1]) {
		return
	}
	l.form, l.outs = f, f.Outs
	loops := f.Outs[0].Loops
	l.tiles = &tiling{run: loops[0], step: loops[1], runs: l.steps / n, stride: stride, steps: n}
}

// transposes reports whether what outs read lies along a step, with rows of neighbours far apart.
func transposes(outs []kernel.Out, lane, step *kernel.Atom) bool {
	along, ok := false, true
	for _, o := range outs {
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
				if near == 1 && run >= leastTurned && (far >= leastTurned || far <= -leastTurned) {
					along = true
				} else {
					ok = false
				}
			})
		}
	}
	return along && ok
}

// each is the tiles of a run, one after the other along the steps.
func (t *tiling) each() int64 { return ceil(t.steps, tileSteps) }

// scratch is the memory of a tile of each result, before and after it is transposed.
func (l *elementLoop) scratch() (bytes int64) {
	if l.tiles == nil {
		return 0
	}
	for _, o := range l.outs {
		bytes += 2 * scratchBytes(kept(o.X.Elem), tileSteps*tileNeighbours)
	}
	return bytes
}

// at is the run of a strip, and the first of its steps. Runs whose steps lie between each other's follow each other.
func (t *tiling) at(b *body, strip value.Value) (run, step value.Value) {
	around, of := b.NewUDiv(strip, code.Int(t.stride)), t.each()
	run = b.NewAdd(b.NewMul(b.NewUDiv(around, code.Int(of)), code.Int(t.stride)), b.NewURem(strip, code.Int(t.stride)))
	return run, b.NewMul(b.NewURem(around, code.Int(of)), code.Int(tileSteps))
}

// writeTiles computes the strips from first on, below last, of which each is the tiles of some steps and all neighbours: in
// scratch memory the neighbours of a step lie side by side after a tile's squares were transposed.
func (l *elementLoop) writeTiles(b *body, first, last value.Value) {
	tiles, turned := make([]value.Value, len(l.outs)), make([]value.Value, len(l.outs))
	for i, o := range l.outs {
		tiles[i] = b.take(kept(o.X.Elem), tileSteps*tileNeighbours)
		turned[i] = b.take(kept(o.X.Elem), tileSteps*tileNeighbours)
	}
	t := l.tiles
	step, lane := t.step, l.form.Lane
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
			b.turn(kept(o.X.Elem), tiles[i], turned[i], min(t.steps, tileSteps), min(l.v, tileNeighbours))
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
	b.loop(nil, first, last, code.Loop{Unroll: 1}, func(strip value.Value) {
		s0 := value.Value(b.NewMul(strip, code.Int(tileSteps)))
		if t.run != nil {
			var run value.Value
			run, s0 = t.at(b, strip)
			b.within(func() {
				nextRun, next := t.at(b, b.NewAdd(strip, code.Int(1)))
				b.bind(t.run, nextRun)
				b.bind(t.step, next)
				l.asks(b)
			})
			b.bind(t.run, run)
		}
		b.For(code.Int(0), code.Int(l.v), code.Loop{Step: tileNeighbours, Unroll: 1}, func(n0 value.Value) {
			// Whole tiles have loops of constant length, which need no calls to copy memory.
			s1, n1 := b.NewAdd(s0, code.Int(min(tileSteps, t.steps))), b.NewAdd(n0, code.Int(min(tileNeighbours, l.v)))
			if (t.steps < tileSteps || t.steps%tileSteps == 0) && (l.v < tileNeighbours || l.v%tileNeighbours == 0) {
				tile(s0, s1, n0, n1)
				return
			}
			whole := b.NewAnd(b.NewICmp(enum.IPredSLE, s1, code.Int(t.steps)), b.NewICmp(enum.IPredSLE, n1, code.Int(l.v)))
			b.Choose(whole, func() []value.Value {
				tile(s0, s1, n0, n1)
				return nil
			}, func() []value.Value {
				tile(s0, b.least(s1, code.Int(t.steps)), n0, b.least(n1, code.Int(l.v)))
				return nil
			})
		})
	})
}

// turn transposes the first steps and neighbours of a tile of neighbours, each a row of steps, to steps. Squares are transposed
// in registers, of elements that are large enough for as many registers as there are.
func (b *body) turn(elem types.Elem, from, to value.Value, steps, neighbours int64) {
	size := elem.Bytes()
	lanes := min(b.M.Vector/size, tileSteps)
	if size < 4 || lanes < 2 {
		b.For(code.Int(0), code.Int(steps), code.Loop{Unroll: 1}, func(s value.Value) {
			b.For(code.Int(0), code.Int(neighbours), code.Loop{Vectorize: true}, func(n value.Value) {
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
	b.For(code.Int(0), code.Int(neighbours), code.Loop{Step: lanes, Unroll: 1}, func(n value.Value) {
		b.For(code.Int(0), code.Int(steps), code.Loop{Step: lanes, Unroll: 1}, func(s value.Value) {
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
