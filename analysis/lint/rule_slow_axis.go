package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM404", Name: "slow-axis", Severity: diag.Warning, Fix: Unsafe,
	Summary: "the axis that carries the most bytes crosses a slow link",
	Doc: `## What it does
Finds a mesh whose axes stand in an order in which the axis with the most bytes crosses an outer link of the machine, such as the
network between nodes, while axes with fewer bytes stay inside.

## Why it matters
Devices are numbered along the last axis first, and neighbours share the fastest link. The links between nodes are an order
of magnitude slower than those inside.

## Example
` + "```mlir" + `
dm.mesh @pod {model = 8, data = 2}
` + "```" + `
On nodes of eight devices those along ` + "`model`" + ` are in two nodes; as ` + "`{data = 2, model = 8}`" + ` they are in one.

## Fix
Unsafe: the axes of the mesh are put in the order of their bytes, the most last. Results are the same; devices have other
numbers, and with them the files of single devices.
`,
	Check: func(c *Context) {
		on := c.Cost.Mesh()
		if on == nil || len(c.Machine.Joined()) < 2 {
			return
		}
		sent := c.alongAxes(on)
		order := slices.Clone(on.Axes)
		slices.SortStableFunc(order, func(a, b mesh.Axis) int { return cmp.Compare(sent[a.Name].bytes, sent[b.Name].bytes) })
		most := order[len(order)-1]
		if slices.Equal(order, on.Axes) || !sent[most.Name].outer {
			return
		}
		edits := c.reordered(on, order)
		if edits == nil {
			return
		}
		saving := c.trial(edits)
		if saving == nil || !saving.timed || saving.Ns <= 0 {
			return
		}
		names := make([]string, len(order))
		for i, a := range order {
			names[i] = fmt.Sprintf("%s = %d", a.Name, a.Size)
		}
		text := "{" + strings.Join(names, ", ") + "}"
		c.Report(Finding{
			Op: c.Fn.Op,
			Message: fmt.Sprintf("axis %s of mesh @%s carries the most, %s from each device, and crosses %s", most.Name, on.Name,
				units.Bytes(sent[most.Name].bytes), sent[most.Name].link),
			Label:  "a slow link carries the most",
			Help:   "order the mesh as " + text,
			Saving: saving,
			Tried:  true,
			Fix:    &diag.Fix{Title: "Order the axes of @" + on.Name + " as " + text, Edits: edits},
		})
	},
})

// along is what is sent along an axis.
type along struct {
	bytes int64
	outer bool   // over another link than the first
	link  string // the outermost
}

// alongAxes is what a device sends along each axis of the mesh; what is sent along several counts for
// each of them.
func (c *Context) alongAxes(on *mesh.Mesh) map[string]along {
	out := map[string]along{}
	f := c.Cost
	if d, _ := f.Divide(); d != nil {
		f = d.Device
	}
	links := c.Machine.Joined()
	f.Walk(func(e *cost.Entry) {
		if e.Comm == nil {
			return
		}
		times := int64(1)
		if f == c.Cost {
			times, _ = c.trips(e.Op).Int()
		}
		crossed := e.Comm.Crosses(c.Machine)
		for _, a := range e.Comm.Transfer.Axes {
			x := out[a.Name]
			x.bytes += e.Comm.Sent * max(times, 1)
			if n := len(crossed); n > 0 && crossed[n-1].Name != links[0].Name {
				x.outer, x.link = true, crossed[n-1].Title
			}
			out[a.Name] = x
		}
	})
	return out
}

// reordered are the edits that give the dm.mesh its axes in another order; nil where it is not written
// in pretty form.
func (c *Context) reordered(on *mesh.Mesh, order []mesh.Axis) []diag.Edit {
	i := slices.IndexFunc(c.Module.Ops, func(o *ir.Op) bool { return o.Name == op.Mesh && o.Str("sym_name") == on.Name })
	if i < 0 || origin.Tree(c.Module.Ops[i]) == nil {
		return nil
	}
	span := origin.Tree(c.Module.Ops[i]).Span()
	text := c.Module.Src.Slice(span)
	from, to := strings.IndexByte(text, '{'), strings.IndexByte(text, '}')
	if from < 0 || to < from || !strings.HasPrefix(text, op.Mesh) {
		return nil
	}
	parts := map[string]string{}
	for p := range strings.SplitSeq(text[from+1:to], ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(p), " ")
		parts[strings.TrimSuffix(name, "=")] = strings.TrimSpace(p)
	}
	list := make([]string, len(order))
	for i, a := range order {
		if list[i] = parts[a.Name]; list[i] == "" {
			return nil
		}
	}
	span.End = span.Start + to
	span.Start += from + 1
	return []diag.Edit{{Span: span, Text: strings.Join(list, ", ")}}
}
