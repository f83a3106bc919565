package op_test

import (
	"strings"
	"testing"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Every op documents its gradient, unless it has no operands, or is differentiated
// through its regions, its expansion or the members of tuples.
func TestEveryOpHasAnAnswer(t *testing.T) {
	through := map[string]bool{"while": true, "scan": true, "if": true, "map": true, "kernel": true, "yield": true, "grad": true, "pack": true, "unpack": true}
	for _, d := range op.All() {
		switch {
		case d.Derivative != nil:
			if len(d.Derivative.Doc) < 10 || !strings.HasSuffix(d.Derivative.Doc, ".") {
				t.Errorf("%s: %q is too short", d.Name, d.Derivative.Doc)
			}
			if d.Derivative.Flat() && !strings.Contains(d.Derivative.Doc, "no gradient flows") {
				t.Errorf("%s: %q does not state that nothing flows", d.Name, d.Derivative.Doc)
			}
		case len(d.Operands) > 0 && d.Expand == nil && !through[d.Name] && (d.Sparse == nil || d.Kernel != op.Structure):
			t.Errorf("the gradient of %s is not documented", d.Name)
		}
	}
}

// A rule that refuses leaves the block as it was.
func TestDeriveRefuses(t *testing.T) {
	for _, c := range []struct{ name, in, attrs, out, why string }{
		{"layer_norm", "nx4xf16", "dims = [0]", "nx4xf16", "sizes in numbers"},
		{"select_and_scatter", "9000xf32 4001xf32", `kind = "max", window_dimensions = [5000]`, "9000xf32", "more than 256 elements"},
	} {
		o := build(t, c.name, c.in, c.attrs, c.out)
		block := &ir.Block{Ops: []*ir.Op{o}}
		o.Parent = block
		dy := &ir.Value{Type: o.Results[0].Type}
		_, ok, p := op.Derive(&ir.Builder{Block: block, Index: 1, At: o}, o, []*ir.Value{dy}, []bool{true, true}[:len(o.Operands)])
		if !ok || p == nil || !strings.Contains(p.Msg, c.why) || len(block.Ops) != 1 || len(dy.Uses) != 0 {
			t.Errorf("%s: ok %t, problem %v, %d ops, %d uses", c.name, ok, p, len(block.Ops), len(dy.Uses))
		}
	}
}

// Of a reduction but a sum it is not known which device gave the result.
func TestDeriveReductions(t *testing.T) {
	for _, word := range []string{"mul", "max", "min"} {
		for _, o := range []*ir.Op{
			build(t, "all_reduce", "4xf32", "reduction = "+word+`, axes = ["data"]`, "4xf32"),
			build(t, "reduce_scatter", "4xf32", "reduction = "+word+`, dim = 0, axes = ["data"]`, "2xf32"),
		} {
			block := &ir.Block{Ops: []*ir.Op{o}}
			o.Parent = block
			_, ok, p := op.Derive(&ir.Builder{Block: block, Index: 1, At: o}, o, []*ir.Value{{Type: o.Results[0].Type}}, []bool{true})
			if !ok || p == nil || !strings.Contains(p.Msg, "reduction by "+word) || p.Help == "" || len(block.Ops) != 1 {
				t.Errorf("%s %s: ok %t, problem %v, %d ops", o.Name, word, ok, p, len(block.Ops))
			}
		}
	}
}

// Cotangents have their operands' types; those that are wanted are made, and no others.
func TestDeriveTypes(t *testing.T) {
	for _, c := range goodOps {
		d := op.Lookup("dm." + c.name)
		if d.Derivative == nil || d.Derivative.Flat() || strings.Contains(c.in, "?") {
			continue
		}
		for wanted := range strings.Fields(c.in) {
			o := build(t, c.name, c.in, c.attrs, c.out)
			if strings.HasPrefix(c.out, "=") {
				continue
			}
			block := &ir.Block{Ops: []*ir.Op{o}}
			o.Parent = block
			dy := make([]*ir.Value, len(o.Results))
			if r := o.Out(0); r != nil && r.Elem.IsFloat() {
				dy[0] = &ir.Value{Type: r}
			} else if r != nil {
				continue
			}
			want := make([]bool, len(o.Operands))
			want[wanted] = true
			if d.WrittenOut(o) { // as its expansion is
				continue
			}
			dx, _, p := op.Derive(&ir.Builder{Block: block, Index: 1, At: o}, o, dy, want)
			if p != nil {
				if !strings.Contains(p.Msg, "sizes in numbers") || !strings.ContainsAny(c.in, "bnm") {
					t.Errorf("%s %s %s: %s", c.name, c.in, c.attrs, p.Msg)
				}
				continue
			}
			chooses := c.name == "select_and_scatter" && wanted == 0
			if o.In(wanted).Elem.IsFloat() && !chooses && dx[wanted] == nil && !strings.Contains(op.ShapeText(o.Out(0).Shape), "0") {
				t.Errorf("%s %s %s: no cotangent of operand %d", c.name, c.in, c.attrs, wanted)
			}
			for i, v := range dx {
				if v == nil {
					continue
				}
				have, operand := v.Type.(*types.Tensor), o.In(i)
				if i != wanted || have.Elem != operand.Elem || op.ShapeText(have.Shape) != op.ShapeText(operand.Shape) {
					t.Errorf("%s %s %s: the cotangent of operand %d is %s", c.name, c.in, c.attrs, i, have)
				}
			}
		}
	}
}
