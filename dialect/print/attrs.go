package print

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/parse"
)

// properties are the inherent attributes of the ops that dmir knows besides
// its own, as MLIR defines them.
var properties = map[string][]string{
	op.Func:   {"arg_attrs", "function_type", "no_inline", "res_attrs", "sym_name", "sym_visibility"},
	op.Call:   {"arg_attrs", "callee", "no_inline", "res_attrs"},
	op.Return: {},
	op.Module: {"sym_name", "sym_visibility"},
}

// split tells o's properties, printed in <{…}>, from its other attributes: by
// the registry, by MLIR's definition, or else by how o was written.
func (p *printer) split(o *ir.Op) (props, attrs []types.Named) {
	if len(o.Attrs) == 0 {
		return nil, nil
	}
	def := op.Of(o)
	if def != nil && p.loaded {
		return nil, o.Attrs
	}
	names, known := properties[o.Name]
	if def == nil && !known && origin.Tree(o) != nil && !origin.Tree(o).Props.Empty() {
		text := origin.Tree(o).Text(p.m.Src, origin.Tree(o).Props)
		if x, err := parse.Attr(text[1 : len(text)-1]); err == nil {
			for _, e := range x.Entries {
				names = append(names, e.Key)
			}
		}
	}
	for _, a := range o.Attrs {
		if def.Attr(a.Name) != nil || slices.Contains(names, a.Name) {
			props = append(props, a)
		} else {
			attrs = append(attrs, a)
		}
	}
	return props, attrs
}
