package attend

import (
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// emitter emits one task after the other.
type emitter struct {
	vectors
	k Kernel
}

func (s *sizes) emitter(f *code.Func, k Kernel) *emitter { return &emitter{s.vectors(f), k} }

// part is the scratch memory at an offset.
func (e *emitter) part(scratch value.Value, byte int64) value.Value {
	return e.NewBitCast(e.Element(types.I8, scratch, code.Int(byte)), types.NewPointer(e.elem))
}

// cacheSpan is a distance of which rows lie in the same few sets of an L1 cache.
const cacheSpan = 4096

// inPlace reports whether rows of o are read where they are.
func (s *sizes) inPlace(o Operand) bool { return o.At != nil && o.Step*s.size()%cacheSpan != 0 }

// pitch is the distance of the rows of o, of width elements, as rows gives them.
func (s *sizes) pitch(o Operand, width int64) int64 {
	if s.inPlace(o) {
		return o.Step
	}
	return width
}

// rows is the address of n rows of a matrix, from row first on: where they are, else in
// the memory to.
func (e *emitter) rows(o Operand, width int64, to, matrix, first, n value.Value) value.Value {
	if e.s.inPlace(o) {
		return e.at(o.At(e.Func, matrix), e.NewMul(first, code.Int(o.Step)))
	}
	e.For(code.Int(0), n, code.Loop{Unroll: 1}, func(r value.Value) {
		row := e.at(to, e.NewMul(r, code.Int(width)))
		e.For(code.Int(0), code.Int(width), code.Loop{Vectorize: true}, func(c value.Value) {
			e.NewStore(o.Load(e.Func, matrix, e.NewAdd(first, r), c), e.at(row, c))
		})
	})
	return to
}

// stage stores rows of queries to memory with rows of whole vectors, and zeros for
// queries from n to total.
func (e *emitter) stage(to value.Value, width int64, n, total value.Value, load func(r, c value.Value) value.Value) {
	pitch := up(width, e.s.lanes)
	e.For(code.Int(0), n, code.Loop{Unroll: 1}, func(r value.Value) {
		row := e.at(to, e.NewMul(r, code.Int(pitch)))
		e.For(code.Int(0), code.Int(width), code.Loop{Vectorize: true}, func(c value.Value) {
			e.NewStore(load(r, c), e.at(row, c))
		})
		for c := width; c < pitch; c++ {
			e.NewStore(e.number(0), e.at(row, code.Int(c)))
		}
	})
	e.fill(e.at(to, e.NewMul(n, code.Int(pitch))), e.NewMul(e.NewSub(total, n), code.Int(pitch)), 0)
}

// fill sets n elements, whole vectors, to x.
func (e *emitter) fill(to, n value.Value, x float64) {
	e.For(code.Int(0), n, code.Loop{Step: e.s.lanes}, func(i value.Value) { e.store(e.all(x), to, i) })
}

// turn transposes a panel of staged queries: to a row of all queries for each column.
func (e *emitter) turn(to, from value.Value, width int64) {
	e.squares(code.Int(width), func(q, c value.Value) {
		for i, x := range e.column(from, up(width, e.s.lanes), q, c) {
			e.store(x, to, e.NewAdd(e.inPanel(c, int64(i), e.s.panel, 0), q))
		}
	})
}

// column is a square of rows with the given pitch, transposed: from row q and column c on.
func (e *emitter) column(from value.Value, pitch int64, q, c value.Value) []value.Value {
	from = e.at(from, e.NewAdd(e.NewMul(q, code.Int(pitch)), c))
	var rows []value.Value
	for i := range e.s.lanes {
		rows = append(rows, e.load(from, code.Int(i*pitch)))
	}
	return e.Transpose(rows, e.s.size())
}

// turnBack is the reverse of turn, with each query multiplied by its factor.
func (e *emitter) turnBack(to, from value.Value, width int64, factor func(q value.Value) value.Value) {
	e.squares(code.Int(width), func(q, c value.Value) {
		by := factor(q)
		var rows []value.Value
		for i := range e.s.lanes {
			rows = append(rows, e.NewFMul(e.load(from, e.NewAdd(e.inPanel(c, i, e.s.panel, 0), q)), by))
		}
		pitch := up(width, e.s.lanes)
		to := e.at(to, e.NewAdd(e.NewMul(q, code.Int(pitch)), c))
		for i, x := range e.Transpose(rows, e.s.size()) {
			e.store(x, to, code.Int(int64(i)*pitch))
		}
	})
}

// squares visits a panel in squares of vectors: from query q and column c on.
func (e *emitter) squares(width value.Value, visit func(q, c value.Value)) {
	e.For(code.Int(0), width, code.Loop{Step: e.s.lanes, Unroll: 1}, func(c value.Value) {
		e.For(code.Int(0), code.Int(e.s.panel), code.Loop{Step: e.s.lanes, Unroll: 1}, func(q value.Value) { visit(q, c) })
	})
}

// inPanel is where vector g of row c + i of a panel is.
func (e *emitter) inPanel(c value.Value, i, pitch, g int64) value.Value {
	return e.NewAdd(e.NewMul(c, code.Int(pitch)), code.Int(i*pitch+g*e.s.lanes))
}
