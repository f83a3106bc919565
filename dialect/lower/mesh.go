package lower

import (
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
)

// mesh reads the axes of a dm.mesh in pretty form, {data = 16, model = 8}, whose order counts.
func (l *lowerer) mesh(o *ir.Op, t *ast.Op) {
	x, err := parse.Attr(t.Text(l.src, t.Attrs))
	if err != nil {
		l.reportParse(o, t, t.Attrs, err)
		return
	}
	axes, sizes := types.Array{}, types.Array{}
	for _, e := range x.Entries {
		at := ast.Rel{Start: t.Attrs.Start + e.Span.Start, End: t.Attrs.Start + e.Span.End}
		if e.Value == nil || e.Value.Kind != ast.AInt || e.Value.Big {
			l.report(o, "DM193", t.Abs(at), "the axis %s of a mesh has no whole number of devices", e.Key).Help = "write {" + e.Key + " = 8}"
			return
		}
		axes = append(axes, types.Str(e.Key))
		sizes = append(sizes, types.Int{V: e.Value.Int})
	}
	o.SetAttr("axes", axes)
	o.SetAttr("sizes", sizes)
}
