// Package diff describes what a new version of a program moves, computes, takes and
// holds beside an old one: by function, and by op within the functions that
// both have. Functions and ops are matched by name first, where people chose
// the name, and then by what they compute.
package diff

import (
	"strconv"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/dialect/ir"
)

// Func is a function of both versions, or of one of them.
type Func struct {
	Old, New *cost.Func // nil where that version has none
	Ops      []Op       // every op of both, in the order of the new version; removed ones after what stood before them
}

// Op is an op or kernel of both versions, or of one of them. The ops of a loop
// or branch stand after it, one deeper; those of a kernel are not compared.
type Op struct {
	Old, New *cost.Entry // nil where that version has none
	Depth    int
	// Of an op that one version has in a kernel: that kernel, and the op in it. The
	// pointer above for that version is nil, since the op costs nothing by itself there.
	Kernel, Inner *cost.Entry
}

// Programs compares two versions. The functions of the new one come first, in
// its order, then those that are gone. Time is in proportion to the two texts.
func Programs(old, new *program.Program) []Func {
	h := newHasher()
	var out []Func
	for _, p := range functions(perDevice(old.Funcs), perDevice(new.Funcs), h) {
		f := Func{Old: p.old, New: p.new}
		var a, b []*cost.Entry
		if f.Old != nil {
			a = f.Old.Entries
		}
		if f.New != nil {
			b = f.New.Entries
		}
		f.Ops = h.ops(nil, a, b, 0)
		h.intoKernels(f.Ops)
		out = append(out, f)
	}
	return out
}

// Functions is Programs without the ops.
func Functions(old, new *program.Program) []Func {
	var out []Func
	for _, p := range functions(perDevice(old.Funcs), perDevice(new.Funcs), newHasher()) {
		out = append(out, Func{Old: p.old, New: p.new})
	}
	return out
}

// Changed reports whether o costs or is something else in the new version than
// in the old one. A change of a name alone is none.
func (o Op) Changed() bool {
	if o.Old == nil || o.New == nil {
		return true
	}
	a, b := o.Old, o.New
	return a.Op.Name != b.Op.Name || a.Known != b.Known || !a.FLOP.Equal(b.FLOP) || !a.Read.Equal(b.Read) || !a.Written.Equal(b.Written)
}

type funcs = pair[*cost.Func]

// functions pairs functions of one name, the first of that name with the first,
// and then those of the rest that compute the same.
func functions(old, new []*cost.Func, h *hasher) []funcs {
	m := newMatcher(old, new)
	m.by(func(f *cost.Func) string { return f.Func.Name })
	m.by(func(f *cost.Func) string { return strconv.FormatUint(h.body(f.Func), 36) })
	var out, gone []funcs
	for p := range m.pairs() {
		if p.new == nil {
			gone = append(gone, p)
		} else {
			out = append(out, p)
		}
	}
	return append(out, gone...)
}

// ops pairs two lists of entries, and those inside the loops and branches among
// them.
func (h *hasher) ops(out []Op, old, new []*cost.Entry, depth int) []Op {
	m := newMatcher(old, new)
	// What is the same to the name, then the same name where a person chose
	// it, then what computes the same under another name or number.
	m.by(func(e *cost.Entry) string { return strconv.FormatUint(h.op(e.Op), 36) + " " + e.Results() })
	m.by(func(e *cost.Entry) string { return named(e, e.Op.Name) })
	m.by(func(e *cost.Entry) string { return strconv.FormatUint(h.op(e.Op), 36) })
	// What does the same to other values; the same op; another op in its place.
	m.by(func(e *cost.Entry) string { return h.shapeKey(e.Op) + " " + e.Results() })
	m.by(func(e *cost.Entry) string { return h.shapeKey(e.Op) })
	m.by(func(e *cost.Entry) string { return e.Op.Name })
	m.by(func(e *cost.Entry) string {
		if e.Fused {
			return "" // it is no other form of an op, which it may hold
		}
		return named(e, "")
	})
	for p := range m.pairs() {
		out = append(out, Op{Old: p.old, New: p.new, Depth: depth})
		var a, b []*cost.Entry
		if p.old != nil && !p.old.Fused {
			a = p.old.Inner
		}
		if p.new != nil && !p.new.Fused {
			b = p.new.Inner
		}
		if len(a)+len(b) > 0 {
			out = h.ops(out, a, b, depth+1)
		}
	}
	return out
}

// named is a key of the names of e's results and the op; "" where they are
// numbers, which shift when an op is added.
func named(e *cost.Entry, op string) string {
	names := e.Results()
	if names == "" || len(names) > 1 && names[1] >= '0' && names[1] <= '9' {
		return ""
	}
	return op + " " + names
}

// intoKernels finds, for ops that one version lacks, whether it has them in a
// kernel that is new there or has changed.
func (h *hasher) intoKernels(ops []Op) {
	var fromOld, fromNew fusing
	for i, o := range ops {
		if o.Changed() {
			fromOld.kernel(o.New)
			fromNew.kernel(o.Old)
		}
		switch {
		case o.New == nil && !o.Old.Fused:
			fromOld.alone(i, o.Old)
		case o.Old == nil && !o.New.Fused:
			fromNew.alone(i, o.New)
		}
	}
	for _, f := range []*fusing{&fromOld, &fromNew} {
		m := newMatcher(f.entries, f.inner)
		m.by(func(e *cost.Entry) string { return h.shapeKey(e.Op) + " " + e.Results() })
		m.by(func(e *cost.Entry) string { return named(e, e.Op.Name) })
		m.by(func(e *cost.Entry) string { return h.shapeKey(e.Op) })
		for i, j := range m.toNew {
			if j >= 0 {
				ops[f.at[i]].Kernel, ops[f.at[i]].Inner = f.kernels[j], f.inner[j]
			}
		}
	}
}

// fusing is the ops that only one version has outside kernels, and the ops in
// kernels of the other.
type fusing struct {
	at             []int // in the comparison
	entries        []*cost.Entry
	inner, kernels []*cost.Entry // an op and its kernel
}

func (f *fusing) alone(at int, e *cost.Entry) {
	f.at, f.entries = append(f.at, at), append(f.entries, e)
}

func (f *fusing) kernel(k *cost.Entry) {
	if k == nil || !k.Fused {
		return
	}
	for _, e := range k.Inner {
		f.inner, f.kernels = append(f.inner, e), append(f.kernels, k)
	}
}

func (h *hasher) shapeKey(o *ir.Op) string { return strconv.FormatUint(h.shape(o), 36) }

// perDevice are the costs of funcs as people see them.
func perDevice(funcs []*cost.Func) []*cost.Func {
	out := make([]*cost.Func, len(funcs))
	for i, f := range funcs {
		out[i] = f.PerDevice()
	}
	return out
}
