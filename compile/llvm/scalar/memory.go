package scalar

import (
	"dmir/compile/llvm/code"
	"dmir/dialect/types"

	"github.com/llir/llvm/ir/value"
)

// Load is element number at, an i64, of the array at base, a pointer of any type.
func (l *Lib) Load(f *code.Func, elem types.Elem, base, at value.Value) value.Value {
	b := builder{Func: f}
	t := Storage(elem)
	if !elem.Packed() {
		return b.widen(b.NewLoad(t, b.Element(t, base, at)), elem)
	}
	byte := b.NewLoad(t, b.Element(t, base, b.NewLShr(at, i64(1))))
	return b.widen(b.NewLShr(byte, b.half(at)), elem)
}

// half is the number of bits below element number at of its byte.
func (b builder) half(at value.Value) value.Value {
	return b.NewShl(b.NewAnd(b.resized(at, Storage(types.I4)), whole(Storage(types.I4), 1)), whole(Storage(types.I4), 2))
}

// Store stores v, which is in its register type, rounded. Of packed elements it
// changes one half of a byte, and must not run beside a store of the other half.
func (l *Lib) Store(f *code.Func, elem types.Elem, base, at, v value.Value) {
	b := builder{Func: f}
	t := Storage(elem)
	if !elem.Packed() {
		b.NewStore(b.narrow(v, elem), b.Element(t, base, at))
		return
	}
	p, shift := b.Element(t, base, b.NewLShr(at, i64(1))), b.half(at)
	// Volatile, since clang 14 makes wrong vector code of loops over both halves.
	old := b.NewLoad(t, p)
	old.Volatile = true
	other := b.NewAnd(old, b.NewLShr(whole(t, 0xf0), shift))
	b.NewStore(b.NewOr(other, b.NewShl(b.NewAnd(v, whole(t, 0xf)), shift)), p).Volatile = true
}
