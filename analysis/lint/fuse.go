package lint

import (
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/source"
)

// A fusion makes one kernel of two ops of a block, each a single op or a
// dm.kernel: a stands before b and b uses a result of a.
type fusion struct {
	a, b *ir.Op
	at   *ir.Op // where the kernel will stand: a or b
}

// fusible reports whether b may join a in one kernel that a kernel class can
// express, without a cycle and with every value still defined before its use.
func (c *Context) fusible(a, b *ir.Op) (fusion, bool) {
	f := fusion{a: a, b: b}
	if a == nil || a.Parent != b.Parent || a.Bad || b.Bad || !onePlace(a) || !onePlace(b) || !expressible(a, b) {
		return f, false
	}
	before := func(v *ir.Value, o *ir.Op) bool { // v is defined before o, or outside the block
		return v.Op == nil || v.Op.Parent != o.Parent || c.index(v.Op) < c.index(o)
	}
	atA := true
	for _, v := range ir.UsedValues(b) {
		atA = atA && (v.Op == a || before(v, a))
	}
	if atA {
		f.at = a
		return f, true
	}
	for _, r := range a.Results {
		for _, u := range r.Uses {
			if u.Op == b || u.Op.Inside(b) {
				continue
			}
			if c.index(enclosing(u.Op, a.Parent)) < c.index(b) {
				return f, false
			}
		}
	}
	f.at = b
	return f, true
}

// index is o's place among the ops of its block.
func (c *Context) index(o *ir.Op) int {
	if c.order == nil {
		c.order = map[*ir.Op]int{}
	}
	i, ok := c.order[o]
	if !ok {
		for j, p := range o.Parent.Ops {
			c.order[p] = j
		}
		i = c.order[o]
	}
	return i
}

// onePlace reports whether o can be taken into a kernel as it stands in the text. An op on
// sparse tensors is several, which the compiler fuses: where they are cut no text can say.
func onePlace(o *ir.Op) bool {
	def := op.Of(o)
	if op.IsSparse(o) || origin.Tree(o) == nil || def == nil || len(o.Results) == 0 || origin.Tree(o).Form != ast.Pretty {
		return false
	}
	for _, r := range origin.Tree(o).Results {
		if r.Count != 1 {
			return false
		}
	}
	if o.Name == op.Kernel {
		t := o.Body(0).Terminator()
		return t != nil && origin.Tree(t) != nil && t.Name == op.Yield
	}
	return def.Is(op.Pure) && def.Family != op.Control && def.Family != op.Sources && def.Family != op.Distribution && len(o.Regions) == 0 && o.Name != op.Grad
}

// expressible holds what kernel classes there are: a contraction takes
// element-wise work of its own shape as an epilogue; element-wise work and row
// programs (normalizations, reductions) join each other when they run over the
// same elements, and along the same rows: another direction would wait for all
// blocks of the first.
func expressible(a, b *ir.Op) bool {
	ca, cb := classOf(a), classOf(b)
	if cb == op.ClassContraction || ca == op.ClassMovement || cb == op.ClassMovement {
		return false
	}
	if ca == op.ClassContraction && cb != op.ClassElementwise {
		return false
	}
	return sameElements(a, b) && sameRows(a, b)
}

// sameRows reports whether the row programs among the parts of a and b all run
// along the same dimensions of the same shape.
func sameRows(a, b *ir.Op) bool {
	var shape []dim.Dim
	var along []int
	for _, o := range slices.Concat(parts(a), parts(b)) {
		axes, ok := op.RowDims(o)
		switch {
		case !ok:
		case along == nil:
			shape, along = o.In(0).Shape, axes
		case !slices.Equal(along, axes) || !slices.EqualFunc(shape, o.In(0).Shape, dim.Dim.Equal):
			return false
		}
	}
	return true
}

func classOf(o *ir.Op) op.Class {
	if o.Name != op.Kernel {
		if def := op.Of(o); def != nil {
			return def.Class
		}
		return op.ClassMovement // a call, an op of another dialect
	}
	class := op.ClassMovement
	rank := []op.Class{op.ClassMovement, op.ClassElementwise, op.ClassNormalization, op.ClassContraction}
	for _, i := range inside(o) {
		if d := op.Of(i); d != nil && slices.Index(rank, d.Class) > slices.Index(rank, class) {
			class = d.Class
		}
	}
	return class
}

// sameElements reports whether every value that b takes from a has the shape
// over which b runs, so that one tile of the one feeds one tile of the other.
func sameElements(a, b *ir.Op) bool {
	space := iterationShape(b)
	for _, v := range ir.UsedValues(b) {
		if v.Op != a {
			continue
		}
		t := v.Tensor()
		if t == nil || space == nil || !slices.EqualFunc(t.Shape, space, dim.Dim.Equal) {
			return false
		}
	}
	return true
}

// iterationShape is the largest shape among what o reads and writes: the
// elements its kernel runs over.
func iterationShape(o *ir.Op) []dim.Dim {
	var shape []dim.Dim
	var most dim.Dim
	for _, v := range slices.Concat(ir.UsedValues(o), o.Results) {
		t := v.Tensor()
		if t == nil {
			continue
		}
		s := &Saving{Bytes: t.Elements().Sub(most)}
		if shape == nil || s.positive() {
			shape, most = t.Shape, t.Elements()
		}
	}
	return shape
}

// enclosing is the op of block b that is o or holds it.
func enclosing(o *ir.Op, b *ir.Block) *ir.Op {
	for o.Parent != b && o.Parent != nil {
		o = o.Parent.Region.Op
	}
	return o
}

