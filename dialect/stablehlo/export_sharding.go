package stablehlo

import (
	"strconv"
	"strings"

	"dmir/dialect/export"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Shardings are written in Shardy's dialect: on arguments and results as attributes, on values
// in between as constraints.

// exportMesh is m as sdy.mesh.
func exportMesh(m *mesh.Mesh) *ir.Op {
	axes := make([]string, len(m.Axes))
	for i, a := range m.Axes {
		axes[i] = strconv.Quote(a.Name) + "=" + strconv.Itoa(a.Size)
	}
	o := &ir.Op{Name: "sdy.mesh"}
	o.SetAttr("mesh", types.Raw("#sdy.mesh<["+strings.Join(axes, ", ")+"]>"))
	o.SetAttr("sym_name", types.Str(m.Name))
	return o
}

// shardingText is s as it stands behind #sdy.sharding.
func shardingText(s *types.Sharding) (string, error) {
	axes := func(list []types.Axis, open bool) string {
		var out []string
		for _, a := range list {
			name, part, ok := strings.Cut(a.String(), ":")
			text := strconv.Quote(name)
			if ok {
				text += ":" + part
			}
			out = append(out, text)
		}
		if open {
			out = append(out, "?")
		}
		return "{" + strings.Join(out, ", ") + "}"
	}
	dims := make([]string, len(s.Dims))
	for i, d := range s.Dims {
		dims[i] = axes(d.Axes, d.Open)
	}
	text := "<" + s.Mesh.String() + ", [" + strings.Join(dims, ", ") + "]"
	if len(s.Partial) > 0 {
		if s.Reduce != types.Add {
			return "", unsupported("a value that is partial by %s has no equivalent: Shardy's unreduced values are sums", s.Reduce.Word())
		}
		text += ", unreduced=" + axes(s.Partial, false)
	}
	return text + ">", nil
}

// shardingDicts are the attributes of arguments or results of the given types; stated is false
// where none states a sharding.
func shardingDicts(ts []types.Type) (dicts types.Array, stated bool, err error) {
	dicts = make(types.Array, len(ts))
	for i, t := range ts {
		d := types.Dict{}
		if x, ok := t.(*types.Tensor); ok && x.At.Shard != nil {
			text, err := shardingText(x.At.Shard)
			if err != nil {
				return nil, false, err
			}
			d, stated = types.Dict{{Name: shardAttr, Value: types.Raw("#sdy.sharding" + text)}}, true
		}
		dicts[i] = d
	}
	return dicts, stated, nil
}

// divide gives the function o the shardings of the types of its arguments and results.
func divide(o *ir.Op, in, out []types.Type) error {
	for name, ts := range map[string][]types.Type{"arg_attrs": in, "res_attrs": out} {
		dicts, stated, err := shardingDicts(ts)
		if err != nil {
			return err
		}
		if stated {
			o.SetAttr(name, dicts)
		}
	}
	return nil
}

// explicit writes a dm.reshard behind each op, and at the beginning of each region, with values
// whose types state a sharding.
func explicit(b *ir.Block, args bool) {
	state := func(v *ir.Value, at int, from *ir.Op) bool {
		t := v.Tensor()
		if t == nil || t.At.Shard == nil {
			return false
		}
		v.Type = plain(t)
		r := (&ir.Builder{Block: b, Index: at, At: from}).Op(op.Reshard, []*ir.Value{v}, nil, t)
		ir.ReplaceUses(v, r.Results[0])
		r.SetOperand(0, v)
		return true
	}
	for i := 0; i < len(b.Ops); i++ {
		o := b.Ops[i]
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				explicit(inner, true)
			}
		}
		if o.Name == op.Reshard {
			continue
		}
		for _, r := range o.Results {
			if state(r, i+1, o) {
				i++
			}
		}
	}
	if args && len(b.Ops) > 0 {
		for _, a := range b.Args {
			state(a, 0, b.Ops[0])
		}
	}
}

