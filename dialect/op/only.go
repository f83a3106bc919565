package op

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// TaskAttr of an op of a function with OnlyAttr is the task of the pipeline's schedule in which it runs, "2F0": stage
// 2, forward, micro-batch 0.
const TaskAttr = ir.TaskAttr

// OnlyAttr marks a function that some devices of a mesh run, those with a position along an axis:
// dm.only = [@pod, {pipe = 2}]. It computes together with the functions of the other positions, by dm.send and
// dm.recv. Its values are whole tensors, or with MeshAttr pieces.
const OnlyAttr = "dm.only"

// Only is the devices that run a function with OnlyAttr.
type Only struct {
	Mesh     string
	Axis     string
	Position int
}

// Attr is the value of OnlyAttr.
func (o *Only) Attr() types.Attr {
	return types.Array{types.SymbolOf(o.Mesh), types.Dict{{Name: o.Axis, Value: types.Int{V: int64(o.Position), Elem: types.I64}}}}
}

// OnlyOf is the devices that run the function f; nil where it does not state any.
func OnlyOf(f *ir.Op) *Only {
	list, _ := f.Attr(OnlyAttr).(types.Array)
	if len(list) != 2 {
		return nil
	}
	name, isSymbol := list[0].(types.Symbol)
	at, _ := list[1].(types.Dict)
	if !isSymbol || len(at) != 1 {
		return nil
	}
	position, isInt := at[0].Value.(types.Int)
	if !isInt || position.V < 0 || position.V >= 1<<31 {
		return nil
	}
	mesh, _ := name.Name()
	return &Only{Mesh: mesh, Axis: at[0].Name, Position: int(position.V)}
}

// funcOf is the function that o stands in, nil if none.
func funcOf(o *ir.Op) *ir.Op {
	for o != nil && o.Name != Func {
		if o.Parent == nil || o.Parent.Region == nil {
			return nil
		}
		o = o.Parent.Region.Op
	}
	return o
}
