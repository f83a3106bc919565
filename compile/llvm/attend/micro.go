package attend

import (
	"fmt"

	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// product is the shape of C = A·B for a panel of B: of A as its elements lie, of B and C
// as rows of vectors.
type product struct {
	rows      int64 // of C in a tile
	vecs      int64 // vectors of a row of C
	row, step int64 // distance of the rows of A, and of its steps along the depth
	b, c      int64 // distance of the rows of B and of C
	into      into
}

// into is what becomes of what C was before.
type into int

const (
	overwrite into = iota
	add
	rescale // each column is multiplied by a factor
)

// unroll is how many steps of the depth an iteration of the micro-kernel sums.
const unroll = 4

// micro is the function that computes a tile, which is in registers throughout: a step
// loads the vectors of B once and broadcasts each element of A.
//
//	void micro(T *a, T *b, T *c, T *factors, i64 depth)
//
// It is not inlined, so that all registers are its own.
func (s *sizes) micro(m *code.Module, p product) *ir.Func {
	name := fmt.Sprintf("attend.%s.%dx%d.a%d.%d.b%d.c%d.%d", s.elem(), p.rows, p.vecs*s.lanes, p.row, p.step, p.b, p.c, p.into)
	return m.Once(name, func() *ir.Func {
		var ps []*ir.Param
		for _, n := range []string{"a", "b", "c", "factors"} {
			x := ir.NewParam(n, types.NewPointer(s.elem()))
			x.Attrs = append(x.Attrs, enum.ParamAttrNoAlias)
			ps = append(ps, x)
		}
		a, b, c, factors, depth := ps[0], ps[1], ps[2], ps[3], ir.NewParam("depth", code.Index)
		fn := m.NewFunc(name, types.Void, append(ps, depth)...)
		fn.Linkage = enum.LinkageInternal
		fn.FuncAttrs = append(fn.FuncAttrs, enum.FuncAttrNoInline, enum.FuncAttrNoUnwind)
		v := s.vectors(m.NewFuncBody(fn))

		at := func(i, j int64) value.Value { return code.Int(i*p.c + j*s.lanes) }
		var sums []value.Value
		for i := range p.rows {
			for j := range p.vecs {
				switch p.into {
				case overwrite:
					sums = append(sums, constant.NewZeroInitializer(v.vec))
				case add:
					sums = append(sums, v.load(c, at(i, j)))
				case rescale:
					sums = append(sums, v.NewFMul(v.load(c, at(i, j)), v.load(factors, code.Int(j*s.lanes))))
				}
			}
		}
		steps := func(n int64) func(k value.Value, sums []value.Value) []value.Value {
			return func(k value.Value, sums []value.Value) []value.Value {
				from, panel := v.at(a, v.NewMul(k, code.Int(p.step))), v.at(b, v.NewMul(k, code.Int(p.b)))
				if n == unroll && p.vecs == 1 {
					v.prefetch(p, a, k)
				}
				for u := range n {
					var bs, next []value.Value
					for j := range p.vecs {
						bs = append(bs, v.load(panel, code.Int(u*p.b+j*s.lanes)))
					}
					for i := range p.rows {
						x := v.splat(v.NewLoad(v.elem, v.at(from, code.Int(i*p.row+u*p.step))))
						for j := range p.vecs {
							next = append(next, v.muladd(x, bs[j], sums[i*p.vecs+j]))
						}
					}
					sums = next
				}
				return sums
			}
		}
		even := v.NewAnd(depth, code.Int(-unroll))
		sums = v.Fold(code.Int(0), even, code.Loop{Step: unroll, Unroll: 1}, sums, steps(unroll))
		sums = v.Fold(even, depth, code.Loop{Unroll: 1}, sums, steps(1))
		for i := range p.rows {
			for j := range p.vecs {
				v.store(sums[i*p.vecs+j], c, at(i, j))
			}
		}
		v.NewRet(nil)
		return fn
	})
}

// operands are the addresses of a product, and its depth.
type operands struct {
	a, b, c, factors value.Value
	depth            value.Value
}

// multiply computes n rows of C, which are rounded up to whole tiles as far as the rows
// of A below limit suffice. rest is the rows that limit leaves of a tile, if any.
func (v vectors) multiply(p product, n, limit value.Value, rest int64, o operands) {
	if o.factors == nil {
		o.factors = constant.NewNull(types.NewPointer(v.elem))
	}
	tile := func(rows int64, i value.Value) {
		q := p
		q.rows = rows
		v.Call(v.s.micro(v.M, q), v.at(o.a, v.NewMul(i, code.Int(p.row))), o.b, v.at(o.c, v.NewMul(i, code.Int(p.c))), o.factors, o.depth)
	}
	whole := v.NewMul(v.least(v.parts(n, p.rows), v.NewUDiv(limit, code.Int(p.rows))), code.Int(p.rows))
	v.For(code.Int(0), whole, code.Loop{Step: p.rows, Unroll: 1}, func(i value.Value) { tile(p.rows, i) })
	if rest > 0 {
		v.If(v.NewICmp(enum.IPredSGT, n, whole), func() { tile(rest, whole) })
	}
}

// prefetch asks for what the next tile reads of A, where products are so small that
// memory limits them: a few lines in each iteration, since the order in which a tile
// reads its rows is not one that hardware foresees. Addresses may lie behind A.
func (v vectors) prefetch(p product, a, k value.Value) {
	ask := func(at value.Value) { v.Prefetch(a, v.NewMul(at, code.Int(v.s.size())), 1, code.L2) }
	if p.step != 1 { // one line of each row, behind that of this tile
		for u := range int64(unroll) {
			ask(v.NewAdd(v.NewMul(v.NewAdd(k, code.Int(u)), code.Int(p.step)), code.Int(2*p.rows)))
		}
		return
	}
	// The rows behind those of this tile: some in each of the iterations that read one line.
	line := code.CacheLine / v.s.size() / unroll
	each := ceil(p.rows, line)
	first := v.NewMul(v.NewURem(v.NewUDiv(k, code.Int(unroll)), code.Int(line)), code.Int(each))
	for j := range each {
		row := v.NewAdd(first, code.Int(p.rows+j))
		ask(v.NewAdd(v.NewMul(row, code.Int(p.row)), k))
	}
}