// exportReshard is the operand where the result states no sharding.
func exportReshard(c *out) ([]*ir.Value, error) {
	t := c.o.Results[0].Tensor()
	if t == nil || t.At.Shard == nil {
		return c.in, nil
	}
	text, err := shardingText(t.At.Shard)
	if err != nil {
		return nil, err
	}
	return c.Op("sdy.sharding_constraint", c.in, []types.Named{{Name: "sharding", Value: types.Raw("#sdy.sharding" + text)}}, c.result(0)).Results, nil
}

// perDevice writes a function that one device runs as a function of whole tensors around a manual
// computation.
func (x *exporter) perDevice(out *ir.Module, f *ir.Func) error {
	x.now = f.Op
	x.device = mesh.Find(x.from, f.Op.Str(op.MeshAttr))
	if x.device == nil {
		return unsupported("there is no mesh @%s", f.Op.Str(op.MeshAttr))
	}
	w := &ir.Func{Op: f.Op, Name: f.Name, Private: f.Private, Body: f.Body}
	var lists [2]string
	for k, ts := range [][]types.Type{ir.Types(f.Args), f.Results} {
		texts := make([]string, len(ts))
		for i, t := range ts {
			whole, err := x.whole([]string{"arg_attrs", "res_attrs"}[k], i, t, f)
			if err != nil {
				return err
			}
			if texts[i], err = shardingText(whole.At.Shard); err != nil {
				return err
			}
			if k == 0 {
				w.Args = append(w.Args, &ir.Value{Name: f.Args[i].Name, Type: whole})
			} else {
				w.Results = append(w.Results, whole)
			}
		}
		lists[k] = "#sdy.sharding_per_value<[" + strings.Join(texts, ", ") + "]>"
	}
	b, err := export.Function(out, w, x.env, x.typ)
	if err != nil {
		return err
	}
	if err := divide(out.Ops[len(out.Ops)-1], ir.Types(w.Args), w.Results); err != nil {
		return err
	}
	axes := make([]string, len(x.device.Axes))
	for i, a := range x.device.Axes {
		axes[i] = strconv.Quote(a.Name)
	}
	results := make([]types.Type, len(w.Results))
	for i, t := range w.Results {
		if results[i], err = x.typ(t); err != nil {
			return err
		}
	}
	around := &ir.Builder{Block: b, At: f.Op}
	manual := around.Op("sdy.manual_computation", b.Args, []types.Named{
		{Name: "in_shardings", Value: types.Raw(lists[0])},
		{Name: "manual_axes", Value: types.Raw("#sdy<manual_axes{" + strings.Join(axes, ", ") + "}>")},
		{Name: "out_shardings", Value: types.Raw(lists[1])},
	}, results...)
	inner := manual.AddRegion()
	for _, a := range f.Args {
		t, err := x.typ(a.Type)
		if err != nil {
			return err
		}
		x.env[a] = inner.AddArg(a.Name, t)
	}
	around.Op(op.Return, manual.Results, nil)
	return x.block(&ir.Builder{Block: inner}, f.Body, "sdy.return")
}

// whole is the type, with a sharding, of what argument or result i of f is a piece of.
func (x *exporter) whole(attrs string, i int, piece types.Type, f *ir.Func) (*types.Tensor, error) {
	whole, _ := op.GlobalType(f.Op, attrs, i)
	if whole == nil {
		t, err := x.typ(piece)
		if err != nil {
			return nil, err
		}
		whole = t
	}
	if whole.At.Shard == nil { // each device has it whole
		same := &types.Sharding{Mesh: types.SymbolOf(x.device.Name), Dims: make([]types.Split, whole.Rank())}
		return withSharding(whole, same).(*types.Tensor), nil
	}
	if len(whole.At.Shard.Partial) > 0 {
		return nil, unsupported("%s has partial sums, which a manual computation neither takes nor gives", whole)
	}
	for k, d := range whole.At.Shard.Dims {
		if n, ok := whole.Shape[k].Int(); !ok || n%int64(x.device.Count(d.Axes)) != 0 {
			return nil, unsupported("dimension %d of %s is padded, and Shardy divides evenly", k, whole)
		}
	}
	return whole, nil
}
