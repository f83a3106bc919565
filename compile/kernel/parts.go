package kernel

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Drops reports whether f reads operands of its ops in part or not at all since
// no result depends on the rest: a slice, a window or a gather takes a part of
// a value computed in f, or an op, such as the mask of a dropout, needs no
// operand.
func (f *Form) Drops() bool {
	inside := map[*ir.Op]bool{}
	for _, o := range f.Ops {
		inside[o] = true
	}
	taken := map[*ir.Value]dim.Dim{} // bytes that slices take
	for _, o := range f.Ops {
		for _, v := range o.Operands {
			from := op.Source(v)
			number := from.Op != nil && from.Op.Name == op.Constant && !op.IsData(from.Op)
			if !inside[v.Op] && !number && !slices.Contains(f.Inputs, v) {
				return true
			}
		}
	}
	unknown := false // whether other ops than slices take a part
	f.parts(func(o *ir.Op, from *ir.Value, read dim.Dim) {
		if inside[from.Op] {
			_, slice := op.Taken(o)
			unknown = unknown || !slice
			taken[from] = taken[from].Add(read)
		}
	})
	if unknown {
		return true
	}
	for v, n := range taken {
		if !n.Equal(v.Tensor().Bytes()) {
			return true
		}
	}
	return false
}

// Gathers reports whether the addresses that f reads depend on data, so that
// the number of distinct elements is known only at run time.
func (f *Form) Gathers() bool {
	found := false
	look := func(x *Expr) {
		if x.Op == Load {
			x.At.Atoms(func(a *Atom) { found = found || a.Kind == Datum })
		}
	}
	f.each(look)
	return found
}

// each visits the expressions that f evaluates.
func (f *Form) each(visit func(x *Expr)) {
	for _, o := range f.Outs {
		if o.X != nil { // else a library kernel
			Walk(o.X, visit)
		}
	}
	if f.Class == ClassContraction {
		for _, o := range f.Mains {
			for i := range o.Operands {
				if x, _, err := f.Operand(o, i); err == nil {
					Walk(x, visit)
				}
			}
		}
	}
}

// Overlaps reports whether f reads the same memory as several values: views of
// one value, or parts of one value by several ops. Slices, whose union is
// known, count only where launches are split, since each may read a part.
func (f *Form) Overlaps(split bool) bool {
	seen := map[*ir.Value]bool{}
	for _, v := range f.Inputs {
		from := op.Source(v)
		if seen[from] {
			return true
		}
		seen[from] = true
	}
	parts, sliced := map[*ir.Value]int{}, map[*ir.Value]int{}
	f.parts(func(o *ir.Op, from *ir.Value, _ dim.Dim) {
		parts[from]++
		if _, ok := op.Taken(o); ok {
			sliced[from]++
		}
	})
	for v, n := range parts {
		if n > 1 && (split || sliced[v] < n) {
			return true
		}
	}
	return false
}

// parts visits the operands of which f's ops read a part, with the value they
// are views of and the bytes read.
func (f *Form) parts(visit func(o *ir.Op, from *ir.Value, read dim.Dim)) {
	for _, o := range f.Ops {
		if op.Of(o).Traffic == nil || !op.Valid(o) || op.IsView(o) {
			continue
		}
		read, _ := op.TrafficOf(o, true)
		for i, v := range o.Operands {
			from := op.Source(v)
			if t := from.Tensor(); t != nil && !read[i].Equal(t.Bytes()) {
				visit(o, from, read[i])
			}
		}
	}
}
