package stablehlo

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
)

// tidy lets element-wise ops broadcast their operands by themselves, and removes from
// a block the ops of the dialect that nothing uses.
func tidy(b *ir.Block) {
	for i := 0; i < len(b.Ops); i++ {
		o := b.Ops[i]
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				tidy(inner)
			}
		}
		if inner := reshaped(o); inner != nil {
			o.SetOperand(0, inner.Operands[0])
			if x := o.Operands[0]; types.Equal(x.Type, o.Results[0].Type) {
				ir.ReplaceUses(o.Results[0], x)
			}
		}
		for n, v := range o.Operands {
			x, shape := pattern.WithoutBroadcast(o, v)
			if x == nil {
				continue
			}
			if shape != nil {
				w := op.NewBuilder(&ir.Builder{Block: b, Index: i, At: o}, nil)
				if x = w.Reshape(x, shape...); w.Err() != nil {
					continue
				}
				i = w.Index
			}
			o.SetOperand(n, x)
		}
	}
	for i := len(b.Ops) - 1; i >= 0; i-- {
		if o := b.Ops[i]; unused(o) {
			ir.EraseAll(o)
		}
	}
}

// reshaped is the reshape whose result o, another one, reads; nil for other ops.
func reshaped(o *ir.Op) *ir.Op {
	if o.Name != op.Prefix+"reshape" || len(o.Operands) != 1 {
		return nil
	}
	return pattern.From(o.Operands[0], o.Name)
}

// unused reports whether o computes nothing that anything uses.
func unused(o *ir.Op) bool {
	if len(o.Results) == 0 || len(o.Regions) > 0 || !strings.HasPrefix(o.Name, op.Prefix) && o.Name != "util.global.address" {
		return false
	}
	for _, r := range o.Results {
		if len(r.Uses) > 0 {
			return false
		}
	}
	return true
}

// globals are the constants of IREE's util dialect by their symbols.
func globals(m *ir.Module) (map[string]*types.Dense, error) {
	var all map[string]*types.Dense
	for _, o := range m.Ops {
		if o.Name != "util.global" {
			continue
		}
		text := m.Src.Slice(o.Span)
		at, end := strings.IndexByte(text, '@'), strings.LastIndex(text, " : ")
		value := strings.Index(text, "dense<")
		if at < 0 || end < 0 || value < 0 || value > end {
			return nil, unsupported("util.global without a constant")
		}
		t, err := typeOf(m, text[end+len(" : "):])
		if err != nil {
			return nil, err
		}
		d, err := denseOf(text[value:end], t)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = map[string]*types.Dense{}
		}
		all[symbol(text[at:])] = d
	}
	return all, nil
}

// symbol is the @name at the beginning of a text, quotes kept.
func symbol(text string) string {
	if strings.HasPrefix(text, `@"`) {
		if end := strings.IndexByte(text[2:], '"'); end >= 0 {
			return text[:end+3]
		}
	}
	if end := strings.IndexAny(text, " \n:,)"); end >= 0 {
		return text[:end]
	}
	return text
}
