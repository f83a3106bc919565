package lint

import (
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM304", Name: "promoted", Severity: diag.Warning, Fix: Unsafe,
	Summary: "an op of a traced program is computed in a wider type because one operand has it",
	Python: "give the wider operand the type of the other one: x.dtype.type(c) or jnp.asarray(c, x.dtype) for a NumPy scalar or array, which has a type of " +
		"its own where a Python number has none (torch.as_tensor(a, dtype=x.dtype), or a buffer that is registered in the model's type); .astype(x.dtype) (torch: .to(x.dtype)) after a norm or a softmax that is computed in float32; dtype=jnp.bfloat16 for layers of Flax",
	Doc: `## What it does
Finds, in a program that was traced, a conversion to a wider float type that no one wrote: the framework made it at the place of an op
in the source, because the op's other operand has that type. Reported are contractions, and element-wise ops whose other operand is a
constant, such as a NumPy array, a scalar argument or, in PyTorch, a parameter or buffer. JAX's locations tell by their columns which conversions
were written, PyTorch's by their names.

## Why it matters
The result has the wider type as well, and so has all that is computed from it: twice the bytes, and contractions without the
rate of tensor cores for half precision. float64 runs at a small part of the rate of float32 on most machines.

## Example
` + "```mlir" + `
%xw = dm.convert %x : (tensor<4x1024x64xbf16>) -> tensor<4x1024x64xf32>
%y = dm.mul %xw, %cos : (tensor<4x1024x64xf32>, tensor<1024x64xf32>) -> tensor<4x1024x64xf32>
` + "```" + `

## Fix
Of a contraction, unsafe: it is computed in the narrower type, with sums in f32, and its result is converted. Of element-wise ops
none: what follows has to change, too.
`,
	Check: func(c *Context) {
		reported := map[*ir.Value]bool{} // that are wide because of a constant that is reported
		c.ops(func(o *ir.Op) {
			d := op.Of(o)
			if o.Loc == nil || d == nil || len(o.Operands) != 2 || len(o.Results) != 1 || c.entry(o) == nil || o.Out(0) == nil {
				return
			}
			for i := range 2 {
				n := promotion(o, i)
				if n == nil {
					continue
				}
				if d.Class == op.ClassContraction {
					if !reported[o.Operands[1-i]] {
						c.promotedProduct(o, i, n)
					}
				} else if pattern.Elementwise(o) {
					c.promotedNumber(o, i, n, reported)
				}
				return
			}
		})
	},
})

// promotion is the conversion to a wider float type that operand i of o comes from, if the framework made it for o: it stands at o's
// place in the source, and not at one of its own within the line.
func promotion(o *ir.Op, i int) *ir.Op {
	v := o.Operands[i]
	for range 4 { // the framework brings operands into one shape after that
		if v.Op == nil || v.Op.Name != "dm.broadcast" && v.Op.Name != "dm.reshape" && v.Op.Name != "dm.transpose" {
			break
		}
		v = v.Op.Operands[0]
	}
	n := pattern.From(v, "dm.convert")
	if n == nil || n.In(0) == nil || !n.In(0).Elem.IsFloat() || pattern.Significant(n.In(0).Elem) >= pattern.Significant(n.Out(0).Elem) {
		return nil
	}
	at, known := tracedFrom(o)
	from, also := tracedFrom(n)
	if !known || !also || at != from || at.EndCol == 0 && !implicit(n) || o.Out(0).Elem != n.Out(0).Elem {
		return nil
	}
	if other := o.Operands[1-i]; promoted(other, at) {
		return nil // both are: someone asked for the type
	}
	return n
}

// implicit reports whether PyTorch made the conversion n: it names those that a program asks for otherwise. Its locations have no columns.
func implicit(n *ir.Op) bool {
	parts := loc.Parts(n.Loc)
	return len(parts) > 0 && loc.TraceOf(parts[0].Loc).Inside("prims.convert_element_type")
}

// promoted reports whether v is converted at a place.
func promoted(v *ir.Value, at loc.Frame) bool {
	n := pattern.From(v, "dm.convert")
	if n == nil {
		return false
	}
	from, known := tracedFrom(n)
	return known && from == at
}

// tracedFrom is the innermost place in the source that o was traced from.
func tracedFrom(o *ir.Op) (loc.Frame, bool) {
	parts := loc.Parts(o.Loc)
	if len(parts) == 0 {
		return loc.Frame{}, false
	}
	frames := loc.TraceOf(parts[0].Loc).Frames
	if len(frames) == 0 {
		return loc.Frame{}, false
	}
	return frames[0], true
}

