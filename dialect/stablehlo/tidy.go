package stablehlo

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
)

// tidy lets element-wise ops of a block broadcast their operands by themselves, and
// joins reshapes. Like convert it leaves the users of values to be counted again.
func tidy(b *ir.Block) {
	ops := b.Ops
	b.Ops = make([]*ir.Op, 0, len(ops))
	for _, o := range ops {
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				tidy(inner)
			}
		}
		if inner := reshaped(o); inner != nil {
			o.Operands[0] = inner.Operands[0]
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
				w := builder(b, o)
				if x = w.Reshape(x, shape...); w.Err() != nil {
					continue
				}
			}
			o.Operands[n] = x
		}
		b.Ops = append(b.Ops, o)
	}
}

// reshaped is the reshape whose result o, another one, reads; nil for other ops.
func reshaped(o *ir.Op) *ir.Op {
	if o.Name != op.Prefix+"reshape" || len(o.Operands) != 1 {
		return nil
	}
	return pattern.From(o.Operands[0], o.Name)
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
