package op

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The attributes that initialize an argument for which no input is given:
// InitAttr is the value of all its elements, as of the state of an optimizer
// before the first step, or the array in a file that it is (InitialArray); StddevAttr is the standard deviation of its random
// numbers, as of weights.
const (
	InitAttr   = "dm.init"
	StddevAttr = "dm.stddev"
)

// InitialArray is the array in a file that argument i of the function f is where no input is given, nil where it is none.
func InitialArray(f *ir.Op, i int) *types.Dense {
	d, _ := SignatureAttr(f, "arg_attrs", i, InitAttr).(*types.Dense)
	return d
}

// StateAttr marks a result of a function that is the next value of one of its
// arguments: {dm.state = "w"}. The function is a step, which a run repeats
// with what the step before returned, as of the weights in training. In the IR and in
// generic form the value is the argument's number, because tools that
// exchange generic form rename values.
const StateAttr = "dm.state"

// State is, for each result of the function f, the number of the argument
// whose next value it is, -1 for a result that is not state; nil if none is.
func State(f *ir.Op) []int {
	all, _ := f.Attr("res_attrs").(types.Array)
	var out []int
	for i := range all {
		n, ok := StateAttrOf(f, i).(types.Int)
		if !ok || n.V < 0 {
			continue
		}
		if out == nil {
			sig, _ := f.Attr("function_type").(types.TypeAttr)
			ty, _ := sig.T.(*types.Func)
			if ty == nil {
				return nil
			}
			out = slices.Repeat([]int{-1}, len(ty.Out))
		}
		if i < len(out) {
			out[i] = int(n.V)
		}
	}
	return out
}

// StateAttrOf is the attribute dm.state of result i of the function f, nil
// where it has none.
func StateAttrOf(f *ir.Op, i int) types.Attr {
	return SignatureAttr(f, "res_attrs", i, StateAttr)
}

// NumberState replaces the names of arguments in dm.state by their numbers. A
// name that no argument has stays, for the verifier.
func NumberState(f *ir.Op, args []*ir.Value) {
	all, _ := f.Attr("res_attrs").(types.Array)
	var changed types.Array
	var number map[string]int // of each argument
	for i := range all {
		name, ok := StateAttrOf(f, i).(types.Str)
		if !ok {
			continue
		}
		if number == nil {
			number, changed = map[string]int{}, slices.Clone(all)
			for k, v := range slices.Backward(args) { // of two with one name the first
				number[v.Name] = k
			}
		}
		at, known := number["%"+string(name)]
		if !known {
			continue
		}
		changed[i] = WithState(all[i].(types.Dict), types.Int{V: int64(at), Elem: types.I64})
	}
	if changed != nil {
		f.SetAttr("res_attrs", changed)
	}
}

// WithState is the dictionary d of a result with v as its dm.state.
func WithState(d types.Dict, v types.Attr) types.Dict {
	d = slices.Clone(d)
	for i := range d {
		if d[i].Name == StateAttr {
			d[i].Value = v
		}
	}
	return d
}

// StateOver is the argument of the function or of the loop's body that result i of o, an op or a kernel
// that computes, is written over, because it is its next value: every other
// reader of the argument runs before, and o does not read it or is element-wise and
// reads each element where it writes it. nil where there is none.
func (p *InPlace) StateOver(o *ir.Op, i int) *ir.Value {
	b := o.Parent
	if b == nil || b.Region == nil || b.Region.Op == nil || i >= len(o.Results) || b.Region.Op.Name != Func && LoopBody(b.Region.Op) != b {
		return nil
	}
	arg := p.carried(b).next[o.Results[i]]
	if arg == nil || !sameStorage(arg, o.Results[i]) || IsView(o) || o.Name != Kernel && (Of(o) == nil || Of(o).Kernel == Structure) {
		return nil
	}
	reads := false
	for _, v := range ir.UsedValues(o) {
		if v != arg && p.Storage(v) == arg { // a view of it has other indices, an update of it is another value
			return nil
		}
		reads = reads || v == arg
	}
	if reads && !slices.Contains(PointwiseOperands(o, o.Results[i]), arg) {
		return nil
	}
	if p.dies(arg, o, o) != nil {
		return nil
	}
	return arg
}

