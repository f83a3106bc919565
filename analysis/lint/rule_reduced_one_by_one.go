package lint

import (
	"fmt"
	"strconv"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM218", Name: "reduced-one-by-one", Severity: diag.Info, Fix: Unsafe,
	Summary: "several small reductions over the same devices that could be one",
	Doc: `## What it does
Finds all-reduces of the same kind, element type and axes, none of which needs what another gives, that would take less
time as one reduction of all values behind each other: a bucket. In a function that one device runs they are lines of the
text. Those that a division over devices makes, such as of the gradients of a step, are reported at the line that they
come from.

## Why it matters
Each collective takes the latency of its links several times, however small its value. One of many small values together
takes it once.

## Example
` + "```mlir" + `
%a = dm.all_reduce add %x, axes = ["data"] : tensor<16xf32>
%b = dm.all_reduce add %y, axes = ["data"] : tensor<16xf32>
%c = dm.all_reduce add %z, axes = ["data"] : tensor<16xf32>
` + "```" + `
Concatenate the three, reduce, and slice.

## Fix
Unsafe: a library may add the parts of a longer value in another order. None where the lines do not have the collectives
themselves.
`,
	Check: func(c *Context) {
		if !c.distributed() {
			return
		}
		if !op.PerDevice(c.Fn.Op) {
			c.unbucketed()
			return
		}
		for _, g := range c.buckets(c.Fn.Body) {
			c.bucket(g)
		}
	},
})

// fewest is how many reductions are worth a bucket.
const fewest = 2

// buckets are the groups of all-reduces of b that could be one, at the place of the last: none of the
// results is used before it.
func (c *Context) buckets(b *ir.Block) [][]*ir.Op {
	var out [][]*ir.Op
	open := map[string][]*ir.Op{}
	var order []string
	end := func(key string) {
		if g := open[key]; len(g) >= fewest {
			out = append(out, g)
		}
		delete(open, key)
	}
	for _, o := range b.Ops {
		for _, key := range order {
			for _, p := range open[key] {
				if uses(o, p.Results[0]) {
					end(key)
					break
				}
			}
		}
		if o.Name != op.AllReduce || !op.Valid(o) {
			continue
		}
		key := op.Str(o, "reduction") + " " + strings.Join(op.Strings(o, "axes"), ",") + " " + o.In(0).Elem.String()
		if open[key] == nil {
			order = append(order, key)
		}
		open[key] = append(open[key], o)
	}
	for _, key := range order {
		end(key)
	}
	return out
}

// uses reports whether o, or something in it, reads v.
func uses(o *ir.Op, v *ir.Value) bool {
	for _, u := range v.Uses {
		if u.Op == o || u.Op.Inside(o) {
			return true
		}
	}
	return false
}

// bucket reports a group with the fix that makes it one reduction.
func (c *Context) bucket(g []*ir.Op) {
	last := g[len(g)-1]
	taken := c.names()
	elem := last.In(0).Elem
	var lines, parts, types []string
	var after []string
	total := int64(0)
	bucket, reduced := fresh("%bucket", taken), fresh("%reduced", taken)
	for _, o := range g {
		t := o.In(0)
		n, ok := t.Elements().Int()
		if !ok || origin.Tree(o) == nil {
			return
		}
		flat := fmt.Sprintf("tensor<%dx%s>", n, elem)
		text := c.typeText(o.Operands[0])
		x, y := spelling(o.Operands[0]), spelling(o.Results[0])
		if t.Rank() != 1 {
			name := derived(x, "flat", taken)
			lines = append(lines, fmt.Sprintf("%s = dm.reshape %s : (%s) -> %s", name, x, text, flat))
			x = name
		}
		parts, types = append(parts, x), append(types, flat)
		piece := y
		if t.Rank() != 1 {
			piece = derived(y, "flat", taken)
		}
		after = append(after, fmt.Sprintf("%s = dm.slice %s, start_indices = [%d], limit_indices = [%d] : (TOTAL) -> %s", piece, reduced, total, total+n, flat))
		if t.Rank() != 1 {
			after = append(after, fmt.Sprintf("%s = dm.reshape %s : (%s) -> %s", y, piece, flat, c.typeText(o.Results[0])))
		}
		total += n
	}
	whole := fmt.Sprintf("tensor<%sx%s>", strconv.FormatInt(total, 10), elem)
	lines = append(lines,
		fmt.Sprintf("%s = dm.concatenate %s, dim = 0 : (%s) -> %s", bucket, strings.Join(parts, ", "), strings.Join(types, ", "), whole),
		fmt.Sprintf("%s = %s %s %s, axes = %s : %s", reduced, op.AllReduce, op.Str(last, "reduction"), bucket, last.Attr("axes"), whole))
	for _, l := range after {
		lines = append(lines, strings.Replace(l, "TOTAL", whole, 1))
	}
	indent := c.Module.Src.Indent(origin.Tree(last).Span().Start)
	edits := []diag.Edit{{Span: origin.Tree(last).Span(), Text: strings.Join(lines, "\n"+indent)}}
	for _, o := range g[:len(g)-1] {
		edits = append(edits, c.remove(o)...)
	}
	saving := c.trial(edits)
	if !saving.better() {
		return
	}
	var related []diag.Related
	for _, o := range g[:min(len(g)-1, 4)] {
		related = append(related, diag.Related{Span: place(o), Message: "reduced by itself"})
	}
	c.Report(Finding{
		Op:      last,
		Message: fmt.Sprintf("%d values are reduced one by one along %s", len(g), strings.Join(op.Strings(last, "axes"), ", ")),
		Label:   "the last of them",
		Saving:  saving,
		Tried:   true,
		Related: related,
		Fix:     &diag.Fix{Title: fmt.Sprintf("Reduce %d values together", len(g)), Edits: edits},
	})
}

// unbucketed reports the groups that a division over devices makes, without a fix.
func (c *Context) unbucketed() {
	d, _ := c.Cost.Divide()
	if d == nil {
		return
	}
	entries := d.Device.ByOp()
	for _, g := range c.buckets(d.Fn.Body) {
		var bytes int64
		var ns float64
		var first *cost.Collective
		for _, o := range g {
			e := entries[o]
			if e == nil || e.Comm == nil {
				continue
			}
			first = e.Comm
			bytes += e.Comm.Buffer
			ns += e.Time(c.Machine).Ns
		}
		if first == nil {
			continue
		}
		together := *first
		together.Buffer = bytes
		x, err := together.Estimate(c.Machine)
		moved := 4 * float64(bytes) / c.Machine.Reach() // into the bucket and out of it
		if saved := ns - (x.Time+moved)*1e9; err == nil && saved > 0 {
			at := c.Fn.Op
			for _, e := range d.Lines.Entries {
				if e.Op.Span == g[0].Span {
					at = e.Op
				}
			}
			c.Report(Finding{
				Op: at,
				Message: fmt.Sprintf("the devices reduce %d values of %s one by one along %s", len(g),
					units.Bytes(bytes), first.Axes),
				Label: "the first of them comes from here",
				Help:  "write the step as one device runs it (dmir opt --passes partition) and reduce them together",
				Notes: []string{fmt.Sprintf("one reduction takes %s less, of %s, on %s", units.Time(saved), units.Time(ns), c.Machine.Name)},
				Tried: true,
			})
		}
	}
}
