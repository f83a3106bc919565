// Package export has what the exporters of programs to other dialects share: the
// signature of a function, and simpler ops for those that have no equivalent there.
package export

import (
	"fmt"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Function adds to m a function with the name, the visibility and, as typ writes them,
// the types of f, and returns its block. env gets the block's arguments for those of f.
func Function[T types.Type](m *ir.Module, f *ir.Func, env map[*ir.Value]*ir.Value, typ func(types.Type) (T, error)) (*ir.Block, error) {
	if f.Body == nil || len(f.Op.Regions[0].Blocks) != 1 {
		return nil, fmt.Errorf("@%s has no body of one block", f.Name)
	}
	t := &types.Func{}
	fn := &ir.Op{Name: op.Func}
	b := fn.AddRegion()
	for _, a := range f.Args {
		ty, err := typ(a.Type)
		if err != nil {
			return nil, err
		}
		t.In = append(t.In, ty)
		env[a] = b.AddArg(a.Name, ty)
	}
	for _, r := range f.Results {
		ty, err := typ(r)
		if err != nil {
			return nil, err
		}
		t.Out = append(t.Out, ty)
	}
	fn.SetAttr("sym_name", types.Str(f.Name))
	fn.SetAttr("function_type", types.TypeAttr{T: t})
	if f.Private {
		fn.SetAttr("sym_visibility", types.Str("private"))
	}
	m.Ops = append(m.Ops, fn)
	return b, nil
}

// Values are what env has for vs.
func Values(env map[*ir.Value]*ir.Value, vs []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		out[i] = env[v]
	}
	return out
}

// Simplify puts in the place of op i of b the simpler ops that it stands for: what the
// registry expands it to, of one that draws random numbers integer arithmetic. The error
// is why there are none in the dialect called where.
func Simplify(b *ir.Block, i int, where string) error {
	o := b.Ops[i]
	at := &ir.Builder{Block: b, Index: i, At: o}
	simpler := counted(at, o)
	if simpler == nil {
		d := op.Of(o)
		if d == nil || d.Expand == nil || !op.Valid(o) {
			return fmt.Errorf("%s has no equivalent in %s", o.Name, where)
		}
		if simpler = d.Expand(at, o); simpler == nil {
			return fmt.Errorf("%s needs sizes in numbers", o.Name)
		}
	}
	for k, r := range o.Results {
		ir.ReplaceUses(r, simpler[k])
	}
	ir.EraseAll(o)
	return nil
}
