package llvm

import (
	"math"
	"slices"

	"dmir/compile/kernel"
	"dmir/compile/llvm/attend"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/scalar"
	"dmir/compile/tensor"
	dm "dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"

	"github.com/llir/llvm/ir/value"
)

// attention is the geometry of a dm.attention or dm.attention_grad.
type attention struct {
	f     *kernel.Form
	o     *dm.Op
	sum   types.Elem // of the computation
	shape attend.Shape
	// merged: heads that share a key head are the queries of one, since each has one.
	merged    bool
	batch     []int64   // the dimensions of the heads
	mask      *dm.Value // nil: none
	maskShape []int64   // of the rank of batch, queries and keys together
	dropout   float64   // the rate
	step      *dm.Value // of the dropout; nil: none
	// Of dropout in a part of a whole: the number of its first row of scores there, nil for the whole, and by how much those of
	// neighbours differ: of heads along the dimensions of batch, and between queries.
	first   *dm.Value
	numbers []int64
	between int64
}

// attentionOf reads the main op of f.
func attentionOf(f *kernel.Form) (*attention, error) {
	g, err := kernel.AttentionOf(f.Main)
	if err != nil {
		return nil, err
	}
	a := &attention{f: f, o: f.Main, sum: kept(f.Main.Operands[0].Elem()), batch: g.Batch, mask: g.Mask, maskShape: g.MaskShape, step: g.Step, dropout: g.Dropout, first: g.First, numbers: g.Rows, between: 1}
	s := attend.Shape{
		Heads: g.Heads, Group: g.Group, Queries: g.Queries, Keys: g.Keys, Depth: g.Depth, Value: g.Value,
		Scale: g.Scale, Causal: op.Bool(a.o, "causal"), Double: a.sum == types.F64,
	}
	if g.Dropout > 0 {
		s.Kept = 1 / (1 - g.Dropout)
	}
	if n := len(g.MaskShape); n > 0 {
		s.Mask = attend.Mask{Given: true, Rows: g.MaskShape[n-2] > 1, Cols: g.MaskShape[n-1] > 1}
	}
	a.shape = s
	if s.Queries == 1 {
		a.merge()
	}
	return a, nil
}

// merge makes queries of heads that have one each: of those that share a key head, which
// is then read once. One query sees all keys.
func (a *attention) merge() {
	s := &a.shape
	s.Causal = false
	if s.Group == 1 {
		return
	}
	a.merged = true
	s.Heads, s.Queries, s.Group = s.Heads/s.Group, s.Group, 1
	a.batch = slices.Clone(a.batch)
	a.batch[len(a.batch)-1] /= s.Queries
	if h := len(a.batch) - 1; a.first != nil {
		a.numbers = slices.Clone(a.numbers)
		a.numbers[h], a.between = a.numbers[h]*s.Queries, a.numbers[h]
	}
	if m, h := a.maskShape, len(a.batch)-1; m != nil && m[h] > 1 {
		m[h], m[h+1] = m[h]/s.Queries, s.Queries
		s.Mask.Rows = true
	}
}

// split is the shape of heads with one query each as merge has it, and the steps of its
// dimensions from theirs.
func (a *attention) split(shape, steps []int64) (to, by []int64) {
	h := len(shape) - 3
	to, by = slices.Clone(shape), slices.Clone(steps)
	to[h], to[h+1] = shape[h]/a.shape.Queries, a.shape.Queries
	by[h], by[h+1] = steps[h]*a.shape.Queries, steps[h]
	return to, by
}

// impossible are sizes that there is no kernel for.
func impossible(n int64) bool { return n < 1 || n > kernel.MostOfAttention }

// place is where the elements of an operand's or a result's matrices are in memory.
type place struct {
	buf        *dm.Value
	start, row int64
	shape      []int64 // that number the matrices
	steps      []int64 // for each of its dimensions
}

// ofQueries reports whether operand or result number i has a row for each query: all
// but k and v.
func (a *attention) ofQueries(i int) bool {
	if n := len(a.o.Operands); i >= n {
		i -= n
	}
	return i != 1 && i != 2
}

// place is that of v, which is number i of the operands and results.
func (a *attention) place(i int, v *dm.Value) place {
	shape, _ := kernel.ShapeOf(v)
	shape = append(slices.Repeat([]int64{1}, max(0, 2-len(shape))), shape...) // of a mask
	n := len(shape)
	p := place{buf: v}
	steps := make([]int64, n)
	if i < len(a.f.Views) && a.f.Views[i] != nil {
		p.buf, p.start, steps = a.f.Views[i].Buf, a.f.Views[i].Start, a.f.Views[i].Steps
	} else {
		step := int64(1)
		for d := n - 1; d >= 0; d-- {
			steps[d], step = step, step*shape[d]
		}
	}
	if a.merged && n > 2 && a.ofQueries(i) && shape[n-3] > 1 {
		shape, steps = a.split(shape, steps)
	}
	p.row, p.shape, p.steps = steps[n-2], shape[:n-2], steps[:n-2]
	if shape[n-2] == 1 { // a distance that rows may be read at
		p.row = shape[n-1]
	}
	return p
}

// matrix is the offset of the first element of a matrix.
func (p place) matrix(f *code.Func, number value.Value) value.Value {
	return f.NewAdd(parts(f, number, p.shape, p.steps), code.Int(p.start))
}

