package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/attention"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/raise"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
)

// remedy is a part of the names of the frameworks' own attention.
const remedy = "dot_product_attention"

var _ = register(&Rule{
	Code: "DM210", Name: "attention-written-out", Severity: diag.Warning, Fix: Unsafe,
	Summary:  "attention is computed by separate ops, which write every score to memory",
	Compiler: "replaces such ops with `dm.attention`",
	Kept:     "attention together with its gradient, and programs that were traced, whose framework does not",
	Remedy:   remedy,
	Python:   "call jax.nn.dot_product_attention(q, k, v, …), or torch.nn.functional.scaled_dot_product_attention(q, k, v, …); for a model of transformers attn_implementation=\"sdpa\"",
	Doc: `## What it does
Finds two contractions with a softmax between them that ` + "`dm.attention`" + ` expresses as one op: in any order of dimensions, with the
softmax as an op or written out, with a scale, an added mask or bias, a mask by ` + "`dm.select`" + `, a causal mask, also together with
a bias, dropout, heads that share keys and values, and scores in a wider type. In a training step it finds the attention together with its gradient,
however that is written: what stands between the gradient's contractions is computed for some drawn scores, and compared with the derivative of the softmax.
Of a program that was traced it also reports attention that was written out there and read as ` + "`dm.attention`" + `. It reports nothing where the scores or the
probabilities are used elsewhere (a gradient with dropout, or one that computes the probabilities again), and where the ops that bring values into the order of ` + "`dm.attention`" + ` would move as much.

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
Unsafe: the same function, but sums are taken in another order, and half precision is rounded once instead of at every op. The gradient becomes
` + "`dm.attention_grad`" + `. Without a gradient the compiler does the same by itself (` + "`dmir opt --passes inline,attention`" + `).
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			if o.Name == "dm.attention" {
				c.writtenOut(o)
				return
			}
			a, _ := attention.FindAttention(o)
			if a == nil {
				a = raise.Training(o)
			}
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
			_, f.Kept = tracedFrom(o)
			title := "Compute " + short(o.Results[0]) + " by dm.attention"
			if len(a.Gradients) > 0 {
				f.Kept = true
				f.Message = "these ops and those of the gradient compute attention and write its scores to memory; dm.attention and dm.attention_grad keep them on chip"
				f.Label = units.DimBytes(saving.Bytes) + " more than these move"
				f.Related = append(f.Related, diag.Related{Span: place(a.Gradients[0].Old.Op), Message: "the gradient of the queries"})
				title += ", and its gradient"
			}
			if edits, ok := c.attentionEdits(a); ok {
				f.Fix = &diag.Fix{Title: title, Edits: edits}
			} else {
				f.Help = "replace these ops with dm.attention"
			}
			c.Report(f)
		})
	},
})

// writtenOut reports the dm.attention o if an importer made it of the ops of a traced program, which write the scores to memory.
func (c *Context) writtenOut(o *ir.Op) {
	e := c.entry(o)
	if _, traced := tracedFrom(o); !traced || e == nil {
		return
	}
	products := 0
	for _, p := range loc.Parts(o.Loc) {
		t := loc.TraceOf(p.Loc)
		if t.Inside(remedy) {
			return
		}
		if len(t.Scopes) > 0 && slices.ContainsFunc(productNames, func(name string) bool {
			scope := t.Scopes[len(t.Scopes)-1]
			return strings.Contains(strings.ToLower(scope[strings.LastIndexByte(scope, '/')+1:]), name)
		}) {
			products++
		}
	}
	b := &ir.Builder{Block: &ir.Block{}, At: o, Loose: true}
	if products == 0 || op.Of(o).Expand(b, o) == nil {
		return
	}
	var parts []*cost.Entry
	for _, n := range b.Block.Ops {
		parts = append(parts, cost.Replaced(c.Fn, c.Module, c.Bind, n, nil))
	}
	if more := c.saving(parts, []*cost.Entry{e}); more.positive() {
		c.Report(Finding{
			Op: o, Kept: true,
			Message: "attention is written out in the source, and its framework writes the scores to memory; it was read as dm.attention, which keeps them on chip",
			Label:   fmt.Sprintf("written out, it moves %s and takes %s more", units.DimBytes(more.Bytes), units.Time(more.Ns)),
		})
	}
}

// productNames are parts of the names that frameworks give to contractions.
var productNames = []string{"matmul", "bmm", "einsum", "dot_general"}

// attentionEdits put the ops of a in the place of its root, those of its gradient in that of the first of its contractions, and
// remove the others. ok is false where that would take comments along.
func (c *Context) attentionEdits(a *attention.Attention) (edits []diag.Edit, ok bool) {
	first, split := a.Root, len(a.New)
	if len(a.Gradients) > 0 {
		split = a.Split
		first = slices.MinFunc(a.Gradients, func(g, h attention.Gradient) int { return cmp.Compare(g.Old.Op.Span.Start, h.Old.Op.Span.Start) }).Old.Op
	}
	for _, o := range a.Gone {
		if origin.Tree(o) == nil || strings.Contains(c.Module.Src.Slice(origin.Tree(o).Span()), "//") {
			return nil, false
		}
		if o != a.Root && o != first {
			edits = append(edits, c.remove(o)...)
		}
	}
	names, like := map[*ir.Value]string{}, map[*ir.Value]*ir.Value{}
	result := func(v, old *ir.Value) { names[v], like[v] = spelling(old), old }
	result(a.Result, a.Root.Results[0])
	for _, g := range a.Gradients {
		result(g.New, g.Old)
	}
	c.attentionNames(a, names)
	spell := func(v *ir.Value) (name, typ string) {
		if name = names[v]; name == "" {
			name = spelling(v)
		}
		if old := like[v]; old != nil {
			v = old
		} else if root := a.Root.Results[0]; types.Equal(v.Type, root.Type) {
			v = root
		}
		return name, c.typeText(v) // in the words of the line that goes
	}
	edits = append(edits, c.inPlace(origin.Tree(a.Root), a.New[:split], spell))
	if split < len(a.New) {
		edits = append(edits, c.inPlace(origin.Tree(first), a.New[split:], spell))
	}
	return edits, true
}

// attentionNames adds new names for the values of a that have none: the result's name, and what
// they are for.
func (c *Context) attentionNames(a *attention.Attention, names map[*ir.Value]string) {
	taken := map[string]bool{}
	for _, v := range c.Fn.Args {
		taken[v.Name] = true
	}
	for _, name := range definitions(treesIn(c.Fn.Body)) {
		taken[name] = true
	}
	root := spelling(a.Root.Results[0])
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
		kinds := []string{what, "lse"}
		if o.Name == "dm.attention_grad" {
			kinds = []string{"dq", "dk", "dv"}
		}
		for i, r := range o.Results {
			if names[r] == "" {
				names[r] = derived(root, kinds[i], taken)
			}
		}
	}
}

func treesIn(b *ir.Block) (ts []*ast.Op) {
	for _, o := range b.Ops {
		if origin.Tree(o) != nil {
			ts = append(ts, origin.Tree(o))
		}
	}
	return ts
}

// inPlace is the edit that puts ops, new ones, in the place of the statement t; see written.
func (c *Context) inPlace(t *ast.Op, ops []*ir.Op, spell func(*ir.Value) (name, typ string)) diag.Edit {
	lines := make([]string, len(ops))
	for i, o := range ops {
		lines[i] = c.written(o, spell)
	}
	return diag.Edit{Span: t.Span(), Text: strings.Join(lines, "\n"+c.Module.Src.Indent(t.Off))}
}

// spell is the name and the type of v in the text.
func (c *Context) spell(v *ir.Value) (name, typ string) { return spelling(v), c.typeText(v) }

// written is o, a new op, in pretty form; spell returns the name and the type of a
// value.
func (c *Context) written(o *ir.Op, spell func(*ir.Value) (name, typ string)) string {
	var results, out []string
	for _, r := range o.Results {
		n, t := spell(r)
		results, out = append(results, n), append(out, t)
	}
	to := out[0]
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
	same := len(out) == 1
	var operands []string
	for _, v := range o.Operands {
		n, t := spell(v)
		operands, in, same = append(operands, n), append(in, t), same && t == to
	}
	if list := strings.Join(append(operands, clauses...), ", "); list != "" {
		words = append(words, list)
	}
	if len(out) > 1 {
		to = "(" + strings.Join(out, ", ") + ")"
	}
	if !same {
		to = "(" + strings.Join(in, ", ") + ") -> " + to
	}
	return strings.Join(results, ", ") + " = " + o.Name + " " + strings.Join(words, " ") + " : " + to
}
