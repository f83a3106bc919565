package lint

import (
	"fmt"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM303", Name: "gradient-through-bits", Severity: diag.Warning,
	Summary: "a gradient is 0 where its function takes numbers apart into bits",
	Python:  "write the function in arithmetic, or state the gradient: jax.custom_jvp, torch.autograd.Function",
	Doc: `## What it does
Finds a ` + "`dm.grad`" + ` of a function that makes integers of the bits of a number (` + "`dm.bitcast`" + `) and numbers of these integers again, where the number depends
on an argument whose gradient is asked for. The functions that it calls count as well. A comparison of bits, as in a test of the sign, is
no finding.

## Why it matters
Bits have no derivative, so that nothing flows back through them: what ` + "`ldexp`" + `, ` + "`frexp`" + ` and ` + "`nextafter`" + ` are made of gives a
gradient of 0, or one that lacks a term, without an error.

## Example
` + "```mlir" + `
%b = dm.bitcast %x : (tensor<4xf32>) -> tensor<4xi32>
%c = dm.add %b, %eight : tensor<4xi32>              // 1 << 23: twice x
%y = dm.bitcast %c : (tensor<4xi32>) -> tensor<4xf32>
` + "```" + `
The gradient of ` + "`%y`" + ` is 0, not 2.

## Fix
None: write the function in arithmetic (` + "`dm.mul`" + `), or state with ` + "`dm.stop_gradient`" + ` that the gradient is meant to be 0.
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			if o.Name != op.Grad || !op.Valid(o) {
				return
			}
			fn := c.Module.Func(op.Str(o, "callee"))
			args, p := op.GradArgs(o)
			if fn == nil || p != nil {
				return
			}
			f := flow{module: c.Module, seen: map[*ir.Func]bool{}}
			f.function(fn, func(i int) bool { return slices.Contains(args, i) })
			if f.found == nil {
				return
			}
			finding := Finding{
				Op: o, Message: fmt.Sprintf("the gradient of @%s does not flow through the bits of %s", fn.Name, f.found.Operands[0].Name), Label: "is 0 there",
				Help: "write it in arithmetic, or put dm.stop_gradient before the bits if 0 is meant",
			}
			if t := origin.Tree(f.found); t != nil {
				finding.Related = []diag.Related{{Span: f.found.Head, Message: "the bits become a number"}}
			}
			c.Report(finding)
		})
	},
})

// flow follows what depends on the arguments of a function.
type flow struct {
	module *ir.Module
	seen   map[*ir.Func]bool
	found  *ir.Op // makes a number of the bits of another one
}

func (f *flow) function(fn *ir.Func, active func(i int) bool) {
	if f.seen[fn] || fn.Body == nil {
		return
	}
	f.seen[fn] = true
	numbers, bits := map[*ir.Value]bool{}, map[*ir.Value]bool{}
	for i, v := range fn.Args {
		numbers[v] = active(i)
	}
	ir.Walk(fn.Body.Ops, func(o *ir.Op) bool {
		number, bit := slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return numbers[v] }), slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return bits[v] })
		d := op.Of(o)
		switch {
		case o.Name == op.Call:
			if callee := f.module.Func(op.Str(o, "callee")); callee != nil && number {
				f.function(callee, func(i int) bool { return i < len(o.Operands) && numbers[o.Operands[i]] })
			}
		case d == nil || d.Family == op.Training:
			return false
		case o.Name == op.Bitcast && bit && o.Results[0].Elem().IsFloat() && f.found == nil:
			f.found = o
		case o.Name == op.Bitcast && number:
			bit, number = true, false
		case d.Derivative.Flat():
			number = false
		}
		for _, v := range o.Results {
			numbers[v], bits[v] = number && f.float(v), bit && !f.float(v) && d.Name != "compare"
		}
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				for _, v := range b.Args {
					numbers[v], bits[v] = number && f.float(v), bit && !f.float(v)
				}
			}
		}
		return f.found == nil
	})
}

// float reports whether v is of numbers, or a tuple.
func (f *flow) float(v *ir.Value) bool { return v.Tensor() == nil || v.Elem().IsFloat() }
