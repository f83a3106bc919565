package attend

import (
	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/value"
)

// Shape is what is known of an attention when it is planned.
type Shape struct {
	Heads, Group  int64 // heads in the whole batch; heads that share a key head
	Queries, Keys int64
	Depth, Value  int64
	Scale         float64
	Causal        bool // query i sees the keys up to i + Keys - Queries
	Double        bool // computed in double, else in float
	Mask          Mask
	// Kept is what probabilities that dropout keeps are multiplied by; 0: no dropout.
	Kept float64
}

// Mask is the mask of the scores.
type Mask struct {
	Given      bool
	Rows, Cols bool // whether it has a number for each query, and for each key
}

// Load emits the element at row and col of a matrix, in the type of the computation. It
// may load any memory but that of the thread, and stores none.
type Load func(f *code.Func, matrix, row, col value.Value) value.Value

// Store emits the store of an element.
type Store func(f *code.Func, matrix, row, col, v value.Value)

// Operand is the matrices of an operand.
type Operand struct {
	Load Load
	// At is the address of a matrix whose elements are in memory in the type of the
	// computation, each row Step elements behind the one before; nil where they are not.
	At   func(f *code.Func, matrix value.Value) value.Value
	Step int64
}

// Kernel is what both directions read.
type Kernel struct {
	Q, K, V Operand
	Mask    Load                                                         // of a head, a query and a key
	Keep    func(f *code.Func, head, query, key value.Value) value.Value // whether dropout keeps a probability
}

// shift is how many more keys than its own number a query sees.
func (s Shape) shift() int64 { return s.Keys - s.Queries }

// plain reports whether scores are kept in units of ln 2, so that their exponential is
// a power of two as it is. A mask is not multiplied: it may hold the least finite number.
func (s Shape) plain() bool { return !s.Mask.Given }

const log2E = 1.44269504088896340736

// factor is what products of Q and K are multiplied by.
func (s Shape) factor() float64 {
	if s.plain() {
		return s.Scale * log2E
	}
	return s.Scale
}