// at is the offset of an element.
func (p place) at(f *code.Func, matrix, row, col value.Value) value.Value {
	return f.NewAdd(f.NewAdd(p.matrix(f, matrix), f.NewMul(row, code.Int(p.row))), col)
}

// parts sums the indices that a row-major number decomposes into, each times a step.
func parts(f *code.Func, number value.Value, shape, steps []int64) value.Value {
	sum, inner := value.Value(code.Int(0)), kernel.Product(shape)
	for d, n := range shape {
		inner /= n
		if n == 1 || steps[d] == 0 {
			continue
		}
		x := number
		if inner > 1 {
			x = f.NewUDiv(x, code.Int(inner))
		}
		if d > 0 {
			x = f.NewURem(x, code.Int(n))
		}
		sum = f.NewAdd(sum, f.NewMul(x, code.Int(steps[d])))
	}
	return sum
}

// operand is operand i, as the kernel b reads it.
func (a *attention) operand(b *body, i int) attend.Operand {
	v := a.o.Operands[i]
	p := a.place(i, v)
	memory := b.buffer(p.buf)
	o := attend.Operand{Load: func(f *code.Func, matrix, row, col value.Value) value.Value {
		return b.lib.Load(f, v.Elem(), memory, p.at(f, matrix, row, col))
	}}
	if v.Elem() == a.sum {
		o.Step = p.row
		o.At = func(f *code.Func, matrix value.Value) value.Value {
			return f.Element(scalar.Register(a.sum), memory, p.matrix(f, matrix))
		}
	}
	return o
}

// result stores result i; nil where it is not stored.
func (a *attention) result(b *body, i int) attend.Store {
	at := len(a.o.Operands) + i
	if i >= len(a.o.Results) || b.params[a.o.Results[i]] == nil && (at >= len(a.f.Views) || a.f.Views[at] == nil) {
		return nil
	}
	v := a.o.Results[i]
	p := a.place(at, v)
	memory := b.buffer(p.buf)
	return func(f *code.Func, matrix, row, col, x value.Value) {
		b.lib.Store(f, v.Elem(), memory, p.at(f, matrix, row, col), x)
	}
}

// kernel is what both directions read.
func (a *attention) kernel(b *body) attend.Kernel {
	k := attend.Kernel{Q: a.operand(b, 0), K: a.operand(b, 1), V: a.operand(b, 2)}
	s := a.shape
	if a.mask != nil {
		memory := b.buffer(a.mask)
		n := len(a.maskShape)
		row, col, size := int64(0), int64(0), a.maskShape[n-2]*a.maskShape[n-1]
		if s.Mask.Rows {
			row = a.maskShape[n-1]
		}
		if s.Mask.Cols {
			col = 1
		}
		steps := make([]int64, n-2)
		for d := n - 3; d >= 0; d-- {
			if a.maskShape[d] > 1 {
				steps[d] = size
			}
			size *= a.maskShape[d]
		}
		k.Mask = func(f *code.Func, head, query, key value.Value) value.Value {
			at := f.NewAdd(parts(f, head, a.batch, steps), f.NewAdd(f.NewMul(query, code.Int(row)), f.NewMul(key, code.Int(col))))
			return b.lib.Load(f, a.mask.Elem(), memory, at)
		}
	}
	if s.Kept > 0 {
		x := &kernel.Expr{Op: kernel.Keep, Elem: types.I1, Seed: uint64(op.Int(a.o, "seed")), Int: int64(tensor.Threshold(a.dropout))}
		step := a.step
		if step != nil {
			x.Args = []*kernel.Expr{{Elem: step.Elem()}}
		}
		k.Keep = func(f *code.Func, head, query, key value.Value) value.Value {
			var args []value.Value
			if step != nil {
				args = append(args, b.lib.Load(f, step.Elem(), b.buffer(step), code.Int(0)))
			}
			row := f.NewAdd(f.NewMul(head, code.Int(s.Queries)), query)
			if first := a.first; first != nil {
				to := &kernel.Expr{Op: "convert", Elem: types.I64, Args: []*kernel.Expr{{Elem: first.Elem()}}}
				start := b.lib.Apply(f, to, []value.Value{b.lib.Load(f, first.Elem(), b.buffer(first), code.Int(0))})
				row = f.NewAdd(f.NewAdd(start, parts(f, head, a.batch, a.numbers)), f.NewMul(query, code.Int(a.between)))
			}
			return b.lib.Apply(f, x, append(args, f.NewAdd(f.NewMul(row, code.Int(s.Keys)), key)))
		}
	}
	return k
}

// stores reports whether result i is stored.
func (a *attention) stores(i int) bool {
	if i >= len(a.o.Results) {
		return false
	}
	return slices.Contains(a.f.Outputs, a.o.Results[i]) || a.f.Views[len(a.o.Operands)+i] != nil
}

// holding is the output that has the elements of result i.
func (a *attention) holding(i int) []*dm.Value {
	if w := a.f.Views[len(a.o.Operands)+i]; w != nil {
		return []*dm.Value{w.Buf}
	}
	return []*dm.Value{a.o.Results[i]}
}

// attends reports whether there are kernels for o, a dm.attention, and its gradient:
// for all of known sizes with finite scales.
func attends(o *dm.Op) bool {
	for i := range 3 {
		if shape, ok := kernel.ShapeOf(o.Operands[i]); !ok || slices.ContainsFunc(shape, impossible) {
			return false
		}
	}
	scale := op.Float(o, "scale")
	return !math.IsInf(scale, 0) && !math.IsNaN(scale)
}
