package artifact

// elemBytes are the sizes of the element types, by MLIR's names. An i1 takes a
// byte, and so does an element of the packed types on its own.
var elemBytes = map[string]int64{
	"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "f8E4M3FN": 1, "f8E5M2": 1,
	"i64": 8, "i32": 4, "i16": 2, "i8": 1, "i4": 1, "i1": 1,
	"ui64": 8, "ui32": 4, "ui16": 2, "ui8": 1, "ui4": 1, "index": 8,
}

// packed are the types of which a byte holds two elements, the first one in its
// low half.
var packed = map[string]bool{"i4": true, "ui4": true}

// ElemBytes is the size in bytes of an element type by its name in MLIR; ok is
// false for a type that buffers do not hold. Of a packed type it is the unit in
// which memory is accessed.
func ElemBytes(elem string) (n int64, ok bool) {
	n, ok = elemBytes[elem]
	return n, ok
}

// Len is the number of elements of the buffer; ok is false if the shape is
// invalid or has more than 2^62 of them.
func (b *Buffer) Len() (n int64, ok bool) {
	n, empty := int64(1), false
	for _, d := range b.Shape {
		if d < 0 {
			return 0, false
		}
		if d == 0 {
			empty = true
			continue
		}
		if n > (1<<62)/d {
			return 0, false
		}
		n *= d
	}
	if empty {
		return 0, true
	}
	return n, true
}

// Size is the bytes of the buffer's elements, without padding that Bytes may include;
// 0 for a buffer that Check does not accept.
func (b *Buffer) Size() int64 {
	n, _ := b.Len()
	if packed[b.Elem] {
		return n/2 + n%2
	}
	return n * elemBytes[b.Elem]
}
