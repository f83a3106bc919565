package op

import (
	"fmt"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

const (
	// RegatherAttr marks an argument of a training step that is stored in pieces, as a parameter of ZeRO-3 or FSDP: what devices
	// gather of it for the forward pass they free behind that, and gather it again for the backward pass. Of a tuple it is a unit
	// too, or a list of booleans, one for each tensor.
	RegatherAttr = "dm.regather"
	// RegatheredAttr is the number of a gathering of an argument with RegatherAttr, by the passes of micro-batches: it is equal to
	// no other one, and exchanged by itself.
	RegatheredAttr = ir.RegatheredAttr
)

func isRegather(a types.Attr) bool {
	list, ok := a.(types.Array)
	return isUnit(a) || ok && len(list) > 0 && !slices.ContainsFunc(list, func(x types.Attr) bool {
		_, is := x.(types.Bool)
		return !is
	})
}

// RegatherProblem is what is wrong with a, the value of RegatherAttr of an argument of type t; "" where nothing is.
func RegatherProblem(a types.Attr, t types.Type) string {
	list, ok := a.(types.Array)
	if n := len(types.Members(t)); ok && len(list) != n {
		return fmt.Sprintf("it has %d entries, and %s has %d tensors", len(list), t, n)
	}
	return ""
}

// MemberRegather is what a, the value of RegatherAttr of a tuple, states of its tensor i.
func MemberRegather(a types.Attr, i int) bool {
	list, ok := a.(types.Array)
	return !ok || i < len(list) && list[i] == types.Attr(types.Bool(true))
}

// Regathers reports whether an argument of the function f has RegatherAttr.
func Regathers(f *ir.Op) bool {
	all, _ := f.Attr("arg_attrs").(types.Array)
	for i := range all {
		if SignatureAttr(f, "arg_attrs", i, RegatherAttr) != nil {
			return true
		}
	}
	return false
}

// Regathered reports whether v, an argument of a function without tuples, has RegatherAttr.
func Regathered(v *ir.Value) bool {
	return v.Block != nil && v.Block.Region != nil && v.Block.Region.Op != nil && SignatureAttr(v.Block.Region.Op, "arg_attrs", v.Index, RegatherAttr) != nil
}
