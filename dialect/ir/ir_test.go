package ir_test

import (
	"slices"
	"testing"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func chain() (*ir.Block, []*ir.Op) {
	block := &ir.Block{}
	b := &ir.Builder{Block: block}
	t := &types.Tensor{Elem: types.F32}
	first := b.Op("dm.iota", nil, []types.Named{{Name: "dim", Value: types.Int{}}}, t)
	second := b.Op("dm.exp", first.Results, nil, t)
	third := b.Op("dm.add", []*ir.Value{first.Results[0], second.Results[0]}, nil, t)
	return block, []*ir.Op{first, second, third}
}

func TestBuilder(t *testing.T) {
	block, ops := chain()
	before := &ir.Builder{Block: block, Index: 1}
	added := before.Op("dm.neg", ops[0].Results, nil, ops[0].Results[0].Type)
	if block.Ops[1] != added || len(block.Ops) != 4 || block.Terminator() != ops[2] {
		t.Errorf("the op was not inserted at 1: %v", block.Ops)
	}
	ir.ReplaceUses(ops[1].Results[0], added.Results[0])
	if ops[2].Operands[1] != added.Results[0] || len(ops[1].Results[0].Uses) != 0 || len(added.Results[0].Uses) != 1 {
		t.Error("the use was not replaced")
	}
	ir.Erase(ops[1])
	if len(block.Ops) != 3 || len(ops[0].Results[0].Uses) != 2 {
		t.Errorf("after erasing %d ops and %d uses", len(block.Ops), len(ops[0].Results[0].Uses))
	}
}

func TestAttrs(t *testing.T) {
	o := &ir.Op{}
	for _, n := range []string{"c", "a", "b", "a"} {
		o.SetAttr(n, types.Str(n))
	}
	if len(o.Attrs) != 3 || o.Attrs[0].Name != "a" || o.Attrs[2].Name != "c" {
		t.Errorf("attributes are %v", o.Attrs)
	}
	o.SetAttr("list", types.Array{types.Int{V: 1}, types.Int{V: 0}})
	o.SetAttr("array", types.IntArray(types.I64, 3))
	o.SetAttr("mixed", types.Array{types.Int{V: 1}, types.Str("x")})
	o.SetAttr("empty", types.Array{})
	if l := o.Ints("list"); len(l) != 2 || l[0] != 1 {
		t.Errorf("list is %v", l)
	}
	if l := o.Ints("array"); len(l) != 1 || l[0] != 3 {
		t.Errorf("array is %v", l)
	}
	if o.Ints("mixed") != nil || o.Ints("absent") != nil || o.Ints("empty") == nil {
		t.Error("lists that are none")
	}
}

// What a kernel takes from outside is listed once, in the order of its uses;
// what it defines itself, at any depth, is not.
func TestCapturedValues(t *testing.T) {
	block, ops := chain()
	iota, exp, add := ops[0].Results[0], ops[1].Results[0], ops[2].Results[0]
	region := func(o *ir.Op, args ...*ir.Value) *ir.Block {
		r := &ir.Region{Op: o}
		b := &ir.Block{Region: r, Args: args}
		for _, a := range args {
			a.Block = b
		}
		r.Blocks, o.Regions = []*ir.Block{b}, []*ir.Region{r}
		return b
	}
	outer := (&ir.Builder{Block: block, Index: 3}).Op("dm.kernel", []*ir.Value{exp, exp}, nil)
	arg := &ir.Value{Type: iota.Type}
	b := &ir.Builder{Block: region(outer, arg)}
	neg := b.Op("dm.neg", []*ir.Value{add}, nil, iota.Type)
	inner := b.Op("dm.kernel", []*ir.Value{iota}, nil, iota.Type)
	(&ir.Builder{Block: region(inner)}).Op("dm.yield", []*ir.Value{neg.Results[0], exp, arg, {}, add}, nil)
	if got := ir.CapturedValues(outer.Regions...); !slices.Equal(got, []*ir.Value{add, iota, exp}) {
		t.Errorf("the outer one captures %d values", len(got))
	}
	if got := ir.UsedValues(outer); !slices.Equal(got, []*ir.Value{exp, add, iota}) {
		t.Errorf("the outer one uses %d values", len(got))
	}
	if got := ir.CapturedValues(inner.Regions...); !slices.Equal(got, []*ir.Value{neg.Results[0], exp, arg, add}) {
		t.Errorf("the inner one captures %d values", len(got))
	}
	var many []*ir.Value
	for range 40 {
		many = append(many, (&ir.Builder{Block: block}).Op("dm.iota", nil, nil, iota.Type).Results[0])
	}
	wide := (&ir.Builder{Block: block, Index: len(block.Ops)}).Op("dm.concatenate", append(many, many...), nil, iota.Type)
	if got := ir.UsedValues(wide); !slices.Equal(got, many) {
		t.Errorf("%d of %d values", len(got), len(many))
	}
}
