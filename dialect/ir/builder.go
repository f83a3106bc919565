package ir

import (
	"slices"

	"dmir/dialect/types"
)

// Builder appends or inserts new ops into a block. New ops carry the span of
// the op they stand for (At), so that messages about them find a place, and its marks.
type Builder struct {
	Block *Block
	Index int  // insertion point in Block.Ops
	At    *Op  // the op whose place new ops take; may be nil
	Loose bool // the values that new ops read do not list them as users: for ops of a block that is in no function
}

// Op inserts an op with results of the given types and returns it.
func (b *Builder) Op(name string, operands []*Value, attrs []types.Named, results ...types.Type) *Op {
	o := &Op{Name: name, Operands: operands, Parent: b.Block}
	for _, a := range attrs {
		o.SetAttr(a.Name, a.Value)
	}
	if b.At != nil {
		o.Span, o.Head, o.Loc = b.At.Span, b.At.Head, b.At.Loc
		o.CopyMarks(b.At)
	}
	if !b.Loose {
		for i, v := range operands {
			v.Uses = append(v.Uses, Use{o, i})
		}
	}
	for i, t := range results {
		o.Results = append(o.Results, &Value{Type: t, Op: o, Index: i, Span: o.Head})
	}
	ops := append(b.Block.Ops, nil)
	copy(ops[b.Index+1:], ops[b.Index:])
	ops[b.Index] = o
	b.Block.Ops = ops
	b.Index++
	return o
}

// Drop takes back the op that was inserted last.
func (b *Builder) Drop(o *Op) {
	Erase(o)
	b.Index--
}

// ReplaceUses makes every use of old a use of new.
func ReplaceUses(old, new *Value) {
	for _, u := range old.Uses {
		u.Op.Operands[u.Index] = new
		new.Uses = append(new.Uses, u)
	}
	old.Uses = nil
}

// Erase removes o from its block. Its results must be unused. It looks from the
// back, so that erasing many ops in reverse order takes no time of its own.
func Erase(o *Op) {
	for i, v := range o.Operands {
		for j := len(v.Uses) - 1; j >= 0; j-- {
			if v.Uses[j] == (Use{o, i}) {
				v.Uses = slices.Delete(v.Uses, j, j+1)
				break
			}
		}
	}
	for i := len(o.Parent.Ops) - 1; i >= 0; i-- {
		if o.Parent.Ops[i] == o {
			o.Parent.Ops = slices.Delete(o.Parent.Ops, i, i+1)
			break
		}
	}
	o.Parent = nil
}

// AddRegion adds to o a region of one empty block, and to it an argument of the
// type and name of each of likes.
func (o *Op) AddRegion(likes ...*Value) *Block {
	b := &Block{Region: &Region{Op: o}}
	b.Region.Blocks = []*Block{b}
	o.Regions = append(o.Regions, b.Region)
	for _, v := range likes {
		b.AddArg(v.Name, v.Type)
	}
	return b
}

// AddArg adds an argument to b.
func (b *Block) AddArg(name string, t types.Type) *Value {
	v := &Value{Name: name, Type: t, Block: b, Index: len(b.Args)}
	b.Args = append(b.Args, v)
	return v
}
