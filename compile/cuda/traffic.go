package cuda

import (
	"slices"

	"dmir/analysis/cost"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// moved is the traffic of a launch in bytes.
type moved struct{ read, written int64 }

// launchBytes is the traffic of each launch of step o where the launches share
// memory: partial results, and the operands and results of the launch. It is
// nil where they share none; then the step moves the bytes that cross its
// boundary, once.
func launchBytes(o *ir.Op, p *Plan, ls []*launch, flow *cost.Flow) []moved {
	if len(p.temps()) == 0 {
		return nil
	}
	reads := bytesRead(o, flow)
	out := make([]moved, len(ls))
	for i, l := range ls {
		for _, q := range l.params {
			if q.idle {
				continue
			}
			read, written := reads(q.value), int64(0)
			if q.temp != nil {
				read = q.temp.bytes()
				written = read
			} else if slices.Contains(p.Form.Outputs, q.value) {
				written = bytesStored(p.Form, l, q.value)
			} else if q.over != nil {
				written = bytesStored(p.Form, l, q.over)
			}
			if q.mode != artifact.Out {
				out[i].read += read
			}
			if q.mode != artifact.In {
				out[i].written += written
			}
		}
	}
	return out
}

// bytesStored is the number of bytes of v, a result of f, that l stores: all, or the
// parts that it updates.
func bytesStored(f *kernel.Form, l *launch, v *ir.Value) (bytes int64) {
	if l.stores == nil {
		return f.Elements(v) * v.Elem().Bytes()
	}
	for i, r := range f.Main.Results {
		w := f.Views[len(f.Main.Operands)+i]
		if slices.Contains(l.stores, r) && (r == v || w != nil && w.Buf == v) {
			n, _ := r.Tensor().Bytes().Int()
			bytes += n
		}
	}
	return bytes
}

// bytesRead is the number of bytes that a kernel of step o reads of v, if it
// reads v.
func bytesRead(o *ir.Op, flow *cost.Flow) func(v *ir.Value) int64 {
	return func(v *ir.Value) int64 {
		if v == nil {
			return 0
		}
		n := flow.Size(v)
		if o.Name == op.Kernel {
			if uses := usesIn(o, v.Uses); len(uses) > 0 {
				n = flow.Captured(v, uses)
			}
		} else if i := slices.Index(o.Operands, v); i >= 0 {
			n = flow.Reads(o)[i]
		}
		bytes, _ := n.Int()
		return bytes
	}
}

func usesIn(o *ir.Op, uses []ir.Use) []ir.Use {
	var in []ir.Use
	for _, u := range uses {
		if u.Op.Inside(o) {
			in = append(in, u)
		}
	}
	return in
}

// setScratchBytes records the bytes that the launches of step o move beyond
// those of its cost e.
func setScratchBytes(o *ir.Op, e *cost.Entry, launches []moved) {
	var all moved
	for _, m := range launches {
		all.read, all.written = all.read+m.read, all.written+m.written
	}
	for _, x := range []struct {
		name  string
		moved int64
		known func() (int64, bool)
	}{{cost.ScratchReadAttr, all.read, e.Read.Int}, {cost.ScratchWrittenAttr, all.written, e.Written.Int}} {
		if n, ok := x.known(); ok && x.moved > n {
			o.SetAttr(x.name, types.Int{V: x.moved - n})
		}
	}
}
