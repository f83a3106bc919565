package interp

import (
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// The Move of an entry agrees with its executor.
func TestMoves(t *testing.T) {
	for _, d := range op.All() {
		if d.Move == nil {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			m := read(t, d.Example)
			f := m.Funcs[0]
			var o *ir.Op
			for _, x := range f.Body.Ops {
				if op.Of(x) == d {
					o = x
				}
			}
			move := op.MoveOf(o)
			if move == nil {
				t.Fatal("the example has no move")
			}
			ret := f.Body.Terminator()
			ret.Operands = append(append([]*ir.Value{}, o.Operands...), o.Results...)
			f.Results = nil
			for _, v := range ret.Operands {
				f.Results = append(f.Results, v.Type)
			}
			all, err := try(t, m, Options{})
			if err != nil {
				t.Fatal(err)
			}
			y := all[len(all)-1]
			for k := range y.Len() {
				if got, want := y.Float(k), moved(move, all, y.Shape, k); got != want {
					t.Fatalf("element %d is %g, by its move %g", k, got, want)
				}
			}
		})
	}
}

// moved is element k of the result of a move of the tensors xs.
func moved(m *op.Move, xs []*tensor.Tensor, shape []int, k int) float64 {
	idx := make([]int64, len(shape))
	for d, rest := len(shape)-1, k; d >= 0; d-- {
		idx[d], rest = int64(rest%shape[d]), rest/shape[d]
	}
pieces:
	for i, p := range m.Pieces {
		x := xs[p.Operand]
		last := i == len(m.Pieces)-1
		if p.Flat {
			return x.Float(k)
		}
		if p.To > 0 && (idx[p.Dim] < p.From || idx[p.Dim] >= p.To) && !last {
			continue
		}
		number := 0
		for d, a := range p.At {
			at := a.Offset
			if a.Dim >= 0 {
				at += a.Scale * idx[a.Dim]
			}
			if a.Index != nil {
				n := 0
				for e, r := range a.Index.At {
					n = n*xs[a.Index.Operand].Shape[e] + int(idx[r])
				}
				held := min(max(xs[a.Index.Operand].Integer(n), 0), a.Index.Most)
				if a.Index.Minus {
					held = -held
				}
				at += held
			}
			div := max(a.Div, 1)
			if at%div != 0 || a.Open && (at < 0 || at/div >= int64(x.Shape[d])) {
				continue pieces
			}
			number = number*x.Shape[d] + int(at/div)
		}
		return x.Float(number)
	}
	panic("an element without a piece")
}
