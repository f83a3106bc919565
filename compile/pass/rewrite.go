package pass

import (
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// Builder makes ops whose result types follow from the registry, so that a
// rewrite states only what it computes. New ops take the place in the text of
// the op they stand for. The first failure is kept (Err); what is built after
// it is void.
type Builder struct {
	ir.Builder
	start int // Index where it began
	err   error
}

// Before builds in front of o, for o.
func Before(o *ir.Op) *Builder {
	at := o.Position()
	return &Builder{Builder: ir.Builder{Block: o.Parent, Index: at, At: o}, start: at}
}

// Undo erases what was built, which nothing else may use.
func (b *Builder) Undo() {
	for ; b.Index > b.start; b.Index-- {
		ir.EraseAll(b.Block.Ops[b.Index-1])
	}
}

// Err is the first op that could not be built, nil where all could.
func (b *Builder) Err() error { return b.err }

// Make inserts the op dm.name. results are types as written where the op's text
// decides them (convert, reshape, constant); none where they follow from the
// operands. What breaks a rule of the dialect is a failure. It returns nil after one.
func (b *Builder) Make(name string, operands []*ir.Value, attrs []types.Named, results ...types.Type) *ir.Op {
	if b.err != nil {
		return nil
	}
	o := b.Builder.Op(op.Prefix+strings.TrimPrefix(name, op.Prefix), operands, attrs, results...)
	if op.Of(o) == nil || len(o.Results) == 0 && !op.InferResults(o) || verify.Op(o) != nil {
		b.err = Errorf(b.At, "DM820", "%s cannot be built from (%s)", o.Name, operandTypes(operands))
		ir.Erase(o)
		b.Index--
		return nil
	}
	return o
}

func operandTypes(vs []*ir.Value) string {
	ts := make([]types.Type, len(vs))
	for i, v := range vs {
		ts[i] = v.Type
	}
	return types.List(ts)
}

// Value is the one result of Make; after a failure the first operand.
func (b *Builder) Value(name string, operands []*ir.Value, attrs []types.Named, results ...types.Type) *ir.Value {
	if o := b.Make(name, operands, attrs, results...); o != nil {
		return o.Results[0]
	}
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
	t := x.Tensor()
	if sameShape(t.Shape, shape) {
		return x
	}
	return b.Value("reshape", []*ir.Value{x}, nil, t.With(shape...))
}

// Transpose permutes x: dimension i of the result is dimension dims[i] of x.
// Nothing is made for the identity.
func (b *Builder) Transpose(x *ir.Value, dims ...int) *ir.Value {
	if IsIdentity(dims) {
		return x
	}
	return b.Value("transpose", []*ir.Value{x}, []types.Named{{Name: "dims", Value: Ints(dims...)}})
}

// Convert gives x another element type, nothing where it has it.
func (b *Builder) Convert(x *ir.Value, elem types.Elem) *ir.Value {
	t := x.Tensor()
	if t.Elem == elem {
		return x
	}
	r := t.With(t.Shape...)
	r.Elem = elem
	return b.Value("convert", []*ir.Value{x}, nil, r)
}

// Splat is the constant v of the given type.
func (b *Builder) Splat(t *types.Tensor, v float64) *ir.Value {
	return b.Value("constant", nil, []types.Named{{Name: "value", Value: types.SplatOf(t, v)}}, t)
}

// Ints is a list of integers as an attribute.
func Ints(ns ...int) types.Attr {
	a := make(types.Array, len(ns))
	for i, n := range ns {
		a[i] = types.Int{V: int64(n)}
	}
	return a
}

// IsIdentity reports whether dims is 0, 1, 2 …
func IsIdentity(dims []int) bool {
	for i, d := range dims {
		if d != i {
			return false
		}
	}
	return true
}

func sameShape(a, b []dim.Dim) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}

// Replace makes every use of o's results one of vs and erases o. A new value
// takes the name of the one it stands for.
func Replace(o *ir.Op, vs ...*ir.Value) {
	for i, r := range o.Results {
		if v := vs[i]; v != r {
			if v.Name == "" && v.Op != nil && len(v.Op.Results) == 1 && !strings.Contains(r.Name, "#") {
				v.Name = r.Name
			}
			ir.ReplaceUses(r, v)
		}
	}
	ir.EraseAll(o)
}

// Reached is f and the functions of m that it names, directly or through
// others: those whose text must stand beside f's.
func Reached(m *ir.Module, f *ir.Func) []*ir.Func {
	list := []*ir.Func{f}
	for i := 0; i < len(list); i++ {
		ir.Walk([]*ir.Op{list[i].Op}, func(o *ir.Op) bool {
			for _, a := range o.Attrs {
				s, _ := a.Value.(types.Symbol)
				name, _ := s.Name()
				if g := m.Func(name); s != "" && g != nil && !slices.Contains(list, g) {
					list = append(list, g)
				}
			}
			return true
		})
	}
	return list
}
