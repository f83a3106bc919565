package pass

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// Before builds in front of o, for o. What breaks a rule of the dialect is a
// failure.
func Before(o *ir.Op) *op.Builder {
	return op.NewBuilder(&ir.Builder{Block: o.Parent, Index: o.Position(), At: o}, verify.Op)
}

// Replace makes every use of o's results one of vs and erases o. A new value
// takes the name of the one it stands for, and its op lists the locations of what is no longer needed.
func Replace(o *ir.Op, vs ...*ir.Value) {
	op.KeepLocs(o, vs)
	for i, r := range o.Results {
		if v := vs[i]; v != r {
			if v.Name == "" && v.Op != nil && len(v.Op.Results) == 1 && !strings.Contains(r.Name, "#") {
				v.Name = r.Name
			}
			ir.ReplaceUses(r, v)
		}
	}
	ir.EraseAll(o)
}

// Dissolve puts the ops of a kernel in its place.
func Dissolve(k *ir.Op) {
	for i, v := range ir.InlineBlock(k.Body(0), k, nil) {
		if v.Name == "" {
			v.Name = k.Results[i].Name
		}
		ir.ReplaceUses(k.Results[i], v)
	}
	ir.Erase(k)
}

// Reached is f and the functions of m that it names, directly or through
// others: those whose text must stand beside f's.
func Reached(m *ir.Module, f *ir.Func) []*ir.Func {
	list := []*ir.Func{f}
	for i := 0; i < len(list); i++ {
		ir.Walk([]*ir.Op{list[i].Op}, func(o *ir.Op) bool {
			for _, a := range o.Attrs {
				s, _ := a.Value.(types.Symbol)
				name, _ := s.Name()
				if g := m.Func(name); s != "" && g != nil && !slices.Contains(list, g) {
					list = append(list, g)
				}
			}
			return true
		})
	}
	return list
}
