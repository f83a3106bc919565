package gemm

import "github.com/llir/llvm/ir/types"

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

// Type is a as LLVM has it.
func (a Acc) Type() types.Type {
	return [...]types.Type{types.Float, types.Double, types.I32, types.I64}[a]
}

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
}
