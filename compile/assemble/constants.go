package assemble

import (
	"slices"

	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// placeConstants moves constants of several values out of a kernel, since they
// are data in memory, not numbers in its text; so are all operands of a library
// op. It moves numbers that a kernel captures into it.
func placeConstants(o *ir.Op) {
	if o.Name != op.Kernel {
		return
	}
	body := o.Body(0)
	library := kernel.LibraryOp(body.Ops)
	for _, c := range slices.Clone(body.Ops) {
		if c.Name == op.Constant && (library != nil && slices.Contains(library.Operands, c.Results[0]) || op.IsData(c)) {
			body.Ops = slices.DeleteFunc(body.Ops, func(x *ir.Op) bool { return x == c })
			at := slices.Index(o.Parent.Ops, o)
			o.Parent.Ops = slices.Insert(o.Parent.Ops, at, c)
			c.Parent = o.Parent
		}
	}
	inside := map[*ir.Value]*ir.Value{}
	b := &ir.Builder{Block: body}
	for _, user := range slices.Clone(body.Ops) {
		for i, v := range user.Operands {
			if user == body.Terminator() || user == library || v.Op == nil || v.Op.Name != op.Constant || v.Op.Parent == body || op.IsData(v.Op) {
				continue
			}
			if inside[v] == nil {
				ir.CloneOps(b, []*ir.Op{v.Op}, inside)
			}
			user.SetOperand(i, inside[v])
		}
	}
}
