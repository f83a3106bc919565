package ir_test

import (
	"testing"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func TestSetOperands(t *testing.T) {
	_, ops := chain() // iota, exp of it, sum of both
	iota, exp, add := ops[0], ops[1], ops[2]
	add.SetOperand(1, iota.Results[0])
	if len(exp.Results[0].Uses) != 0 || len(iota.Results[0].Uses) != 3 {
		t.Errorf("%d and %d uses", len(exp.Results[0].Uses), len(iota.Results[0].Uses))
	}
	add.SetOperands(exp.Results[0])
	if len(add.Operands) != 1 || len(exp.Results[0].Uses) != 1 || len(iota.Results[0].Uses) != 1 {
		t.Errorf("%d operands, %d and %d uses", len(add.Operands), len(exp.Results[0].Uses), len(iota.Results[0].Uses))
	}
}

// Erasing an op removes the uses in its regions.
func TestEraseAll(t *testing.T) {
	block, ops := chain()
	k := (&ir.Builder{Block: block, Index: 3}).Op("dm.kernel", nil, nil)
	body := &ir.Block{Region: &ir.Region{Op: k}}
	body.Region.Blocks, k.Regions = []*ir.Block{body}, []*ir.Region{body.Region}
	(&ir.Builder{Block: body}).Op("dm.neg", ops[2].Results, nil, ops[2].Results[0].Type)
	ir.EraseAll(k)
	if len(block.Ops) != 3 || len(ops[2].Results[0].Uses) != 0 {
		t.Errorf("%d ops and %d uses are left", len(block.Ops), len(ops[2].Results[0].Uses))
	}
}

func TestPosition(t *testing.T) {
	_, ops := chain()
	if ops[0].Position() != 0 || ops[2].Position() != 2 {
		t.Errorf("the first op is at %d, the sum at %d", ops[0].Position(), ops[2].Position())
	}
	ir.EraseAll(ops[2])
	if ops[2].Position() != -1 {
		t.Error("an erased op has a position")
	}
}

func TestRemoveAttrAndFunc(t *testing.T) {
	o := &ir.Op{}
	o.SetAttr("a", types.Str("x"))
	o.SetAttr("b", types.Str("y"))
	o.RemoveAttr("a")
	if o.RemoveAttr("c"); len(o.Attrs) != 1 || o.Str("b") != "y" {
		t.Errorf("attributes are %v", o.Attrs)
	}
	m := &ir.Module{Ops: []*ir.Op{o}}
	m.AddFunc(&ir.Func{Op: o, Name: "f"})
	m.RemoveFunc("g")
	if m.RemoveFunc("f"); m.Func("f") != nil || len(m.Funcs)+len(m.Ops) != 0 {
		t.Errorf("%d functions and %d ops are left", len(m.Funcs), len(m.Ops))
	}
}

// The ops of a kernel take its place, with what is passed in the place of its
// arguments; a copy leaves the kernel as it is.
func TestInlineBlock(t *testing.T) {
	block, ops := chain()
	f32 := ops[0].Results[0].Type
	k := (&ir.Builder{Block: block, Index: 3}).Op("dm.map", ops[1].Results, nil, f32)
	r := &ir.Region{Op: k}
	body := &ir.Block{Region: r}
	arg := &ir.Value{Type: f32, Block: body}
	body.Args, r.Blocks, k.Regions = []*ir.Value{arg}, []*ir.Block{body}, []*ir.Region{r}
	b := &ir.Builder{Block: body}
	neg := b.Op("dm.neg", body.Args, nil, f32)
	b.Op("dm.yield", []*ir.Value{neg.Results[0], arg}, nil)

	at := &ir.Builder{Block: block, Index: 3}
	out := ir.CloneBlock(at, body, ops[0].Results)
	if len(body.Ops) != 2 || len(block.Ops) != 5 || out[0].Op != block.Ops[3] || out[0] == neg.Results[0] || out[1] != ops[0].Results[0] {
		t.Errorf("the copy: %d and %d ops", len(body.Ops), len(block.Ops))
	}
	ir.Erase(out[0].Op)
	out = ir.InlineBlock(body, k, k.Operands)
	if len(body.Ops) != 0 || block.Ops[3] != neg || neg.Parent != block || neg.Operands[0] != ops[1].Results[0] || out[0] != neg.Results[0] || out[1] != ops[1].Results[0] {
		t.Errorf("in the place of the op: %d ops", len(block.Ops))
	}
	if n := len(ops[1].Results[0].Uses); n != 3 { // of the sum, of the kernel, of neg
		t.Errorf("%d uses of what was passed", n)
	}
}