// carried is the state of a function, or what a loop carries.
type carried struct {
	next map[*ir.Value]*ir.Value // the arguments, by the values that are their next ones
	args map[*ir.Value]bool
}

// carried is the state of the function, or what the loop carries, with the body b.
func (p *InPlace) carried(b *ir.Block) *carried {
	c := p.state[b]
	if c != nil {
		return c
	}
	c = &carried{map[*ir.Value]*ir.Value{}, map[*ir.Value]bool{}}
	if p.state == nil {
		p.state = map[*ir.Block]*carried{}
	}
	p.state[b] = c
	state, last := State(b.Region.Op), b.Terminator()
	if LoopBody(b.Region.Op) == b {
		state = make([]int, min(Carries(b.Region.Op), len(b.Args)))
		for i := range state {
			state[i] = i
		}
	}
	if state == nil || last == nil {
		return c
	}
	for i, v := range last.Operands {
		if i >= len(state) || state[i] < 0 || state[i] >= len(b.Args) {
			continue
		}
		arg := b.Args[state[i]]
		c.args[arg] = true
		values, args := membersOf(v, arg)
		for k, v := range values {
			if c.next[v] == nil {
				c.next[v] = args[k]
			}
		}
	}
	return c
}

// membersOf are v, and arg whose next value it is; of tuples that are made and taken apart in one place only their members.
func membersOf(v, arg *ir.Value) (values, args []*ir.Value) {
	if !types.IsTuple(arg.Type) {
		return []*ir.Value{v}, []*ir.Value{arg}
	}
	if len(arg.Uses) != 1 || arg.Uses[0].Op.Name != Unpack || v.Op == nil || v.Op.Name != Pack || len(v.Uses) != 1 || len(v.Op.Operands) != len(arg.Uses[0].Op.Results) {
		return nil, nil
	}
	for k, v := range v.Op.Operands {
		more, over := membersOf(v, arg.Uses[0].Op.Results[k])
		values, args = append(values, more...), append(args, over...)
	}
	return values, args
}

// PointwiseOperands lists the values that o, an element-wise op or a kernel, reads
// only at the index at which it writes result, in the thread that writes it: they have the
// result's shape, order and element type, as have all of o's results, and only
// element-wise ops read them and what is computed from them. Such a kernel may
// contain contractions, whose operands are other values. nil if o is none.
func PointwiseOperands(o *ir.Op, result *ir.Value) []*ir.Value {
	want := result.Tensor()
	if want == nil {
		return nil
	}
	for _, v := range o.Results {
		if t := v.Tensor(); t == nil || !sameIndex(t, want) {
			return nil
		}
	}
	inside := []*ir.Op{o}
	if o.Name == Kernel {
		if o.Body(0) == nil {
			return nil
		}
		inside = o.Body(0).Ops
	}
	elsewhere := map[*ir.Value]bool{} // what other ops read, and what that is computed from
	for _, u := range slices.Backward(inside) {
		d := Of(u)
		own := 0 // so many operands are read at the index of the result
		switch {
		case len(u.Regions) > 0:
			return nil
		case d.Is(Pointwise) || u.Name == Constant || u.Name == Yield:
			own = len(u.Operands)
		case d != nil && d.Kernel == Selective:
			own = 1
		case d == nil || d.Kernel == Library || !(d.Move != nil && !d.Is(Update) || d.Family == Contraction && len(u.Operands) == 2):
			return nil
		}
		if slices.ContainsFunc(u.Results, func(v *ir.Value) bool { return elsewhere[v] }) {
			own = 0
		}
		for _, v := range u.Operands[own:] {
			elsewhere[v] = true
		}
	}
	var out []*ir.Value
	for _, v := range ir.UsedValues(o) {
		t := v.Tensor()
		if t != nil && sameIndex(t, want) && t.Elem == want.Elem && !elsewhere[v] {
			out = append(out, v)
		}
	}
	return out
}

// sameIndex reports whether element number i of a and of b have the same index.
func sameIndex(a, b *types.Tensor) bool {
	if a.Rank() != b.Rank() || !slices.Equal(a.At.Order, b.At.Order) {
		return false
	}
	for i := range a.Shape {
		if !a.Shape[i].Equal(b.Shape[i]) {
			return false
		}
	}
	return true
}
