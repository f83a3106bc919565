package verify

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// stated checks the attribute dm.sharding of o and, where o is a function, of its arguments and
// results.
func (v *verifier) stated(o *ir.Op) {
	a := o.Attr(op.ShardingAttr)
	if o.Name == op.Func {
		v.statedSignature(o)
		return
	}
	v.statedGradient(o)
	if a == nil || o.Verbatim {
		return
	}
	where := func() source.Span { return origin.AttrSpan(o, v.m.Src, op.ShardingAttr) }
	tensors := 0
	for _, r := range o.Results {
		if isUnknown(r) {
			return
		}
		tensors += len(types.Members(r.Type))
	}
	switch {
	case tensors == 0:
		v.report("DM196", where(), "%s has no result that is a tensor", o.Name).Help = "take dm.sharding away"
		return
	case o.Name == op.Pack || o.Name == op.Unpack:
		v.report("DM196", where(), "%s computes nothing that is divided", o.Name).Help = "write dm.sharding where the members, or the tuple, are defined"
		return
	}
	lists, problem := op.ShardingsIn(a, ir.Types(o.Results))
	if problem != "" {
		v.badStated(where(), problem, ir.Types(o.Results)...)
		return
	}
	for i, list := range lists {
		v.onMesh(list, where)
		for k, m := range types.Members(o.Results[i].Type) {
			if k < len(list) && list[k] != nil && m.Tensor.Format != nil {
				v.report("DM196", where(), "%s is sparse, and devices divide what it stores as the argument whose pattern it has", m.Tensor).Help = "state the sharding of the argument"
				return
			}
		}
	}
}

// statedGradient checks the attribute dm.gradient_sharding of o.
func (v *verifier) statedGradient(o *ir.Op) {
	a := o.Attr(op.GradientShardingAttr)
	if a == nil || o.Verbatim || slices.ContainsFunc(o.Results, isUnknown) {
		return
	}
	where := func() source.Span { return origin.AttrSpan(o, v.m.Src, op.GradientShardingAttr) }
	list, problem := op.GradientShardings(o, a)
	if problem != "" {
		d := v.report("DM196", where(), "%s: %s", op.GradientShardingAttr, problem)
		d.Help = "take it away, or write it at the op whose result it is of"
		if len(o.Results) == 1 && o.Results[0].Tensor() != nil {
			d.Help = "write " + example(op.GradientShardingAttr, o.Results[0].Tensor().Rank())
		}
		return
	}
	v.onMesh(list, where)
}

// storedPieces checks the shardings of the sparse tensors among those that a value of type t holds.
func (v *verifier) storedPieces(list []*types.Sharding, t types.Type, where func() source.Span) {
	for k, m := range types.Members(t) {
		if k >= len(list) || list[k] == nil || m.Tensor.Format == nil {
			continue
		}
		if types.IsTuple(t) {
			v.report("DM196", where(), "%s is a member of a tuple, where devices divide no sparse tensor", m.Tensor).Help = "make it an argument of its own"
			return
		}
		name, _ := list[k].Mesh.Name()
		on := v.find(name)
		if on == nil || on.Problem(list[k]) != "" {
			return
		}
		if msg, help := op.DivisionProblem(m.Tensor, list[k], on.Count); msg != "" {
			v.report("DM196", where(), "%s", msg).Help = help
			return
		}
	}
}

// badStated reports what is wrong with a dm.sharding of values of types ts.
func (v *verifier) badStated(at source.Span, problem string, ts ...types.Type) {
	d := v.report("DM196", at, "dm.sharding: %s", problem)
	t, ok := ts[0].(*types.Tensor)
	switch {
	case len(ts) > 1:
		d.Help = "write an array with an entry for each result, unit for one that states nothing"
	case types.IsTuple(ts[0]):
		d.Help = "write an array with an entry for each member of the tuple, unit for one that states nothing"
	case ok && t.At.Shard == nil:
		d.Help = "write " + example(op.ShardingAttr, t.Rank())
	case ok:
		d.Help = "write the sharding once, in the type or as dm.sharding"
	}
}

// example is an attribute that states the sharding of a tensor with that many dimensions.
func example(name string, rank int) string {
	s := types.Sharding{Mesh: "pod", Dims: make([]types.Split, rank)}
	if rank > 0 {
		s.Dims[0].Axes = []types.Axis{{Name: "data"}}
	}
	return name + " = #dm.at<" + s.Text() + ">"
}

// statedSignature checks the attributes dm.sharding in the signature of the function o.
func (v *verifier) statedSignature(o *ir.Op) {
	ta, _ := o.Attr("function_type").(types.TypeAttr)
	sig, ok := ta.T.(*types.Func)
	if !ok {
		return
	}
	check := func(list string, ts []types.Type) {
		for i, t := range ts {
			if again := op.SignatureAttr(o, list, i, op.RegatherAttr); again != nil {
				if problem := op.RegatherProblem(again, t); problem != "" {
					v.report("DM133", origin.SignatureAttrSpan(o, v.m.Src, list, i, op.RegatherAttr), "%s states nothing: %s", op.RegatherAttr, problem).Help = "write {" + op.RegatherAttr + "} for all tensors, or one boolean for each"
					return
				}
			}
			a := op.SignatureAttr(o, list, i, op.ShardingAttr)
			if a == nil {
				continue
			}
			where := func() source.Span { return origin.SignatureAttrSpan(o, v.m.Src, list, i, op.ShardingAttr) }
			shards, problem := op.SignatureShardings(a, t)
			if problem != "" {
				v.badStated(where(), problem, t)
				return
			}
			v.onMesh(shards, where)
			v.storedPieces(shards, t, where)
		}
	}
	check("arg_attrs", sig.In)
	check("res_attrs", sig.Out)
}

// onMesh checks the meshes and axes of shardings, of which some may be nil, and reports the first mistake.
func (v *verifier) onMesh(list []*types.Sharding, where func() source.Span) {
	for _, s := range list {
		if s != nil && s != v.lastShard && !v.meshed(s, where) {
			return
		}
	}
}
