package lint

import (
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// sparseLeast is the work of a product, in FLOP, from which one with a mask made of one-hot rows is reported.
const sparseLeast = 1 << 20

var _ = register(&Rule{
	Code: "DM222", Name: "one-hot-product", Severity: diag.Warning, Fix: Unsafe,
	Summary: "a product with one-hot rows, which are zeros but for one element, does what a gather does",
	Python: "index instead: table[ids] in place of jax.nn.one_hot(ids, n) @ table (torch: F.embedding(ids, table)); of the label's " +
		"logarithm optax.softmax_cross_entropy_with_integer_labels or jnp.take_along_axis (torch: F.cross_entropy with labels, gather); to " +
		"dispatch to experts sort tokens by expert, then index and jax.lax.ragged_dot (torch: torch.argsort, F.grouped_mm, index_add_)",
	Doc: `## What it does
Finds contractions with a ` + "`dm.one_hot`" + ` and sums over a product with one, along the dimension of the classes, and large contractions
with a mask that is a product of ` + "`dm.one_hot`" + `s, as mixtures of experts dispatch tokens by.

## Why it matters
All terms of each sum but one are 0. The one-hot rows are written and read, the product multiplies by zeros, and its gradient does so
twice. ` + "`dm.gather`" + ` reads the one row that counts.

## Example
` + "```mlir" + `
%h = dm.one_hot %ids, classes = 50304 : (tensor<4096xi32>) -> tensor<4096x50304xf32>
%y = dm.matmul %h, %table : (tensor<4096x50304xf32>, tensor<50304x768xf32>) -> tensor<4096x768xf32>
` + "```" + `
becomes
` + "```mlir" + `
%y = dm.gather %table, %ids : (tensor<50304x768xf32>, tensor<4096xi32>) -> tensor<4096x768xf32>
` + "```" + `

## Fix
Unsafe: an index outside the classes has a row of zeros, and ` + "`dm.gather`" + ` takes the nearest row. Of a product that is no gather of
whole rows (its transpose, which adds rows: ` + "`dm.scatter`" + `; a mask of several one-hot factors) none.
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			if c.entry(o) == nil || !op.Valid(o) {
				return
			}
			if o.Name == "dm.reduce" {
				c.picked(o)
				return
			}
			e := equation(o)
			if e == nil || len(e.Inputs) != 2 {
				return
			}
			for i := range 2 {
				if h := hotOf(o.Operands[i]); h != nil {
					c.oneHot(o, e, i, h)
					return
				}
			}
			for i := range 2 {
				if h := maskOf(o.Operands[i], 0); h != nil {
					c.masked(o, o.Operands[i], h)
					return
				}
			}
		})
	},
})

// equation is what the contraction o computes, as an einsum; nil for other ops.
func equation(o *ir.Op) *op.Equation {
	if o.Name != "dm.matmul" {
		return pattern.Equation(o)
	}
	rank := o.In(0).Rank()
	if rank < 2 || rank > 8 || o.In(1).Rank() != 2 {
		return nil
	}
	batch := "abcdefgh"[:rank-2]
	e := &op.Equation{Inputs: []string{batch + "ij", "jk"}, Output: batch + "ik"}
	if op.Bool(o, "transpose_a") {
		e.Inputs[0] = batch + "ji"
	}
	if op.Bool(o, "transpose_b") {
		e.Inputs[1] = "kj"
	}
	return e
}

// hot is a value that is 1 at the indices along a dimension and 0 elsewhere.
type hot struct {
	ops     []*ir.Op  // which make it of the indices, the last one first
	indices *ir.Value // nil where the program has them in another shape alone
	dim     int
}

// rows is the op that the one-hot rows come from first.
func (h *hot) rows() *ir.Op { return h.ops[len(h.ops)-1] }

// hotOf is how v is made of indices: by dm.one_hot, or by a comparison with the numbers of the classes, in any element type.
func hotOf(v *ir.Value) *hot {
	h := &hot{}
	for v.Op != nil && v.Op.Name == "dm.convert" && len(h.ops) < 4 {
		h.ops = append(h.ops, v.Op)
		v = v.Op.Operands[0]
	}
	o := v.Op
	if o == nil || o.Out(0) == nil || !op.Valid(o) {
		return nil
	}
	h.ops = append(h.ops, o)
	rank := o.Out(0).Rank()
	switch {
	case o.Name == "dm.one_hot":
		d, ok := op.Dim(o, "dim", rank)
		h.indices, h.dim = o.Operands[0], d
		if !ok {
			return nil
		}
		return h
	case o.Name == "dm.compare" && op.Str(o, "direction") == "eq":
		for i := range 2 {
			x, classes := o.Operands[i], o.Operands[1-i]
			if !counts(classes) || x.Tensor().Rank() != rank || rank == 0 || !pattern.IsOne(x.Tensor(), rank-1) {
				continue
			}
			h.dim = rank - 1
			if r := pattern.From(x, "dm.reshape"); r != nil && slices.EqualFunc(r.In(0).Shape, x.Tensor().Shape[:rank-1], dim.Dim.Equal) {
				h.indices = r.Operands[0]
			}
			return h
		}
	}
	return nil
}

// counts reports whether v is 0, 1, 2 and so on.
func counts(v *ir.Value) bool {
	if v.Op == nil || v.Tensor() == nil || v.Tensor().Rank() != 1 {
		return false
	}
	d, ok := v.Op.Attr("value").(*types.Dense)
	if !ok || v.Op.Name != op.Constant || !v.Elem().IsInt() {
		return v.Op.Name == "dm.iota"
	}
	d, err := d.Inline()
	if err != nil {
		return false
	}
	for i := range d.Len() {
		if d.Int(i) != int64(i) {
			return false
		}
	}
	return !d.Splat
}

// oneHot reports the contraction o, whose operand i is the one-hot h.
func (c *Context) oneHot(o *ir.Op, e *op.Equation, i int, h *hot) {
	hot, table := e.Inputs[i], e.Inputs[1-i]
	class := hot[h.dim : h.dim+1]
	at := strings.Index(table, class)
	if at < 0 || strings.Contains(e.Output, class) {
		c.masked(o, o.Operands[i], h.rows()) // its transpose
		return
	}
	rows := strings.Replace(hot, class, "", 1)
	var gather *ir.Op
	if x := o.Operands[1-i]; h.indices != nil && e.Output == table[:at]+rows+table[at+1:] && !strings.ContainsAny(table, rows) && x.Elem() == o.Results[0].Elem() {
		gather = &ir.Op{Name: "dm.gather", Operands: []*ir.Value{x, h.indices}, Attrs: []types.Named{{Name: "dim", Value: types.Int{V: int64(at)}}}}
		if at == 0 {
			gather.Attrs = nil
		}
	}
	f := Finding{
		Op:      o,
		Message: "this product with one-hot rows picks rows of " + spelling(o.Operands[1-i]) + ": a gather",
		Label:   units.DimBytes(o.In(i).Bytes()) + " of one-hot rows are read",
		Help:    "use dm.gather with the indices",
		Related: []diag.Related{{Span: place(h.rows()), Message: "the one-hot rows"}},
	}
	c.gather(f, gather, append([]*ir.Op{o}, h.ops...)...)
}

// gather reports f, whose remedy is a gather in the place of gone[0], a function of the other ops, as far as nothing else uses them.
func (c *Context) gather(f Finding, gather *ir.Op, gone ...*ir.Op) {
	if gather == nil {
		c.Report(f)
		return
	}
	was := gone[0].Results[0]
	gather.Results = []*ir.Value{{Name: was.Name, Type: was.Type, Op: gather}}
	edits := []diag.Edit{}
	commented := false
	for n, o := range gone {
		t := origin.Tree(o)
		if n > 0 && len(o.Results[0].Uses) > 1 {
			gone = gone[:n]
			break
		}
		if t == nil {
			commented = true
			continue
		}
		commented = commented || strings.Contains(c.Module.Src.Slice(t.Span()), "//")
		if n > 0 {
			edits = append(edits, c.remove(o)...)
			continue
		}
		edits = append(edits, c.inPlace(t, []*ir.Op{gather}, c.spell))
	}
	f.Saving = c.saving(c.entries(gone...), []*cost.Entry{cost.Replaced(c.Fn, c.Module, c.Bind, gather, nil)})
	if !f.Saving.positive() {
		return
	}
	if !commented {
		f.Help, f.Fix = "", &diag.Fix{Title: "Gather " + short(was), Edits: edits}
	}
	c.Report(f)
}

// picked reports the sum r over the classes of a product of a value with a one-hot, which picks one element of each row.
func (c *Context) picked(r *ir.Op) {
	m := pattern.From(r.Operands[0], "dm.mul")
	if m == nil || op.Str(r, "kind") != "add" || op.Bool(r, "keep_dims") || c.entry(m) == nil {
		return
	}
	for i, v := range m.Operands {
		h, x := hotOf(v), m.Operands[1-i]
		if h == nil || h.indices == nil || x.Tensor() == nil || !types.Equal(x.Type, v.Type) {
			continue
		}
		last := x.Tensor().Rank() - 1
		dims, known := op.Dims(r, "dims", last+1)
		if !known || h.dim != last || !slices.Equal(dims, []int{last}) {
			return
		}
		gather := &ir.Op{Name: "dm.gather", Operands: []*ir.Value{x, h.indices}}
		if last > 0 {
			n := types.Int{V: int64(last)}
			gather.Attrs = []types.Named{{Name: "batch_dims", Value: n}, {Name: "dim", Value: n}}
		}
		c.gather(Finding{
			Op:      r,
			Message: "this sum over a product with one-hot rows picks one element of each row: a gather",
			Label:   units.DimBytes(x.Tensor().Bytes()) + " are multiplied, nearly all by 0",
			Help:    "use dm.gather with the indices",
			Related: []diag.Related{{Span: place(h.rows()), Message: "the one-hot rows"}, {Span: place(m), Message: "multiplied here"}},
		}, gather, append([]*ir.Op{r, m}, h.ops...)...)
		return
	}
}

// masked reports the contraction o with mask, which is made of h and has one element that is not 0 in each row at most.
func (c *Context) masked(o *ir.Op, mask *ir.Value, h *ir.Op) {
	flop, ok := c.entry(o).FLOP.Int()
	if !ok || flop < sparseLeast {
		return
	}
	c.Report(Finding{
		Op:      o,
		Message: "this product with one-hot rows multiplies by zeros: a gather or a scatter by the indices does the same",
		Label:   units.FLOP(flop) + ", and " + units.DimBytes(mask.Tensor().Bytes()) + " of one-hot rows are read",
		Help:    "use dm.gather or dm.scatter with the indices",
		Related: []diag.Related{{Span: place(h), Message: "the one-hot rows"}},
	})
}

// maskOf is a one-hot that v is the product of with other values, nil where it is none.
func maskOf(v *ir.Value, depth int) *ir.Op {
	if v.Op == nil || depth > 8 {
		return nil
	}
	if h := hotOf(v); h != nil {
		return h.rows()
	}
	switch v.Op.Name {
	case "dm.mul":
		for _, w := range v.Op.Operands {
			if h := maskOf(w, depth+1); h != nil {
				return h
			}
		}
	case "dm.reshape", "dm.convert", "dm.broadcast", "dm.transpose":
		return maskOf(v.Op.Operands[0], depth+1)
	}
	return nil
}
