package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/attention"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM210", Name: "attention-written-out", Severity: diag.Warning, Fix: Unsafe,
	Summary:  "attention is computed by separate ops, which write every score to memory",
	Compiler: "replaces such ops with `dm.attention`",
	Python:   "call jax.nn.dot_product_attention(q, k, v, …), or torch.nn.functional.scaled_dot_product_attention(q, k, v, …)",
	Doc: `## What it does
Finds two contractions with a softmax between them that ` + "`dm.attention`" + ` expresses as one op: in any order of dimensions, with the
softmax as an op or written out, with a scale, an added mask or bias, a mask by ` + "`dm.select`" + `, a causal mask, also together with
a bias, dropout, heads that share keys and values, and scores in a wider type. It reports nothing where the scores or the probabilities are used elsewhere, and where
the ops that bring values into the order of ` + "`dm.attention`" + ` would move as much.

## Why it matters
The scores are a number for every pair of a query and a key. Written out, they are written and read again by every op up to
the second contraction, and once more for the gradient. ` + "`dm.attention`" + ` keeps a tile of them on chip (Dao et al.,
*FlashAttention*, arXiv 2205.14135) and moves the queries, keys, values and results alone.

## Example
` + "```mlir" + `
%s = dm.einsum "bhld,bhmd->bhlm" %q, %k : …
%c = dm.constant dense<0.125> : tensor<f16>
%s1 = dm.mul %s, %c : …
%p = dm.softmax %s1, dim = 3 : tensor<8x16x512x512xf16>
%y = dm.einsum "bhlm,bhmd->bhld" %p, %v : …
` + "```" + `
becomes
` + "```mlir" + `
%y = dm.attention %q, %k, %v : tensor<8x16x512x64xf16>
` + "```" + `

## Fix
Unsafe: the same function, but sums are taken in another order, and half precision is rounded once instead of at every op.
The compiler does the same by itself (` + "`dmir opt --passes inline,attention`" + `).
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			a, _ := attention.FindAttention(o)
			if a == nil || c.entry(a.Root) == nil {
				return
			}
			var added []*cost.Entry
			for _, n := range a.New {
				added = append(added, cost.Replaced(c.Fn, c.Module, c.Bind, n, nil))
			}
			saving := c.saving(c.entries(a.Gone...), added)
			if !saving.positive() {
				return
			}
			f := Finding{
				Op:      o,
				Message: "these ops compute attention and write its scores to memory; dm.attention keeps them on chip",
				Label:   units.DimBytes(saving.Bytes) + " more than dm.attention moves",
				Saving:  saving,
				Related: []diag.Related{{Span: place(a.First), Message: "the scores"}},
			}
			if edits, ok := c.attentionEdits(a); ok {
				f.Fix = &diag.Fix{Title: "Compute " + short(o.Results[0]) + " by dm.attention", Edits: edits}
			} else {
				f.Help = "replace these ops with dm.attention"
			}
			c.Report(f)
		})
	},
})

// attentionEdits put the ops of a in the place of its root and remove the others.
// ok is false where that would take comments along.
func (c *Context) attentionEdits(a *attention.Attention) (edits []diag.Edit, ok bool) {
	for _, o := range a.Gone {
		if origin.Tree(o) == nil || strings.Contains(c.Module.Src.Slice(origin.Tree(o).Span()), "//") {
			return nil, false
		}
		if o != a.Root {
			edits = append(edits, c.remove(o)...)
		}
	}
	root := a.Root.Results[0]
	names := c.attentionNames(a)
	names[a.New[len(a.New)-1].Results[0]] = spelling(root)
	spell := func(v *ir.Value) (name, typ string) {
		if name = names[v]; name == "" {
			name = spelling(v)
		}
		if types.Equal(v.Type, root.Type) {
			return name, c.typeText(root) // in the words of the line that goes
		}
		return name, c.typeText(v)
	}
	lines := make([]string, len(a.New))
	for i, o := range a.New {
		lines[i] = c.written(o, spell)
	}
	indent := c.Module.Src.Indent(origin.Tree(a.Root).Off)
	return append(edits, diag.Edit{Span: origin.Tree(a.Root).Span(), Text: strings.Join(lines, "\n"+indent)}), true
}

// attentionNames are new names for the values of a: the result's name, and what
// they are for.
func (c *Context) attentionNames(a *attention.Attention) map[*ir.Value]string {
	taken := map[string]bool{}
	for _, v := range c.Fn.Args {
		taken[v.Name] = true
	}
	for _, name := range definitions(treesIn(c.Fn.Body)) {
		taken[name] = true
	}
	prefix, _, _ := strings.Cut(spelling(a.Root.Results[0]), "#")
	if _, err := strconv.Atoi(prefix[1:]); err == nil {
		prefix = "%"
	} else {
		prefix += "_"
	}
	role := map[*ir.Op]string{}
	for i, v := range slices.Backward(a.Main.Operands) { // a mask tells which queries count
		what := []string{"q", "k", "v", "mask"}[i]
		for ops := []*ir.Op{v.Op}; len(ops) > 0; ops = ops[1:] {
			if o := ops[0]; o != nil && role[o] == "" && slices.Contains(a.New, o) {
				role[o] = what
				for _, w := range o.Operands {
					ops = append(ops, w.Op)
				}
			}
		}
	}
	names := map[*ir.Value]string{}
	for _, o := range a.New {
		what := role[o]
		switch {
		case what == "":
			what = "heads"
		case o.Name == op.Constant:
			what = "masked"
			if n, _ := attention.Literal(o); n == 0 {
				what = "zero"
			}
		case o.Name == "dm.compare":
			what = "seen"
		}
		names[o.Results[0]] = fresh(prefix+what, taken)
	}
	return names
}

func treesIn(b *ir.Block) (ts []*ast.Op) {
	for _, o := range b.Ops {
		if origin.Tree(o) != nil {
			ts = append(ts, origin.Tree(o))
		}
	}
	return ts
}

// written is o, a new op, in pretty form; spell returns the name and the type of a
// value.
func (c *Context) written(o *ir.Op, spell func(*ir.Value) (name, typ string)) string {
	name, to := spell(o.Results[0])
	var words, clauses, in []string
	for _, a := range op.Of(o).Attrs {
		v := o.Attr(a.Name)
		text := fmt.Sprint(v)
		if d, ok := v.(*types.Dense); ok {
			text = d.Bare()
		}
		switch {
		case v == nil:
		case a.Lead:
			words = append(words, text)
		default:
			clauses = append(clauses, a.Name+" = "+text)
		}
	}
	same := true
	var operands []string
	for _, v := range o.Operands {
		n, t := spell(v)
		operands, in, same = append(operands, n), append(in, t), same && t == to
	}
	if list := strings.Join(append(operands, clauses...), ", "); list != "" {
		words = append(words, list)
	}
	if !same {
		to = "(" + strings.Join(in, ", ") + ") -> " + to
	}
	return name + " = " + o.Name + " " + strings.Join(words, " ") + " : " + to
}
