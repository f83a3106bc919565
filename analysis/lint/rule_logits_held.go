package lint

import (
	"fmt"
	"strings"

	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

// Logits are reported from this many classes on, and where arrays of their shape are this share of what is held at the peak.
const (
	manyClasses = 4096
	logitsShare = 8 // one part of 8
)

var _ = register(&Rule{
	Code: "DM406", Name: "logits-held", Severity: diag.Info,
	Summary: "logits of a whole vocabulary are held for the loss at the peak of memory",
	Python: "compute the loss in chunks of tokens, each again for its gradient: jax.lax.map(jax.checkpoint(chunk_loss), (hidden, labels)) where chunk_loss " +
		"has the last product and the loss; in PyTorch torch.utils.checkpoint.checkpoint(chunk_loss, …) for each of hidden.chunk(8), or a fused linear cross-entropy",
	Doc: `## What it does
Finds a contraction with an argument that gives 4096 classes or more, whose softmax or loss is computed, where arrays of the shape of these
logits are an eighth or more of what the function holds at its peak.

## Why it matters
Logits have a number for each token and each word of the vocabulary: 8 192 tokens and 128 256 words are 4.2 GB in f32, and the loss holds
several such arrays: logits, their exponentials, their gradient. They are needed for one number for each token. In chunks of tokens, which are
computed again for the gradient, one chunk is held at a time, for one more product.

## Example
` + "```mlir" + `
%logits = dm.matmul %h, %head : (tensor<8192x2048xbf16>, tensor<2048x128256xbf16>) -> tensor<8192x128256xbf16>
%loss = dm.cross_entropy %logits, %labels : (tensor<8192x128256xbf16>, tensor<8192xi64>) -> tensor<bf16>
` + "```" + `

## Fix
None: compute chunks of rows in a ` + "`dm.scan`" + `, whose body has the contraction and the loss.
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			e := equation(o)
			if e == nil || len(e.Inputs) != 2 || !op.Valid(o) || !c.ownClasses(o, e) || !normalized(o.Results[0], 0) {
				return
			}
			shape := o.Out(0)
			elements, ok := shape.Elements().Int()
			if !ok {
				return
			}
			plan, _, err := c.shown().Lay()
			if err != nil {
				return
			}
			var bytes int64
			arrays := 0
			for _, b := range plan.Buffers {
				if b.Arg || b.First > plan.PeakStep || b.Last < plan.PeakStep || len(b.Values) == 0 || b.Values[0].Tensor() == nil {
					continue
				}
				if n, _ := b.Values[0].Tensor().Elements().Int(); n == elements {
					bytes, arrays = bytes+b.Bytes, arrays+1
				}
			}
			if bytes*logitsShare < plan.Bound || bytes == 0 {
				return
			}
			c.Report(Finding{
				Op: o,
				Message: fmt.Sprintf("logits of the whole vocabulary are held for the loss: %s of their shape, %s of the %s at the peak of memory",
					diag.Count(arrays, "array"), units.Bytes(bytes), units.Bytes(plan.Bound)),
				Label: fmt.Sprintf("%s; a chunk of an eighth of the rows holds %s", shape, units.Bytes(bytes/8)),
				Help:  "compute the product and the loss in chunks of rows",
			})
		})
	},
})

// ownClasses reports whether the last dimension of the contraction o has many elements, which are those of an argument alone.
func (c *Context) ownClasses(o *ir.Op, e *op.Equation) bool {
	t := o.Out(0)
	if t == nil || t.Rank() < 2 || len(e.Output) != t.Rank() {
		return false
	}
	n, ok := t.Shape[t.Rank()-1].Int()
	if !ok || n < manyClasses {
		return false
	}
	class := e.Output[t.Rank()-1:]
	for i, in := range e.Inputs {
		if strings.Contains(in, class) {
			return !strings.Contains(e.Inputs[1-i], class) && fromArgument(o.Operands[i])
		}
	}
	return false
}

// fromArgument reports whether v is an argument of its function, in another form.
func fromArgument(v *ir.Value) bool {
	for range 8 {
		if v.Op == nil {
			return true
		}
		switch v.Op.Name {
		case "dm.transpose", "dm.convert", "dm.reshape", op.Constant:
		default:
			return false
		}
		if len(v.Op.Operands) == 0 {
			return true
		}
		v = v.Op.Operands[0]
	}
	return false
}

// normalized reports whether the softmax of v, or a loss with it, is computed along the last dimension.
func normalized(v *ir.Value, depth int) bool {
	for _, u := range v.Uses {
		o := u.Op
		switch o.Name {
		case "dm.cross_entropy", "dm.softmax", "dm.log_softmax":
			if u.Index == 0 {
				return true
			}
		case "dm.reduce":
			dims, ok := op.Dims(o, "dims", o.In(0).Rank())
			if ok && op.Str(o, "kind") == "max" && len(dims) == 1 && dims[0] == o.In(0).Rank()-1 {
				return true
			}
		case "dm.convert", "dm.add", "dm.mul", "dm.reshape": // to another type, a bias, a temperature
			if depth < 4 && o.Out(0) != nil && normalized(o.Results[0], depth+1) {
				return true
			}
		}
	}
	return false
}
