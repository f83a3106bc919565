package lint

import (
	"fmt"
	"slices"

	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

var _ = register(&Rule{
	Code: "DM211", Name: "forced-copy", Severity: diag.Warning, Fix: Unsafe,
	Summary: "updating a part of a tensor copies all of it, because the old value is still needed",
	Python:  "donate the argument, jax.jit(…, donate_argnames=…), or update the tensor in place in PyTorch: cache[:, i] = row, index_copy_",
	Doc: `## What it does
Finds updates of a part (` + "`dm.dynamic_update_slice`, `dm.scatter`" + `) that are not done in place, and loops that begin with
a copy of what they carry, and names the argument or op that needs the old value: an argument that is not donated,
an op that reads it afterwards, the return, the kernel that the update is in.

## Why it matters
In place an update moves the part alone; a copy reads and writes all of it. Of a cache of keys and values that is the
difference between one row and the whole cache for each token.

## Example
` + "```mlir" + `
func.func @step(%cache: tensor<4096x128xf16>, %row: tensor<1x128xf16>, %i: tensor<i64>, %z: tensor<i64>) -> tensor<4096x128xf16> {
  %y = dm.dynamic_update_slice %cache, %row, %i, %z : (tensor<4096x128xf16>, tensor<1x128xf16>, tensor<i64>, tensor<i64>) -> tensor<4096x128xf16>
` + "```" + `

## Fix
Of an argument, unsafe: ` + "`{dm.donated}`" + ` is added to it, so that the function may overwrite it; the caller then must
not use its old value. (JAX and XLA call this buffer donation.) Elsewhere none: the op that is named must run before
the update, or not read the old value.
`,
	Check: func(c *Context) {
		var p op.InPlace
		c.ops(func(o *ir.Op) {
			switch {
			case o.Name == op.Kernel:
				for _, u := range inside(o) {
					if op.Updates(u) {
						c.forced(o, u, p.Copied(u))
					}
				}
			case op.Updates(o) && kernelOf(o) == nil:
				c.forced(o, o, p.Copied(o))
			case op.LoopBody(o) != nil && op.Valid(o):
				for i := range min(op.Carries(o), len(o.Results)) {
					if why := p.Kept(o, i); why != nil && why.Why == op.NotDonated && c.large(why.Of) {
						c.forced(o, o, why)
					}
				}
			}
		})
	},
})

// large reports whether a copy of v is worth a word: a counter's is not.
func (c *Context) large(v *ir.Value) bool { return v.Tensor() != nil && v.Tensor().Rank() > 0 }

// forced reports that at, an op or the kernel around it, copies what o updates.
func (c *Context) forced(at, o *ir.Op, why *op.Copy) {
	if why == nil || c.entry(at) == nil || why.Why == op.Literal || op.Updates(o) && wholly(o) {
		return
	}
	if why.Why == op.MadeInside && (why.Of != o.Results[0] || !given(o.Results[0])) {
		return // the kernel writes all of it anyway, or nothing
	}
	of := spelling(why.Of)
	f := Finding{Op: o, Message: "this update copies all of " + of, Help: "run the update after the last read of " + of}
	switch why.Why {
	case op.NotDonated:
		if op.LoopBody(at) != nil {
			f.Message = "this loop copies its initial value " + of
		}
		f.Label = of + " is an argument that the function may not overwrite"
		f.Help = "let the function overwrite it: {dm.donated}"
		f.Saving = c.saving(c.entries(at), []*cost.Entry{cost.Donated(c.Fn, c.Module, c.Bind, at, why.Of)})
		f.Fix = donation(c.Fn, why.Of)
	case op.ReadLater:
		f.Label = of + " is read afterwards"
		message := "read here"
		if op.Ends(why.By) {
			message = "returned or yielded here"
			f.Help = "return or yield the updated value alone"
		}
		f.Related = []diag.Related{{Span: place(why.By), Message: message}}
	case op.ReadTwice:
		f.Label = of + " is read here for another purpose too"
		f.Help = "move the other reads of " + of + " before this op"
	case op.MadeInside:
		f.Message = "this update copies all of " + spelling(o.Operands[0])
		f.Label = "the kernel reads the result, " + of + ", itself"
		f.Help = "move the update out of the kernel"
	case op.Outside:
		f.Label = of + " is defined outside this region"
		f.Help = "carry it through the loop, so that each iteration updates the result of the previous one"
	case op.Carried:
		f.Label = "the loop yields another value in place of " + of
		f.Help = "yield the value computed from " + of + " in its place"
	case op.OtherOrder:
		f.Label = fmt.Sprintf("the result has another memory layout than %s", of)
		f.Help = "give both the same placement"
	}
	c.Report(f)
}

// given reports whether v, a value of a kernel, is yielded.
func given(v *ir.Value) bool {
	return slices.ContainsFunc(v.Uses, func(u ir.Use) bool { return op.Of(u.Op).Is(op.Terminator) })
}

// wholly reports whether o updates as much as it would copy.
func wholly(o *ir.Op) bool {
	_, part := op.TrafficOf(o, false)
	_, whole := op.TrafficOf(o, true)
	return part.Equal(whole)
}

// donation adds dm.donated to argument v of fn, nil where its text has no place for it.
func donation(fn *ir.Func, v *ir.Value) *diag.Fix {
	t := origin.Tree(fn.Op)
	if t == nil || t.Func == nil || v.Index >= len(t.Func.Args) {
		return nil
	}
	a := t.Func.Args[v.Index]
	fix := &diag.Fix{Title: "Let the function overwrite " + short(v)}
	if !a.Attrs.Empty() {
		at := t.Abs(a.Attrs).Start + 1
		fix.Edits = []diag.Edit{{Span: source.Span{Start: at, End: at}, Text: op.DonatedAttr + ", "}}
		return fix
	}
	at := t.Abs(a.Type).End
	fix.Edits = []diag.Edit{{Span: source.Span{Start: at, End: at}, Text: " {" + op.DonatedAttr + "}"}}
	return fix
}
