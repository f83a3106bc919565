package lint

import (
	"fmt"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM206", Name: "computed-twice", Severity: diag.Warning, Fix: Safe,
	Summary: "the same op on the same operands has been computed before",
	Doc: `## What it does
Finds an op without side effects whose name, operands, attributes and types are those of an earlier op
that is visible from it. Random ops count as equal when their seeds are.

## Why it matters
The second one moves and computes everything again for a value that is already there.

## Example
` + "```mlir" + `
%a = dm.exp %x : tensor<512x64xf16>
%b = dm.exp %x : tensor<512x64xf16>
` + "```" + `
Use ` + "`%a`" + ` for both.

## Fix
Safe: values keep their bits. It trades movement for a longer life of the first value.
`,
	Check: func(c *Context) { c.duplicates(c.Fn.Body, nil) },
})

// duplicates looks through the ops of b, knowing those of the enclosing blocks.
func (c *Context) duplicates(b *ir.Block, outer []map[string]*ir.Op) {
	here := map[string]*ir.Op{}
	scopes := append(outer, here)
	for _, o := range b.Ops {
		if c.ctx.Err() != nil {
			return
		}
		if key, ok := valueKey(o); ok && !o.Bad {
			if first := lookup(scopes, key); first != nil {
				c.duplicate(first, o)
			} else {
				here[key] = o
			}
		}
		if o.Name == op.Kernel {
			continue // its inside moves nothing
		}
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				c.duplicates(inner, scopes)
			}
		}
	}
}

func lookup(scopes []map[string]*ir.Op, key string) *ir.Op {
	for _, s := range scopes {
		if o := s[key]; o != nil {
			return o
		}
	}
	return nil
}

// valueKey is equal for two ops exactly when they compute the same value.
func valueKey(o *ir.Op) (string, bool) {
	def := op.Of(o)
	if !def.Is(op.Pure) || len(o.Regions) > 0 || len(o.Results) == 0 || o.Name == "dm.copy" {
		return "", false
	}
	if t := o.Out(0); len(o.Operands) == 0 && (t == nil || t.Rank() == 0) {
		return "", false // a scalar constant costs less than the line that shares it
	}
	var key strings.Builder
	key.WriteString(o.Name)
	for _, v := range o.Operands {
		fmt.Fprintf(&key, " %p", v)
	}
	for _, a := range o.Attrs {
		fmt.Fprintf(&key, " %s=%s", a.Name, a.Value)
	}
	for _, v := range o.Results {
		key.WriteString(" " + v.Type.String())
	}
	return key.String(), true
}

func (c *Context) duplicate(first, o *ir.Op) {
	if c.entry(o) == nil {
		return
	}
	saving, edits, ok := c.replacement(o, first.Results, o)
	if !ok {
		return
	}
	name := spelling(first.Results[0])
	c.Report(Finding{
		Op:      o,
		Message: "this computes " + name + " again",
		Label:   "equal to " + name,
		Saving:  saving,
		Related: []diag.Related{{Span: place(first), Message: "computed here first"}},
		Fix:     &diag.Fix{Title: "Use " + name + " instead", Edits: edits},
	})
}

func typesEqual(a, b *ir.Value) bool { return types.Equal(a.Type, b.Type) }
