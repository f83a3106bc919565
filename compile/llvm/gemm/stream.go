package gemm

import (
	"dmir/analysis/blocks"
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/value"
)

// A product of a few rows takes as long as B takes to come from memory. So each element
// of B is loaded once and multiplied with all rows of A, which are in the cache.

// streamDepth is how many steps of k each sum is in a register for, where neighbours are
// columns.
const streamDepth = 8

// stream computes the tasks of a product that streams B.
func (e *emitter) stream(first, last, scratch value.Value) {
	p, s := e.p, e.p.Shape
	e.a = e.at(scratch, 0)
	for i := range int64(s.Products) {
		e.sums = append(e.sums, e.at(scratch, up(s.Rows*s.Depth*s.Acc.Size(), 64)+i*s.Rows*p.NC*s.Acc.Size()))
	}
	across := code.Int(ceil(s.Cols, p.NC))
	e.Fold(first, last, code.Loop{Unroll: 1}, []value.Value{code.Int(-1)}, func(task value.Value, packed []value.Value) []value.Value {
		z := e.NewUDiv(task, across)
		e.If(e.NewICmp(enum.IPredNE, z, packed[0]), func() {
			e.For(code.Int(0), code.Int(s.Rows), code.Loop{Unroll: 1}, func(m value.Value) {
				e.For(code.Int(0), code.Int(s.Depth), code.Loop{Vectorize: true, Unroll: 1}, func(k value.Value) {
					x := e.element(func() value.Value { return e.kernel.A(e.Func, z, m, k) })
					e.private(e.NewStore(x, e.Element(e.elem, e.a, e.NewAdd(e.NewMul(m, code.Int(s.Depth)), k))))
				})
			})
		})
		cols := spanOf(e.Func, e.NewMul(e.NewURem(task, across), code.Int(p.NC)), p.NC, s.Cols)
		for i := range s.Products {
			if s.B == blocks.Depth {
				e.dots(i, z, cols)
			} else {
				e.rows(i, z, cols)
			}
		}
		e.finish(Tile{Z: z, M0: code.Int(0), M1: code.Int(s.Rows), N0: cols.from, N1: e.NewAdd(cols.from, cols.n), Sums: e.sums, Stride: p.NC})
		return []value.Value{z}
	})
}

// dots computes the sums of some columns of B that are runs of memory, a few columns at a
// time, which share the loads of A. Vectors of partial sums are added in the end.
func (e *emitter) dots(product int, z value.Value, cols span) {
	s := e.p.Shape
	group := func(n value.Value, columns int64) {
		sums := make([]value.Value, s.Rows*columns)
		for i := range sums {
			sums[i] = e.p.zero()
		}
		sums = e.Fold(code.Int(0), code.Int(s.Depth), code.Loop{Vectorize: true}, sums, func(k value.Value, sums []value.Value) []value.Value {
			b := make([]value.Value, columns)
			for j := range b {
				at := e.NewAdd(cols.from, e.NewAdd(n, code.Int(int64(j))))
				b[j] = e.element(func() value.Value { return e.kernel.B[product](e.Func, z, at, k) })
			}
			var next []value.Value
			for m := range s.Rows {
				a := e.NewLoad(e.elem, e.Element(e.elem, e.a, e.NewAdd(code.Int(m*s.Depth), k)))
				for j := range columns {
					next = append(next, e.add(sums[m*columns+j], e.mul(a, b[j])))
				}
			}
			return next
		})
		for i, sum := range sums {
			m, j := int64(i)/columns, int64(i)%columns
			e.private(e.NewStore(sum, e.Element(e.elem, e.sums[product], e.NewAdd(n, code.Int(m*e.p.NC+j)))))
		}
	}
	// Their sums are in registers.
	columns := min(max(e.p.Machine.Registers/s.Rows, 1), 4)
	whole := e.NewMul(e.NewUDiv(cols.n, code.Int(columns)), code.Int(columns))
	e.For(code.Int(0), whole, code.Loop{Step: columns, Unroll: 1}, func(n value.Value) { group(n, columns) })
	if columns > 1 && (s.Cols%columns != 0 || e.p.NC%columns != 0) {
		e.For(whole, cols.n, code.Loop{Unroll: 1}, func(n value.Value) { group(n, 1) })
	}
}

// rows computes the sums of some columns of B that are neighbours in memory: it adds a few
// rows of B at a time to them.
func (e *emitter) rows(product int, z value.Value, cols span) {
	s := e.p.Shape
	sums := e.sums[product]
	e.clear(sums, code.Int(0), code.Int(s.Rows*e.p.NC))
	add := func(k value.Value, depth int64) {
		a := make([]value.Value, s.Rows*depth)
		for i := range a {
			m, u := int64(i)/depth, int64(i)%depth
			a[i] = e.NewLoad(e.elem, e.Element(e.elem, e.a, e.NewAdd(k, code.Int(m*s.Depth+u))))
		}
		e.For(code.Int(0), cols.n, code.Loop{Vectorize: true}, func(n value.Value) {
			b := make([]value.Value, depth)
			for u := range b {
				b[u] = e.element(func() value.Value {
					return e.kernel.B[product](e.Func, z, e.NewAdd(cols.from, n), e.NewAdd(k, code.Int(int64(u))))
				})
			}
			for m := range s.Rows {
				at := e.Element(e.elem, sums, e.NewAdd(code.Int(m*e.p.NC), n))
				l := e.NewLoad(e.elem, at)
				l.Metadata = append(l.Metadata, e.scopes.inside())
				var sum value.Value = l
				for u := range depth {
					sum = e.add(sum, e.mul(a[m*depth+u], b[u]))
				}
				e.private(e.NewStore(sum, at))
			}
		})
	}
	whole := s.Depth / streamDepth * streamDepth
	e.For(code.Int(0), code.Int(whole), code.Loop{Step: streamDepth, Unroll: 1}, func(k value.Value) { add(k, streamDepth) })
	e.For(code.Int(whole), code.Int(s.Depth), code.Loop{Unroll: 1}, func(k value.Value) { add(k, 1) })
}

// mul and add are scalar; sums may be reordered and fused, which vectors need.
func (e *emitter) mul(a, b value.Value) value.Value {
	if !e.p.Shape.Acc.Float() {
		return e.NewMul(a, b)
	}
	x := e.NewFMul(a, b)
	x.FastMathFlags = []enum.FastMathFlag{enum.FastMathFlagContract}
	return x
}

func (e *emitter) add(a, b value.Value) value.Value {
	if !e.p.Shape.Acc.Float() {
		return e.NewAdd(a, b)
	}
	x := e.NewFAdd(a, b)
	x.FastMathFlags = []enum.FastMathFlag{enum.FastMathFlagReassoc, enum.FastMathFlagContract}
	return x
}
