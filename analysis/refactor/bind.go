package refactor

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
)

// offerBind offers, at the head of a function, to write there the sizes that
// the configuration gives to its symbols.
func offerBind(s *selection) []Action {
	o := s.one()
	if o == nil || o.Name != op.Func || !s.onHead(o) || origin.Tree(o).Func == nil || len(origin.Tree(o).Regions) == 0 || o.Bad {
		return nil
	}
	names := s.unwrittenSizes(o)
	if len(names) == 0 {
		return nil
	}
	return []Action{{ID: "bind", Kind: Rewrite, Title: "Write the sizes " + strings.Join(s.sizesText(names), ", ") + " on @" + o.Str("sym_name")}}
}

// unwrittenSizes are the symbols of a function's signature that have a size now
// and none in the function's own attribute, sorted.
func (s *selection) unwrittenSizes(o *ir.Op) []string {
	ty, _ := o.Attr("function_type").(types.TypeAttr)
	sig, ok := ty.T.(*types.Func)
	if !ok {
		return nil
	}
	own := op.Bindings(&ir.Func{Op: o}, nil)
	var out []string
	for _, t := range slices.Concat(sig.In, sig.Out) {
		tensor, ok := t.(*types.Tensor)
		if !ok {
			continue
		}
		for _, d := range tensor.Shape {
			for _, name := range d.Symbols() {
				_, bound := s.p.Bind[name]
				if _, written := own[name]; bound && !written {
					out = append(out, name)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (s *selection) sizesText(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = fmt.Sprintf("%s = %d", name, s.p.Bind[name])
	}
	return out
}

func applyBind(s *selection, _ string) (*Change, error) {
	o := s.one()
	if o == nil || o.Name != op.Func || origin.Tree(o).Func == nil || len(origin.Tree(o).Regions) == 0 || o.Bad {
		return nil, refuse("sizes can only be written on a function")
	}
	names := s.unwrittenSizes(o)
	if len(names) == 0 {
		return nil, refuse("every known size is already written")
	}
	var entries []string
	if own, ok := o.Attr(op.BindAttr).(types.Dict); ok {
		for _, e := range own {
			entries = append(entries, e.String())
		}
	}
	entries = append(entries, s.sizesText(names)...)
	return &Change{Edits: s.setAttrs(o, [][2]string{{op.BindAttr, "{" + strings.Join(entries, ", ") + "}"}})}, nil
}
