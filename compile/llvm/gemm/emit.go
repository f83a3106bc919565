package gemm

import (
	"dmir/analysis/blocks"
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// Load emits the element of an operand at batch z, row m of A or n of B, and depth k, in
// the type of the sums. It may load any memory but the thread's own. It is called more
// than once, also for elements that are computed again.
type Load func(f *code.Func, z, row, k value.Value) value.Value

// Tile is a finished part of C: rows M0 to M1, columns N0 to N1 of batch Z.
type Tile struct {
	Z, M0, M1, N0, N1 value.Value
	// Sums has for each product the address of the sum at M0, N0. That at m, n is
	// (m-M0)·Stride + n-N0 elements further.
	Sums   []value.Value
	Stride int64
}

// Kernel is what a product reads and what becomes of it.
type Kernel struct {
	A Load
	B []Load // one for each product; none of a product with a window
	// Image is what the window of the product, if any, moves over.
	Image Image
	// Rows and Depth, where one of them is not nil, give the part of the rows, or of the depth, that a matrix of the batch has: from
	// the first index on, below the second. Of a grouped product.
	Rows, Depth func(f *code.Func, z value.Value) (from, below value.Value)
	// Done emits what consumes a tile, loops over its elements included: columns inside,
	// which may be vectors. Each element of C is in one tile. It may overwrite the sums, and
	// gets at them by the addresses in the tile alone.
	Done func(f *code.Func, t Tile)
}

// emitter emits one product.
type emitter struct {
	vectors
	kernel Kernel
	scopes scopes

	// The parts of the scratch memory.
	a, stage value.Value
	b, sums  []value.Value // of each product
}

// Emit appends to f the tasks from first on, below last. scratch is the thread's own
// memory of p.Scratch bytes, aligned to 64.
func (p Plan) Emit(f *code.Func, first, last, scratch value.Value, k Kernel) {
	e := &emitter{vectors: p.vectors(f), kernel: k, scopes: newScopes(f.M)}
	if p.Few {
		e.stream(first, last, scratch)
		return
	}
	e.place(scratch)
	s := p.Shape
	down, across := code.Int(ceil(s.Rows, p.MC)), code.Int(ceil(s.Cols, p.NC))
	e.Fold(first, last, code.Loop{Unroll: 1}, []value.Value{code.Int(-1)}, func(task value.Value, packed []value.Value) []value.Value {
		// Rows change fastest: tasks with the same block of columns follow each other.
		block := e.NewUDiv(task, down)
		z := e.NewUDiv(block, across)
		cols := spanOf(e.Func, e.NewMul(e.NewURem(block, across), code.Int(p.NC)), p.NC, s.Cols)
		first := e.NewMul(e.NewURem(task, down), code.Int(p.MC))
		compute := func(rows span) {
			if p.Resident {
				e.If(e.NewICmp(enum.IPredNE, block, packed[0]), func() {
					e.passes(z, func(pass, _ value.Value, ks span) { e.packPass(pass, z, cols, ks) })
				})
			}
			e.block(z, rows, cols)
		}
		if k.Rows == nil {
			compute(spanOf(e.Func, first, p.MC, s.Rows))
			return []value.Value{block}
		}
		from, below := k.Rows(e.Func, z) // blocks of rows are counted from the group's first
		from = e.NewAdd(from, first)
		e.If(e.NewICmp(enum.IPredSLT, from, below), func() {
			compute(span{from, least(e.Func, code.Int(p.MC), e.NewSub(below, from)), p.MC, false})
		})
		return []value.Value{block}
	})
}

// place names the parts of the scratch memory.
func (e *emitter) place(scratch value.Value) {
	l := e.p.layout()
	e.a, e.stage = e.at(scratch, l.a), e.at(scratch, l.stage)
	for i := range int64(e.p.Shape.Products) {
		e.b = append(e.b, e.at(scratch, l.b+i*l.packed))
		e.sums = append(e.sums, e.at(scratch, l.sums+i*l.tile))
	}
}

// at is the address of an array of sums in the scratch memory.
func (e *emitter) at(scratch value.Value, byte int64) value.Value {
	return e.NewBitCast(e.Element(types.I8, scratch, code.Int(byte)), types.NewPointer(e.elem))
}

// passes runs body for each pass over a part of the depth, of which there is one at least, and the last is number `last`.
func (e *emitter) passes(z value.Value, body func(pass, last value.Value, ks span)) {
	if e.kernel.Depth != nil {
		from, below := e.kernel.Depth(e.Func, z)
		var n value.Value = e.NewSub(below, from)
		n = e.NewSelect(e.NewICmp(enum.IPredSLT, n, code.Int(0)), code.Int(0), n)
		var passes value.Value = e.parts(n, e.p.KC)
		passes = e.NewSelect(e.NewICmp(enum.IPredEQ, n, code.Int(0)), code.Int(1), passes)
		e.For(code.Int(0), passes, code.Loop{Unroll: 1}, func(pass value.Value) {
			done := e.NewMul(pass, code.Int(e.p.KC))
			body(pass, e.NewSub(passes, code.Int(1)), span{e.NewAdd(from, done), least(e.Func, code.Int(e.p.KC), e.NewSub(n, done)), e.p.KC, false})
		})
		return
	}
	e.For(code.Int(0), code.Int(e.p.Passes()), code.Loop{Unroll: 1}, func(pass value.Value) {
		body(pass, code.Int(e.p.Passes()-1), spanOf(e.Func, e.NewMul(pass, code.Int(e.p.KC)), e.p.KC, e.p.Shape.Depth))
	})
}

// packPass packs the part of all products' B that one pass needs.
func (e *emitter) packPass(pass, z value.Value, cols, ks span) {
	if e.p.Shape.Window != nil {
		e.stageImage(pass, z, cols, ks)
		return
	}
	for i := range e.p.Shape.Products {
		e.packB(i, e.packed(i, pass), z, cols, ks)
	}
}

// packed is where the packed part of B for a pass is.
func (e *emitter) packed(product int, pass value.Value) value.Value {
	if !e.p.Resident {
		return e.b[product]
	}
	return e.Element(e.elem, e.b[product], e.NewMul(pass, code.Int(e.p.Packed())))
}

// parts is how many parts of size n has.
func (e *emitter) parts(n value.Value, size int64) value.Value {
	if c, ok := n.(*constant.Int); ok {
		return code.Int(ceil(c.X.Int64(), size))
	}
	return e.NewUDiv(e.NewAdd(n, code.Int(size-1)), code.Int(size))
}

// block computes the block of C of one task. Each pass adds to the sums of those before.
func (e *emitter) block(z value.Value, rows, cols span) {
	p := e.p
	e.passes(z, func(pass, last value.Value, ks span) {
		if !p.Resident {
			e.packPass(pass, z, cols, ks)
		}
		if p.Shape.A == blocks.Outer {
			e.packBlock(z, rows, ks)
		}
		e.For(code.Int(0), e.parts(rows.n, p.MR), code.Loop{Unroll: 1}, func(i value.Value) {
			from := e.NewMul(i, code.Int(p.MR))
			part := span{from: e.NewAdd(rows.from, from), size: p.MR}
			if e.kernel.Rows == nil {
				part = spanOf(e.Func, part.from, p.MR, p.Shape.Rows)
			} else { // the group's rows end before the product's
				part.n = least(e.Func, code.Int(p.MR), e.NewSub(rows.n, from))
			}
			a, sums := e.a, e.sums
			if p.Shape.A == blocks.Outer {
				a = e.Element(e.elem, a, e.NewMul(i, code.Int(p.sliver().size)))
			} else {
				e.packSliver(z, part, ks)
			}
			if p.Passes() > 1 {
				sums = nil
				for _, s := range e.sums {
					sums = append(sums, e.Element(e.elem, s, e.NewMul(from, code.Int(p.NC))))
				}
			}
			e.strip(a, sums, pass, last, ks, Tile{Z: z, M0: part.from, M1: e.NewAdd(part.from, part.n)}, cols)
		})
	})
}

// strip multiplies a packed sliver of A with a block of B. The last pass finishes a few
// panels at a time, which are consumed while they are in the L1 cache: their stores then
// go on while the next ones are computed.
func (e *emitter) strip(a value.Value, sums []value.Value, pass, end value.Value, ks span, t Tile, cols span) {
	p, micro := e.p, e.p.micro(e.M)
	again := e.NewICmp(enum.IPredNE, pass, code.Int(0))
	depth, deep := e.padded(ks), p.Deep()
	if w := p.Shape.Window; w != nil {
		depth, deep = e.parts(ks.n, int64(len(w.Taps))), 1
	}
	t.Stride = p.NC
	width := p.Width()
	e.For(code.Int(0), cols.n, code.Loop{Step: width, Unroll: 1}, func(n value.Value) {
		var last value.Value = e.NewAdd(n, code.Int(width))
		if p.Shape.Cols%width != 0 || p.NC%width != 0 {
			last = e.NewAdd(n, least(e.Func, code.Int(width), e.NewSub(cols.n, n)))
		}
		for i, s := range sums {
			b := e.packed(i, pass)
			e.For(n, last, code.Loop{Step: p.NR, Unroll: 1}, func(j value.Value) {
				e.Call(micro, a, e.Element(e.elem, b, e.NewMul(j, code.Int(deep))), e.Element(e.elem, s, j), depth, again)
			})
		}
		done := t
		done.N0, done.N1, done.Sums = e.NewAdd(cols.from, n), e.NewAdd(cols.from, last), nil
		for _, s := range sums {
			done.Sums = append(done.Sums, e.Element(e.elem, s, n))
		}
		if p.Passes() == 1 {
			e.finish(done)
			return
		}
		e.If(e.NewICmp(enum.IPredEQ, pass, end), func() { e.finish(done) })
	})
}
