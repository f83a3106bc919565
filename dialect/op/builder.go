package op

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Builder makes ops whose result types follow from the registry, so that a
// rewrite states only what it computes. It builds where the ir.Builder stands.
// The first failure is kept (Err); what is built after it is void.
type Builder struct {
	*ir.Builder
	check  func(*ir.Op) *Problem
	start  int // Index where it began
	failed bool
	reason string
}

// NewBuilder builds at b. An op of which check, where it is not nil, returns a
// problem is a failure.
func NewBuilder(b *ir.Builder, check func(*ir.Op) *Problem) *Builder {
	return &Builder{Builder: b, check: check, start: b.Index}
}

// Undo erases what was built, which nothing else may use.
func (b *Builder) Undo() {
	for ; b.Index > b.start; b.Index-- {
		ir.EraseAll(b.Block.Ops[b.Index-1])
	}
}

// Err is the reason of the first failure, nil where there was none.
func (b *Builder) Err() error {
	if !b.failed {
		return nil
	}
	return fmt.Errorf("%s", b.reason)
}

// done is what an Expand returns: after a failure nil, and the block is as before.
func (b *Builder) done(vs ...*ir.Value) []*ir.Value {
	if !b.failed {
		return vs
	}
	b.Undo()
	return nil
}

// Make inserts the op dm.name. results are types as written where the op's text
// decides them (convert, reshape, constant); none where they follow from the
// operands. It returns nil after a failure.
func (b *Builder) Make(name string, operands []*ir.Value, attrs []types.Named, results ...types.Type) *ir.Op {
	if b.failed {
		return nil
	}
	o := b.Builder.Op(Prefix+strings.TrimPrefix(name, Prefix), operands, attrs, results...)
	if Of(o) == nil || len(o.Results) == 0 && !InferResults(o) || b.check != nil && b.check(o) != nil {
		b.failed = true
		b.reason = o.Name + " cannot be built from (" + types.List(ir.Types(operands)) + ")"
		b.Drop(o)
		return nil
	}
	return o
}

// Value is the first result of Make; after a failure the first operand.
func (b *Builder) Value(name string, operands []*ir.Value, attrs []types.Named, results ...types.Type) *ir.Value {
	if o := b.Make(name, operands, attrs, results...); o != nil && len(o.Results) > 0 {
		return o.Results[0]
	}
	b.failed = true
	if len(operands) > 0 {
		return operands[0]
	}
	return &ir.Value{Type: types.Unknown}
}

// Unary is dm.name of x.
func (b *Builder) Unary(name string, x *ir.Value) *ir.Value {
	return b.Value(name, []*ir.Value{x}, nil)
}

// Binary is dm.name of x and y.
func (b *Builder) Binary(name string, x, y *ir.Value) *ir.Value {
	return b.Value(name, []*ir.Value{x, y}, nil)
}

// Reshape gives x the shape, nothing where it has it.
func (b *Builder) Reshape(x *ir.Value, shape ...dim.Dim) *ir.Value {
	t := asTensor(x.Type)
	if slices.EqualFunc(t.Shape, shape, dim.Dim.Equal) {
		return x
	}
	return b.Value("reshape", []*ir.Value{x}, nil, t.With(shape...))
}

// Transpose permutes x: dimension i of the result is dimension dims[i] of x.
// Nothing is made for the identity.
func (b *Builder) Transpose(x *ir.Value, dims ...int) *ir.Value {
	if slices.IsSorted(dims) {
		return x
	}
	return b.Value("transpose", []*ir.Value{x}, named("dims", IntList(dims...)))
}

// Convert gives x, a tensor or a scalar, another element type, nothing where it
// has it.
func (b *Builder) Convert(x *ir.Value, elem types.Elem) *ir.Value {
	t := asTensor(x.Type)
	if t.Elem == elem {
		return x
	}
	var to types.Type = tensor(t, elem, t.Shape...)
	if _, ok := x.Type.(types.Scalar); ok {
		to = types.Scalar{Elem: elem}
	}
	return b.Value("convert", []*ir.Value{x}, nil, to)
}

// Splat is the constant of type t whose elements are all v.
func (b *Builder) Splat(t *types.Tensor, v float64) *ir.Value {
	return b.Value("constant", nil, named("value", types.SplatOf(t, v)), t)
}

// IntList is a list of integers as an attribute.
func IntList(ns ...int) types.Attr {
	a := make(types.Array, len(ns))
	for i, n := range ns {
		a[i] = intAttr(n)
	}
	return a
}