// promotedProduct reports the contraction o, whose operand i the conversion n makes wider.
func (c *Context) promotedProduct(o *ir.Op, i int, n *ir.Op) {
	narrow, wide := n.In(0).Elem, o.Out(0).Elem
	other := o.Operands[1-i]
	f := Finding{
		Op:      o,
		Message: fmt.Sprintf("this product is computed in %s, because %s is %s; %s is %s", wide, spelling(other), wide, spelling(n.Operands[0]), narrow),
		Label:   units.DimFLOP(c.entry(o).FLOP) + " in " + wide.String(),
		Help:    fmt.Sprintf("convert %s to %s", spelling(other), narrow),
		Related: []diag.Related{{Span: place(n), Message: "made wider here"}},
	}
	t := origin.Tree(o)
	if o.Operands[i] != n.Results[0] || t == nil || other.Tensor() == nil || other == o.Operands[i] || strings.Contains(c.Module.Src.Slice(t.Span()), "//") {
		c.Report(f)
		return
	}
	taken := c.names()
	name := spelling(o.Results[0])
	in := detached("dm.convert", derived(name, "in", taken), with(other, narrow), nil, other)
	operands := []*ir.Value{n.Operands[0], in.Results[0]}
	if i == 1 {
		slices.Reverse(operands)
	}
	product := detached(o.Name, derived(name, narrow.String(), taken), with(o.Results[0], narrow), o.Attrs, operands...)
	back := detached("dm.convert", name, o.Results[0].Type, nil, product.Results[0])
	gone := []*ir.Op{o}
	edits := []diag.Edit{}
	if len(n.Results[0].Uses) == 1 && origin.Tree(n) != nil && len(commentsIn(c.Module.Src, origin.Tree(n).Span())) == 0 {
		gone = append(gone, n)
		edits = c.remove(n)
	}
	added := []*ir.Op{in, product, back}
	var entries []*cost.Entry
	for _, x := range added {
		entries = append(entries, cost.Replaced(c.Fn, c.Module, c.Bind, x, nil))
	}
	f.Saving = c.saving(c.entries(gone...), entries)
	if f.Saving.timed && f.Saving.Ns > 0 {
		f.Help, f.Fix = "", &diag.Fix{Title: "Compute " + short(o.Results[0]) + " in " + narrow.String(), Edits: append(edits, c.inPlace(t, added, c.spell))}
	} else {
		f.Saving = nil
	}
	c.Report(f)
}

// detached is an op that is in no block.
func detached(name, result string, t types.Type, attrs []types.Named, operands ...*ir.Value) *ir.Op {
	o := &ir.Op{Name: name, Operands: operands, Attrs: attrs}
	o.Results = []*ir.Value{{Name: result, Type: t, Op: o}}
	return o
}

// with is the type of v with another element type.
func with(v *ir.Value, e types.Elem) *types.Tensor {
	t := *v.Tensor()
	t.Elem = e
	return &t
}

// promotedNumber reports the element-wise op o, whose operand i the conversion n makes wider, if the other operand is a constant or a
// scalar argument. What is wide because of it is added to reported.
func (c *Context) promotedNumber(o *ir.Op, i int, n *ir.Op, reported map[*ir.Value]bool) {
	root := rootOf(o.Operands[1-i])
	what := "the constant " + spelling(root)
	switch {
	case root.Op != nil && root.Op.Name == op.Constant:
	case root.Op == nil && root.Tensor() != nil && (root.Tensor().Rank() == 0 || implicit(n)): // of any shape it may be updated, by an optimizer in JAX
		what = "the argument " + spelling(root)
	default:
		return
	}
	narrow, wide := n.In(0).Elem, o.Out(0).Elem
	if at, _ := tracedFrom(o); returns(o.Results[0], narrow, at) {
		return
	}
	ops, bytes := widened(o.Results[0], narrow, reported)
	c.Report(Finding{
		Op:      o,
		Message: fmt.Sprintf("%s is %s, and is computed in %s from here on, because %s is", spelling(n.Operands[0]), narrow, wide, what),
		Label:   fmt.Sprintf("%s in %s, with up to %s more than in %s", diag.Count(ops, "op"), wide, units.DimBytes(bytes), narrow),
		Help:    fmt.Sprintf("convert %s to %s before", spelling(root), narrow),
		Related: []diag.Related{{Span: place(n), Message: "made wider here"}},
	})
}

// returns reports whether what is computed from v is converted back at the place at: a function of the framework, such as a mean, computes in
// a wider type inside.
func returns(v *ir.Value, narrow types.Elem, at loc.Frame) bool {
	for range 8 {
		if len(v.Uses) == 0 {
			return false
		}
		next := v.Uses[0].Op
		for _, u := range v.Uses {
			if from, known := tracedFrom(u.Op); !known || from != at || len(u.Op.Results) != 1 {
				return false
			}
			if u.Op.Name == "dm.convert" {
				next = u.Op
			}
		}
		if next.Name == "dm.convert" && next.Out(0) != nil && pattern.Significant(next.Out(0).Elem) <= pattern.Significant(narrow) {
			return true
		}
		v = next.Results[0]
	}
	return false
}

// rootOf is the value that v is in another shape, type or part.
func rootOf(v *ir.Value) *ir.Value {
	for range 16 {
		if v.Op == nil {
			return v
		}
		switch v.Op.Name {
		case "dm.broadcast", "dm.reshape", "dm.slice", "dm.convert", "dm.transpose":
			v = v.Op.Operands[0]
		default:
			return v
		}
	}
	return v
}

// widened is how many ops compute in v's element type because v has it, up to conversions to another one, and how many bytes their
// values have more, each written once and read at each use, than in the type narrow. The values are added to all.
func widened(v *ir.Value, narrow types.Elem, all map[*ir.Value]bool) (ops int, bytes dim.Dim) {
	seen := map[*ir.Value]bool{v: true}
	for queue := []*ir.Value{v}; len(queue) > 0; queue = queue[1:] {
		w := queue[0]
		ops++
		all[w] = true
		more := w.Tensor().Bytes().Sub(narrow.Size(w.Tensor().Elements()))
		bytes = bytes.Add(more.Scale(int64(1 + len(w.Uses))))
		for _, u := range w.Uses {
			if d := op.Of(u.Op); d == nil || u.Op.Name == "dm.convert" || len(u.Op.Regions) > 0 {
				continue
			}
			for _, r := range u.Op.Results {
				if r.Tensor() != nil && r.Elem() == v.Elem() && !seen[r] {
					seen[r] = true
					queue = append(queue, r)
				}
			}
		}
	}
	return ops, bytes
}
