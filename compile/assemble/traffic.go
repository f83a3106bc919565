package assemble

import (
	"slices"

	"dmir/analysis/cost"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
)

// Moved is the traffic of a launch in bytes.
type Moved struct {
	Read, Written int64
	instead       int64 // of Read, what another launch does not read then
}

// LaunchBytes is the traffic of each launch of p, the plan of f, where the launches share
// memory: partial results, and the operands and results of the launch. reads is what the kernel reads of a value. It is
// nil where they share none; then the step moves the bytes that cross its
// boundary, once.
func LaunchBytes(f *kernel.Form, p Plan, ls []*Launch, reads func(*ir.Value) int64) []Moved {
	if len(p.Temps()) == 0 {
		return nil
	}
	out := make([]Moved, len(ls))
	for i, l := range ls {
		for _, q := range l.Params {
			if q.Idle {
				continue
			}
			read, written := reads(q.Value), int64(0)
			if q.Temp != nil {
				read = q.Temp.Bytes()
			}
			if q.Most > 0 {
				read = min(read, q.Most)
			}
			if q.Temp != nil {
				written = read
			} else if slices.Contains(f.Outputs, q.Value) {
				written = bytesStored(f, l, q.Value)
			} else if q.Over != nil {
				written = bytesStored(f, l, q.Over)
			}
			stores := q.Mode == artifact.Out || q.Mode == artifact.Map && slices.Contains(f.Outputs, q.Value)
			if !stores && !q.Fresh {
				out[i].Read += read
				if q.Instead {
					out[i].instead += read
				}
			}
			if q.Mode != artifact.In {
				out[i].Written += written
			}
		}
	}
	return out
}

// bytesStored is the number of bytes of v, a result of f, that l stores: all, or the
// parts that it updates.
func bytesStored(f *kernel.Form, l *Launch, v *ir.Value) (bytes int64) {
	if l.Stores == nil {
		return f.Elements(v) * v.Elem().Bytes()
	}
	for i, r := range f.Main.Results {
		w := f.Views[len(f.Main.Operands)+i]
		if slices.Contains(l.Stores, r) && (r == v || w != nil && w.Buf == v) {
			n, _ := r.Tensor().Bytes().Int()
			bytes += n
		}
	}
	return bytes
}

// bytesRead is the number of bytes that a kernel of step o reads of v, if it
// reads v; 0 of no value.
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

// beside sets the bytes that launches move beyond those that the kernel reads and writes.
func beside(how *cost.Running, launches []Moved, read, written int64) {
	var all Moved
	for _, m := range launches {
		all.Read, all.Written = all.Read+m.Read-m.instead, all.Written+m.Written
	}
	how.Read, how.Written = max(0, all.Read-read), max(0, all.Written-written)
}
