package stablehlo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/export"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Export is m in StableHLO, with the functions of CHLO that StableHLO has not; m is
// not changed. What Import makes of it computes the same. Element-wise ops broadcast
// by ops of their own there, composites become what they expand to, shardings become those of
// Shardy's dialect, and other parts of placements and the attributes of the dialect are left out. The diagnostic says which op or type has no
// equivalent.
func Export(m *ir.Module) (*ir.Module, *diag.Diagnostic) {
	out := &ir.Module{}
	for _, found := range mesh.All(m) {
		out.Ops = append(out.Ops, exportMesh(found))
	}
	for _, f := range m.Clone().Funcs {
		x := &exporter{env: map[*ir.Value]*ir.Value{}, from: m}
		if err := x.function(out, f); err != nil {
			d := diag.New("DM197", diag.Error, x.now.Head, err.Error())
			d.Help = diag.Find(d.Code).Help
			return nil, &d
		}
	}
	return out, nil
}

func unsupported(format string, args ...any) error { return fmt.Errorf(format, args...) }

func one(v *ir.Value) ([]*ir.Value, error) { return []*ir.Value{v}, nil }

// exporter is the state of the export of one function.
type exporter struct {
	env      map[*ir.Value]*ir.Value // what stands for each value of the program
	now      *ir.Op
	from     *ir.Module
	device   *mesh.Mesh // whose devices run the function; nil: it works on whole tensors
	channels int        // of collectives so far
	// shape is that of what scalars in the region of a dm.map stand for; none in those
	// of reductions.
	shape []dim.Dim
}

// out is one op that is exported, and where what it becomes is built.
type out struct {
	*exporter
	*ir.Builder
	o  *ir.Op
	in []*ir.Value
}

func (x *exporter) function(m *ir.Module, f *ir.Func) error {
	if op.PerDevice(f.Op) {
		return x.perDevice(m, f)
	}
	x.now = f.Op
	op.ShardingsInTypes(f)
	if f.Body != nil {
		explicit(f.Body, false)
	}
	b, err := export.Function(m, f, x.env, x.typ)
	if err != nil {
		return err
	}
	if err := divide(m.Ops[len(m.Ops)-1], ir.Types(f.Args), f.Results); err != nil {
		return err
	}
	return x.block(&ir.Builder{Block: b}, f.Body, op.Return)
}

func (x *exporter) typ(t types.Type) (*types.Tensor, error) {
	switch t := t.(type) {
	case types.Scalar:
		return &types.Tensor{Elem: t.Elem, Shape: x.shape}, nil
	case *types.Tensor:
		for _, d := range t.Shape {
			if _, known := d.Int(); !known {
				return nil, unsupported("a dynamic size in %s", t)
			}
		}
		return &types.Tensor{Elem: t.Elem, Shape: t.Shape}, nil
	}
	return nil, unsupported("%s has no equivalent", t)
}

// block writes the ops of a block at b. Its terminator becomes one called last.
func (x *exporter) block(b *ir.Builder, from *ir.Block, last string) error {
	for i := 0; i < len(from.Ops); {
		o := from.Ops[i]
		d := op.Of(o)
		if o.Name == op.Return || d.Is(op.Terminator) {
			b.Op(last, x.of(o.Operands), nil)
			return nil
		}
		x.now, b.At = o, o
		if d == nil && o.Name != op.Call && !strings.HasPrefix(o.Name, "check.") {
			return unsupported("%s has no equivalent in StableHLO", o.Name)
		}
		for _, r := range o.Results {
			if _, err := x.typ(r.Type); err != nil {
				return err
			}
		}
		c := &out{exporter: x, Builder: b, o: o, in: x.of(o.Operands)}
		if d == nil { // a call, or a check of results
			same := b.Op(o.Name, c.in, o.Attrs, c.results()...)
			for k, r := range o.Results {
				same.Results[k].Name = r.Name
				x.env[r] = same.Results[k]
			}
			i++
			continue
		}
		f := exports[d.Name]
		if f == nil && unaryExports[d.Name] != "" {
			f = exportUnary
		} else if f == nil && binaryExports[d.Name] != "" {
			f = exportBinary
		}
		if f != nil {
			vs, err := f(c)
			if err != nil && !errors.Is(err, errExpand) {
				return err
			}
			if err == nil {
				for k, v := range vs {
					if v.Op != nil && v.Name == "" {
						v.Name = o.Results[k].Name
					}
					x.env[o.Results[k]] = v
				}
				i++
				continue
			}
		}
		if err := export.Simplify(from, i, "StableHLO"); err != nil {
			return err
		}
	}
	return nil
}

