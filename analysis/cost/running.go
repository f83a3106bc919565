package cost

import (
	"dmir/analysis/machine"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Running is how a target runs a kernel, as far as its time depends on that. The pass kernels notes it at the op; the pass fuse asks
// for it before there is one.
type Running struct {
	Tile          string // of its contractions
	Launches      int64  // one after the other; 0: one
	Bandwidth     int64  // that its blocks reach for what they move, bytes/s; 0: the machine's
	Epilogue      int64  // what the epilogues of tiles add to the time of products, ns
	Read, Written int64  // bytes beside those that cross the kernel's boundary
}

// runningOf is what is noted at o, whose bytes are among those of its entry.
func runningOf(o *ir.Op) Running {
	return Running{Tile: o.Str(TileAttr), Launches: o.Int(LaunchesAttr, 1), Bandwidth: o.Int(BandwidthAttr, 0), Epilogue: o.Int(EpilogueAttr, 0)}
}

// Note notes r at o, in place of what is there. A tile that is there stays where r has none.
func (r Running) Note(o *ir.Op) {
	for _, x := range []struct {
		name   string
		n, min int64
	}{{LaunchesAttr, r.Launches, 2}, {BandwidthAttr, r.Bandwidth, 1}, {EpilogueAttr, r.Epilogue, 1}, {ScratchReadAttr, r.Read, 1}, {ScratchWrittenAttr, r.Written, 1}} {
		if o.RemoveAttr(x.name); x.n >= x.min {
			o.SetAttr(x.name, types.Int{V: x.n})
		}
	}
	if r.Tile != "" {
		o.SetAttr(TileAttr, types.Str(r.Tile))
	}
}

// Planned is a kernel that a plan may have and that no op stands for.
type Planned struct {
	Ops           []*Entry // as they are outside any kernel
	Read, Written int64    // bytes that cross its boundary
	Running       Running
	Prologue      float64 // ns for which operands that it computes delay its products, which no entry of a kernel has
}

// Ns is k's time on m, as that of the entry of a kernel of these ops; ok is false where it takes none.
func (k *Planned) Ns(m *machine.Machine) (ns float64, ok bool) {
	e := &Entry{
		Known: true, Fused: true,
		Read: dim.Const(k.Read + k.Running.Read), Written: dim.Const(k.Written + k.Running.Written),
		Within: &Within{Inner: k.Ops, Trips: nothing.Trips},
	}
	for _, i := range k.Ops {
		e.link = e.link.Add(i.link)
	}
	t, ok := e.running(m, k.Running, nil)
	if !ok {
		return 0, false
	}
	t.products += k.Prologue
	return t.ns(), true
}

// computedBy reports whether v, or what it is a view of, is computed by one of the ops.
func computedBy(ops []*Entry, v *ir.Value) bool {
	v = op.Source(v)
	for _, e := range ops {
		if v.Op == e.Op && v.Op != nil && v.Op.Name != op.Constant {
			return true
		}
	}
	return false
}

// ComputesWith is how long e, a contraction, computes on m with a tile, in ns: what it moves and what a kernel adds left out.
func (e *Entry) ComputesWith(m *machine.Machine, tile string) float64 {
	var w work
	if !w.add(m, e, tile, false) {
		return 0
	}
	return max(w.tensor, w.vector)
}
