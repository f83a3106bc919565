package lint

import (
	"fmt"

	"dmir/analysis/units"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM405", Name: "exceeds-memory", Severity: diag.Warning,
	Summary: "a function holds more than the device's memory",
	Python:  "checkpoint layers (jax.checkpoint, torch.utils.checkpoint.checkpoint), use smaller batches or bfloat16, or divide parameters over devices (jax.sharding.NamedSharding, torch.distributed.fsdp)",
	Doc: `## What it does
Compares the peak of a function, of each device where its values are divided over several, with the memory of the machine.

## Why it matters
It cannot run there. The peak is that of the order of the text; the compiler may find an order that holds less.

## Example
` + "`dmir cost`" + ` prints the peak; ` + "`--target`" + ` chooses the machine.

## Fix
None. What helps: dividing parameters and the optimizer's moments over an axis (FSDP, ZeRO), dividing activations, smaller
batches, a narrower element type.
`,
	Check: func(c *Context) {
		f := c.shown()
		if len(f.Peaks()) == 0 || c.Machine == nil || c.Machine.Memory <= 0 {
			return
		}
		peak, ok := f.Peak().Int()
		if !ok || peak <= c.Machine.Memory {
			return
		}
		who, help := "@"+c.Fn.Name, "divide its largest values over the devices of a mesh (dm.mesh)"
		if c.distributed() {
			who, help = "each device that runs @"+c.Fn.Name, "divide more of its values, or over more devices"
		}
		c.Report(Finding{
			Op:      c.Fn.Op,
			Message: fmt.Sprintf("%s holds up to %s, %s more than %s has", who, units.Bytes(peak), units.Bytes(peak-c.Machine.Memory), c.Machine.Name),
			Label:   "does not fit",
			Help:    help,
			Tried:   true,
		})
	},
})
