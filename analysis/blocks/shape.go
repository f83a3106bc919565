package blocks

// Acc is the type of the sums.
type Acc int

// The types of sums. Integers wrap.
const (
	F32 Acc = iota
	F64
	I32
	I64
)

// Size is the bytes of a sum.
func (a Acc) Size() int64 {
	if a == F64 || a == I64 {
		return 8
	}
	return 4
}

// Float reports whether a is a floating-point type.
func (a Acc) Float() bool { return a == F32 || a == F64 }

func (a Acc) String() string { return [...]string{"f32", "f64", "i32", "i64"}[a] }

// Axis is one of the two indices of an operand's row.
type Axis int

// The axes along which an operand's elements may be neighbours in memory.
const (
	Depth Axis = iota // k
	Outer             // m of A, n of B
)

// Shape is what is known of a product when it is planned. Sizes are 1 or more.
type Shape struct {
	Batch, Rows, Cols, Depth int64
	// Products is the number of B operands that share A, each with its own sums.
	Products int
	Acc      Acc
	// Half: the sums are F32, but each product and partial sum is rounded to f16.
	Half bool
	// A and B are the axes along which neighbours lie side by side in memory.
	A, B Axis
	// Window, if not nil, is how B is read from an image, of which Kernel.Image has the
	// elements. There is one product then, and Half is false.
	Window *Window
	// Grouped: the matrices of the batch share the rows, or the depth, of which each has a part that is data.
	Grouped bool
}

// Window states that B is the channels of an image over which a window moves. The depth is
// numbered channel by channel, and in each tap by tap. Row k of B is a run of a plane of its
// channel: B[n, k] is element n + Shift of the tap's plane.
//
// So B is not packed. The elements that a block of columns needs are copied once, and not
// once for each tap, and the micro-kernel reads each row of B where it is, as the direct
// convolutions of Georganas et al. do ("Anatomy of High-Performance Deep Learning
// Convolutions on SIMD Architectures", SC 2018). Theirs need images in a layout of their own.
type Window struct {
	Line   int64 // elements of a line of a plane
	Step   int64 // elements of an image's line for one of a plane's
	Planes int64 // of a channel; Shared ones, one after the other, are made of the same lines
	Shared int64
	Taps   []Tap
}

// Tap is where a tap of the window reads the element of column 0.
type Tap struct{ Plane, Shift int64 }

// Halo is how many elements beyond a column the taps reach.
func (w *Window) Halo() int64 {
	halo := int64(0)
	for _, t := range w.Taps {
		halo = max(halo, t.Shift)
	}
	return halo
}
