package stablehlo

import (
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// inlineCalls puts the bodies of called functions into the regions of scalars, which
// are computed for tensors.
func inlineCalls(m *ir.Module) {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
			switch foreign(o) {
			case "reduce", "reduce_window", "scatter", "select_and_scatter", "sort", "map":
				for _, r := range o.Regions {
					for _, b := range r.Blocks {
						inlineInto(m, b)
					}
				}
			}
			return true
		})
	}
}

// maxInlined bounds the calls that are inlined into a region, which may call each other.
const maxInlined = 100

func inlineInto(m *ir.Module, b *ir.Block) {
	done := 0
	for i := 0; i < len(b.Ops) && done < maxInlined; i++ {
		o := b.Ops[i]
		if o.Name != op.Call {
			continue
		}
		f := m.Func(o.Str("callee"))
		if f == nil || f.Body == nil || len(f.Args) != len(o.Operands) {
			continue
		}
		if last := f.Body.Terminator(); last == nil || len(last.Operands) != len(o.Results) {
			continue
		}
		results := ir.CloneBlock(&ir.Builder{Block: b, Index: i, At: o}, f.Body, o.Operands)
		for j, r := range o.Results {
			ir.ReplaceUses(r, results[j])
		}
		ir.EraseAll(o)
		done++
		i--
	}
}

// combiner is the named function that a region of two scalars computes: "add",
// "mul", "max", "min", "and", "or", and "set" for its second argument; "" for others.
func combiner(b *ir.Block) string {
	last := b.Terminator()
	if last == nil || len(last.Operands) != 1 || len(b.Args) != 2 {
		return ""
	}
	v := last.Operands[0]
	if v == b.Args[1] {
		return "set"
	}
	o := v.Op
	if o == nil || len(b.Ops) != 2 || len(o.Operands) != 2 {
		return ""
	}
	if x, y := o.Operands[0], o.Operands[1]; !(x == b.Args[0] && y == b.Args[1] || x == b.Args[1] && y == b.Args[0]) {
		return ""
	}
	switch name := binary[foreign(o)]; name {
	case "add", "mul", "max", "min", "and", "or":
		if to := logical[name]; b.Args[0].Elem() == types.I1 && to != "" {
			return to
		}
		return name
	}
	return ""
}

// neutral is the value that a named function leaves the other operand with.
func neutral(kind string, e types.Elem) float64 {
	low, high := math.Inf(-1), math.Inf(1)
	if e.IsInt() {
		bits := float64(e.Bits())
		if e == types.I1 {
			bits = 1
		}
		low, high = 0, math.Exp2(bits)-1
		if !e.IsUnsigned() {
			low, high = -math.Exp2(bits-1), math.Exp2(bits-1)-1
		}
	}
	switch kind {
	case "mul", "and":
		return 1
	case "max":
		return low
	case "min":
		return high
	}
	return 0
}

// isNeutral reports whether v is a constant that is neutral for kind.
func isNeutral(v *ir.Value, kind string) bool {
	if v.Op == nil || v.Op.Name != op.Prefix+"constant" {
		return false
	}
	d, ok := v.Op.Attr("value").(*types.Dense)
	if !ok || d.Len() == 0 {
		return false
	}
	e := v.Elem()
	if e.IsFloat() {
		return d.Float(0) == neutral(kind, e)
	}
	switch kind {
	case "max", "min":
		return d.Int(0) == types.IntOf(&types.Tensor{Elem: e}, extreme(kind, e)).Int(0)
	}
	return d.Int(0) == int64(neutral(kind, e))
}

// extreme is the least ("max") or greatest ("min") number of an integer type.
func extreme(kind string, e types.Elem) int64 {
	switch {
	case e.IsUnsigned() && kind == "max":
		return 0
	case e == types.I1:
		return 1
	case e.IsUnsigned():
		return -1 // wraps to all ones
	case kind == "max":
		return -1 << (e.Bits() - 1)
	}
	return 1<<(e.Bits()-1) - 1
}

// inline computes the results of a region of scalars for each element of the
// arguments, which have one shape.
func (c *call) inline(b *ir.Block, args []*ir.Value) ([]*ir.Value, error) {
	if len(args) != len(b.Args) {
		return nil, invalid("a region takes %d arguments, not %d", len(b.Args), len(args))
	}
	copied := &ir.Block{Region: c.b.Block.Region}
	out := &ir.Op{Operands: ir.CloneBlock(&ir.Builder{Block: copied, At: c.o}, b, args)}
	for i, v := range out.Operands { // so that it follows what is replaced
		v.Uses = append(v.Uses, ir.Use{Op: out, Index: i})
	}
	err := c.nested(func() { c.converter.convert(copied.Ops, c.b.Block) })
	c.b.Index = len(c.b.Block.Ops)
	return out.Operands, err
}

// nested is errSilent if convert, of ops inside another one, reports any.
func (c *converter) nested(convert func()) error {
	before := len(c.diags)
	convert()
	if len(c.diags) > before {
		return errSilent
	}
	return nil
}