// errExpand is for an op that is only written as what it expands to.
var errExpand = errors.New("expand it")

func (x *exporter) of(vs []*ir.Value) []*ir.Value { return export.Values(x.env, vs) }

// result is the type of result i.
func (c *out) result(i int) *types.Tensor {
	t, _ := c.typ(c.o.Results[i].Type)
	return t
}

func (c *out) make(name string, t *types.Tensor, operands []*ir.Value, attrs ...types.Named) *ir.Value {
	return c.Op("stablehlo."+name, operands, attrs, t).Results[0]
}

// spread repeats v to a shape, aligned at the last dimensions.
func (c *out) spread(v *ir.Value, shape []dim.Dim) *ir.Value {
	t := v.Tensor()
	if slices.EqualFunc(t.Shape, shape, dim.Dim.Equal) {
		return v
	}
	at := make([]int64, t.Rank())
	for i := range at {
		at[i] = int64(len(shape) - len(at) + i)
	}
	return c.make("broadcast_in_dim", &types.Tensor{Elem: t.Elem, Shape: shape}, []*ir.Value{v}, list("broadcast_dimensions", at...))
}

func list(name string, ns ...int64) types.Named {
	return types.Named{Name: name, Value: types.IntArray(types.I64, ns...)}
}

func number(name string, n int64) types.Named {
	return types.Named{Name: name, Value: types.Int{V: n, Elem: types.I64}}
}

func (c *out) constant(d *types.Dense) *ir.Value {
	return c.make("constant", d.Type, nil, types.Named{Name: "value", Value: d})
}

// scalarOf is the constant v.
func (c *out) scalarOf(e types.Elem, v float64) *ir.Value {
	return c.constant(types.SplatOf(&types.Tensor{Elem: e}, v))
}

// neutralOf is the neutral element of a reduction.
func (c *out) neutralOf(kind string, e types.Elem) *ir.Value {
	d, _ := neutral(kind, e)
	return c.constant(d)
}

func (c *out) reshape(v *ir.Value, shape []dim.Dim) *ir.Value {
	if slices.EqualFunc(v.Tensor().Shape, shape, dim.Dim.Equal) {
		return v
	}
	return c.make("reshape", &types.Tensor{Elem: v.Elem(), Shape: shape}, []*ir.Value{v})
}

func (c *out) transpose(v *ir.Value, order []int) *ir.Value {
	if slices.IsSorted(order) {
		return v
	}
	t := &types.Tensor{Elem: v.Elem()}
	var p []int64
	for _, d := range order {
		t.Shape, p = append(t.Shape, v.Tensor().Shape[d]), append(p, int64(d))
	}
	return c.make("transpose", t, []*ir.Value{v}, list("permutation", p...))
}

func (c *out) convert(v *ir.Value, e types.Elem) *ir.Value {
	if v.Elem() == e {
		return v
	}
	return c.make("convert", &types.Tensor{Elem: e, Shape: v.Tensor().Shape}, []*ir.Value{v})
}

// region adds a region to o, with arguments of the given types.
func (c *out) region(o *ir.Op, args []*types.Tensor, body func(b *out, args []*ir.Value) []*ir.Value) {
	b := o.AddRegion()
	for _, t := range args {
		b.AddArg("", t)
	}
	in := &out{exporter: c.exporter, Builder: &ir.Builder{Block: b, At: c.At}, o: c.o}
	in.Op("stablehlo.return", body(in, b.Args), nil)
}

// combineBy is a region that combines two scalars by a named function.
func (c *out) combineBy(o *ir.Op, kind string, e types.Elem) {
	t := &types.Tensor{Elem: e}
	c.region(o, []*types.Tensor{t, t}, func(b *out, x []*ir.Value) []*ir.Value {
		if kind == "set" {
			return x[1:]
		}
		return []*ir.Value{b.make(binaryExports[kind], t, x)}
	})
}
