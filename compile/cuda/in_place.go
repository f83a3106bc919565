package cuda

import (
	"slices"

	"dmir/compile/kernel"
	"dmir/compile/schedule"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
)

// overwritten gives the values that the plan has written over another, which
// the kernel reads, that value: the two are one buffer.
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

// take makes the buffer of in that of p too, which is written over it.
func (b *builder) take(p schedule.Buffer, in *ir.Value) {
	n := b.buffer[in]
	b.buffer[p.Value] = n
	for _, v := range p.Views {
		b.buffer[v] = n
	}
	if !slices.Contains(b.own, n) { // of what is around, or an argument's: there throughout
		return
	}
	buf := &b.out.Buffers[n]
	buf.Last = max(buf.Last, p.Last)
	if buf.Kind == artifact.Temp && p.Kind == artifact.Output { // what callers see is the result
		named := bufferOf(p)
		buf.Kind, buf.Name, buf.Shape, buf.Order = named.Kind, named.Name, named.Shape, named.Order
	}
}

// overOf gives the results of a step's kernel that are written over an input
// that input, once it is proven that each of its elements is read by no thread
// but the one that writes it.
func overOf(st schedule.Step, f *kernel.Form, results []*ir.Value) (map[*ir.Value]*ir.Value, error) {
	var out map[*ir.Value]*ir.Value
	for k, v := range f.Outputs {
		in := st.Over[slices.Index(st.Op.Results, results[k])]
		if f.Over[v] && in == nil {
			return nil, failure(st.Op, "%s is an update in place, but the plan gives it separate memory: run the pass plan again", results[k].Name)
		}
		if in == nil {
			continue
		}
		if !ownElement(f, k, in) {
			return nil, failure(st.Op, "%s is planned in the memory of %s, but its kernel does not read each element in the thread that overwrites it", results[k].Name, in.Name)
		}
		if out == nil {
			out = map[*ir.Value]*ir.Value{}
		}
		out[v] = in
	}
	return out, nil
}

// ownElement reports whether a thread of f reads of the value in no element but
// those at the places at which it writes result k. Threads take the elements of
// all results in the same order, and compute all before they write any.
func ownElement(f *kernel.Form, k int, in *ir.Value) bool {
	if f.Over[f.Outputs[k]] && !slices.Contains(f.Inputs, in) {
		return true
	}
	if f.Class != kernel.ClassPointwise && f.Class != kernel.ClassLoop {
		return false
	}
	own := f.Outs[k]
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
		// Of an update only what reads the value need be computed with it.
		if reads || !f.Over[f.Outputs[k]] {
			ok = ok && o.Loops[0] == own.Loops[0] && elements(o) == elements(own)
		}
	}
	return ok
}

// overlap is the term of a kernel that reads the same memory as two operands.
const overlap = "views or parts of one value overlap"

// dataDependence is why what f moves depends on its data, and is at most what the cost
// model says; "" where it does not.
func dataDependence(f *kernel.Form, launches int) string {
	copied, apart := 0, true
	for _, o := range f.Ops {
		switch {
		case o.Name == "dm.scatter":
			return "updates of a place that is updated again, or that lies outside, move less"
		case o.Name == "dm.dynamic_update_slice" && !f.Over[o.Results[0]]:
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
