package stablehlo

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// check converts an op of the check dialect, which compares results.
func (c *call) check(name string) ([]*ir.Value, error) {
	switch name {
	case "expect_eq", "expect_almost_eq", "expect_close", "expect_eq_const", "expect_almost_eq_const":
	default:
		return nil, unsupported("check.%s", name)
	}
	if len(c.o.Operands) == 0 {
		return nil, invalid("%s compares nothing", c.o.Name)
	}
	var attrs []types.Named
	for _, a := range c.o.Attrs {
		if a.Name == "value" || a.Name == op.UlpAttr {
			attrs = append(attrs, a)
		}
	}
	if text := c.attrs[op.UlpAttr]; text != "" {
		n, err := c.numbers(text)
		if err != nil || len(n) != 1 {
			return nil, invalid("%s is no number", op.UlpAttr)
		}
		attrs = named(op.UlpAttr, n[0])
	}
	if strings.HasSuffix(name, "_const") && len(attrs) == 0 {
		text := c.attrs["value"]
		if _, value, found := strings.Cut(strings.Join(c.words, ", "), "dense<"); found && text == "" {
			text = "dense<" + strings.TrimSuffix(value, ")") // of %x, dense<…> or (%x, dense<…> : type)
		}
		t := c.in(0).Tensor()
		if text == "" || t == nil {
			return nil, invalid("no value")
		}
		if i := strings.LastIndex(text, " : "); i >= 0 {
			text = text[:i]
		}
		d, err := denseOf(text, t)
		if err != nil {
			return nil, err
		}
		attrs = named("value", types.Attr(d))
	}
	c.b.Builder.Op("check."+name, slices.Clone(c.o.Operands), attrs)
	return nil, nil
}

func convertCustomCall(c *call) ([]*ir.Value, error) {
	target := strings.Trim(c.attrs["call_target_name"], `"`)
	if target == "" && len(c.words) > 0 {
		target, _, _ = strings.Cut(strings.TrimPrefix(c.words[0], "@"), "(")
	}
	target = strings.Trim(strings.TrimSpace(target), `"`)
	if name, ok := strings.CutPrefix(target, "check."); ok {
		return c.check(name)
	}
	if f := customCalls[target]; f != nil {
		return f(c)
	}
	return nil, unsupported("custom_call @%s has no equivalent", target)
}

// customCalls are the calls of other frameworks that are ops.
var customCalls = map[string]conversion{
	"Sharding":                  convertSame,
	"annotate_device_placement": convertSame,
	"byteir.gelu":               byteir(convertGelu),
	"byteir.layer_norm":         byteir(convertLayerNorm),
	"byteir.log_softmax":        byteir(convertSoftmax("log_softmax")),
	"byteir.nll_loss_forward":   byteir(convertNLL),
	"byteir.softmax":            byteir(convertSoftmax("softmax")),
}
