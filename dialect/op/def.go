package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Family groups ops on the reference page; the row of the level-1 table.
type Family string

// The families.
const (
	Contraction   Family = "contraction"
	Elementwise   Family = "element-wise"
	Normalization Family = "normalization and reduction"
	Attention     Family = "attention"
	Movement      Family = "movement"
	Sources       Family = "sources"
	Control       Family = "control"
	Kernels       Family = "kernels"
	Training      Family = "training"
	Groups        Family = "groups of values"
	SparseTensors Family = "sparse tensors"
	Distribution  Family = "distribution"
)

// Class is the cost class of an op (Ivanov et al., MLSys 2021, §3, with
// movement set apart): what kind of kernel it becomes.
type Class string

// The classes, in the order in which a kernel takes the class of its strongest op.
const (
	ClassMovement      Class = "movement"
	ClassElementwise   Class = "elementwise"
	ClassNormalization Class = "normalization"
	ClassContraction   Class = "contraction"
)

// Trait is a property that several tools ask about.
type Trait uint32

// The traits.
const (
	Pure        Trait = 1 << iota // no side effect, same result for same operands: may be removed or merged
	Pointwise                     // result element i depends on element i of each (broadcast) operand only
	View                          // moves nothing when the order of elements is kept
	Terminator                    // ends a block
	Commutative                   // operands may be swapped
	Isolated                      // its regions see no outside values
	Random                        // depends on a seed
	Cast                          // there for the type that its text asks for, which no operand tells
	Windowed                      // a result element is computed from a window, which moves over the first operand
	Update                        // the result is the first operand with a part replaced; see InPlace
	Memberwise                    // of tuples it is the op on each of their members; see Split
	Collective                    // devices run it together, each with its own operands
)

// KernelKind is the kind of kernel that computes an op on a device.
type KernelKind uint8

// The kinds of kernels.
const (
	Fusible   KernelKind = iota // a kernel, with others around it where that saves time
	Selective                   // a kernel, with ops that have one element for each of its result or of an operand; with others only where the program has them in one dm.kernel, since it would do their work many times. Its first operand is read at the index of the result
	Library                     // a kernel written for the op, which takes no other
	Structure                   // none: it groups or orders ops, or a pass writes it out
)

// Orders are the orders of dimensions in memory that an op's tensors can have.
type Orders uint8

// The kinds of orders.
const (
	OwnOrders   Orders = iota // that of the text
	AlikeOrders               // any, the same for results and for operands with all of their dimensions; also of Pointwise ops
	AnyOrders                 // any, each tensor another
)

// AttrKind is the form of an attribute's value.
type AttrKind string

// The attribute kinds.
const (
	KindInt     AttrKind = "integer"
	KindFloat   AttrKind = "float"
	KindBool    AttrKind = "bool"
	KindString  AttrKind = "string"
	KindKeyword AttrKind = "keyword"   // one of Enum
	KindInts    AttrKind = "integers"  // [1, 0]
	KindPairs   AttrKind = "pairs"     // [[0, 1], [2, 3]]
	KindDense   AttrKind = "dense"     // dense<…>
	KindSymbol  AttrKind = "symbol"    // @f
	KindName    AttrKind = "name"      // @f where the op defines it; a string in generic form
	KindStrings AttrKind = "strings"   // ["data", "model"]
	KindPlace   AttrKind = "placement" // #dm.at<…>
	KindSize    AttrKind = "size"      // 1000, or a formula of symbols as a string
)

// Param is an operand or a result.
type Param struct {
	Name     string
	Elems    []types.Elem // allowed element types; nil is any
	Doc      string
	Optional bool   // at most one, may be absent; only the last ones
	Variadic bool   // any number; only the last
	Drawn    bool   // of a result: it depends on no elements of operands that are not optional
	Tuples   bool   // it may be a tuple of tensors of these element types
	With     string // of an optional operand: the attribute with which it is given, as the last one
	Strided  bool   // of an operand or a result of a library op: its kernel takes the strides of all dimensions but the last
}

// AttrDef is an attribute: a clause of the pretty form, or the lead.
type AttrDef struct {
	Name     string
	Kind     AttrKind
	Lead     bool       // written before the operands: einsum's equation, compare's direction
	Default  types.Attr // nil and not Optional: required
	Optional bool
	Enum     []string
	Order    bool // the integers are a permutation of the first operand's dimensions
	Doc      string
}

// RegionDef is a region.
type RegionDef struct {
	Name     string
	Keyword  string // written before the region where there are several ("else", "do")
	Doc      string
	Optional bool
}

// Problem is a violated rule, to be shown at the op.
type Problem struct {
	Code    string // "DM1xx"; listed in Codes
	Msg     string // one sentence with the shapes or values in it
	Help    string // what to do, may be empty
	Operand int    // index of the operand to underline, -1 for the op's head
	Attr    string // attribute to underline, wins over Operand where set
}

