package collective

import (
	"encoding/binary"
	"fmt"
	"math"
)

// wire is the form in which elements are reduced by MPI: its types, its operations.
type wire struct {
	elem string // of MPI
	how  Reduction
	unit int // bytes of an element of MPI
	from string
	// Both are nil where the elements are those of MPI.
	read  func(b []byte, to []byte) // converts to those of MPI
	write func(b []byte, to []byte)
}

// wireOf converts what libraries do not reduce, or not all of them alike: floating-point
// types below f32 become f32; numbers of which a NaN can be the maximum become integers in
// their order; integers below 32 bits become i32, since Open MPI 4.1 adds them with
// saturation; and a maximum of an unsigned type becomes one of its signed type, since MPICH
// 4.0 orders both so.
func wireOf(how Reduction, elem string) *wire {
	ordered, bitwise := how == Max || how == Min, how == And || how == Or
	switch {
	case elem == "f64" && ordered:
		return &wire{"i64", how, 8, elem, func(b, to []byte) { keys64(how, b, to) }, numbers64}
	case isFloat(elem) && ordered:
		return &wire{"i32", how, 4, elem, func(b, to []byte) { keys32(how, elem, b, to) }, func(b, to []byte) { numbers32(elem, b, to) }}
	case narrow[elem]:
		return &wire{"f32", how, 4, elem, func(b, to []byte) { convert32(elem, b, to) }, func(b, to []byte) { convertBack32(elem, b, to) }}
	case isFloat(elem):
		return &wire{elem: elem, how: how, unit: width(elem), from: elem}
	case elem == "i1":
		return &wire{"ui8", logical(how), 1, elem, truths, func(b, to []byte) { copy(to, b) }}
	case width(elem) < 4 && !bitwise:
		w := &wire{"i32", how, 4, elem, func(b, to []byte) { extend(elem, b, to) }, func(b, to []byte) { cut(elem, b, to) }}
		if !ordered {
			w.elem = "ui32"
		}
		return w
	}
	unsigned := fmt.Sprint("ui", 8*width(elem)) // wraps in C
	w := &wire{elem: unsigned, how: how, unit: width(elem), from: elem}
	if ordered {
		w.elem = unsigned[1:]
		if isUnsigned(elem) {
			w.read = func(b, to []byte) { flip(w.unit, b, to) }
			w.write = w.read
		}
	}
	return w
}

// count is how many elements of MPI b holds.
func (w *wire) count(b []byte) int { return len(b) / w.unit }

// size is the bytes that b takes for MPI.
func (w *wire) size(b []byte) int {
	if w.read == nil {
		return len(b)
	}
	return count(w.from, b) * w.unit
}

// encode is b for MPI, itself where it needs no conversion.
func (w *wire) encode(b []byte) []byte {
	if w.read == nil {
		return b
	}
	to := make([]byte, w.size(b))
	w.read(b, to)
	return to
}

// decode converts what encode has made back.
func (w *wire) decode(b, to []byte) {
	if w.write != nil {
		w.write(b, to)
	}
}

// blocks32 passes f the elements of b in blocks of float32, with their place.
func blocks32(elem string, b []byte, f func(at int, block []float32)) {
	var block [1 << 10]float32
	unit := width(elem)
	for lo := 0; lo < len(b); lo += len(block) * unit {
		part := b[lo:min(lo+len(block)*unit, len(b))]
		n := len(part) / unit
		widen(elem, part, block[:n])
		f(lo/unit, block[:n])
	}
}

func convert32(elem string, b, to []byte) {
	blocks32(elem, b, func(at int, block []float32) { round("f32", block, to[4*at:4*(at+len(block))]) })
}

func convertBack32(elem string, b, to []byte) {
	unit := width(elem)
	blocks32("f32", b, func(at int, block []float32) { round(elem, block, to[unit*at:unit*(at+len(block))]) })
}

// keys32 are integers in the order of numbers, from -0 to +0 too; NaN is beyond the
// end that the reduction looks for.
func keys32(how Reduction, elem string, b, to []byte) {
	nan := int32(math.MaxInt32)
	if how == Min {
		nan = math.MinInt32
	}
	blocks32(elem, b, func(at int, block []float32) {
		for i, v := range block {
			key := int32(math.Float32bits(v))
			if key < 0 {
				key ^= math.MaxInt32
			}
			if v != v {
				key = nan
			}
			binary.LittleEndian.PutUint32(to[4*(at+i):], uint32(key))
		}
	})
}

func numbers32(elem string, b, to []byte) {
	numbers := make([]byte, len(b))
	for i := 0; i < len(b); i += 4 {
		key := int32(binary.LittleEndian.Uint32(b[i:]))
		switch {
		case key == math.MaxInt32 || key == math.MinInt32:
			key = int32(math.Float32bits(float32(math.NaN())))
		case key < 0:
			key ^= math.MaxInt32
		}
		binary.LittleEndian.PutUint32(numbers[i:], uint32(key))
	}
	convertBack32(elem, numbers, to)
}

// keys64 is keys32 of f64.
func keys64(how Reduction, b, to []byte) {
	nan := int64(math.MaxInt64)
	if how == Min {
		nan = math.MinInt64
	}
	for i := 0; i < len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i:])
		key := int64(v)
		if key < 0 {
			key ^= math.MaxInt64
		}
		if math.IsNaN(math.Float64frombits(v)) {
			key = nan
		}
		binary.LittleEndian.PutUint64(to[i:], uint64(key))
	}
}

func numbers64(b, to []byte) {
	for i := 0; i < len(b); i += 8 {
		key := int64(binary.LittleEndian.Uint64(b[i:]))
		switch {
		case key == math.MaxInt64 || key == math.MinInt64:
			key = int64(math.Float64bits(math.NaN()))
		case key < 0:
			key ^= math.MaxInt64
		}
		binary.LittleEndian.PutUint64(to[i:], uint64(key))
	}
}

// extend makes integers i32, and cut makes them small again.
func extend(elem string, b, to []byte) { resize(elem, "i32", b, to) }
func cut(elem string, b, to []byte)    { resize("i32", elem, b, to) }

func resize(from, into string, b, to []byte) {
	var block [1 << 10]int64
	n := count(from, b)
	each, eachTo := len(b)*len(block)/max(n, 1), len(to)*len(block)/max(n, 1)
	for len(b) > 0 {
		part, partTo := b[:min(each, len(b))], to[:min(eachTo, len(to))]
		readInts(from, part, block[:])
		writeInts(into, block[:], partTo)
		b, to = b[len(part):], to[len(partTo):]
	}
}

// flip moves unsigned integers of n bytes into the order of signed ones, and back, by
// their top bit.
func flip(n int, b, to []byte) {
	copy(to, b)
	for i := n - 1; i < len(to); i += n {
		to[i] ^= 0x80
	}
}

func truths(b, to []byte) {
	for i, v := range b {
		to[i] = v & 1
	}
}
