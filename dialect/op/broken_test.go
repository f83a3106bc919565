package op_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// randomOp has any number of operands and results of any types, and attributes
// of the right names with any values.
func randomOp(r *rand.Rand, d *op.Def) *ir.Op {
	o := &ir.Op{Name: d.FullName()}
	value := func() *ir.Value {
		elem := types.Elem(1 + r.IntN(15))
		kind := r.IntN(12)
		switch kind {
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
		switch kind {
		case 10:
			return &ir.Value{Type: &types.Tuple{Of: []types.Type{t}}}
		case 11:
			return &ir.Value{Type: &types.Tuple{Of: []types.Type{&types.Tuple{Of: []types.Type{t, t}}, t}}}
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

// plausibleOp has operands of the allowed element types and attributes of the
// right kinds, and the results that follow from them.
func plausibleOp(r *rand.Rand, d *op.Def) *ir.Op {
	o := &ir.Op{Name: d.FullName()}
	common := op.Lookup("dm.add").Operands[0].Elems[r.IntN(3)]
	rank := 1 + r.IntN(4)
	for i, p := range d.Operands {
		if p.Optional && r.IntN(2) == 0 {
			break
		}
		n := 1
		if p.Variadic {
			n = 1 + r.IntN(3)
		}
		for range n {
			elem := common
			if p.Elems != nil && !slices.Contains(p.Elems, elem) {
				elem = p.Elems[0]
			}
			t := &types.Tensor{Elem: elem, At: types.Placement{Space: types.HBM}}
			for range max(rank-r.IntN(2)*i, 0) {
				t.Shape = append(t.Shape, []dim.Dim{dim.Const(1), dim.Const(2), dim.Const(2), dim.Sym("n")}[r.IntN(4)])
			}
			o.Operands = append(o.Operands, &ir.Value{Type: t})
		}
	}
	for _, a := range d.Attrs {
		if (a.Optional || a.Default != nil) && r.IntN(2) == 0 {
			continue
		}
		small := func() types.Attr { return types.Int{V: int64(r.IntN(4) - 1)} }
		var v types.Attr
		switch a.Kind {
		case op.KindInt:
			v = small()
		case op.KindFloat:
			v = types.Float{V: []float64{-1, 0, 0.5, 1}[r.IntN(4)]}
		case op.KindBool:
			v = types.Bool(r.IntN(2) == 0)
		case op.KindString:
			v = types.Str([]string{"ij,jk->ik", "ii->", "ij->ji", "i,i->i"}[r.IntN(4)])
		case op.KindName:
			v = types.Str("f")
		case op.KindSize:
			v = []types.Attr{small(), types.Str("2 * n")}[r.IntN(2)]
		case op.KindStrings:
			list := types.Array{}
			for i := range r.IntN(3) {
				list = append(list, types.Str([]string{"data", "model:(2)4", ""}[i]))
			}
			v = list
		case op.KindKeyword:
			v = types.Keyword(a.Enum[r.IntN(len(a.Enum))])
		case op.KindInts, op.KindPairs:
			list := types.Array{}
			for range max(rank-r.IntN(2), 0) {
				if a.Kind == op.KindPairs {
					list = append(list, types.Array{small(), small()})
				} else {
					list = append(list, small())
				}
			}
			v = list
		default:
			v = types.SplatOf(&types.Tensor{Elem: types.F32}, 1)
		}
		o.SetAttr(a.Name, v)
	}
	var shape []dim.Dim
	if len(o.Operands) > 0 {
		shape = o.Operands[0].Tensor().Shape
	}
	for range min(len(d.Results), 1+r.IntN(3)) {
		o.Results = append(o.Results, &ir.Value{Type: &types.Tensor{Shape: shape, Elem: common, At: types.Placement{Space: types.HBM}}, Op: o, Index: len(o.Results)})
	}
	ts, ok := verify.Infer(o)
	for i := range o.Results {
		if ok && i < len(ts) {
			o.Results[i].Type = ts[i]
		}
	}
	return o
}

// unlikely are ops whose operands must fit too well for chance to find any, that
// name what is not there, or that are never Valid; TestInfer and the expansions have cases of them.
var unlikely = map[string]bool{"constant": true, "iota": true, "grad": true, "momentum": true, "adam": true, "attention_grad": true, "pack": true, "unpack": true, "sample": true, "merge": true, "filter": true, "segment_attention": true, "grouped_matmul": true, "structured_einsum": true, "segment_product": true, "segment_dense_product": true, "segment_sample": true}

// The verifier takes anything, and what passes it expands. Cost and iteration
// spaces are asked of ops that did not pass it, too: an editor shows numbers
// while people type.
func TestBrokenOps(t *testing.T) {
	for _, d := range op.All() {
		t.Run(d.Name, func(t *testing.T) {
			good := 0
			r := rand.New(rand.NewPCG(1, 2))
			for i := range 2000 {
				o := randomOp(r, d)
				if i%2 == 0 {
					o = plausibleOp(r, d)
				}
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
					if verify.Op(o) == nil && op.Valid(o) {
						good++
						checkExpansion(t, o)
						checkFactors(t, o)
					}
				}()
			}
			if good == 0 && len(d.Regions) == 0 && !unlikely[d.Name] {
				t.Error("none passes the verifier")
			}
		})
	}
}

// checkExpansion expands a verified op: what it becomes verifies and has o's types.
func checkExpansion(t *testing.T, o *ir.Op) {
	d := op.Of(o)
	if d.Expand == nil {
		return
	}
	block := &ir.Block{Ops: []*ir.Op{o}}
	o.Parent = block
	vs := d.Expand(&ir.Builder{Block: block, At: o}, o)
	if vs == nil && len(block.Ops) != 1 {
		t.Errorf("%s: a refused expansion leaves %d ops", operandText(o), len(block.Ops)-1)
	}
	for i, v := range vs {
		if i < len(o.Results) && !op.Compatible(v.Type, o.Results[i].Type) {
			t.Errorf("%s %v: result %d expands to %s, not %s", operandText(o), o.Attrs, i, v.Type, o.Results[i].Type)
		}
	}
	for _, p := range block.Ops {
		if problem := verify.Op(p); problem != nil {
			t.Errorf("%s %v: expands to %s: %s: %s", operandText(o), o.Attrs, p.Name, problem.Code, problem.Msg)
		}
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
