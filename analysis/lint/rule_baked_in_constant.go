package lint

import (
	"fmt"

	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Arrays are reported from bakedLeast bytes on in a function that has bakedTotal bytes of such arrays or more.
const (
	bakedLeast = 64 << 10
	bakedTotal = 1 << 20
)

var _ = register(&Rule{
	Code: "DM221", Name: "baked-in-constant", Severity: diag.Warning,
	Summary: "large arrays are constants of the program",
	Python: "pass the array as an argument: an array that a jitted function closes over is copied into the program at each use. In PyTorch " +
		"register it (register_buffer, nn.Parameter), or compute it where it is used from arange",
	Doc: `## What it does
Finds constants of 64 KiB or more that list their elements, in a function that has 1 MiB or more of them.

## Why it matters
The array is a part of the program's text: it is written, hashed, parsed and compiled with it, and each program that has it holds
a copy of its own in the device's memory for as long as it is loaded. Compilers that fold constants compute with it on the host. An
argument is given once, and programs share it.

## Example
` + "```mlir" + `
%cos = dm.constant dense<"0x…"> : tensor<8192x64xf32>
%y = dm.mul %x, %cos : (tensor<4x8192x64xf32>, tensor<8192x64xf32>) -> tensor<4x8192x64xf32>
` + "```" + `

## Fix
None: make it an argument of the function, or compute it from ` + "`dm.iota`" + `.
`,
	Check: func(c *Context) {
		var large []*ir.Op
		var total int64
		equal := map[string]*ir.Op{} // the first one of equal elements
		c.ops(func(o *ir.Op) {
			if n := bakedBytes(o); n >= bakedLeast {
				large, total = append(large, o), total+n
			}
		})
		if total < bakedTotal {
			return
		}
		for _, o := range large {
			bytes := bakedBytes(o)
			f := Finding{
				Op:      o,
				Message: fmt.Sprintf("an array of %s is a constant of the program, of %s in all", units.Bytes(bytes), units.Bytes(total)),
				Label:   o.Out(0).String() + " with its elements",
				Help:    "make " + spelling(o.Results[0]) + " an argument of @" + c.Fn.Name,
			}
			key := o.Attr("value").(*types.Dense).Key()
			if first := equal[key]; first != nil {
				f.Related = []diag.Related{{Span: place(first), Message: "the same elements"}}
			} else {
				equal[key] = o
			}
			c.Report(f)
		}
	},
})

// bakedBytes is the size of the constant o with the elements one by one, 0 for other ops.
func bakedBytes(o *ir.Op) int64 {
	if o.Name != op.Constant {
		return 0
	}
	d, ok := o.Attr("value").(*types.Dense)
	if !ok || d.Splat || d.File() != nil || o.Out(0) == nil {
		return 0
	}
	n, _ := o.Out(0).Bytes().Int()
	return n
}
