package microbatch

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// writer writes a divided step out in time.
type writer struct {
	*batch
	f      *ir.Func // of the text
	n      int
	groups int64 // of rows that a micro-batch takes its own from; see rows

	ops    []*ir.Op           // of the divided function, without its return
	varies map[*ir.Value]bool // from micro-batch to micro-batch
	micro  map[*ir.Op]bool    // ops that are computed for each micro-batch
	sums   map[*ir.Op]bool    // reductions over micro-batches
	direct map[*ir.Op]bool    // sums that are computed of the whole batch instead
	last   int                // the number of the last phase
	phase  map[*ir.Op]int     // of ops of micro-batches and sums: in which they run; of others: behind which

	b     *op.Builder
	once  map[*ir.Value]*ir.Value
	each  []map[*ir.Value]*ir.Value
	parts map[part]*ir.Value
	wide  map[part]*ir.Value
	acc   map[*ir.Op]*ir.Value
	// rowsOf are the results that rows of all micro-batches were put together to.
	rowsOf map[*ir.Value]*ir.Value
	apart  bool // a position in the batch was needed, or a number of rows that the groups do not divide
	uneven bool // the last micro-batch has fewer rows than the others, and is padded
}

func newWriter(f *ir.Func, b *batch, n int) *writer {
	w := &writer{
		batch: b, f: f, n: n, groups: 1, ops: b.Func.Body.Ops[:len(b.Func.Body.Ops)-1],
		varies: map[*ir.Value]bool{}, micro: map[*ir.Op]bool{}, sums: map[*ir.Op]bool{}, direct: map[*ir.Op]bool{},
	}
	for i, a := range b.Func.Args {
		_, w.varies[a] = b.divide[b.whole.Args[i]]
	}
	for _, o := range w.ops {
		if o.Name == op.AllReduce {
			w.sums[o] = true
			continue
		}
		_, own := b.Own[o]
		micro := own || o.Name == op.PartitionID
		for _, v := range ir.UsedValues(o) {
			micro = micro || w.varies[v]
		}
		if !micro {
			continue
		}
		w.micro[o] = true
		for _, r := range o.Results {
			w.varies[r] = true
		}
	}
	w.plan()
	return w
}

// plan gives each op its phase. In a phase each micro-batch runs its ops, one micro-batch after the other; sums
// of a phase are complete behind it. There are as few phases as can be, and each op runs in the last one that it
// can, so that what a forward pass keeps for a backward pass in a later phase is kept for one micro-batch only.
func (w *writer) plan() {
	first := map[*ir.Value]int{} // the phase in which a value can be read
	w.last = 1
	for _, o := range w.ops {
		at := 1
		for _, v := range ir.UsedValues(o) {
			at = max(at, first[v])
		}
		if w.micro[o] {
			w.last = max(w.last, at)
		}
		switch {
		case w.direct[o]:
			at = 1
		case w.sums[o]:
			at++
		}
		for _, r := range o.Results {
			first[r] = at
		}
	}
	w.phase = map[*ir.Op]int{}
	for i := len(w.ops) - 1; i >= 0; i-- {
		o := w.ops[i]
		at := w.last
		for _, r := range o.Results {
			for _, u := range r.Uses {
				user := w.user(u.Op)
				then, ok := w.phase[user]
				switch {
				case !ok, w.direct[user]: // the return; what is computed otherwise
				case w.varies[r]:
					at = min(at, then)
				case w.micro[user] || w.sums[user]:
					at = min(at, then-1)
				default:
					at = min(at, then)
				}
			}
		}
		w.phase[o] = at
	}
	// What is computed once is computed as soon as it can be: behind the phases whose sums it needs.
	behind := map[*ir.Value]int{}
	for _, o := range w.ops {
		if w.micro[o] {
			continue
		}
		at := 0
		if w.sums[o] {
			if !w.direct[o] {
				at = w.phase[o]
			}
		} else {
			for _, v := range ir.UsedValues(o) {
				at = max(at, behind[v])
			}
			w.phase[o] = at
		}
		for _, r := range o.Results {
			behind[r] = at
		}
	}
}

// user is the op of the function's body that o is or stands in.
func (w *writer) user(o *ir.Op) *ir.Op { return w.Func.Body.Ancestor(o) }

// shortcut finds the sums that are needed in a later phase and take no contraction, as the number of rows that a
// mean counts: they are computed of the whole batch, before the first micro-batch.
func (w *writer) shortcut() {
	found := false
	for _, o := range w.ops {
		if v := w.Of[o.Results[0]]; w.sums[o] && w.phase[o] < w.last && v != nil && v.Op != nil && w.light(v.Op, map[*ir.Op]bool{}) {
			w.direct[o] = true
			found = true
		}
	}
	if found {
		w.plan()
	}
}

// light reports whether o and what it is computed of take no contraction and no loop.
func (w *writer) light(o *ir.Op, seen map[*ir.Op]bool) bool {
	if seen[o] {
		return true
	}
	seen[o] = true
	if d := op.Of(o); d == nil || d.Family == op.Contraction || d.Kernel == op.Library || len(o.Regions) > 0 || op.HasEffect(o) {
		return false
	}
	for _, v := range o.Operands {
		if v.Op != nil && !w.light(v.Op, seen) {
			return false
		}
	}
	return true
}
