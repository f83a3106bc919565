package lint

import (
	"fmt"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM202", Name: "fusible-into-consumer", Severity: diag.Warning, Fix: Safe,
	Summary:  "a memory-bound op writes a value that only one contraction reads",
	Compiler: "fuses such ops",
	Kept:     "a kernel that the text has, which the compiler keeps as it is",
	Doc: `## What it does
Finds element-wise work whose result only one contraction uses: it can run in the contraction's kernel on the tiles that
the contraction loads anyway (its prologue). Where the op could join its own producer instead, DM201 reports that.

## Why it matters
The op writes its result to memory and the contraction reads it again; as a prologue it costs its operands alone.

## Example
` + "```mlir" + `
%s = dm.mul %x, %gate : tensor<4096x1024xf16>
%h = dm.einsum "ij,jk->ik" %s, %w : …
` + "```" + `
Wrap both lines in ` + "`dm.kernel { … }`" + `.

## Fix
Safe: the ops stay as they are and keep their rounding; only what moves changes.
`,
	Check: func(c *Context) {
		c.ops(func(a *ir.Op) {
			e := c.entry(a)
			if e == nil || op.Of(a) == nil || classOf(a) != op.ClassElementwise || e.Time(c.Machine).Bound == "compute" {
				return
			}
			b := onlyUser(a)
			if b == nil || c.entry(b) == nil || classOf(b) != op.ClassContraction {
				return
			}
			if _, better := c.bestProducer(a); better != nil {
				return
			}
			f, ok := prologue(a, b)
			if !ok {
				return
			}
			s := c.saving(c.entries(a, b), entriesOf(f.entry(c)))
			if !s.positive() || !f.built(c) {
				return
			}
			c.Report(Finding{
				Op:      a,
				Message: "only the contraction below reads the result of this op, which could run in its kernel",
				Label:   fmt.Sprintf("%s moved here", units.DimBytes(e.Moved())),
				Saving:  s,
				Kept:    f.writtenKernel(),
				Related: []diag.Related{{Span: place(b), Message: "read here"}},
				Fix:     &diag.Fix{Title: moveTitle(a, b), Edits: f.edits(c)},
			})
		})
	},
})

// onlyUser is the one op of a's block that uses a's results, nil where there
// are several or none.
func onlyUser(a *ir.Op) *ir.Op {
	var user *ir.Op
	for _, r := range a.Results {
		for _, u := range r.Uses {
			o := enclosing(u.Op, a.Parent)
			if user != nil && o != user {
				return nil
			}
			user = o
		}
	}
	return user
}

// prologue is the fusion of element-wise a into contraction b. b uses nothing
// of a's block that is not defined before b, so the kernel stands at b.
func prologue(a, b *ir.Op) (fusion, bool) {
	f := fusion{a: a, b: b, at: b}
	return f, a.Parent == b.Parent && onePlace(a) && onePlace(b) && len(f.results()) > 0
}

func entriesOf(e *cost.Entry) []*cost.Entry { return []*cost.Entry{e} }
