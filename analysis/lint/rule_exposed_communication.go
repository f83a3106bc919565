package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM403", Name: "exposed-communication", Severity: diag.Info,
	Summary: "devices wait for each other during much of the time",
	Doc: `## What it does
Compares the time of the collectives during which no kernel runs with the time of the function, and names the lines that
wait most. More than a quarter is reported. Kernels run one after the other and collectives beside them, each once what it reads is
there, in the order that hides most of those that the compiler tries.

## Why it matters
What computation hides costs nothing. What it does not hide is time in which every device stands still.

## Example
` + "```" + `
%y = dm.matmul %a, %v        Σ{model}
%z = dm.relu %y              all-reduce, 10.3 µs, and nothing else to compute
` + "```" + `

## Fix
None. What helps: more work for each device (a larger batch), another axis or another sharding, so that less is sent; work
that does not need the result between the line that begins the exchange and the one that needs it; a machine with faster links.
`,
	Check: func(c *Context) {
		if !c.distributed() {
			return
		}
		x := c.shown().Overlap(c.Machine)
		if !x.Known || x.Ns == 0 || x.ExposedNs < exposedShare*x.Ns {
			return
		}
		// What a device runs was made of the text before it moved: its ops are found through those of the text.
		line := map[*ir.Op]*ir.Op{}
		for _, e := range c.shown().Entries {
			line[e.Op] = e.Op
			for _, p := range e.Parts() {
				line[p.Op] = e.Op
			}
		}
		by := map[*ir.Op]float64{}
		for _, s := range x.Spans {
			if o := line[s.Entry.Op]; o != nil {
				by[o] += s.Exposed
			}
		}
		var most []*ir.Op
		for o, ns := range by {
			if ns > 0 {
				most = append(most, o)
			}
		}
		slices.SortFunc(most, func(a, b *ir.Op) int { return cmp.Or(cmp.Compare(by[b], by[a]), a.Span.Start-b.Span.Start) })
		var related []diag.Related
		for _, o := range most[:min(len(most), 3)] {
			related = append(related, diag.Related{Span: place(o), Message: fmt.Sprintf("waits %s", units.Time(by[o]))})
		}
		c.Report(Finding{
			Op: c.Fn.Op,
			Message: fmt.Sprintf("%s of the time of @%s is communication that no kernel hides: %s of %s on %s", strings.TrimSpace(units.Percent(x.ExposedNs, x.Ns)), c.Fn.Name,
				units.Time(x.ExposedNs), units.Time(x.Ns), c.Machine.Name),
			Label:   "the devices wait for each other",
			Help:    "give each device more work, or another sharding; " + widest(c.shown()) + " carries the most",
			Related: related,
			Tried:   true,
		})
	},
})

// exposedShare is the part of a function's time from which exposed communication is reported.
const exposedShare = 0.25

// widest is the axis along which the most is sent.
func widest(f *cost.Func) string {
	sent, _ := f.Sent()
	if len(sent) == 0 {
		return "no axis"
	}
	return slices.MaxFunc(sent, func(a, b cost.Sent) int { return cmp.Compare(a.Bytes, b.Bytes) }).Axes
}
