package assemble

import (
	"fmt"
	"slices"
	"strings"

	"dmir/compile/pass"
	"dmir/compile/schedule"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
)

// control adds step i of the schedule, a dm.while or a dm.if: a decision
// followed by the steps of its regions.
//
// The results are buffers of the enclosing level. A while copies its initial
// values into them, where the regions read them, unless an initial value dies
// there and shares the result's buffer. What the body computes in place of a carried value
// (op.InPlace.Over) is its next value where it lies. The others are computed in
// the memory of the region, and at its end they are copied over the current
// ones. The copies are all that an iteration adds.
func (b *builder) control(i int, st schedule.Step) error {
	o := st.Op
	first := len(b.out.Steps)
	name := b.unique(strings.TrimPrefix(o.Name, "dm.") + "_" + StepName(o))
	_, swap := schedule.RegionBytes(o)
	results := make([]int, len(o.Results))
	for k, v := range o.Results {
		n, ok := b.buffer[v]
		if !ok {
			return failure(o, "%s has no buffer", v.Name)
		}
		results[k] = n
	}
	at := b.base + st.ScratchOffset
	var err error
	if o.Name == op.While {
		err = b.loop(o, name, results, at, at+swap)
	} else {
		err = b.branch(o, name, results, at)
	}
	if err != nil {
		return err
	}
	b.steps = append(b.steps, [2]int{first, len(b.out.Steps) - 1})
	return nil
}

// loop adds a while; the memory of its regions begins at base, that for swapped
// values at swap.
func (b *builder) loop(o *ir.Op, name string, results []int, base, swap int64) error {
	var begin []move
	for k, v := range o.Operands {
		from, ok := b.buffer[v]
		if !ok {
			return failure(o, "%s has no buffer", v.Name)
		}
		begin = append(begin, move{results[k], from})
	}
	b.copies(begin)
	kind := artifact.StepLoop
	trips, known := op.Trips(o)
	if _, exact := op.TripCount(o); exact {
		kind = artifact.StepRepeat
	}
	at := b.decision(kind, name)
	if known {
		b.out.Steps[at].Decision.Trips, _ = trips.Int()
		b.out.Steps[at].Decision.TripsKnown = true
	}
	if kind == artifact.StepLoop {
		err := b.region(o, 0, base, results, func(given []int) {
			b.out.Steps[at].Decision.On = given[0]
		})
		if err != nil {
			return err
		}
	}
	b.out.Steps[at].Decision.Parts[0] = len(b.out.Steps) - at - 1
	err := b.region(o, 1, base, results, func(given []int) {
		var aside, next []move
		for _, k := range schedule.Swapped(o) {
			like := b.out.Buffers[results[k]]
			if like.Bytes == 0 || given[k] == results[k] || !slices.Contains(results, given[k]) {
				continue
			}
			n := len(b.out.Buffers)
			// It lives from the copy into it, the next step, to the part's end.
			b.out.Buffers = append(b.out.Buffers, artifact.Buffer{
				Name: like.Name + ".next", Elem: like.Elem, Shape: like.Shape, Order: like.Order, Kind: artifact.Temp, Offset: swap, Bytes: like.Bytes,
			})
			swap += aligned(like.Bytes)
			aside = append(aside, move{n, given[k]})
			given[k] = n
		}
		for k, from := range given {
			next = append(next, move{results[k], from})
		}
		from := len(b.out.Steps)
		b.copies(append(aside, next...))
		for _, m := range aside {
			b.out.Buffers[m.to].First, b.out.Buffers[m.to].Last = from, len(b.out.Steps)-1
		}
	})
	b.out.Steps[at].Decision.Parts[1] = len(b.out.Steps) - at - 1 - b.out.Steps[at].Decision.Parts[0]
	return err
}

// branch adds an if.
func (b *builder) branch(o *ir.Op, name string, results []int, base int64) error {
	on, ok := b.buffer[o.Operands[0]]
	if !ok {
		return failure(o, "%s has no buffer", o.Operands[0].Name)
	}
	at := b.decision(artifact.StepBranch, name)
	b.out.Steps[at].Decision.On = on
	for n := range o.Regions {
		before := len(b.out.Steps)
		if o.Body(n) == nil {
			continue
		}
		err := b.region(o, n, base, nil, func(given []int) {
			var out []move
			for k, from := range given {
				out = append(out, move{results[k], from})
			}
			b.copies(out)
		})
		if err != nil {
			return err
		}
		b.out.Steps[at].Decision.Parts[n] = len(b.out.Steps) - before
	}
	return nil
}

// decision adds a step that decides whether the following ones run.
func (b *builder) decision(kind artifact.StepKind, name string) int {
	n := len(b.out.Steps)
	b.out.Steps = append(b.out.Steps, artifact.Step{Name: name, Kind: kind})
	b.floor = n + 1
	return n
}

// region adds the steps of region n of o, whose memory begins at base and whose
// arguments are the buffers args. last adds the steps after them, given the
// buffers of the yielded values.
func (b *builder) region(o *ir.Op, n int, base int64, args []int, last func(given []int)) error {
	body, err := pass.RegionOf(b.body.Func, o, n)
	if err != nil {
		return err
	}
	for k, v := range body.Inputs() {
		if k < len(args) {
			b.buffer[v] = args[k]
		} else if _, ok := b.buffer[v]; !ok {
			return failure(o, "%s has no buffer", v.Name)
		}
	}
	s, err := schedule.Read(body)
	if err != nil {
		return err
	}
	around := b.level
	defer func() { b.level = around }()
	b.level = level{body: body, schedule: s, base: base}
	b.floor = len(b.out.Steps)
	if err := b.block(); err != nil {
		return err
	}
	var given []int
	for _, v := range body.Terminator().Operands {
		at, ok := b.buffer[v]
		if !ok {
			return failure(o, "%s, which is yielded, has no buffer", v.Name)
		}
		given = append(given, at)
	}
	last(given)
	b.setLifetimes(len(b.out.Steps) - 1)
	b.floor = len(b.out.Steps)
	return nil
}

// move is a copy from one buffer to another.
type move struct{ to, from int }

// copies adds copies, one after the other, that wait for all steps since the
// last decision.
func (b *builder) copies(ms []move) {
	waits := true
	for _, m := range ms {
		to, from := &b.out.Buffers[m.to], &b.out.Buffers[m.from]
		if m.to == m.from || to.Bytes == 0 {
			continue
		}
		s := artifact.Step{
			Name: b.unique(Identifier(fmt.Sprintf("%s_from_%s", to.Name, from.Name))), Kind: artifact.StepCopy,
			Move:      artifact.Move{To: m.to, From: m.from},
			ReadBytes: to.Size(), WrittenBytes: to.Size(),
		}
		if m := b.backend.Machine(); m != nil {
			s.TimeNs = (float64(2*to.Size())/m.Reach() + m.Start()) * 1e9
		}
		if waits {
			s.Waits = b.others()
			waits = false
		}
		b.out.Steps = append(b.out.Steps, s)
	}
}

// others are the last steps since the last decision on each stream other than
// the first.
func (b *builder) others() (out []int) {
	seen := map[int]bool{0: true}
	for i := len(b.out.Steps) - 1; i >= b.floor; i-- {
		if s := b.out.Steps[i].Stream; !seen[s] {
			seen[s] = true
			out = append(out, i)
		}
	}
	return out
}
