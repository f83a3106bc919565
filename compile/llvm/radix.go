package llvm

import (
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/dialect/types"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

const (
	// radixLine is how long a line is at least that is sorted by digits: below, the counts of digits take longer than merging.
	radixLine = 512
	digitBits = 8
	digits    = 1 << digitBits
)

// radix sorts each line by the digits of its keys, the least significant one first. Keys and indices move from one half of the
// scratch memory to the other, but for digits that all keys have alike.
func radix(f *kernel.Form, l line, most int64, by kernel.Order) single {
	o := f.Main
	x, elem := o.Operands[0], o.Operands[0].Elem()
	keyElem, key, i32 := types.I32, lltypes.I32, lltypes.I32
	if kept(elem).Bytes() > 4 {
		keyElem, key = types.I64, lltypes.I64
	}
	passes := keyElem.Bytes() * 8 / digitBits
	keys, indices := scratchBytes(keyElem, l.N), scratchBytes(types.I32, l.N)
	counts := 2 * (keys + indices)
	return lineLaunch(f, l, l.N*passes, counts+scratchBytes(types.I32, passes*digits), func(b *body, r value.Value) {
		base := l.base(b, r, l.N)
		place := func(at int64) value.Value { return b.Element(lltypes.I8, b.scratch, code.Int(at)) }
		count := place(counts)
		digit := func(k value.Value, pass value.Value) value.Value { // its count
			d := b.NewAnd(b.NewLShr(b.resize(k, lltypes.I64, false), b.NewMul(pass, code.Int(digitBits))), code.Int(digits-1))
			return b.Element(i32, count, b.NewAdd(b.NewMul(pass, code.Int(digits)), d))
		}
		b.For(code.Int(0), code.Int(passes*digits), code.Loop{Vectorize: true}, func(i value.Value) {
			b.NewStore(constant.NewInt(i32, 0), b.Element(i32, count, i))
		})
		b.For(code.Int(0), code.Int(l.N), code.Loop{}, func(i value.Value) {
			k := b.rank(elem, key, by, b.lib.Load(b.Func, elem, b.buffer(x), l.at(b, base, i)))
			b.NewStore(k, b.Element(key, place(0), i))
			b.NewStore(b.NewTrunc(i, i32), b.Element(i32, place(2*keys), i))
			for pass := range passes {
				at := digit(k, code.Int(pass))
				b.NewStore(b.NewAdd(b.NewLoad(i32, at), constant.NewInt(i32, 1)), at)
			}
		})
		sorted := b.Fold(code.Int(0), code.Int(passes), code.Loop{}, []value.Value{place(0), place(2 * keys), place(keys), place(2*keys + indices)}, func(pass value.Value, half []value.Value) []value.Value {
			first := b.NewLoad(key, b.Element(key, half[0], code.Int(0)))
			alike := b.NewICmp(enum.IPredEQ, b.NewLoad(i32, digit(first, pass)), constant.NewInt(i32, l.N))
			moved := b.NewSelect(alike, code.Int(0), code.Int(l.N))
			begin := b.NewMul(pass, code.Int(digits))
			// Counts become the places at which the keys of a digit begin.
			b.Fold(code.Int(0), code.Int(digits), code.Loop{}, []value.Value{constant.NewInt(i32, 0)}, func(d value.Value, acc []value.Value) []value.Value {
				at := b.Element(i32, count, b.NewAdd(begin, d))
				n := b.NewLoad(i32, at)
				b.NewStore(acc[0], at)
				return []value.Value{b.NewAdd(acc[0], n)}
			})
			b.For(code.Int(0), moved, code.Loop{}, func(i value.Value) {
				k, index := b.NewLoad(key, b.Element(key, half[0], i)), b.NewLoad(i32, b.Element(i32, half[1], i))
				at := digit(k, pass)
				to := b.NewLoad(i32, at)
				b.NewStore(b.NewAdd(to, constant.NewInt(i32, 1)), at)
				there := b.NewZExt(to, code.Index)
				b.NewStore(k, b.Element(key, half[2], there))
				b.NewStore(index, b.Element(i32, half[3], there))
			})
			return []value.Value{b.NewSelect(alike, half[0], half[2]), b.NewSelect(alike, half[1], half[3]), b.NewSelect(alike, half[2], half[0]), b.NewSelect(alike, half[3], half[1])}
		})
		l.give(b, f, r, most, sorted[1])
	})
}

// rank is a number without sign that rises in the order of the elements v: zeros are equal, and so are NaNs.
func (b *body) rank(elem types.Elem, key *lltypes.IntType, by kernel.Order, v value.Value) value.Value {
	all := constant.NewInt(key, -1)
	top := constant.NewInt(key, -1<<(key.BitSize-1))
	var k value.Value
	switch {
	case elem.IsFloat():
		float := v.Type()
		zero := b.NewFCmp(enum.FPredOEQ, v, constant.NewFloat(float.(*lltypes.FloatType), 0))
		bits := b.NewBitCast(b.NewSelect(zero, constant.NewFloat(float.(*lltypes.FloatType), 0), v), key)
		negative := b.NewICmp(enum.IPredSLT, bits, constant.NewInt(key, 0))
		k = b.NewXor(bits, b.NewSelect(negative, all, top))
	case elem.IsUnsigned() || elem == types.I1:
		k = b.resize(v, key, false)
	default:
		k = b.NewXor(b.resize(v, key, true), top)
	}
	if by.Falling {
		k = b.NewXor(k, all)
	}
	if elem.IsFloat() {
		end := all
		if by.NaNFirst {
			end = constant.NewInt(key, 0)
		}
		k = b.NewSelect(b.NewFCmp(enum.FPredUNO, v, v), end, k)
	}
	return k
}

// resize is the integer v with the bits of t, which has as many or more.
func (b *body) resize(v value.Value, t *lltypes.IntType, signed bool) value.Value {
	switch from := v.Type().(*lltypes.IntType); {
	case from.BitSize == t.BitSize:
		return v
	case signed:
		return b.NewSExt(v, t)
	}
	return b.NewZExt(v, t)
}
