// Package linalg writes programs in MLIR's own dialects func, arith, math, tensor,
// linalg, scf and sparse_tensor, whose tools compile and run them.
//
// Most ops follow from the registry: an element-wise op is a linalg.generic over its
// Maps with its function of scalars, an op that computes nothing one that reads by its
// Move, a composite what it expands to. The tables elements and structures have the
// rest. MLIR's integers have no sign: ops have it, so that ui8 is i8 there. The order
// of dimensions in memory, and memory spaces, are left to those tools.
package linalg

import (
	"errors"

	"dmir/compile/pass"
	"dmir/dialect/export"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Codes are the diagnostics of this package.
var Codes = diag.Register([]diag.Code{
	{Code: "DM807", Name: "not-exported", Doc: "The op or one of its types has no equivalent in the dialects that the program is exported to.", Help: "leave the op out of what is exported, or print the program with `--emit graph`"},
	{Code: "DM809", Name: "sparse-as-components", Doc: "The program is exported with the components of its sparse tensors as values of their own, since one of its ops has no form for sparse tensors in MLIR's `sparse_tensor`.", Help: "keep the op out of what is exported to have tensors of `sparse_tensor`, or pass the components"},
})

func refuse(o *ir.Op, format string, args ...any) error {
	e := pass.Errorf(o, "DM807", format, args...)
	e.Help = diag.Find(e.Code).Help
	return e
}

// Export is m in upstream dialects; m is not changed. A *pass.Error says which op or
// type has no equivalent there.
func Export(m *ir.Module) (*ir.Module, error) {
	out := &ir.Module{}
	for _, f := range m.Clone().Funcs {
		if err := function(out, f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func function(m *ir.Module, f *ir.Func) error {
	x := &exporter{env: map[*ir.Value]*ir.Value{}}
	block, err := export.Function(m, f, x.env, func(t types.Type) (types.Type, error) { return x.typ(f.Op, t) })
	var known *pass.Error
	switch {
	case errors.As(err, &known):
		return err
	case err != nil:
		return refuse(f.Op, "%v", err)
	}
	return x.block(builder{&ir.Builder{Block: block}}, f.Body, op.Return)
}

// exporter is the state of the export of one function.
type exporter struct {
	env map[*ir.Value]*ir.Value // what stands for each value of the program
}

// typ is a type as upstream has it.
func (x *exporter) typ(o *ir.Op, t types.Type) (types.Type, error) {
	e := types.ElemOf(t)
	switch {
	case e == types.InvalidElem:
		return nil, refuse(o, "%s has no equivalent in MLIR's own dialects", t)
	case e == types.F8E4M3FN || e == types.F8E5M2:
		return nil, refuse(o, "MLIR's own lowerings have no conversions of %s", e)
	}
	u, ok := t.(*types.Tensor)
	if !ok {
		return types.Scalar{Elem: signless(e)}, nil
	}
	for _, d := range u.Shape {
		if _, known := d.Int(); !known {
			err := pass.Errorf(o, "DM801", "the size %s has no value", d)
			err.Help = diag.Find(err.Code).Help
			return nil, err
		}
	}
	if u.Format != nil {
		return stored(u, signless(e)), nil
	}
	return &types.Tensor{Elem: signless(e), Shape: u.Shape}, nil
}

// block writes the ops of a block at b. Its terminator becomes one called last.
func (x *exporter) block(b builder, from *ir.Block, last string) error {
	for i := 0; i < len(from.Ops); {
		o := from.Ops[i]
		d := op.Of(o)
		if o.Name == op.Return || d.Is(op.Terminator) {
			b.Op(last, x.of(o.Operands), nil)
			return nil
		}
		for _, r := range o.Results {
			if _, err := x.typ(o, r.Type); err != nil {
				return err
			}
		}
		b.At = o
		out, err := x.op(b, o, d)
		if err != nil {
			return err
		}
		if out != nil || len(o.Results) == 0 { // a check computes nothing
			for k, v := range out {
				v.Name = o.Results[k].Name
				x.env[o.Results[k]] = v
			}
			i++
			continue
		}
		if err := export.Simplify(from, i, "MLIR's own dialects"); err != nil {
			return refuse(o, "%v", err)
		}
	}
	return nil
}

func (x *exporter) of(vs values) values { return export.Values(x.env, vs) }

// op writes one op; nil where only what it expands to can be written.
func (x *exporter) op(b builder, o *ir.Op, d *op.Def) (values, error) {
	switch {
	case o.Name == op.Call:
		c := &call{exporter: x, builder: b, o: o}
		return c.Op(o.Name, x.of(o.Operands), o.Attrs, c.types()...).Results, nil
	case op.IsSparse(o):
		if s := sparseForm(o); s != nil {
			return s(&call{exporter: x, builder: b, o: o, in: x.of(o.Operands)})
		}
		return nil, refuse(o, "%s of sparse tensors has no equivalent in sparse_tensor", o.Name)
	case d == nil:
		return nil, nil
	}
	if s := structures[d.Name]; s != nil {
		c := &call{exporter: x, builder: b, o: o, in: x.of(o.Operands)}
		return s(c)
	}
	if f := elements[d.Name]; f != nil {
		return values{x.pointwise(b, o, d, f)}, nil
	}
	if m := op.MoveOf(o); m != nil {
		return values{x.move(b, o, m)}, nil
	}
	return nil, nil
}

// pointwise writes an element-wise op on tensors, or on scalars within a region.
func (x *exporter) pointwise(b builder, o *ir.Op, d *op.Def, f element) *ir.Value {
	in := x.of(o.Operands)
	to := o.Results[0].Elem()
	if _, scalar := o.Results[0].Type.(types.Scalar); scalar {
		return b.element(o, f, in, to)
	}
	it := d.Maps(o)
	return b.generic(in, values{b.empty(tensorOf(signless(to), sizes(o.Results[0])...))}, affine(it.Operands, it.Results), it.Reduces,
		func(in builder, v values) values { return values{in.element(o, f, v[:len(v)-1], to)} })[0]
}

// element is f of scalars, computed in a wide type and rounded once.
func (b builder) element(o *ir.Op, f element, x values, to types.Elem) *ir.Value {
	up := make(values, len(x))
	for i, v := range x {
		up[i] = b.cast(v, v.Elem(), wide(v.Elem()))
	}
	y := f(b, o, o.Operands[len(o.Operands)-1].Elem(), up)
	return b.cast(y, y.Elem(), to)
}

// affine are the expressions of maps of loops; -1 is the only place along a dimension.
func affine(maps ...[][]int) (out [][]string) {
	for _, list := range maps {
		for _, m := range list {
			e := make([]string, len(m))
			for i, d := range m {
				e[i] = "0"
				if d >= 0 {
					e[i] = expr(d, 1, 0)
				}
			}
			out = append(out, e)
		}
	}
	return out
}
