package lint

import (
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/pattern"
	"dmir/dialect/raise"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM224", Name: "normalized-twice", Severity: diag.Warning, Fix: Unsafe,
	Summary: "a value is normalized twice, or a statistic of it is computed in two ways",
	Python: "compute the statistic once and use it twice. Of two norms of one input that differ in their scales, normalize once without a scale " +
		"(use_scale=False in Flax, elementwise_affine=False in PyTorch) and multiply each scale into the weights of the product that follows",
	Doc: `## What it does
Finds statistics of rows (means, variances, sums of squares or of exponentials) that are computed twice from one value, written in different ways:
both have the same formula. It also finds ` + "`dm.layer_norm`" + ` and ` + "`dm.rms_norm`" + ` of one value that differ in scale and bias alone, where the
second one's result is used by products with arguments only. What is the same op twice is DM206.

## Why it matters
Each reads the whole value again, and of two norms each writes a result of its size, which a training step holds for the gradient.
Models whose attention and MLP stand side by side have two norms of one input in each layer, and a loss with a regularized normalizer has the sum of
exponentials of all logits twice.

## Example
` + "```mlir" + `
%a = dm.rms_norm %x, %g : (tensor<4096x1024xf32>, tensor<1024xf32>) -> tensor<4096x1024xf32>
%b = dm.rms_norm %x, %h : (tensor<4096x1024xf32>, tensor<1024xf32>) -> tensor<4096x1024xf32>
` + "```" + `

## Fix
Of statistics, unsafe: the first one is used for both, where sums may be rounded in another way. Of norms none: normalize without scale, and
multiply the weights of the products that follow by the scales.
`,
	Check: func(c *Context) {
		type key struct {
			x    *ir.Value
			text string
		}
		first := map[key]*ir.Op{}
		alike := pattern.Congruent(c.Fn.Body)
		c.ops(func(o *ir.Op) {
			k := key{text: o.Name}
			switch o.Name {
			case "dm.layer_norm", "dm.rms_norm":
				k.x = o.Operands[0]
				k.text += fmt.Sprint(o.Attr("dims"), o.Attr("epsilon"), o.Results[0].Type)
			default:
				if k.x, k.text = raise.Statistic(o); k.x == nil {
					return
				}
			}
			p := first[k]
			if p == nil || p.Parent != o.Parent {
				first[k] = o
				return
			}
			if alike(p.Results[0], o.Results[0]) || c.entry(o) == nil || c.entry(p) == nil {
				return
			}
			if strings.HasSuffix(o.Name, "_norm") {
				c.anotherScale(p, o)
			} else {
				c.anotherWay(p, o)
			}
		})
	},
})

// anotherWay reports the statistic o, which first is already.
func (c *Context) anotherWay(first, o *ir.Op) {
	was, is := first.Results[0], o.Results[0]
	f := Finding{
		Op:      o,
		Message: fmt.Sprintf("this computes %s again, written in another way", spelling(was)),
		Label:   "has the formula of " + spelling(was),
		Related: []diag.Related{{Span: place(first), Message: "computed here first"}},
		Help:    "use " + spelling(was),
	}
	t := origin.Tree(o)
	gone := c.unusedWith(o)
	if was.Elem() != is.Elem() || t == nil || slices.Contains(gone, first) || strings.Contains(c.Module.Src.Slice(t.Span()), "//") {
		return
	}
	n := detached("dm.reshape", spelling(is), is.Type, nil, was)
	f.Saving = c.saving(c.entries(gone...), nil)
	if !f.Saving.positive() {
		return
	}
	edits := []diag.Edit{c.inPlace(t, []*ir.Op{n}, c.spell)}
	if types.Equal(was.Type, is.Type) {
		saving, all, ok := c.replacement(o, first.Results, gone...)
		if !ok {
			return
		}
		f.Saving, edits = saving, all
	} else {
		for _, p := range gone[1:] {
			edits = append(edits, c.remove(p)...)
		}
	}
	f.Help, f.Fix = "", &diag.Fix{Title: replaceTitle(is, was), Edits: edits}
	c.Report(f)
}

// anotherScale reports the norm o of a value that first normalizes too, if products with arguments alone use it.
func (c *Context) anotherScale(first, o *ir.Op) {
	if len(o.Operands) < 2 {
		return
	}
	var scaled []*cost.Entry
	for _, u := range o.Results[0].Uses {
		d := op.Of(u.Op)
		if d == nil || d.Class != op.ClassContraction || len(u.Op.Operands) != 2 || !fromArgument(u.Op.Operands[1-u.Index]) {
			return
		}
		w := u.Op.Operands[1-u.Index]
		scaled = append(scaled, cost.Replaced(c.Fn, c.Module, c.Bind, detached("dm.mul", "%w", w.Type, nil, w, w), nil))
	}
	less := c.saving(c.entries(o), scaled)
	if len(scaled) == 0 || !less.positive() || !less.timed || less.Ns <= 0 {
		return
	}
	c.Report(Finding{
		Op:      o,
		Message: fmt.Sprintf("this normalizes %s again: it differs from %s in its scale alone", spelling(o.Operands[0]), spelling(first.Results[0])),
		Label:   "with its scale in the product that follows, one normalized value of " + units.DimBytes(o.Out(0).Bytes()) + " serves both",
		Help:    "normalize once without scale, and multiply the scales into the weights of the products",
		Saving:  less,
		Related: []diag.Related{{Span: place(first), Message: "normalized here first"}},
	})
}
