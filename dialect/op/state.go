package op

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The attributes that initialize an argument for which no input is given:
// InitAttr is the value of all its elements, as of the state of an optimizer
// before the first step; StddevAttr is the standard deviation of its random
// numbers, as of weights.
const (
	InitAttr   = "dm.init"
	StddevAttr = "dm.stddev"
)

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
		n, ok := stateOf(all, i).(types.Int)
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
	all, _ := f.Attr("res_attrs").(types.Array)
	return stateOf(all, i)
}

func stateOf(all types.Array, i int) types.Attr {
	if i >= len(all) {
		return nil
	}
	own, _ := all[i].(types.Dict)
	for _, a := range own {
		if a.Name == StateAttr {
			return a.Value
		}
	}
	return nil
}

// NumberState replaces the names of arguments in dm.state by their numbers. A
// name that no argument has stays, for the verifier.
func NumberState(f *ir.Op, args []*ir.Value) {
	all, _ := f.Attr("res_attrs").(types.Array)
	var changed types.Array
	for i := range all {
		name, ok := stateOf(all, i).(types.Str)
		at := slices.IndexFunc(args, func(v *ir.Value) bool { return ok && v.Name == "%"+string(name) })
		if at < 0 {
			continue
		}
		if changed == nil {
			changed = slices.Clone(all)
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

// IsState reports whether a result of the function f is the next value of
// argument i.
func IsState(f *ir.Op, i int) bool { return slices.Contains(State(f), i) }
