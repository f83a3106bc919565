package print

import (
	"fmt"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Diff returns where two modules differ, "" if they do not: the same ops in the
// same order with equal attributes and types, connected in the same way. Names
// of values and blocks, places and spelling do not count.
func Diff(a, b *ir.Module) string {
	d := &differ{values: map[*ir.Value]*ir.Value{}, blocks: map[*ir.Block]*ir.Block{}}
	switch {
	case outerAttrs(a) == nil && outerAttrs(b) == nil:
	case !types.EqualNamed(outerAttrs(a), outerAttrs(b)):
		return "the attributes of the module differ"
	}
	d.ops("module", a.Ops, b.Ops)
	d.uses()
	return d.found
}

func outerAttrs(m *ir.Module) []types.Named {
	if m.Outer == nil || len(m.Outer.Attrs) == 0 {
		return nil
	}
	return m.Outer.Attrs
}

type differ struct {
	values map[*ir.Value]*ir.Value // of a to those of b
	blocks map[*ir.Block]*ir.Block
	pairs  [][2]*ir.Op
	found  string
}

func (d *differ) report(o *ir.Op, format string, args ...any) {
	if d.found != "" {
		return
	}
	d.found = fmt.Sprintf(format, args...)
	if o != nil {
		d.found = o.Name + ": " + d.found
		if len(o.Results) > 0 {
			d.found = o.Results[0].Name + " = " + d.found
		}
	}
}

func (d *differ) ops(where string, a, b []*ir.Op) {
	for i := range min(len(a), len(b)) {
		d.op(a[i], b[i])
	}
	if len(a) != len(b) {
		d.report(nil, "%s has %d ops and %d ops", where, len(a), len(b))
	}
}

func (d *differ) op(a, b *ir.Op) {
	if d.found != "" {
		return
	}
	d.pairs = append(d.pairs, [2]*ir.Op{a, b})
	switch {
	case a.Name != b.Name:
		d.report(a, "the other op is %s", b.Name)
	case len(a.Operands) != len(b.Operands):
		d.report(a, "%d operands and %d operands", len(a.Operands), len(b.Operands))
	case len(a.Succs) != len(b.Succs):
		d.report(a, "%d successors and %d successors", len(a.Succs), len(b.Succs))
	case len(a.Regions) != len(b.Regions):
		d.report(a, "%d regions and %d regions", len(a.Regions), len(b.Regions))
	}
	d.attrs(a, b)
	d.define(a, "results", a.Results, b.Results)
	if d.found != "" {
		return
	}
	for i, r := range a.Regions {
		s := b.Regions[i]
		if len(r.Blocks) != len(s.Blocks) {
			d.report(a, "region %d has %d blocks and %d blocks", i, len(r.Blocks), len(s.Blocks))
			return
		}
		for j, x := range r.Blocks {
			y := s.Blocks[j]
			d.blocks[x] = y
			d.define(a, "block arguments", x.Args, y.Args)
			d.ops(a.Name, x.Ops, y.Ops)
		}
	}
}

// attrs compares attributes, which are not known of ops of other dialects in
// forms of their own.
func (d *differ) attrs(a, b *ir.Op) {
	if a.Verbatim || b.Verbatim {
		return
	}
	for _, n := range a.Attrs {
		v := b.Attr(n.Name)
		if v == nil {
			d.report(a, "only one has the attribute %s", n)
		} else if !types.EqualAttr(n.Value, v) && squeeze(n.Value.String()) != squeeze(v.String()) {
			d.report(a, "the attribute %s differs: %s and %s", n.Name, n.Value, v)
		}
	}
	for _, n := range b.Attrs {
		if a.Attr(n.Name) == nil {
			d.report(a, "only the other has the attribute %s", n)
		}
	}
}

// squeeze takes the blanks out of texts that are kept verbatim.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

// define pairs values and compares their types as text, in which dimensions
// without a name are alike. A type that is not known differs from none.
func (d *differ) define(o *ir.Op, what string, a, b []*ir.Value) {
	if len(a) != len(b) {
		d.report(o, "%d %s and %d %s", len(a), what, len(b), what)
		return
	}
	for i, v := range a {
		d.values[v] = b[i]
		if v.Type == types.Type(types.Unknown) || b[i].Type == types.Type(types.Unknown) {
			continue
		}
		if s, t := v.Type.String(), b[i].Type.String(); s != t {
			d.report(o, "%s %d: %s and %s", what, i, s, t)
		}
	}
}

// uses compares the operands and successors once all values are paired.
func (d *differ) uses() {
	for _, p := range d.pairs {
		if d.found != "" {
			return
		}
		for i, v := range p[0].Operands {
			w := d.values[v]
			if w != p[1].Operands[i] && (w != nil || v.Name != p[1].Operands[i].Name) {
				d.report(p[0], "operand %d is %s and %s", i, v.Name, p[1].Operands[i].Name)
			}
		}
		for i, b := range p[0].Succs {
			if d.blocks[b] != p[1].Succs[i] {
				d.report(p[0], "successor %d differs", i)
			}
		}
	}
}
