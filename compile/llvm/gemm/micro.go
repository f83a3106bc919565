package gemm

import (
	"fmt"

	"dmir/analysis/blocks"
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// ahead is how many steps of k before its use the micro-kernel asks for B: the L2 cache
// answers in the time of a few.
const ahead = 16

// micro is the function that adds the product of a sliver of A, of MR rows, and a panel
// of B, of NR columns, to a tile of C in memory:
//
//	void micro(T *a, T *b, T *c, i64 depth, i1 add)
//
// depth is a multiple of blocks.Unroll, or the number of channels of an image; without add the
// tile is overwritten. The tile is in
// registers throughout: a step of k loads the vectors of B once and broadcasts each
// element of A. It is not inlined, so that all registers are its own.
func (p Plan) micro(m *code.Module) *ir.Func {
	s := p.Shape
	l := p.sliver()
	name := fmt.Sprintf("gemm.%s.%dx%d.a%d.c%d", s.Acc, p.MR, p.NR, l.row, p.NC)
	if s.Half {
		name += ".half"
	}
	if s.Window != nil {
		name += p.windowName()
	}
	return m.Once(name, func() *ir.Func {
		ptr := types.NewPointer(TypeOf(s.Acc))
		a, b, c := ir.NewParam("a", ptr), ir.NewParam("b", ptr), ir.NewParam("c", ptr)
		for _, x := range []*ir.Param{a, b, c} {
			x.Attrs = append(x.Attrs, enum.ParamAttrNoAlias)
		}
		depth, add := ir.NewParam("depth", code.Index), ir.NewParam("add", types.I1)
		fn := m.NewFunc(name, types.Void, a, b, c, depth, add)
		fn.Linkage = enum.LinkageInternal
		fn.FuncAttrs = append(fn.FuncAttrs, enum.FuncAttrNoInline, enum.FuncAttrNoUnwind)
		f := p.vectors(m.NewFuncBody(fn))

		lanes, columns := p.Lanes(), p.NR/p.Lanes()
		at := func(i int64) value.Value { return code.Int(i/columns*p.NC + i%columns*lanes) }
		sums := f.Choose(add, func() (out []value.Value) {
			for i := range p.MR * columns {
				out = append(out, f.load(c, at(i)))
			}
			return out
		}, func() (out []value.Value) {
			for range p.MR * columns {
				out = append(out, constant.NewZeroInitializer(f.vec))
			}
			return out
		})
		step := func(from value.Value, u int64, panel value.Value, sums []value.Value) []value.Value {
			bs := make([]value.Value, columns)
			for j := range bs {
				bs[j] = f.load(panel, code.Int(int64(j)*lanes))
			}
			next := make([]value.Value, len(sums))
			for r := range p.MR {
				x := f.Splat(f.NewLoad(f.elem, f.Element(f.elem, from, code.Int(r*l.row+u*l.step))), f.p.Lanes())
				for j := range columns {
					next[r*columns+j] = f.muladd(x, bs[j], sums[r*columns+j])
				}
			}
			return next
		}
		if s.Window != nil {
			sums = p.windowSums(f, a, b, depth, sums, step)
		} else {
			sums = f.Fold(code.Int(0), depth, code.Loop{Step: blocks.Unroll, Unroll: 1}, sums, func(k value.Value, sums []value.Value) []value.Value {
				from := f.Element(f.elem, a, f.NewMul(k, code.Int(l.step)))
				panel := f.Element(f.elem, b, f.NewMul(k, code.Int(p.NR)))
				for u := range int64(blocks.Unroll) {
					f.prefetch(panel, (u+ahead)*p.NR, p.NR)
					sums = step(from, u, f.Element(f.elem, panel, code.Int(u*p.NR)), sums)
				}
				return sums
			})
		}
		for i, sum := range sums {
			f.store(sum, c, at(int64(i)))
		}
		f.NewRet(nil)
		return fn
	})
}
