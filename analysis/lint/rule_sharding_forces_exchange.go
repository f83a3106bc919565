package lint

import (
	"fmt"
	"strings"

	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
)

var _ = register(&Rule{
	Code: "DM216", Name: "sharding-forces-exchange", Severity: diag.Warning, Fix: Unsafe,
	Summary: "a sharding in the text makes devices exchange what they would not without it",
	Doc: `## What it does
Finds a value inside of a function whose type or attribute ` + "`dm.sharding`" + ` states a sharding, where the devices send less if the text leaves it to
propagation.

## Why it matters
What the text states is what the devices have: the value is brought into that sharding, and its users get it from there.
A sharding between two ops that both run on other pieces costs an exchange on each side.

## Example
` + "```mlir" + `
%h = dm.relu %x : (tensor<8x8xf32, #dm.at<split = @pod[{data}, {}]>>) -> tensor<8x8xf32, #dm.at<split = @pod[{}, {data}]>>
` + "```" + `
` + "`%x`" + ` is divided along its rows: without the sharding of ` + "`%h`" + ` the devices exchange nothing.

## Fix
Unsafe: the sharding is taken out of the types, or the attribute away; sums may then be added in another order, and the value may take more
memory on each device.
`,
	Check: func(c *Context) {
		if !c.distributed() || op.PerDevice(c.Fn.Op) {
			return
		}
		shown := c.shown()
		c.ops(func(o *ir.Op) {
			if !op.Valid(o) || len(o.Results) != 1 || o.Parent != c.Fn.Body {
				return
			}
			if op.StatedSharding(o.Results[0]) == nil || !c.exchanges(shown, o) {
				return
			}
			where, edits, ok := "the type", []diag.Edit(nil), false
			if o.Out(0).At.Shard != nil {
				edits, ok = c.unstated(o)
			} else {
				where = "an attribute"
				edits, ok = c.without(o, op.ShardingAttr)
			}
			if !ok {
				return
			}
			saving := c.trial(edits)
			if !saving.better() || saving.Sent == 0 {
				return
			}
			c.Report(Finding{
				Op:      o,
				Message: fmt.Sprintf("the devices exchange pieces because %s of %s states how it is divided", where, spelling(o.Results[0])),
				Label:   "another sharding costs less",
				Saving:  saving,
				Tried:   true,
				Fix:     &diag.Fix{Title: "Leave the sharding of " + short(o.Results[0]) + " to propagation", Edits: edits},
			})
		})
	},
})

// exchanges reports whether o, or an op that uses what it gives, sends something.
func (c *Context) exchanges(f *cost.Func, o *ir.Op) bool {
	sends := func(o *ir.Op) bool {
		e := f.Find(o)
		if e == nil {
			return false
		}
		sent, _ := e.Sent()
		return len(sent) > 0
	}
	if sends(o) {
		return true
	}
	for _, u := range o.Results[0].Uses {
		if sends(u.Op) {
			return true
		}
	}
	return false
}

// unstated are the edits that take the sharding out of the type of o's result; ok is false where it
// is a part of a signature.
func (c *Context) unstated(o *ir.Op) (edits []diag.Edit, ok bool) {
	v := o.Results[0]
	plain := *v.Tensor()
	plain.At.Shard = nil
	typeOf := func(w *ir.Value) string {
		if w == v {
			return types.Type(&plain).String()
		}
		return c.typeText(w)
	}
	users := []*ir.Op{o}
	for _, u := range v.Uses {
		d := op.Of(u.Op)
		if d == nil || d.Is(op.Terminator) || len(u.Op.Regions) > 0 || u.Op.Name == op.Grad {
			return nil, false
		}
		if users[len(users)-1] != u.Op {
			users = append(users, u.Op)
		}
	}
	for _, u := range users {
		t := origin.Tree(u)
		if t == nil || t.Sig.Empty() {
			return nil, false
		}
		edits = append(edits, diag.Edit{Span: t.Abs(t.Sig), Text: c.signature(u, func(_ int, w *ir.Value) string { return typeOf(w) }, typeOf)})
	}
	return edits, true
}

// without are the edits that take the attribute called name out of the dictionary of o; ok is false
// where it stands nowhere there.
func (c *Context) without(o *ir.Op, name string) (edits []diag.Edit, ok bool) {
	t := origin.Tree(o)
	if t == nil || t.Attrs.Empty() || o.Attr(name) == nil {
		return nil, false
	}
	x, err := parse.Attr(t.Text(c.Module.Src, t.Attrs))
	if err != nil {
		return nil, false
	}
	for i, e := range x.Entries {
		if e.Key != name {
			continue
		}
		start, end := e.Span.Start, max(e.Span.End, e.VSpan.End)
		switch {
		case len(x.Entries) == 1:
			start, end = 0, t.Attrs.End-t.Attrs.Start
			if strings.HasSuffix(t.Text(c.Module.Src, ast.Rel{End: t.Attrs.Start}), " ") {
				start = -1
			}
		case i+1 < len(x.Entries):
			end = x.Entries[i+1].Span.Start
		default:
			start = max(x.Entries[i-1].Span.End, x.Entries[i-1].VSpan.End)
		}
		return []diag.Edit{{Span: t.Abs(ast.Rel{Start: t.Attrs.Start + start, End: t.Attrs.Start + end})}}, true
	}
	return nil, false
}
