package lint

import (
	"fmt"

	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM201", Name: "fusible-into-producer", Severity: diag.Warning, Fix: Safe,
	Summary:  "a memory-bound op reads back what the op above just wrote",
	Compiler: "fuses such ops",
	Kept:     "a kernel that the text has, which the compiler keeps as it is",
	Doc: `## What it does
Finds an op or kernel bound by memory that takes a value from an op or kernel of the same block and could run in its
kernel: element-wise work over the elements that a contraction writes (its epilogue), and element-wise work and
normalizations over the same elements, and along the same rows, as each other.

## Why it matters
The producer writes the value to memory and this op reads it again. In one kernel the value stays on chip: neither
happens (Ivanov et al., *Data Movement Is All You Need*, MLSys 2021, §4).

## Example
` + "```mlir" + `
%h = dm.einsum "bln,nu->blu" %x, %w : …
%y = dm.relu %h : tensor<8x512x4096xf16>
` + "```" + `
becomes
` + "```mlir" + `
%y = dm.kernel -> tensor<8x512x4096xf16> {
  %h = dm.einsum "bln,nu->blu" %x, %w : …
  %y = dm.relu %h : tensor<8x512x4096xf16>
  dm.yield %y : tensor<8x512x4096xf16>
}
` + "```" + `

## Fix
Safe: the ops stay as they are and keep their rounding; only what moves changes.
`,
	Check: func(c *Context) {
		c.ops(func(b *ir.Op) {
			if f, saving := c.bestProducer(b); saving != nil {
				c.reportFusion(f, saving)
			}
		})
	},
})

// bestProducer is the fusion of b with the producer that saves most.
func (c *Context) bestProducer(b *ir.Op) (fusion, *Saving) {
	var best fusion
	var most *Saving
	e := c.entry(b)
	if e == nil || op.Of(b) == nil || classOf(b) == op.ClassContraction || e.Time(c.Machine).Bound == "compute" {
		return best, nil
	}
	for _, v := range ir.UsedValues(b) {
		if v.Op == nil || c.entry(v.Op) == nil {
			continue
		}
		f, ok := c.fusible(v.Op, b)
		if !ok || len(f.results()) == 0 {
			continue
		}
		s := c.saving(c.entries(f.a, f.b), entriesOf(f.entry(c)))
		if s.positive() && (most == nil || (&Saving{Bytes: s.Bytes.Sub(most.Bytes)}).positive()) && f.built(c) {
			best, most = f, s
		}
	}
	return best, most
}

func (c *Context) reportFusion(f fusion, s *Saving) {
	what := "op"
	if f.b.Name == op.Kernel {
		what = "kernel"
	}
	producer := "op"
	switch {
	case f.a.Name == op.Kernel:
		producer = "kernel"
	case classOf(f.a) != op.ClassElementwise:
		producer = string(classOf(f.a))
	}
	extra := f.entry(c).Moved().Sub(c.entry(f.a).Moved())
	if n, ok := extra.Int(); ok && n < 0 {
		extra = dim.Const(0)
	}
	label := fmt.Sprintf("%s moved here", units.DimBytes(c.entry(f.b).Moved()))
	if !(&Saving{Bytes: extra.Scale(-1)}).positive() {
		label += fmt.Sprintf("; in the kernel of %s: %s", spelling(f.a.Results[0]), units.DimBytes(extra))
	}
	c.Report(Finding{
		Op:      f.b,
		Message: fmt.Sprintf("this %s re-reads what the %s above just wrote", what, producer),
		Label:   label,
		Saving:  s,
		Kept:    f.writtenKernel(),
		Related: []diag.Related{{Span: f.a.Head, Message: "written here"}},
		Fix:     &diag.Fix{Title: moveTitle(f.b, f.a), Edits: f.edits(c)},
	})
}
