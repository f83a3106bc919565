package lint

import (
	"fmt"
	"slices"
	"strconv"

	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/pattern"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

var _ = register(&Rule{
	Code: "DM204", Name: "transpose-into-contraction", Severity: diag.Warning, Fix: Safe,
	Summary:  "a transpose beside a contraction can be expressed in the contraction",
	Compiler: "folds such transposes into contractions",
	Python:   "name the dimensions in the order that the values have, jnp.einsum or torch.einsum(\"bqhd,bkhd->bhqk\", q, k), in place of a transpose and @",
	Remedy:   "aten.linear", // whose transpose is the exporter's
	Doc: `## What it does
Finds a ` + "`dm.transpose`" + ` whose result only one ` + "`dm.einsum`" + ` uses, one of the last two dimensions whose result only one
` + "`dm.matmul`" + ` uses, and a transpose that is the only use of an einsum's result.

## Why it matters
A contraction reads and writes its operands in any order of dimensions at the same cost; the transpose reads and writes
the whole value once more.

## Example
` + "```mlir" + `
%t = dm.transpose %w, dims = [1, 0] : (tensor<4096x1024xf16>) -> tensor<1024x4096xf16>
%h = dm.einsum "ln,nu->lu" %x, %t : …
` + "```" + `
becomes
` + "```mlir" + `
%h = dm.einsum "ln,un->lu" %x, %w : …
` + "```" + `
For ` + "`dm.matmul`" + ` it becomes ` + "`transpose_b = true`" + `.

## Fix
Safe: the same sums in the same order.
`,
	Check: func(c *Context) {
		c.ops(func(t *ir.Op) {
			if t.Name != "dm.transpose" || c.entry(t) == nil || len(t.Operands) != 1 {
				return
			}
			title, edits := "", []diag.Edit(nil)
			var contraction *ir.Op
			u := t.Results[0].Uses
			if len(u) == 1 && writable(u[0].Op) {
				contraction = u[0].Op
				title = "Read " + short(t.Operands[0]) + " in the equation of " + short(contraction.Results[0])
				edits = c.foldOperand(t, contraction, u[0].Index)
			} else if len(u) == 1 && u[0].Op.Name == "dm.matmul" {
				contraction = u[0].Op
				title = "Read " + short(t.Operands[0]) + " transposed in " + short(contraction.Results[0])
				edits = c.foldMatmul(t, contraction, u[0].Index)
			} else if e, equation := pattern.TransposedResult(t); writable(e) && len(e.Results[0].Uses) == 1 && e.Parent == t.Parent {
				contraction = e
				title = "Write " + short(t.Results[0]) + " in the equation"
				edits = c.foldResult(t, e, equation)
			}
			if edits == nil {
				return
			}
			saving, ok := c.foldSaving(t, contraction)
			if !ok {
				return
			}
			c.Report(Finding{
				Op:      t,
				Message: "this transpose is redundant: the contraction can read and write its dimensions in any order",
				Label:   "can be part of the contraction",
				Saving:  saving,
				Related: []diag.Related{{Span: place(contraction), Message: "the contraction"}},
				Fix:     &diag.Fix{Title: title, Edits: append(edits, c.remove(t)...)},
			})
		})
	},
})

// foldSaving is what removing t saves: what it moves and, where contraction e
// reads t's operand already, what e read of t. ok is false where that depends
// on a branch that may not run.
func (c *Context) foldSaving(t, e *ir.Op) (saving *Saving, ok bool) {
	saving = c.saving(c.entries(t), nil)
	user := e
	if k := kernelOf(e); k != nil {
		user = k
	}
	if t.Operands[0].Op == e || !slices.Contains(ir.UsedValues(user), t.Operands[0]) {
		return saving, true
	}
	before := c.entry(user)
	if before == nil {
		return nil, false
	}
	after := *before // the same sums of fewer values
	after.Read = before.Read.Sub(t.Out(0).Bytes().Eval(c.Bind))
	both := c.saving([]*cost.Entry{before}, []*cost.Entry{&after})
	return &Saving{Bytes: saving.Bytes.Add(both.Bytes), Ns: saving.Ns + both.Ns, timed: saving.timed && both.timed}, true
}

// writable reports whether o is an einsum whose text the fix can edit.
func writable(o *ir.Op) bool {
	return o != nil && o.Name == "dm.einsum" && !o.Bad && origin.Tree(o) != nil && !origin.Tree(o).Lead.Empty() && !origin.Tree(o).Sig.Empty() && len(o.Results) == 1
}

// foldOperand makes einsum e read the transpose's operand.
func (c *Context) foldOperand(t, e *ir.Op, operand int) []diag.Edit {
	_, equation := pattern.TransposedOperand(e, operand)
	if equation == "" {
		return nil
	}
	return append(c.readInstead(e, t.Results[0], t.Operands[0]), diag.Edit{Span: origin.Tree(e).Abs(origin.Tree(e).Lead), Text: strconv.Quote(equation)})
}

// foldMatmul makes matmul m read the transpose's operand with its transpose_a
// or transpose_b the other way round, where only the last two dimensions are
// swapped.
func (c *Context) foldMatmul(t, m *ir.Op, operand int) []diag.Edit {
	n := t.In(0).Rank()
	perm, _ := op.Dims(t, "dims", n)
	tree := origin.Tree(m)
	if n < 2 || operand > 1 || m.Bad || tree == nil || tree.Form != ast.Pretty || tree.Sig.Empty() || len(tree.Operands) != 2 {
		return nil
	}
	for i, p := range perm {
		want := i
		if i >= n-2 {
			want = 2*n - 3 - i
		}
		if p != want {
			return nil
		}
	}
	flag := [...]string{"transpose_a", "transpose_b"}[operand]
	edits := c.readInstead(m, t.Results[0], t.Operands[0])
	value := fmt.Sprint(!op.Bool(m, flag))
	at := tree.Operands[1].Span.End
	for _, clause := range tree.Clauses {
		if clause.Name == flag {
			return append(edits, diag.Edit{Span: tree.Abs(clause.Value), Text: value})
		}
		at = clause.Value.End
	}
	if m.Attr(flag) != nil { // written in a dictionary
		return nil
	}
	end := tree.Off + int(at)
	return append(edits, diag.Edit{Span: source.Span{Start: end, End: end}, Text: ", " + flag + " = " + value})
}

// foldResult makes einsum e write the transpose's result under its name.
func (c *Context) foldResult(t, e *ir.Op, equation string) []diag.Edit {
	tree := origin.Tree(e)
	if len(tree.Results) != 1 {
		return nil
	}
	sig := c.signature(e, func(_ int, v *ir.Value) string { return c.typeText(v) },
		func(*ir.Value) string { return c.typeText(t.Results[0]) })
	return []diag.Edit{
		{Span: tree.Abs(tree.Results[0].Span), Text: spelling(t.Results[0])},
		{Span: tree.Abs(tree.Lead), Text: strconv.Quote(equation)},
		{Span: tree.Abs(tree.Sig), Text: sig},
	}
}
