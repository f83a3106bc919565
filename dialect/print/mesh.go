package print

import (
	"strconv"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// mesh prints dm.mesh @pod {data = 16, model = 8}; false if o is no mesh that can be
// written so.
func (p *printer) mesh(o *ir.Op) bool {
	axes, sizes := op.Strings(o, "axes"), o.Ints("sizes")
	name, named := o.Attr("sym_name").(types.Str)
	if !named || len(axes) != len(sizes) || len(o.Operands)+len(o.Results)+len(o.Regions) > 0 || len(o.Attrs) != 3 {
		return false
	}
	p.out.WriteString(op.Mesh + " " + types.SymbolOf(string(name)).String() + " {")
	for i, a := range axes {
		if i > 0 {
			p.out.WriteString(", ")
		}
		p.out.WriteString(types.Named{Name: a, Value: types.Keyword(strconv.FormatInt(sizes[i], 10))}.String())
	}
	p.out.WriteByte('}')
	return true
}
