package op

import (
	"maps"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// BindAttr is the attribute by which a function gives sizes to symbols:
// {dm.bind = {n = 512}}.
const BindAttr = "dm.bind"

// Bindings are the sizes of fn's symbols as far as they are known before it
// runs: those of its own attribute, and over them those of bind.
func Bindings(fn *ir.Func, bind map[string]int64) map[string]int64 {
	all := map[string]int64{}
	if fn.Op != nil {
		own, _ := fn.Op.Attr(BindAttr).(types.Dict)
		for _, e := range own {
			if n, ok := e.Value.(types.Int); ok && n.V >= 0 {
				all[e.Name] = n.V
			}
		}
	}
	maps.Copy(all, bind)
	return all
}
