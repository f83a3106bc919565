package assemble

import (
	"slices"

	"dmir/compile/kernel"
	"dmir/compile/schedule"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
)

// overwritten maps the values that the memory plan has placed over an operand
// of their kernel to that operand: the two are one buffer.
func (b *builder) overwritten() map[*ir.Value]*ir.Value {
	out := map[*ir.Value]*ir.Value{}
	for _, st := range b.schedule.Steps {
		for i, in := range st.Over {
			if in != nil {
				out[st.Op.Results[i]] = in
			}
		}
	}
	return out
}

// shareBuffer makes the buffer of in that of p, which overwrites it.
func (b *builder) shareBuffer(p schedule.Buffer, in *ir.Value) {
	n := b.buffer[in]
	b.buffer[p.Value] = n
	for _, v := range p.Views {
		b.buffer[v] = n
	}
	if !slices.Contains(b.own, n) { // of the enclosing level, or an argument's: always live
		return
	}
	buf := &b.out.Buffers[n]
	buf.Last = max(buf.Last, p.Last)
	if buf.Kind == artifact.Temp && p.Kind == artifact.Output { // callers see the result
		named := bufferOf(p)
		buf.Kind, buf.Name, buf.Shape, buf.Order = named.Kind, named.Name, named.Shape, named.Order
	}
}

// inPlaceResults maps the results of a step's kernel that are written in place
// to the overwritten input, after proving that each of its elements is read
// only by the thread that writes it.
func inPlaceResults(st schedule.Step, f *kernel.Form, results []*ir.Value) (map[*ir.Value]*ir.Value, error) {
	var out map[*ir.Value]*ir.Value
	for k, v := range f.Outputs {
		in := st.Over[slices.Index(st.Op.Results, results[k])]
		if f.Over[v] && in == nil {
			return nil, failure(st.Op, "%s is an update in place, but the plan gives it separate memory: run the pass plan again", results[k].Name)
		}
		if in == nil {
			continue
		}
		if !readsOwnElements(f, k, in) {
			return nil, failure(st.Op, "%s is planned in the memory of %s, but its kernel does not read each element in the thread that overwrites it", results[k].Name, in.Name)
		}
		if out == nil {
			out = map[*ir.Value]*ir.Value{}
		}
		out[v] = in
	}
	return out, nil
}

// readsOwnElements reports whether each thread of f reads only those elements
// of the value that it writes in result k. Threads visit the elements of all
// results in the same order, and compute all before they write any. In a contraction
// this is the epilogue, and the operands of the product are other values.
func readsOwnElements(f *kernel.Form, k int, in *ir.Value) bool {
	if !slices.ContainsFunc(f.Inputs, func(v *ir.Value) bool { return op.Source(v) == in }) {
		return true
	}
	switch f.Class {
	case kernel.ClassPointwise, kernel.ClassLoop:
	case kernel.ClassContraction:
		if f.Reduces() || multiplies(f, in) {
			return false
		}
	default:
		return false
	}
	parts := f.Storing(f.Outputs[k])
	if len(parts) != 1 {
		return false
	}
	own := parts[0]
	ok, reads := true, false
	read := func(x *kernel.Expr) {
		if x.Op == kernel.Load && x.Buf == in {
			reads = true
			ok = ok && x.At.Equal(own.At)
		}
	}
	data := func(a *kernel.Atom) {
		if a.Kind == kernel.Datum {
			kernel.Walk(a.E, read)
		}
	}
	for _, o := range f.Outs {
		reads = false
		kernel.Walk(o.X, read)
		o.At.Atoms(data)
		for _, c := range o.If {
			c.X.Atoms(data)
		}
		// Of an update only expressions that read the value are concerned.
		if reads || !f.Over[f.Outputs[k]] {
			ok = ok && slices.Equal(o.Loops, own.Loops) && o.Elements() == own.Elements()
		}
	}
	return ok
}

// multiplies reports whether an operand of f's product is computed from in.
func multiplies(f *kernel.Form, in *ir.Value) bool {
	found := false
	for _, o := range f.Mains {
		for i := range o.Operands {
			x, _, err := f.Operand(o, i)
			if err != nil {
				return true
			}
			kernel.Walk(x, func(x *kernel.Expr) { found = found || x.Op == kernel.Load && x.Buf == in })
		}
	}
	return found
}

// overlap is the reason of a kernel with two operands in the same memory.
const overlap = "views or parts of one value overlap"

// dataDependence is the reason why the bytes that f moves depend on its data,
// so that the cost model is an upper bound; "" where they do not.
func dataDependence(f *kernel.Form, launches int) string {
	copied, apart := 0, true
	inPlace := map[*ir.Op]bool{}
	for v := range f.Over {
		for _, o := range op.UpdatesIn(f.Ops, v) {
			inPlace[o] = true
		}
	}
	packed := slices.ContainsFunc(slices.Concat(f.Inputs, f.Outputs), func(v *ir.Value) bool { return v.Elem().Packed() })
	for _, o := range f.Ops {
		if d := op.Of(o); packed && d != nil && (d.Move != nil || d.Class == op.ClassMovement) {
			return "a byte of which a part has one half moves whole"
		}
		switch {
		case op.Updates(o) && op.Of(o).Move == nil: // at indices that are data
			return "updates of a place that is updated again, or that lies outside, move less"
		case op.Updates(o) && !inPlace[o]:
			copied++
			from := op.Source(o.Operands[0])
			for _, p := range f.Ops {
				if p == from.Op || p != o && slices.ContainsFunc(p.Operands, func(v *ir.Value) bool { return op.Source(v) == from }) {
					apart = false
				}
			}
		}
	}
	if copied > 1 || !apart {
		return "what updates replace is not read"
	}
	if f.Segmented() {
		return "positions determine which elements are read"
	}
	if f.Drops() {
		return "what no result depends on is not read"
	}
	if f.Overlaps(launches > 1) {
		return overlap
	}
	if f.Gathers() {
		return "elements that several indices name are read once"
	}
	return ""
}
