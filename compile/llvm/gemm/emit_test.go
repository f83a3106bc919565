package gemm_test

import (
	"fmt"

	"dmir/analysis/blocks"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/gemm"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// module is a module with a function for each product, of arrays: A, each B, and C, whose
// products follow each other.
func module(arch string, shapes []blocks.Shape) string {
	m := code.NewModule()
	for i, s := range shapes {
		args := ir.NewParam("args", types.NewPointer(code.Bytes))
		first, last := ir.NewParam("first", code.Index), ir.NewParam("last", code.Index)
		scratch := ir.NewParam("scratch", code.Bytes)
		f := m.NewFuncBody(m.NewFunc(fmt.Sprintf("kernel%d", i), types.Void, args, first, last, scratch))
		array := func(i int) value.Value {
			return f.NewLoad(code.Bytes, f.Element(code.Bytes, args, code.Int(int64(i))))
		}
		k := gemm.Kernel{A: matrix(s, array(0), s.Rows, s.A)}
		if s.Window != nil {
			k.Image = image(s, array(1))
		}
		for q := range s.Products {
			k.B = append(k.B, matrix(s, array(1+q), s.Cols, s.B))
		}
		k.Done = storeTo(s, array(1+s.Products))
		gemm.Choose(s, arch).Emit(f, first, last, scratch, k)
		f.NewRet(nil)
	}
	return m.String()
}

// matrix loads elements of a contiguous operand.
func matrix(s blocks.Shape, base value.Value, rows int64, along blocks.Axis) gemm.Load {
	return func(f *code.Func, z, row, k value.Value) value.Value {
		at := f.NewAdd(f.NewMul(row, code.Int(s.Depth)), k)
		if along == blocks.Outer {
			at = f.NewAdd(f.NewMul(k, code.Int(rows)), row)
		}
		at = f.NewAdd(f.NewMul(z, code.Int(rows*s.Depth)), at)
		return f.NewLoad(gemm.TypeOf(s.Acc), f.Element(gemm.TypeOf(s.Acc), base, at))
	}
}

// image loads elements of an image that lies as at has it.
func image(s blocks.Shape, base value.Value) gemm.Image {
	elem := gemm.TypeOf(s.Acc)
	return func(f *code.Func, z, channel, line value.Value, plane int64, first, last value.Value, put func(at, x value.Value)) {
		w := s.Window
		var from value.Value = f.NewAdd(f.NewMul(z, code.Int(s.Depth/int64(len(w.Taps)))), channel)
		from = f.NewAdd(f.NewMul(from, code.Int(w.Planes/w.Shared)), code.Int(plane/w.Shared))
		from = f.NewMul(f.NewAdd(f.NewMul(from, code.Int(imageLines(s))), line), code.Int(w.Line*w.Step))
		f.For(first, last, code.Loop{Vectorize: true}, func(x value.Value) {
			put(x, f.NewLoad(elem, f.Element(elem, base, f.NewAdd(from, x))))
		})
	}
}

// storeTo stores sums.
func storeTo(s blocks.Shape, base value.Value) func(*code.Func, gemm.Tile) {
	elem := gemm.TypeOf(s.Acc)
	return func(f *code.Func, t gemm.Tile) {
		for q, sums := range t.Sums {
			f.For(t.M0, t.M1, code.Loop{Unroll: 1}, func(m value.Value) {
				row := f.NewMul(f.NewSub(m, t.M0), code.Int(t.Stride))
				z := f.NewAdd(t.Z, code.Int(int64(q)*s.Batch))
				to := f.NewMul(f.NewAdd(f.NewMul(z, code.Int(s.Rows)), m), code.Int(s.Cols))
				f.For(t.N0, t.N1, code.Loop{Vectorize: true}, func(n value.Value) {
					x := f.NewLoad(elem, f.Element(elem, sums, f.NewAdd(row, f.NewSub(n, t.N0))))
					f.NewStore(x, f.Element(elem, base, f.NewAdd(to, n)))
				})
			})
		}
	}
}
