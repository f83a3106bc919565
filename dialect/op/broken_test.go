package op_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// randomOp has any number of operands and results of any types, and attributes
// of the right names with any values.
func randomOp(r *rand.Rand, d *op.Def) *ir.Op {
	o := &ir.Op{Name: d.FullName()}
	value := func() *ir.Value {
		elem := types.Elem(1 + r.IntN(15))
		switch r.IntN(12) {
		case 0:
			return &ir.Value{Type: types.Unknown}
		case 1:
			return &ir.Value{Type: types.Scalar{Elem: elem}}
		case 2:
			return &ir.Value{}
		}
		t := &types.Tensor{Elem: elem, At: types.Placement{Space: types.HBM}}
		for range r.IntN(5) {
			t.Shape = append(t.Shape, []dim.Dim{dim.Const(0), dim.Const(1), dim.Const(3), dim.Const(1 << 40), dim.Sym("n"), dim.Unnamed("u")}[r.IntN(6)])
		}
		return &ir.Value{Type: t}
	}
	for range r.IntN(6) {
		o.Operands = append(o.Operands, value())
	}
	for range r.IntN(4) {
		o.Results = append(o.Results, value())
	}
	number := func() types.Attr { return types.Int{V: []int64{-7, -1, 0, 1, 2, 1 << 62}[r.IntN(6)]} }
	for _, a := range d.Attrs {
		var v types.Attr
		switch r.IntN(8) {
		case 0:
			continue
		case 1:
			v = types.Raw("nonsense")
		case 2:
			v = types.Float{V: 0.5}
		case 3:
			v = types.Str([]string{"", "ij,jk->ik", "ii->", "add", "->"}[r.IntN(5)])
		case 4, 5:
			list := types.Array{}
			for range r.IntN(4) {
				if a.Kind == op.KindPairs && r.IntN(4) > 0 {
					list = append(list, types.Array{number(), number()})
				} else {
					list = append(list, number())
				}
			}
			v = list
		default:
			v = number()
		}
		o.SetAttr(a.Name, v)
	}
	for range r.IntN(len(d.Regions) + 2) {
		o.Regions = append(o.Regions, &ir.Region{Op: o})
	}
	return o
}

// Cost and iteration spaces are asked of ops that did not pass the verifier,
// too: an editor shows numbers while people type.
func TestBrokenOps(t *testing.T) {
	for _, d := range op.All() {
		t.Run(d.Name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for range 3000 {
				o := randomOp(r, d)
				func() {
					defer func() {
						if p := recover(); p != nil {
							t.Fatalf("%v: operands %s, attributes %v", p, operandText(o), o.Attrs)
						}
					}()
					op.FLOP(o)
					if d.FLOP != nil {
						d.FLOP(o)
					}
					op.Traffic(o)
					if d.Traffic != nil {
						d.Traffic(o)
					}
					if d.Maps != nil {
						d.Maps(o)
					}
				}()
			}
		})
	}
}

func operandText(o *ir.Op) string {
	var s []string
	for _, v := range o.Operands {
		if v.Type == nil {
			s = append(s, "none")
			continue
		}
		s = append(s, v.Type.String())
	}
	return fmt.Sprint(s)
}
