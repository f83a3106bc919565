package op

import (
	"fmt"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// ShardingAttr states the sharding of a value whose type states none, as the type would:
// dm.sharding = #dm.at<split = @pod[{data}, {}]> of an argument, of a result of a function, or of an op
// for its result. For an op with several results, and for a value that is a tuple, it is an array with an
// entry for each result or member; unit and [] stand for one of which nothing is stated.
const ShardingAttr = "dm.sharding"

// GradientShardingAttr states the sharding of the gradient by the result of an op, as ShardingAttr states that of the result.
const GradientShardingAttr = "dm.gradient_sharding"

// StatedGradient is the sharding that the text states of the gradient by v, the result of an op that has one tensor as its only result;
// nil where it states none or it has an error.
func StatedGradient(v *ir.Value) *types.Sharding {
	if v.Op == nil || v.Op.Verbatim || len(v.Op.Results) != 1 {
		return nil
	}
	a := v.Op.Attr(GradientShardingAttr)
	if a == nil {
		return nil
	}
	list, problem := GradientShardings(v.Op, a)
	if problem != "" {
		return nil
	}
	return list[0]
}

// GradientShardings is ShardingsIn for a, the value of GradientShardingAttr of o: what the type of the result states is of the result
// alone.
func GradientShardings(o *ir.Op, a types.Attr) (list []*types.Sharding, problem string) {
	if len(o.Results) != 1 || o.Results[0].Tensor() == nil || o.Results[0].Tensor().Format != nil {
		return nil, "the gradient is that of an op whose only result is a dense tensor"
	}
	plain := *o.Results[0].Tensor()
	plain.At.Shard = nil
	return shardingsIn(a, &plain)
}

// StatedSharding is the sharding that the text states of v, in its type or in ShardingAttr; nil
// where it states none.
func StatedSharding(v *ir.Value) *types.Sharding {
	if v.Tensor() == nil {
		return nil
	}
	return StatedShardings(v)[0]
}

// StatedShardings are the shardings that the text states of the tensors of v, the one that it is or
// those that it is a tuple of; nil for those of which it states none.
func StatedShardings(v *ir.Value) []*types.Sharding {
	members := types.Members(v.Type)
	out := make([]*types.Sharding, len(members))
	from := attributed(v)
	for i, m := range members {
		if out[i] = m.Tensor.At.Shard; out[i] == nil && i < len(from) {
			out[i] = from[i]
		}
	}
	return out
}

// attributed are the shardings of v's tensors in attributes, nil where there are none or they have
// an error, which package verify reports.
func attributed(v *ir.Value) []*types.Sharding {
	switch {
	case v.Op != nil:
		if v.Op.Name == Unpack && len(v.Op.Operands) == 1 {
			return member(v)
		}
		if a := v.Op.Attr(ShardingAttr); a != nil && !v.Op.Verbatim {
			lists, problem := ShardingsIn(a, ir.Types(v.Op.Results))
			if problem == "" && v.Index < len(lists) {
				return lists[v.Index]
			}
		}
	case v.Block != nil && v.Block.Region != nil && v.Block.Region.Op != nil && v.Block.Region.Op.Name == Func:
		if f := v.Block.Region.Op; f.Body(0) == v.Block {
			return signatureSharding(f, "arg_attrs", v.Index, v.Type)
		}
	}
	return nil
}

// member are the shardings that a tuple states for its member v, a result of dm.unpack.
func member(v *ir.Value) []*types.Sharding {
	all := attributed(v.Op.Operands[0])
	for _, r := range v.Op.Results {
		n := len(types.Members(r.Type))
		if n > len(all) {
			return nil
		}
		if r == v {
			return all[:n]
		}
		all = all[n:]
	}
	return nil
}

// signatureSharding is what ShardingAttr states of argument or result i, of type t, of the function f,
// whose dictionaries are in the attribute called list.
func signatureSharding(f *ir.Op, list string, i int, t types.Type) []*types.Sharding {
	a := SignatureAttr(f, list, i, ShardingAttr)
	if a == nil {
		return nil
	}
	out, problem := shardingsIn(a, t)
	if problem != "" {
		return nil
	}
	return out
}

// SignatureAttr is the attribute called name of argument or result i of the function f, whose
// dictionaries are in the attribute called list, "arg_attrs" or "res_attrs"; nil where it has none.
func SignatureAttr(f *ir.Op, list string, i int, name string) types.Attr {
	all, _ := f.Attr(list).(types.Array)
	if i >= len(all) {
		return nil
	}
	own, _ := all[i].(types.Dict)
	for _, a := range own {
		if a.Name == name {
			return a.Value
		}
	}
	return nil
}

// ResultShardings are the shardings that the signature of f states for its results, one list for each
// with those of its tensors. A result that is the next value of an argument (StateAttr) and states none is divided
// as the argument.
func ResultShardings(f *ir.Func) [][]*types.Sharding {
	state := State(f.Op)
	out := make([][]*types.Sharding, len(f.Results))
	for i, t := range f.Results {
		members := types.Members(t)
		from := signatureSharding(f.Op, "res_attrs", i, t)
		if from == nil && i < len(state) && state[i] >= 0 && state[i] < len(f.Args) {
			from = attributed(f.Args[state[i]])
		}
		out[i] = make([]*types.Sharding, len(members))
		for k, m := range members {
			if out[i][k] = m.Tensor.At.Shard; out[i][k] == nil && k < len(from) {
				out[i][k] = from[k]
			}
		}
	}
	return out
}

// ShardingsIn are the shardings in a, the value of ShardingAttr of an op with results of types ts: for
// each result those of its tensors, nil for a tensor of which none is stated. The problem is what is wrong with
// a, "" where nothing is; meshes are not looked at.
func ShardingsIn(a types.Attr, ts []types.Type) (lists [][]*types.Sharding, problem string) {
	if len(ts) == 1 {
		list, problem := shardingsIn(a, ts[0])
		return [][]*types.Sharding{list}, problem
	}
	entries, ok := entriesOf(a, len(ts))
	if !ok {
		return nil, fmt.Sprintf("it is no list of %d entries, one for each result", len(ts))
	}
	for i, t := range ts {
		list, problem := shardingsIn(entries[i], t)
		if problem != "" {
			return nil, problem
		}
		lists = append(lists, list)
	}
	return lists, ""
}

// SignatureShardings is ShardingsIn for an argument or a result of a function.
func SignatureShardings(a types.Attr, t types.Type) ([]*types.Sharding, string) {
	return shardingsIn(a, t)
}

// entriesOf are the n entries of a list; of unit and [] they are n times that.
func entriesOf(a types.Attr, n int) ([]types.Attr, bool) {
	if none(a) {
		return slices.Repeat([]types.Attr{types.Unit{}}, n), true
	}
	list, ok := a.(types.Array)
	return list, ok && len(list) == n
}

// none reports whether a stands for a value of which nothing is stated.
func none(a types.Attr) bool {
	list, isList := a.(types.Array)
	return a == types.Attr(types.Unit{}) || isList && len(list) == 0
}

func shardingsIn(a types.Attr, t types.Type) (list []*types.Sharding, problem string) {
	switch t := t.(type) {
	case *types.Tuple:
		entries, ok := entriesOf(a, len(t.Of))
		if !ok {
			return nil, fmt.Sprintf("it is no list of %d entries, one for each member of the tuple", len(t.Of))
		}
		for i, m := range t.Of {
			inner, problem := shardingsIn(entries[i], m)
			if problem != "" {
				return nil, problem
			}
			list = append(list, inner...)
		}
		return list, ""
	case *types.Tensor:
		if none(a) {
			return []*types.Sharding{nil}, ""
		}
		p, ok := a.(types.Place)
		switch {
		case !ok || p.Shard == nil:
			return nil, "it states no sharding"
		case p.In() != types.HBM || p.Order != nil:
			return nil, "it states more than a sharding; a memory space and an order are parts of the type"
		case len(p.Shard.Dims) != t.Rank():
			return nil, fmt.Sprintf("the sharding has %d of the %d dimensions of %s", len(p.Shard.Dims), t.Rank(), t)
		case t.At.Shard != nil && !t.At.Shard.Equal(p.Shard):
			return nil, fmt.Sprintf("the type states another sharding, %s", t.At.Shard.Text())
		}
		return []*types.Sharding{p.Shard}, ""
	}
	if none(a) {
		return nil, ""
	}
	return nil, fmt.Sprintf("%s is no tensor", t)
}

// shardingAttr is the value of ShardingAttr that states list, one entry for each tensor; nil where
// it states nothing.
func shardingAttr(list []*types.Sharding) types.Attr {
	entry := func(s *types.Sharding) types.Attr {
		if s == nil {
			return types.Unit{}
		}
		return types.Place{Placement: types.Placement{Space: types.HBM, Shard: s}}
	}
	if !slices.ContainsFunc(list, func(s *types.Sharding) bool { return s != nil }) {
		return nil
	}
	if len(list) == 1 {
		return entry(list[0])
	}
	out := make(types.Array, len(list))
	for i, s := range list {
		out[i] = entry(s)
	}
	return out
}

// FlatSharding is what a, the value of ShardingAttr for values of types ts, is once these are
// the tensors that they hold; nil where it states nothing or has an error.
func FlatSharding(a types.Attr, ts []types.Type) types.Attr {
	lists, problem := ShardingsIn(a, ts)
	if problem != "" {
		return nil
	}
	return shardingAttr(slices.Concat(lists...))
}

// MemberSharding is what a, the value of ShardingAttr of an op with results of types ts, states of member n
// of each of these; nil where it states nothing.
func MemberSharding(a types.Attr, ts []types.Type, n int) types.Attr {
	lists, problem := ShardingsIn(a, ts)
	if problem != "" {
		return nil
	}
	own := make([]*types.Sharding, len(lists))
	for i, list := range lists {
		if n < len(list) {
			own[i] = list[n]
		}
	}
	return shardingAttr(own)
}

// KeepSharding states of to, which takes the place of from, the sharding that the text states of from,
// if it states none of to, which is a result of an op.
func KeepSharding(from, to *ir.Value) {
	if s := StatedSharding(from); s != nil && to.Op != nil && StatedSharding(to) == nil {
		StateSharding(to, s)
	}
}

// StateSharding states s of v, a result of an op on tensors, in ShardingAttr; nothing happens where v has another
// rank.
func StateSharding(v *ir.Value, s *types.Sharding) {
	if v.Tensor() == nil || v.Tensor().Rank() != len(s.Dims) {
		return
	}
	list := make([]*types.Sharding, len(v.Op.Results))
	for i, r := range v.Op.Results {
		if list[i] = StatedSharding(r); r == v {
			list[i] = s
		}
	}
	v.Op.SetAttr(ShardingAttr, shardingAttr(list))
}

// AddResult gives o one more result, v, of which ShardingAttr states nothing.
func AddResult(o *ir.Op, v *ir.Value) {
	n := len(o.Results)
	v.Op, v.Index = o, n
	o.Results = append(o.Results[:n:n], v)
	a := o.Attr(ShardingAttr)
	if a == nil {
		return
	}
	entries := []types.Attr{a}
	if n != 1 {
		var ok bool
		if entries, ok = entriesOf(a, n); !ok {
			return // package verify reports it
		}
	}
	o.SetAttr(ShardingAttr, types.Array(append(slices.Clone(entries), types.Unit{})))
}

// DropResult takes result i of o away, which is unused, and what ShardingAttr states of it.
func DropResult(o *ir.Op, i int) {
	if entries, ok := entriesOf(o.Attr(ShardingAttr), len(o.Results)); ok && len(o.Results) > 1 && !none(o.Attr(ShardingAttr)) {
		entries = slices.Delete(slices.Clone(entries), i, i+1)
		if len(entries) == 1 {
			o.SetAttr(ShardingAttr, entries[0])
		} else {
			o.SetAttr(ShardingAttr, types.Array(entries))
		}
	}
	o.Results = slices.Delete(slices.Clone(o.Results), i, i+1)
	for k, v := range o.Results {
		v.Index = k
	}
}

// ShardingsInTypes moves what ShardingAttr states in f, a function without tuples, into types. What f returns
// in another sharding than the one stated is resharded.
func ShardingsInTypes(f *ir.Func) {
	results := ResultShardings(f)
	changed := false
	state := func(v *ir.Value) {
		if s, t := StatedSharding(v), v.Tensor(); s != nil && t.At.Shard == nil {
			v.Type = sharded(t, s)
			changed = true
		}
	}
	for _, a := range f.Args {
		state(a)
	}
	if f.Body != nil {
		ir.WalkValues(f.Body.Ops, state)
		ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
			o.RemoveAttr(ShardingAttr)
			return true
		})
		changed = returnSharded(f, results) || changed
	}
	changed = dropSignature(f.Op, "arg_attrs") || changed
	changed = dropSignature(f.Op, "res_attrs") || changed
	if changed && f.Body != nil {
		f.Retype()
	}
}

