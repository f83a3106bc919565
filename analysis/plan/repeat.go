package plan

import (
	"fmt"
	"hash/maphash"
	"slices"
	"sort"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// The attributes by which an op of the joint function is known: ops of the function that is
// differentiated, and the layer that an op, or the op that it is the derivative of, belongs to.
const (
	forwardAttr = "plan.forward"
	layerAttr   = op.StageAttr // autodiff hands it on to derivatives
	callAttr    = "plan.call"  // see straight.numberCalls
)

// kept is how many of the equal layers in a row stay: the first, one that stands for all between, and
// the last.
const kept = 3

// layers are the equal layers in a row of a function, numbered from 1 by layerAttr; what stands before
// them is 0, what stands behind them one more than the last.
type layers struct {
	count int      // in the text
	left  int      // that stay in the function
	ops   int      // of a layer
	begin []*ir.Op // the first op of each layer of the text
	// place is where in a layer an op stands, by its place in the text; spans are the places in the text of that
	// op in all layers.
	place map[source.Span]int
	spans [][]source.Span
	like  map[int]int // arguments of the function that only layers left out use: those at their place in a layer that stays
}

// saved is how many ops are left out.
func (l *layers) saved() int { return (l.count - l.left) * l.ops }

// has reports whether number i is that of a layer.
func (l *layers) has(i int) bool { return l != nil && i >= 1 && i <= l.left }

// times is how many layers of the text the layer with number i stands for.
func (l *layers) times(i int) int {
	if l == nil || l.count == l.left || i != 2 {
		return 1
	}
	return l.count - l.left + 1
}

// reduce finds the equal layers of f, numbers its ops by them, and leaves all but kept of them out.
// It is nil where there are none.
func reduce(f *ir.Func) *layers {
	ops := f.Body.Ops
	if n := len(ops); n > 0 && ops[n-1].Name == op.Return {
		ops = ops[:n-1]
	}
	run := longest(ops)
	if run == nil {
		return nil
	}
	l := &layers{count: run.count, left: run.count, ops: run.period, place: map[source.Span]int{}, spans: make([][]source.Span, run.period)}
	for k := range run.period {
		for j := range run.count {
			span := ops[run.start+j*run.period+k].Span
			if _, ok := l.place[span]; !ok {
				l.place[span] = k
				l.spans[k] = append(l.spans[k], span)
			}
		}
	}
	for k := range run.count {
		l.begin = append(l.begin, ops[run.start+k*run.period])
	}
	for i, o := range ops {
		layer := 0
		switch {
		case i >= run.end():
			layer = run.count + 1
		case i >= run.start:
			layer = 1 + (i-run.start)/run.period
		}
		number(o, layer)
	}
	if run.count <= kept {
		return l
	}
	l.left = kept
	l.like = map[int]int{}
	for j := 2; j < run.count-1; j++ {
		for k := range run.period {
			gone, model := ops[run.start+j*run.period+k], ops[run.start+run.period+k]
			for i, v := range gone.Operands {
				if w := model.Operands[i]; v.Op == nil && w.Op == nil && v != w && v.Block == f.Body && w.Block == f.Body {
					l.like[v.Index] = w.Index
				}
			}
		}
	}
	// The last layer continues the second one.
	last := run.start + (run.count-1)*run.period
	now := map[*ir.Value]*ir.Value{}
	for k := range run.period {
		from, to := ops[last-run.period+k], ops[run.start+run.period+k]
		for i, r := range from.Results {
			now[r] = to.Results[i]
		}
	}
	for k := range run.period {
		o := ops[last+k]
		for i, v := range o.Operands {
			if n := now[v]; n != nil {
				o.SetOperand(i, n)
			}
		}
		number(o, kept)
	}
	for _, o := range ops[run.end():] {
		number(o, kept+1)
	}
	erased := map[*ir.Op]bool{}
	for _, o := range ops[run.start+2*run.period : last] {
		erased[o] = true
	}
	ir.EraseSet(f.Body, erased)
	return l
}

func number(o *ir.Op, layer int) {
	o.SetAttr(layerAttr, types.Int{V: int64(layer), Elem: types.I64})
}

// A run is equal layers in a row: count times period ops, from start on.
type run struct{ start, period, count int }

func (r *run) end() int { return r.start + r.period*r.count }

// longest is the run of ops that covers most of them, nil if no two layers are equal. It takes time
// in proportion to the ops and a few candidates for the period.
func longest(ops []*ir.Op) *run {
	kinds := kindsOf(ops)
	index := map[*ir.Value]int{}
	for i, o := range ops {
		for _, r := range o.Results {
			index[r] = i
		}
	}
	var best *run
	for _, p := range periods(kinds) {
		for i := 0; i+p < len(kinds); {
			j := i
			for j+p < len(kinds) && kinds[j] == kinds[j+p] {
				j++
			}
			if j-i >= p { // the ops i to j+p-1 repeat
				if r := aligned(ops, index, i, j+p, p); r != nil && (best == nil || r.count*r.period > best.count*best.period ||
					r.count*r.period == best.count*best.period && r.period < best.period) {
					best = r
				}
			}
			i = j + 1
		}
	}
	return best
}

// periods are the distances between neighbours of one kind, the commonest first.
func periods(kinds []uint64) []int {
	last, count := map[uint64]int{}, map[int]int{}
	seen := map[uint64][]int{}
	for i, k := range kinds {
		if j, ok := last[k]; ok {
			count[i-j]++
		}
		last[k] = i
		seen[k] = append(seen[k], i)
	}
	// A kind that a layer has several times gives the layer's length as a sum of distances: that
	// between every second one, every third one, and so on.
	for _, at := range seen {
		for step := 2; step <= 8 && step < len(at); step++ {
			for i := step; i < len(at); i++ {
				count[at[i]-at[i-step]]++
			}
		}
	}
	out := make([]int, 0, len(count))
	for p, n := range count {
		if n*2 >= p { // a layer repeats with most of its ops
			out = append(out, p)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if a, b := count[out[i]], count[out[j]]; a != b {
			return a > b
		}
		return out[i] < out[j]
	})
	return out[:min(len(out), 16)]
}

var seed = maphash.MakeSeed()

// kindsOf are numbers that are equal for ops that compute the same on values of the same types. Seeds
// of random numbers do not count.
func kindsOf(ops []*ir.Op) []uint64 {
	out := make([]uint64, len(ops))
	var h maphash.Hash
	for i, o := range ops {
		h.SetSeed(seed)
		h.WriteString(o.Name)
		for _, a := range o.Attrs {
			if a.Name != "seed" && a.Name != forwardAttr && a.Name != layerAttr {
				fmt.Fprintf(&h, "|%s=%s", a.Name, a.Value)
			}
		}
		for _, v := range o.Operands {
			fmt.Fprintf(&h, ",%s", v.Type)
		}
		for _, v := range o.Results {
			fmt.Fprintf(&h, ">%s", v.Type)
		}
		out[i] = h.Sum64()
	}
	return out
}

// aligned is the run of layers of p ops within ops[from:to], which repeat: where each begins is decided by
// the fewest values that one layer hands to the next, and among these by where calls in the text end.
// It is nil where the layers are not connected alike.
func aligned(ops []*ir.Op, index map[*ir.Value]int, from, to, p int) *run {
	type start struct{ at, crossing, inside int }
	var starts []start
	for d := range min(p, to-from-2*p+1) {
		at := from + d
		s := start{at: at, crossing: crossing(ops, index, at, p)}
		if b := at + p; ops[b-1].Span == ops[b].Span && ops[b].Span.Start != ops[b].Span.End {
			s.inside = 1
		}
		starts = append(starts, s)
	}
	slices.SortStableFunc(starts, func(a, b start) int {
		if a.crossing != b.crossing {
			return a.crossing - b.crossing
		}
		return a.inside - b.inside
	})
	for _, s := range starts[:min(len(starts), 4)] {
		r := &run{start: s.at, period: p, count: (to - s.at) / p}
		if r.count >= 2 && connected(ops, index, r) && slices.ContainsFunc(ops[r.start:r.start+r.period], multiplies) {
			return r
		}
	}
	return nil
}

// multiplies reports whether o is an op that a layer is there for: chains of cheap ops that repeat are none.
func multiplies(o *ir.Op) bool {
	d := op.Of(o)
	return d != nil && d.Class == op.ClassContraction || len(o.Regions) > 0
}

// crossing is how many values the layer from at on hands to the next one.
func crossing(ops []*ir.Op, index map[*ir.Value]int, at, p int) int {
	n := 0
	for i := at; i < at+p; i++ {
		for _, r := range ops[i].Results {
			if slices.ContainsFunc(r.Uses, func(u ir.Use) bool {
				j, ok := index[first(u.Op)]
				return !ok || j >= at+p
			}) {
				n++
			}
		}
	}
	return n
}

// first is the first result of an op, by which it is found; nil if it has none.
func first(o *ir.Op) *ir.Value {
	if len(o.Results) == 0 {
		return nil
	}
	return o.Results[0]
}

// connected reports whether the layers of r are connected alike: each op reads values of its own layer
// at the same distance, of the layer before at the same distance, or what stands outside of all layers; and
// only the next layer, or after the last one what stands behind, reads a layer's values.
func connected(ops []*ir.Op, index map[*ir.Value]int, r *run) bool {
	for k := range r.period {
		model := ops[r.start+r.period+k] // in the second layer, which has one before it
		for j := 1; j < r.count; j++ {
			i := r.start + j*r.period + k
			for n, v := range ops[i].Operands {
				if n >= len(model.Operands) {
					return false
				}
				at, ok := index[v]
				was, wasOK := index[model.Operands[n]]
				inside := ok && at >= r.start
				wasInside := wasOK && was >= r.start
				switch {
				case inside != wasInside:
					return false
				case inside && i-at != r.start+r.period+k-was:
					return false
				case inside && at < r.start+(j-1)*r.period:
					return false // of a layer before the one before
				case ok && !inside && v != model.Operands[n]:
					return false
				}
			}
		}
	}
	for j := range r.count - 1 {
		for i := r.start + j*r.period; i < r.start+(j+1)*r.period; i++ {
			for _, v := range ops[i].Results {
				for _, u := range v.Uses {
					if at, ok := index[first(u.Op)]; !ok || at >= r.start+(j+2)*r.period {
						return false
					}
				}
			}
		}
	}
	return true
}
