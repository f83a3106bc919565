package op

import (
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// A tuple groups tensors, such as the parameters of a layer, so that a program
// passes them on as one value. Three kinds of ops take tuples: pack and unpack;
// those that hand values on, whose Params say so (Tuples), calls and returns, loops and
// branches; and Memberwise ops, which are as many ops as the tuple has members (Split). Package
// flatten writes a function without tuples, which is what runs.

func groups() []*Def { return []*Def{packDef, unpackDef} }

const tupleDoc = "A tuple is no value in memory: its members are, and they move where an op reads or writes them. Costs nothing."

var packDef = &Def{
	Name: "pack", Family: Groups, Class: ClassMovement,
	Summary: "several tensors as one value",
	Doc: "The result is the tuple of the operands, which are tensors or tuples. Functions take and return tuples, `dm.grad` gives the gradients of the members as a tuple, and element-wise ops and optimizers work on " +
		"each member, so that a training step names its parameters once.\n\n" + tupleDoc,
	Example: `!layer = tuple<tensor<4x4xf32>, tensor<4xf32>>
func.func @example(%params: !layer, %grads: !layer) -> !layer {
  %w, %b = dm.unpack %params : (!layer) -> (tensor<4x4xf32>, tensor<4xf32>)
  %zero = dm.sub %b, %b : tensor<4xf32>
  %start = dm.pack %w, %zero : (tensor<4x4xf32>, tensor<4xf32>) -> !layer
  %next = dm.sgd %start, %grads, lr = 0.1 : !layer
  return %next : !layer
}`,
	Operands: []Param{{Name: "members", Elems: storable, Variadic: true, Tuples: true, Doc: "at least one tensor or tuple"}},
	Results:  []Param{{Name: "tuple", Elems: storable, Tuples: true, Doc: "the tuple of their types"}},
	Traits:   Pure,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if len(o.Operands) == 0 {
			return nil, problem("DM124", -1, "pack needs at least one operand")
		}
		return one(&types.Tuple{Of: ir.Types(o.Operands)}), nil
	},
	Traffic: movesNothing,
	Kernel:  Structure,
}

var unpackDef = &Def{
	Name: "unpack", Family: Groups, Class: ClassMovement,
	Summary: "the members of a tuple",
	Doc:     "The results are the members of the tuple, in their order; a member that is a tuple is unpacked by a further op. Other ops work on the members.\n\n" + tupleDoc,
	Example: `!affine = tuple<tensor<4x4xf32>, tensor<4xf32>>
func.func @example(%x: tensor<2x4xf32>, %params: !affine) -> tensor<2x4xf32> {
  %w, %b = dm.unpack %params : (!affine) -> (tensor<4x4xf32>, tensor<4xf32>)
  %0 = dm.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = dm.add %0, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}`,
	Operands: []Param{{Name: "tuple", Elems: storable, Tuples: true, Doc: "a tuple"}},
	Results:  []Param{{Name: "members", Elems: storable, Variadic: true, Tuples: true, Doc: "its members"}},
	Traits:   Pure,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		ts := unpackedTypes(o.Operands[0].Type)
		if ts == nil {
			return nil, problem("DM183", 0, "%s is not a tuple", o.Operands[0].Type).help("only what dm.pack makes, an argument of type tuple<…>, or a sparse tensor, has members")
		}
		return ts, nil
	},
	Traffic: movesNothing,
	Kernel:  Structure,
}

func movesNothing(o *ir.Op) ([]dim.Dim, dim.Dim) { return make([]dim.Dim, len(o.Operands)), dim.Dim{} }

// Grouped reports whether an operand or a result of o is a tuple.
func Grouped(o *ir.Op) bool {
	for _, vs := range [2][]*ir.Value{o.Operands, o.Results} {
		for _, v := range vs {
			if types.IsTuple(v.Type) {
				return true
			}
		}
	}
	return false
}

// PassesOn reports whether o hands tuples on as they are: a call, a return, or an op
// whose Params may be tuples.
func PassesOn(o *ir.Op) bool {
	if o.Name == Call || o.Name == Return {
		return true
	}
	d := Of(o)
	for _, ps := range [2][]Param{d.params(true), d.params(false)} {
		for _, p := range ps {
			if p.Tuples {
				return true
			}
		}
	}
	return false
}

func (d *Def) params(operands bool) []Param {
	switch {
	case d == nil:
		return nil
	case operands:
		return d.Operands
	}
	return d.Results
}