// returnSharded gives what f returns the shardings of its results.
func returnSharded(f *ir.Func, results [][]*types.Sharding) (changed bool) {
	last := f.Body.Terminator()
	if last == nil {
		return false
	}
	for i, v := range last.Operands {
		t := v.Tensor()
		if t == nil || i >= len(results) || len(results[i]) != 1 || results[i][0] == nil || t.At.Shard.Equal(results[i][0]) {
			continue
		}
		changed = true
		if t.At.Shard == nil {
			v.Type = sharded(t, results[i][0])
			continue
		}
		b := &ir.Builder{Block: f.Body, Index: last.Position(), At: last}
		last.SetOperand(i, b.Op(Reshard, []*ir.Value{v}, nil, sharded(t, results[i][0])).Results[0])
	}
	return changed
}

func sharded(t *types.Tensor, s *types.Sharding) *types.Tensor {
	r := *t
	r.At.Shard = s
	return &r
}

// dropSignature takes ShardingAttr out of the dictionaries in the attribute called list.
func dropSignature(f *ir.Op, list string) (changed bool) {
	all, _ := f.Attr(list).(types.Array)
	for i := range all {
		if SignatureAttr(f, list, i, ShardingAttr) == nil {
			continue
		}
		if !changed {
			all, changed = slices.Clone(all), true
		}
		all[i] = WithSharding(all[i].(types.Dict), nil)
	}
	if changed {
		f.SetAttr(list, all)
	}
	return changed
}

// WithSharding is the dictionary d of an argument or a result with a as its ShardingAttr, which it has; nil
// takes it away.
func WithSharding(d types.Dict, a types.Attr) types.Dict {
	var out types.Dict
	for _, e := range d {
		if e.Name == ShardingAttr {
			if e.Value = a; a == nil {
				continue
			}
		}
		out = append(out, e)
	}
	return out
}

// DropShardings takes ShardingAttr out of f: on one device every value is whole.
func DropShardings(f *ir.Func) {
	dropSignature(f.Op, "arg_attrs")
	dropSignature(f.Op, "res_attrs")
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		o.RemoveAttr(ShardingAttr)
		o.RemoveAttr(GradientShardingAttr)
		return true
	})
}