// parts are the ops that run inside the kernel made of o: o, or a kernel's
// inside without its yield.
func parts(o *ir.Op) []*ir.Op {
	if o.Name != op.Kernel {
		return []*ir.Op{o}
	}
	ops := inside(o)
	return ops[:len(ops)-1]
}

// yields pairs each result of o with the value that has it inside a kernel.
func yields(o *ir.Op) []*ir.Value {
	if o.Name != op.Kernel {
		return o.Results
	}
	return o.Body(0).Terminator().Operands
}

// results lists what the fused kernel must still give: all of b, and of a what
// others use too.
func (f fusion) results() []*ir.Value {
	var rs []*ir.Value
	for _, r := range f.a.Results {
		for _, u := range r.Uses {
			if u.Op != f.b && !u.Op.Inside(f.b) {
				rs = append(rs, r)
				break
			}
		}
	}
	for _, r := range f.b.Results {
		if len(r.Uses) > 0 {
			rs = append(rs, r)
		}
	}
	return rs
}

// entry is the cost of the fused kernel.
func (f fusion) entry(c *Context) *cost.Entry {
	return cost.Group(c.Fn, c.Module, c.Bind, []*ir.Op{f.a, f.b}, f.results())
}

// writtenKernel reports whether one of the two is a kernel already.
func (f fusion) writtenKernel() bool { return f.a.Name == op.Kernel || f.b.Name == op.Kernel }

// built reports whether the compiler makes one kernel of f.
func (f fusion) built(c *Context) bool {
	return c.program.OneKernel(c.Fn, []*ir.Op{f.a, f.b}, f.results()) == nil
}

// edits rewrite the text: the kernel stands at f.at, the other op goes.
func (f fusion) edits(c *Context) []diag.Edit {
	results := f.results()
	if len(results) == 0 {
		return nil
	}
	src := c.Module.Src
	indent := src.Indent(origin.Tree(f.at).Off)

	taken := map[string]bool{} // what the kernel reads; its own results are not seen inside it
	for _, v := range slices.Concat(ir.UsedValues(f.a), ir.UsedValues(f.b)) {
		taken[spelling(v)] = true
	}
	for _, r := range f.a.Results {
		delete(taken, spelling(r))
	}
	uses := map[string]string{} // of a's results in b
	inner := map[*ir.Value]string{}
	var body []string
	for _, o := range []*ir.Op{f.a, f.b} {
		defs := map[string]string{}
		for _, name := range definitions(treesOf(o)) {
			if to := fresh(name, taken); to != name {
				defs[name] = to
			}
		}
		text := bodyText(c, o, o == f.at, uses, defs, indent+"  ")
		body = append(body, text)
		for i, v := range yields(o) {
			name := spelling(v)
			if to, ok := defs[name]; ok {
				name = to
			} else if to, ok := uses[name]; ok && o == f.b { // a kernel may yield what it was given
				name = to
			}
			if o == f.a {
				uses[spelling(o.Results[i])] = name
			}
			inner[o.Results[i]] = name
		}
	}

	names, types, yielded := make([]string, len(results)), make([]string, len(results)), make([]string, len(results))
	for i, r := range results {
		names[i], types[i], yielded[i] = spelling(r), c.typeText(r), inner[r]
	}
	arrow := strings.Join(types, ", ")
	if len(types) != 1 {
		arrow = "(" + arrow + ")"
	}
	kernel := fmt.Sprintf("%s = dm.kernel -> %s {\n%s\n%s  dm.yield %s : %s\n%s}",
		strings.Join(names, ", "), arrow, strings.Join(body, "\n"), indent, strings.Join(yielded, ", "), strings.Join(types, ", "), indent)
	kernel = strings.ReplaceAll(format.Ops(kernel, 1, indent), "\n", source.LineEnd(src.Text()))

	gone := f.a
	if f.at == f.a {
		gone = f.b
	}
	at := origin.Tree(f.at).Span()
	if f.at.Name != op.Kernel {
		at = source.WithComments(src.Text(), at)
	}
	return append(c.take(source.WithComments(src.Text(), origin.Tree(gone).Span()), nil), diag.Edit{Span: at, Text: kernel})
}

func treesOf(o *ir.Op) []*ast.Op {
	var ts []*ast.Op
	for _, p := range parts(o) {
		ts = append(ts, origin.Tree(p))
	}
	return ts
}

// bodyText is the text of o's parts with all comments of o, values respelled,
// indented by indent. Those above and behind a kernel that stays are left out:
// they remain where they are.
func bodyText(c *Context, o *ir.Op, stays bool, uses, defs map[string]string, indent string) string {
	src, t := c.Module.Src, origin.Tree(o)
	var edits []diag.Edit
	for _, t := range treesOf(o) {
		edits = append(edits, renames(t, uses, defs)...)
	}
	whole := source.WithComments(src.Text(), t.Span())
	start, end := whole.Start, whole.End
	var before, after []string
	if o.Name == op.Kernel {
		if stays {
			whole = t.Span()
		}
		start = t.Off + int(t.Regions[0].Open) + 1
		end = origin.Tree(o.Body(0).Terminator()).Off
		before = commentsIn(src, source.Span{Start: whole.Start, End: start})
		after = commentsIn(src, source.Span{Start: end, End: whole.End})
	}
	was := src.Indent(t.Off)
	if ps := parts(o); len(ps) > 0 {
		was = src.Indent(origin.Tree(ps[0]).Off)
	}
	text := strings.TrimRight(splice(src.Text()[start:end], start, edits), " \t\r\n")
	text = strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(text, " \t\r"), "\n"), " \t\r\n")
	lines := before
	if text != "" {
		lines = append(lines, reindent(text, was, indent))
	}
	return indent + strings.Join(append(lines, after...), "\n"+indent)
}