// Def describes an op.
type Def struct {
	Name    string // without "dm."
	Family  Family
	Class   Class
	Summary string // one line, no final stop
	Doc     string // paragraphs of Markdown: shapes, formulas with their source, what is counted
	Example string // complete lines of MLIR inside a function; parsed, verified and run by tests

	Foreign []Foreign // what other frameworks call it

	Operands []Param
	Results  []Param
	Attrs    []AttrDef
	Regions  []RegionDef
	Traits   Trait

	// Infer gives the result types from the operands, attributes and regions.
	// It is called, through the function Infer, only when the operands are tensors
	// of the allowed element types and the attributes have their kinds. nil: the
	// types are as written.
	Infer func(o *ir.Op) ([]types.Type, *Problem)
	// Verify checks what Infer does not; nil: nothing more.
	Verify func(o *ir.Op) *Problem
	// FLOP counts floating-point operations as the table of definitions on the
	// reference page states; nil is 0. while, if and kernel count one execution of
	// their regions (if: the costlier one), map and reduce their region for every
	// element.
	FLOP func(o *ir.Op) dim.Dim
	// Traffic overrides the bytes read per operand (same length as Operands) and
	// written in total; nil: every operand and every result once in full. That of
	// an Update is what it moves in place; see TrafficOf.
	Traffic func(o *ir.Op) (read []dim.Dim, written dim.Dim)
	// Maps gives the iteration space of the ops that have one; nil where none.
	Maps func(o *ir.Op) *Iteration
	// Factors is how the op can be divided over devices, of ops for which that does not
	// follow from Maps; see FactorsOf.
	Factors func(o *ir.Op) *Factors
	// Divides names the dimensions with factors, and Whole is why there are none, as a
	// sentence in Markdown; Pointwise ops, and those that are no kernels, may have neither.
	Divides, Whole string
	// Exchange adds the Exchanged factors to those of Factors; nil: there are none. Exchanges
	// names their dimensions.
	Exchange  func(o *ir.Op, f *Factors)
	Exchanges string
	// Linear is the field of Factors; nil: none.
	Linear func(o *ir.Op) [][]int
	// Piece changes the attributes of an op on pieces, a copy of whole with the
	// operands and result types of one device, that depend on the sizes of divided
	// dimensions; nil: none does.
	Piece  func(piece, whole *ir.Op)
	Kernel KernelKind // what computes it on a device
	Orders Orders     // in which its tensors can lie in memory
	// Move is the pieces that the result is put together from, of the ops that
	// compute nothing; nil where that depends on a size that is no number. See MoveOf.
	Move func(o *ir.Op) []Piece
	// Reduced is the dimensions of the first operand that become one element, of the
	// ops that reduce dimensions as a whole; nil of others.
	Reduced func(o *ir.Op) (dims []int, ok bool)
	// Row is the dimensions of a row, see RowDims; nil: those that attribute dims or
	// dim names, else the last.
	Row func(o *ir.Op) []int
	// Scalar is the function of the ops that compute an element of their result from
	// one element of each operand; nil of others.
	Scalar *Scalar
	// Classes is the operand whose elements are numbers of classes, or of rows of a table, how many of these there
	// are, and the number that stands for none; nil of ops that have no such operand.
	Classes func(o *ir.Op) (operand int, count dim.Dim, none int64)
	// Steps is about how many instructions a device takes for an element of the
	// result; 0: one.
	Steps int
	// Expand rewrites a verified, Valid op into simpler ones that compute the
	// same function, inserted at b, which must stand before o; it returns the
	// values that replace o's results, or nil, leaving the block as it was, where
	// it needs a size in numbers that is a symbol. nil: the op is no composite.
	Expand func(b *ir.Builder, o *ir.Op) []*ir.Value
	// Sparse is how the op takes sparse tensors; nil: it takes none.
	Sparse *Sparse
	// Derivative is how gradients flow back. nil: by what the op expands to or, for
	// ops with regions, through these; sources and terminators have none.
	Derivative *Derivative
}

// Is reports whether d has all traits of t.
func (d *Def) Is(t Trait) bool { return d != nil && d.Traits&t == t }

// Iteration is an op's iteration space in the vocabulary of structured code
// generation (Vasilache et al., arXiv 2202.03293): loop dimensions, which of
// them reduce, and for every operand and result the loop of each of its dimensions.
type Iteration struct {
	Loops    []dim.Dim
	Names    []string // of the loops: the letters of an equation, or d0, d1 …
	Reduces  []bool
	Operands [][]int // loop of each dimension; -1 for a broadcast dimension of size 1
	Results  [][]int
}