// Split is o, a Memberwise op on tuples, as one op for each of their tensors, in the
// order of the text. Operands that are tensors are common to all. The ops stand in
// no block; their values from tuples are new and named after the tuple and their
// place in it: "%w.0". nil for other ops, and where tuples differ in structure.
func Split(o *ir.Op) []*ir.Op {
	t := structure(o)
	if t == nil || misfit(o) != nil {
		return nil
	}
	leaves := map[*ir.Value][]*ir.Value{}
	for _, v := range o.Operands {
		if types.IsTuple(v.Type) && leaves[v] == nil {
			leaves[v] = Leaves(v)
		}
	}
	members := types.Members(t)
	results := make([][]*ir.Value, len(o.Results))
	for i, v := range o.Results {
		if results[i] = Leaves(v); types.IsTuple(v.Type) {
			continue
		}
		results[i] = nil // of unknown type
		for _, m := range members {
			results[i] = append(results[i], &ir.Value{Name: MemberName(v.Name, m), Type: types.Unknown, Span: v.Span})
		}
	}
	ops := make([]*ir.Op, len(members))
	for i := range ops {
		p := &ir.Op{Name: o.Name, Attrs: o.Attrs, Regions: o.Regions, Span: o.Span, Head: o.Head, Loc: o.Loc, Bad: o.Bad, Origin: o.Origin}
		for _, v := range o.Operands {
			if of := leaves[v]; of != nil {
				v = of[i]
			}
			p.Operands = append(p.Operands, v)
		}
		for j := range o.Results {
			r := results[j][i]
			r.Op, r.Index = p, j
			p.Results = append(p.Results, r)
		}
		ops[i] = p
	}
	return ops
}

// Leaves are new values for the tensors of v, a tuple, without uses and belonging to
// no op; v itself where it is none.
func Leaves(v *ir.Value) []*ir.Value {
	if !types.IsTuple(v.Type) {
		return []*ir.Value{v}
	}
	var out []*ir.Value
	for _, m := range types.Members(v.Type) {
		out = append(out, &ir.Value{Name: MemberName(v.Name, m), Type: m.Tensor, Span: v.Span})
	}
	return out
}

// MemberName is the name of a member of the tuple called name, "%w.0" of "%w"; that
// of a tensor is its own.
func MemberName(name string, m types.Member) string {
	if name == "" || m.Path == "" {
		return name
	}
	return strings.ReplaceAll(name, "#", "_") + m.Path
}

// structure is the first tuple among the operands of a Memberwise op, nil where there
// is none.
func structure(o *ir.Op) types.Type {
	if !Of(o).Is(Memberwise) {
		return nil
	}
	for _, v := range o.Operands {
		if types.IsTuple(v.Type) {
			return v.Type
		}
	}
	return nil
}

// misfit is the first tuple of a Memberwise op whose members are not in the places of
// those of the first operand that is one.
func misfit(o *ir.Op) *Problem {
	t := structure(o)
	for i, v := range o.Operands {
		if types.IsTuple(v.Type) && !types.SameStructure(v.Type, t) {
			return problem("DM130", i, "%s is %s, whose members do not correspond to those of %s", valueName(v), v.Type, t).
				help("an op on tuples takes tuples with as many members, at the same depth")
		}
	}
	for _, v := range o.Results {
		if v.Type != types.Type(types.Unknown) && !types.SameStructure(v.Type, t) {
			return problem("DM130", -1, "%s is declared as %s, but the operand is %s", valueName(v), v.Type, t).
				help("an op on tuples gives a tuple with as many members, at the same depth")
		}
	}
	return nil
}

func valueName(v *ir.Value) string {
	if v.Name == "" {
		return "the value"
	}
	return v.Name
}

// Infer gives the result types of o, which its entry must have a rule for: of a
// Memberwise op on tuples those of the op on each member, as tuples.
func Infer(o *ir.Op) ([]types.Type, *Problem) {
	d := Of(o)
	t := structure(o)
	switch {
	case t == nil && IsSparse(o) && (d != nil && d.Sparse != nil || !PassesOn(o)):
		return inferSparse(o)
	case t == nil:
		return d.Infer(o)
	}
	if p := misfit(o); p != nil {
		return nil, p
	}
	var columns [][]types.Type
	for _, m := range Split(o) {
		ts, p := Infer(m)
		if p != nil {
			return nil, p
		}
		columns = append(columns, ts)
	}
	out := make([]types.Type, len(columns[0]))
	for i := range out {
		at := -1
		out[i] = types.Each(t, func(types.Member) types.Type {
			at++
			return columns[at][i]
		})
	}
	return out, nil
}

// groupFLOP is the sum over the members.
func groupFLOP(o *ir.Op) dim.Dim {
	var sum dim.Dim
	for _, m := range Split(o) {
		sum = sum.Add(FLOP(m))
	}
	return sum
}

// HasGradient reports whether a value of type t has one: floating-point tensors and
// scalars do, and tuples of nothing else.
func HasGradient(t types.Type) bool {
	if !types.IsTuple(t) {
		return types.ElemOf(t).IsFloat()
	}
	for _, m := range types.Members(t) {
		if !m.Tensor.Elem.IsFloat() {
			return false
		}
	}
	return true
}
