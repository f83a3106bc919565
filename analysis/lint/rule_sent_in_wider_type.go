package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM225", Name: "sent-in-wider-type", Severity: diag.Warning, Fix: Unsafe,
	Summary: "devices exchange a value in a wider type than it was computed in, or than is used of it",
	Python: "convert behind the collective: jax.lax.pmean(g, axis).astype(jnp.float32) in place of jax.lax.pmean(g.astype(jnp.float32), axis); in PyTorch " +
		"bf16_compress_hook of torch.distributed.algorithms.ddp_comm_hooks.default_hooks for DDP, MixedPrecision(reduce_dtype=torch.bfloat16) for FSDP",
	Doc: `## What it does
Finds, in a function that one device runs, a collective whose operand has just been converted to a wider float type, or whose result is only
converted to a narrower one.

## Why it matters
The devices send each bit of the wider type: a gradient in bf16 that is converted to f32 before it is reduced takes twice the time on the network, and
has no more information for it. Where elements are only moved (all_gather, all_to_all, collective_permute) the result is the same to the last bit. A
sum of parts from p devices is then rounded at each addition: for bf16 its relative error grows by up to 2⁻⁹ for each of them, which training with
gradients in bf16 has already in each gradient.

## Example
` + "```mlir" + `
%w = dm.convert %g : (tensor<4096x4096xbf16>) -> tensor<4096x4096xf32>
%s = dm.all_reduce add %w, axes = ["data"] : tensor<4096x4096xf32>
` + "```" + `
becomes
` + "```mlir" + `
%s_bf16 = dm.all_reduce add %g, axes = ["data"] : tensor<4096x4096xbf16>
%s = dm.convert %s_bf16 : (tensor<4096x4096xbf16>) -> tensor<4096x4096xf32>
` + "```" + `

## Fix
Unsafe: sums are rounded to the narrower type.
`,
	Check: func(c *Context) {
		var all []*sentWide
		c.collectives(func(o *ir.Op) {
			if len(o.Operands) != 1 || len(o.Results) != 1 || o.Out(0) == nil || kernelOf(o) != nil {
				return
			}
			if n := widening(o.Operands[0]); n != nil {
				all = append(all, &sentWide{o: o, before: n, narrow: n.In(0).Elem})
			} else if us := o.Results[0].Uses; len(us) == 1 && us[0].Op.Name == "dm.convert" && narrower(us[0].Op.Out(0), o.Out(0)) {
				all = append(all, &sentWide{o: o, after: us[0].Op, narrow: us[0].Op.Out(0).Elem})
			}
		})
		c.sentWide(all)
	},
})

// sentWide is a collective o whose operand before converts to a wider type than narrow, or whose result after converts to it.
type sentWide struct {
	o, before, after *ir.Op
	narrow           types.Elem
}

// widening is the conversion from a narrower float type that gives v, nil where there is none.
func widening(v *ir.Value) *ir.Op {
	n := pattern.From(v, "dm.convert")
	if n == nil || !op.Valid(n) || !narrower(n.In(0), n.Out(0)) {
		return nil
	}
	return n
}

// narrower reports whether t and u are of floating point, and the elements of t are fewer bits of such of u.
func narrower(t, u *types.Tensor) bool {
	return t != nil && u != nil && t.Elem.IsFloat() && u.Elem.IsFloat() && t.Elem.Bits() < u.Elem.Bits() && pattern.Significant(t.Elem) < pattern.Significant(u.Elem)
}

// sentWide reports the collectives in all as one change, at the largest: each change of a program on several devices is analysed as a whole.
func (c *Context) sentWide(all []*sentWide) {
	taken := c.names()
	var edits []diag.Edit
	var done []*sentWide
	for _, s := range all {
		if more := c.narrowed(s, taken); more != nil {
			done, edits = append(done, s), append(edits, more...)
		}
	}
	if len(done) == 0 {
		return
	}
	largest := slices.MaxFunc(done, func(a, b *sentWide) int {
		x, _ := a.o.Out(0).Bytes().Int()
		y, _ := b.o.Out(0).Bytes().Int()
		return cmp.Compare(x, y)
	})
	o, wide := largest.o, largest.o.Out(0).Elem
	trials := c.trials
	c.trials = 0 // it is one, however many changes the rules before have tried
	f := Finding{Op: o, Tried: true, Saving: c.trial(edits)}
	c.trials = trials
	if !f.Saving.better() {
		return
	}
	if n := largest.before; n != nil {
		f.Message = fmt.Sprintf("%s is computed in %s, and sent in %s", spelling(n.Operands[0]), largest.narrow, wide)
		f.Label = "sent before it is converted, it is " + share(largest.narrow, wide) + " as many bytes"
		f.Related = []diag.Related{{Span: place(n), Message: "converted here"}}
	} else {
		f.Message = fmt.Sprintf("%s is sent in %s, and converted to %s behind", spelling(o.Operands[0]), wide, largest.narrow)
		f.Label = "converted before it is sent, it is " + share(largest.narrow, wide) + " as many bytes"
		f.Related = []diag.Related{{Span: place(largest.after), Message: "converted here"}}
	}
	title := "Send " + short(o.Results[0]) + " in " + largest.narrow.String()
	if n := len(done); n > 1 {
		f.Message += fmt.Sprintf(", as %s that the function exchanges", diag.Count(n-1, "other value"))
		title = fmt.Sprintf("Send %d values in narrower types", n)
	}
	f.Fix = &diag.Fix{Title: title, Edits: edits}
	c.Report(f)
}

// narrowed are the edits that send the value of s in the narrower type, nil where there are none.
func (c *Context) narrowed(s *sentWide, taken map[string]bool) (edits []diag.Edit) {
	o := s.o
	t, name := origin.Tree(o), spelling(o.Results[0])
	if t == nil || strings.Contains(c.Module.Src.Slice(t.Span()), "//") {
		return nil
	}
	var ops []*ir.Op
	if s.before != nil {
		sent := detached(o.Name, derived(name, s.narrow.String(), taken), with(o.Results[0], s.narrow), o.Attrs, s.before.Operands[0])
		ops = []*ir.Op{sent, detached("dm.convert", name, o.Results[0].Type, nil, sent.Results[0])}
		if len(s.before.Results[0].Uses) == 1 && origin.Tree(s.before) != nil {
			edits = c.remove(s.before)
		}
	} else {
		in := detached("dm.convert", derived(name, "in", taken), with(o.Operands[0], s.narrow), nil, o.Operands[0])
		sent := detached(o.Name, name, with(o.Results[0], s.narrow), o.Attrs, in.Results[0])
		ops = []*ir.Op{in, sent}
		uses, ok := replaceAll(s.after.Results[0], sent.Results[0])
		if origin.Tree(s.after) == nil || !ok {
			return nil
		}
		edits = append(uses, c.remove(s.after)...)
	}
	return append(edits, c.inPlace(t, ops, c.spell))
}

// share says what part of the bytes of wide elements narrow ones are.
func share(narrow, wide types.Elem) string {
	return map[int64]string{2: "half", 4: "a quarter", 8: "an eighth"}[int64(wide.Bits()/narrow.Bits())]
}
