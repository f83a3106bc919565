package llvm

import (
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	dm "dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// library is the scheme of an op that a library kernel computes.
func (g generator) library(f *kernel.Form) (scheme, error) {
	return kernel.Library[scheme]{
		Attention: g.attention, AttentionGradient: g.attentionGradient, SegmentAttention: newSegmentAttention, SegmentProduct: newSegmentProduct, SegmentDenseProduct: newSegmentProduct, SegmentSample: newSegmentSample,
		Running: func(f *kernel.Form, kind string) scheme { return running(f, kind) },
		Argmax:  func(f *kernel.Form) scheme { return argmax(f) },
		Ordered: func(f *kernel.Form, most int64, by kernel.Order) (scheme, error) { return ordered(f, most, by), nil },
	}.Of(f)
}

// line is a kernel.Line, of which code is generated.
type line struct{ kernel.Line }

func lineOfDim(o *dm.Op) line { return line{kernel.LineOf(o)} }

// base is the start of line r of lines of n elements.
func (l line) base(b *body, r value.Value, n int64) value.Value {
	if l.Inner == 1 {
		return b.NewMul(r, code.Int(n))
	}
	return b.NewAdd(b.NewMul(b.NewUDiv(r, code.Int(l.Inner)), code.Int(n*l.Inner)), b.NewURem(r, code.Int(l.Inner)))
}

// at is the offset of element i of a line that starts at base.
func (l line) at(b *body, base, i value.Value) value.Value {
	if l.Inner != 1 {
		i = b.NewMul(i, code.Int(l.Inner))
	}
	return b.NewAdd(base, i)
}

// lineLaunch is a kernel that computes the lines of l one by one; a task has some.
func lineLaunch(f *kernel.Form, l line, effort int64, scratch int64, each func(b *body, r value.Value)) single {
	ps := newParams()
	ps.reads(f.Inputs)
	ps.writes(f.Outputs, nil)
	lines := max(1, task/max(1, effort))
	s := newLaunch("", f.Class, ceil(l.Lines, lines), ps.list, func(b *body) error {
		from, to := b.span(b.first, b.last, lines, l.Lines)
		b.loop(nil, from, to, code.Loop{}, func(r value.Value) { each(b, r) })
		return nil
	})
	s.Scratch = scratch
	return single{s}
}

// stored is the memory of result i, nil where it is not stored.
func (b *body) stored(f *kernel.Form, i int) value.Value { return b.params[f.Main.Results[i]] }

// running joins the elements of each line in order, by a reduction of the kind.
func running(f *kernel.Form, kind string) single {
	o := f.Main
	l := lineOfDim(o)
	x, elem := o.Operands[0], o.Results[0].Elem()
	sum := kept(elem)
	if sum == types.F32 && kind != "max" {
		sum = types.F64 // long sums lose less precision; the reference does the same
	}
	convert := func(b *body, from, to types.Elem, v value.Value) value.Value {
		if from == to {
			return v
		}
		return b.lib.Apply(b.Func, &kernel.Expr{Op: "convert", Elem: to, Args: []*kernel.Expr{{Elem: from}}}, []value.Value{v})
	}
	half := op.Str(o, "accumulate") == "f16"
	return lineLaunch(f, l, l.N, 0, func(b *body, r value.Value) {
		base := l.base(b, r, l.N)
		begin := b.lib.Identity(kind, sum)
		b.Fold(code.Int(0), code.Int(l.N), code.Loop{}, []value.Value{begin}, func(i value.Value, acc []value.Value) []value.Value {
			if op.Bool(o, "reverse") {
				i = b.NewSub(code.Int(l.N-1), i)
			}
			at := l.at(b, base, i)
			v := b.lib.Load(b.Func, x.Elem(), b.buffer(x), at)
			next := b.lib.Combine(b.Func, kind, sum, acc[0], convert(b, kept(elem), sum, v), false)
			if half {
				next = convert(b, types.F16, sum, convert(b, sum, types.F16, next))
			}
			out := next
			if op.Bool(o, "exclusive") {
				out = acc[0]
			}
			b.lib.Store(b.Func, elem, b.stored(f, 0), at, convert(b, sum, kept(elem), out))
			return []value.Value{next}
		})
	})
}

// comesBefore is whether element v with index j precedes u with index i in an order.
func comesBefore(b *body, elem types.Elem, by kernel.Order, u, i, v, j value.Value) value.Value {
	earlier := b.NewICmp(enum.IPredSLT, j, i)
	if !elem.IsFloat() {
		first := enum.IPredSLT
		switch unsigned := elem.IsUnsigned() || elem == types.I1; {
		case unsigned && by.Falling:
			first = enum.IPredUGT
		case unsigned:
			first = enum.IPredULT
		case by.Falling:
			first = enum.IPredSGT
		}
		return b.NewOr(b.NewICmp(first, v, u), b.NewAnd(b.NewICmp(enum.IPredEQ, u, v), earlier))
	}
	precedes := func(v, u value.Value) value.Value {
		less, first, second := enum.FPredOLT, v, u
		if by.Falling {
			less = enum.FPredOGT
		}
		if !by.NaNFirst {
			first, second = u, v
		}
		return b.NewOr(b.NewFCmp(less, v, u), b.NewAnd(b.NewFCmp(enum.FPredUNO, first, first), b.NewFCmp(enum.FPredORD, second, second)))
	}
	return b.NewOr(precedes(v, u), b.NewAnd(b.NewXor(precedes(u, v), constant.True), earlier))
}

// argmax finds the first of the largest elements of each line.
func argmax(f *kernel.Form) single {
	o := f.Main
	l := lineOfDim(o)
	x, elem := o.Operands[0], o.Operands[0].Elem()
	return lineLaunch(f, l, l.N, 0, func(b *body, r value.Value) {
		base := l.base(b, r, l.N)
		load := func(i value.Value) value.Value { return b.lib.Load(b.Func, elem, b.buffer(x), l.at(b, base, i)) }
		zero := code.Int(0)
		best := b.Fold(code.Int(1), code.Int(l.N), code.Loop{}, []value.Value{load(zero), zero}, func(j value.Value, acc []value.Value) []value.Value {
			v := load(j)
			better := comesBefore(b, elem, kernel.Greatest, acc[0], acc[1], v, j)
			return []value.Value{b.NewSelect(better, v, acc[0]), b.NewSelect(better, j, acc[1])}
		})
		b.lib.Store(b.Func, o.Results[0].Elem(), b.stored(f, 0), r, b.counted(o.Results[0].Elem(), best[1]))
	})
}

// counted is the index i as an element.
func (b *body) counted(elem types.Elem, i value.Value) value.Value {
	return b.lib.Apply(b.Func, &kernel.Expr{Op: "convert", Elem: elem, Args: []*kernel.Expr{{Elem: types.I64}}}, []value.Value{i})
}

// ordered sorts each line: long ones by their digits, short ones by merging, in which runs of sorted indices become
// longer ones, from one half of the scratch memory to the other. Both are stable.
func ordered(f *kernel.Form, most int64, by kernel.Order) single {
	o := f.Main
	l := lineOfDim(o)
	if l.N >= radixLine {
		return radix(f, l, most, by)
	}
	x, elem := o.Operands[0], o.Operands[0].Elem()
	i32 := lltypes.I32
	half := scratchBytes(types.I32, l.N)
	return lineLaunch(f, l, l.N*16, 2*half, func(b *body, r value.Value) {
		base := l.base(b, r, l.N)
		load := func(i value.Value) value.Value { return b.lib.Load(b.Func, elem, b.buffer(x), l.at(b, base, i)) }
		read := func(p, i value.Value) value.Value {
			return b.NewZExt(b.NewLoad(i32, b.Element(i32, p, i)), code.Index)
		}
		from, to := value.Value(b.Element(lltypes.I8, b.scratch, code.Int(0))), value.Value(b.Element(lltypes.I8, b.scratch, code.Int(half)))
		b.For(code.Int(0), code.Int(l.N), code.Loop{Vectorize: true}, func(i value.Value) {
			b.NewStore(b.NewTrunc(i, i32), b.Element(i32, from, i))
		})
		sorted := b.While([]value.Value{code.Int(1), from, to}, func(acc []value.Value) value.Value {
			return b.NewICmp(enum.IPredSLT, acc[0], code.Int(l.N))
		}, func(acc []value.Value) []value.Value {
			width, src, dst := acc[0], acc[1], acc[2]
			twice := b.NewMul(width, code.Int(2))
			b.While([]value.Value{code.Int(0)}, func(run []value.Value) value.Value {
				return b.NewICmp(enum.IPredSLT, run[0], code.Int(l.N))
			}, func(run []value.Value) []value.Value {
				left := run[0]
				middle := b.least(b.NewAdd(left, width), code.Int(l.N))
				right := b.least(b.NewAdd(left, twice), code.Int(l.N))
				// u and v are the next of both runs; the first one is copied.
				b.Fold(left, right, code.Loop{}, []value.Value{left, middle}, func(k value.Value, at []value.Value) []value.Value {
					haveU, haveV := b.NewICmp(enum.IPredSLT, at[0], middle), b.NewICmp(enum.IPredSLT, at[1], right)
					u := b.NewSelect(haveU, at[0], left)
					v := b.NewSelect(haveV, at[1], left)
					i, j := read(src, u), read(src, v)
					swap := comesBefore(b, elem, by, load(i), i, load(j), j)
					second := b.NewAnd(haveV, b.NewOr(b.NewXor(haveU, constant.True), swap))
					b.NewStore(b.NewTrunc(b.NewSelect(second, j, i), i32), b.Element(i32, dst, k))
					one := b.NewZExt(second, code.Index)
					return []value.Value{b.NewAdd(at[0], b.NewSub(code.Int(1), one)), b.NewAdd(at[1], one)}
				})
				return []value.Value{b.NewAdd(left, twice)}
			})
			return []value.Value{twice, dst, src}
		})
		l.give(b, f, r, most, sorted[1])
	})
}

// give stores the first most elements of line r, by their indices in order, and their numbers.
func (l line) give(b *body, f *kernel.Form, r value.Value, most int64, order value.Value) {
	o := f.Main
	x, elem := o.Operands[0], o.Operands[0].Elem()
	base, out := l.base(b, r, l.N), l.base(b, r, most)
	b.For(code.Int(0), code.Int(most), code.Loop{}, func(k value.Value) {
		i := b.NewZExt(b.NewLoad(lltypes.I32, b.Element(lltypes.I32, order, k)), code.Index)
		at := l.at(b, out, k)
		if p := b.stored(f, 0); p != nil {
			b.lib.Store(b.Func, elem, p, at, b.lib.Load(b.Func, elem, b.buffer(x), l.at(b, base, i)))
		}
		if len(o.Results) > 1 && b.stored(f, 1) != nil {
			b.lib.Store(b.Func, o.Results[1].Elem(), b.stored(f, 1), at, b.counted(o.Results[1].Elem(), i))
		}
	})
}
