package cost

import (
	"dmir/analysis/machine"
	"dmir/base/streams"
	visited "dmir/base/work"
	"dmir/dialect/op"
)

// Bucketing is what streams.Buckets asks of steps.
type Bucketing struct {
	Kinds   []int // of steps
	entries []*Entry
	t       timer
}

// NewBucketing is that of the entries of steps on m; nil for a step without one.
func NewBucketing(entries []*Entry, m *machine.Machine) *Bucketing {
	b := &Bucketing{make([]int, len(entries)), entries, timer{m}}
	numbers := map[string]int{}
	for k, e := range entries {
		switch {
		case e == nil:
		case e.Op.Name == op.Send || e.Op.Name == op.Recv: // partners wait for them in their order
			b.Kinds[k] = streams.Barrier
		case e.Comm != nil && e.parts == nil:
			if key := op.BucketKey(e.Op); key != "" {
				if numbers[key] == 0 {
					numbers[key] = len(numbers) + 1
				}
				b.Kinds[k] = numbers[key]
			}
		}
	}
	return b
}

// Together is the time of some of the steps as one (op.Bucket), in ns.
func (b *Bucketing) Together(members []int) float64 {
	var all []*Collective
	var read, written int64
	for _, k := range members {
		e := b.entries[k]
		r, _ := e.Read.Int()
		w, _ := e.Written.Int()
		all, read, written = append(all, e.Comm), read+r, written+w
	}
	return joined(all).time(b.t.m, read, written).Ns
}

// bucketed is the schedule of entries with collectives as one where that takes less time; s is the one without.
func (t timer) bucketed(entries []*Entry, p *program, s streams.Schedule, counts *visited.Counts) (streams.Schedule, error) {
	of := make([]*Entry, len(p.steps))
	for i, e := range entries {
		if k := p.at[i]; k >= 0 {
			of[k] = e
		}
	}
	b := NewBucketing(of, t.m)
	found, err := streams.Buckets(p.steps, b.Kinds, b.Together, s, counts)
	return found.Schedule, err
}
