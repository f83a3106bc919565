package lint

import (
	"fmt"
	"slices"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

var _ = register(&Rule{
	Code: "DM226", Name: "dense-moves-less", Severity: diag.Warning, Fix: Unsafe,
	Summary: "a sparse tensor that stores so many of its elements that the dense op moves less",
	Python:  "keep the tensor dense (.todense(), .to_dense()), or prune it further",
	Doc: `## What it does
Finds ops on a sparse tensor that, at the number of elements that it has room for, move more bytes and take no less time than the same
ops on the dense tensor. Sizes that are not bound have no such number, and nothing is reported.

## Why it matters
A stored element costs its coordinates as well: with 32 bits for these an element of a matrix in compressed rows takes twice its bytes in
f32 and three times those in f16, and a dense product reads whole rows at the full rate. From a half or a third of the elements on, the
dense tensor is the smaller one.

## Example
` + "```mlir" + `
%a = dm.convert_format %x : (tensor<512x512xf32>) -> tensor<512x512xf32, #dm.csr<nnz = 200000>>
%y = dm.einsum "ij,j->i" %a, %b : (tensor<512x512xf32, #dm.csr<nnz = 200000>>, tensor<512xf32>) -> tensor<512xf32>
` + "```" + `
becomes
` + "```mlir" + `
%y = dm.einsum "ij,j->i" %x, %b : (tensor<512x512xf32>, tensor<512xf32>) -> tensor<512xf32>
` + "```" + `

## Fix
Unsafe: the sums have other terms, zeros, and another order. The ops read the dense tensor that the sparse one was made of, the dense
result of the product that made it, or one that ` + "`dm.convert_format`" + ` makes once where that pays. Where it does not, the tensor that comes in has to be a dense one: no fix.
`,
	Check: func(c *Context) {
		seen := map[*ir.Value]bool{}
		c.ops(func(o *ir.Op) {
			if !op.IsSparse(o) {
				return
			}
			for _, v := range o.Operands {
				if t := v.Tensor(); t != nil && t.Format != nil && !seen[v] {
					seen[v] = true
					c.crowded(v, t)
				}
			}
		})
	},
})

// crowded reports the ops that read v, a sparse tensor of type t, if they move less with the dense one.
func (c *Context) crowded(v *ir.Value, t *types.Tensor) {
	bind := op.Bindings(c.Fn, c.Bind)
	stored, known := t.Values().Eval(bind).Int()
	all, sized := t.Elements().Eval(bind).Int()
	if !known || !sized || all == 0 {
		return
	}
	dense := &ir.Value{Name: derived(v.Name, "dense", c.names()), Type: &types.Tensor{Shape: t.Shape, Elem: t.Elem, At: t.At}}
	var conversion *ir.Op // what makes the dense tensor
	if from := v.Op; from != nil && from.Name == "dm.convert_format" && op.Valid(from) && from.In(0).Format == nil {
		dense = from.Operands[0]
	} else {
		conversion = &ir.Op{Name: "dm.convert_format", Operands: []*ir.Value{v}, Results: []*ir.Value{dense}}
		dense.Op = conversion
	}
	var users []*ir.Op
	seen, uses := map[*ir.Op]int{}, 0 // how often an op reads v; how often users do
	for _, u := range v.Uses {
		seen[u.Op]++
	}
	var before, after []*cost.Entry
	var now, then int64
	for _, u := range v.Uses {
		o := u.Op
		n := seen[o]
		delete(seen, o)
		if n == 0 || !c.takesDense(o, v) || len(users) > 0 && o.Parent != users[0].Parent {
			continue
		}
		e, d := c.entry(o), cost.Replaced(c.Fn, c.Module, c.Bind, o, map[*ir.Value]*ir.Value{v: dense})
		moved, ok1 := e.Moved().Int()
		less, ok2 := d.Moved().Int()
		s := c.saving([]*cost.Entry{e}, []*cost.Entry{d})
		if !ok1 || !ok2 || less >= moved || !s.timed || s.Ns < 0 {
			continue
		}
		users, before, after = append(users, o), append(before, e), append(after, d)
		now, then, uses = now+moved, then+less, uses+n
	}
	if len(users) == 0 {
		return
	}
	slices.SortFunc(users, func(a, b *ir.Op) int { return a.Span.Start - b.Span.Start })
	f := Finding{
		Op:      users[0],
		Message: fmt.Sprintf("at %s stored, dense moves less: %s, not %s", units.Percent(float64(stored), float64(all)), units.Bytes(then), units.Bytes(now)),
		Label:   fmt.Sprintf("%s has room for %s of %s elements", spelling(v), units.Count(float64(stored)), units.Count(float64(all))),
		Help:    "take a dense tensor: " + dense.Type.String(),
	}
	for _, o := range users[1:] {
		f.Related = append(f.Related, diag.Related{Span: place(o), Message: "read here as well"})
	}
	made := len(v.Uses) == uses && v.Op != nil && c.entry(v.Op) != nil && origin.Tree(v.Op) != nil // for users alone, here
	var product *ir.Op
	if made {
		product = denseProduct(v, dense)
	}
	title := "Make " + short(v) + " dense"
	if product != nil {
		dense.Name = v.Name
	} else if conversion == nil {
		title = "Read " + short(dense) + " in place of " + short(v)
	}
	var edits []diag.Edit
	for _, o := range users {
		edits = append(edits, c.readInstead(o, v, dense)...)
	}
	switch {
	case product != nil:
		before, after = append(before, c.entry(v.Op)), append(after, cost.Replaced(c.Fn, c.Module, c.Bind, product, nil))
		edits = append(edits, c.returnsDense(v, dense))
	case conversion != nil:
		after = append(after, cost.Replaced(c.Fn, c.Module, c.Bind, conversion, nil))
		at := origin.Tree(users[0]).Off
		edits = append(edits, diag.Edit{Span: source.Span{Start: at, End: at}, Text: c.written(conversion, c.spell) + "\n" + c.Module.Src.Indent(at)})
	case made:
		before = append(before, c.entry(v.Op))
		edits = append(edits, c.remove(v.Op)...)
	}
	if s := c.saving(before, after); s.positive() && s.timed && s.Ns >= 0 {
		f.Saving, f.Help, f.Fix = s, "", &diag.Fix{Title: title, Edits: edits}
	}
	c.Report(f)
}

// denseProduct is the op that makes v, a product of sparse tensors, with a dense result in its place; nil where v is none or its op
// can have no such result.
func denseProduct(v, dense *ir.Value) *ir.Op {
	o := v.Op
	if !op.Valid(o) || len(o.Results) != 1 || o.Attr(op.ProductsAttr) == nil {
		return nil
	}
	p := *o
	p.Results = []*ir.Value{dense}
	if ts, problem := op.Infer(&p); problem != nil || len(ts) != 1 || !types.Equal(ts[0], dense.Type) {
		return nil
	}
	return &p
}

// returnsDense is the edit that states the type of dense as the result's of the op that makes v.
func (c *Context) returnsDense(v, dense *ir.Value) diag.Edit {
	tree := origin.Tree(v.Op)
	sig := c.signature(v.Op, func(i int, _ *ir.Value) string { return c.operandText(v.Op, i) }, func(*ir.Value) string { return c.typeText(dense) })
	return diag.Edit{Span: tree.Abs(tree.Sig), Text: sig}
}

// takesDense reports whether o, which reads v, can read a dense tensor in its place and gives what it gave.
func (c *Context) takesDense(o *ir.Op, v *ir.Value) bool {
	if c.entry(o) == nil || !op.Valid(o) || origin.Tree(o) == nil || o.Name == "dm.convert_format" || op.PassesOn(o) || len(o.Regions) > 0 {
		return false
	}
	for _, vs := range [2][]*ir.Value{o.Operands, o.Results} {
		for _, w := range vs {
			if t := w.Tensor(); w != v && (t == nil || t.Format != nil) {
				return false
			}
		}
	}
	return o.Name != "dm.sample" // its pattern is what it computes
}
