package cuda

import (
	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
)

// moves is what one sweep moves.
type moves struct {
	bytes  int64   // that it writes, and that its launch reads for the first time
	again  int64   // that its launch has read before
	rounds float64 // loads of a thread that wait for each other
	blocks int64
}

// moves are those of p's sweeps.
func (p *rows) moves(m *machine.Machine) []moves {
	r := p.f.Rows
	known := map[*kernel.Expr]bool{} // read by this launch
	out := make([]moves, len(p.sweeps))
	for i, s := range p.sweeps {
		x, last := &out[i], i == len(p.passes)
		x.blocks = r.Rows * s.splits
		if last || !p.shared {
			x.blocks = p.blocks * s.splits
		}
		if p.shared {
			clear(known)
		}
		var read, wide int64
		for _, y := range p.f.Streams(s.reads, 1) {
			n := r.Cols * y.Elem.Bytes()
			if r.Row == nil || y.DependsOn(r.Row) {
				n *= r.Rows
			}
			switch {
			case !known[y]:
				x.bytes += n
			case p.resident:
				continue
			default:
				x.again += n
			}
			known[y] = true
			read += n
			wide += y.Elem.Bytes()
		}
		if read > 0 {
			// The threads of a multiprocessor for which most kernels leave registers: half of
			// those that it can hold.
			const threads = 1024
			running := min(x.blocks*int64(p.threads), threads*int64(max(m.SMs, 1)))
			if p.cluster > 0 {
				running = min(x.blocks, int64(max(m.SMs, 1))/p.cluster*p.cluster*int64(p.perSM)) * int64(p.threads)
			}
			steps := s.unroll
			if steps == 0 {
				steps = s.steps
			}
			x.rounds = max(1, float64(read)/float64(running*steps*p.v*wide))
		}
		if !last {
			continue
		}
		for _, o := range levelOuts(p.f, kernel.PerElement) {
			x.bytes += r.Rows * r.Cols * o.Value.Elem().Bytes()
		}
		for _, y := range p.f.Nest.Columns {
			n := p.blocks
			if p.memory && p.loop { // each row updates them
				n = r.Rows
			}
			x.bytes += 2 * n * r.Cols * accumulatorElem(y.Elem).Bytes()
		}
	}
	return out
}

// streaming is what p's kernels move, and how long they take for it on m.
func (p *rows) streaming(m *machine.Machine) (bytes int64, seconds float64) {
	var whole moves
	for _, x := range p.moves(m) {
		bytes += x.bytes
		if p.shared {
			seconds += m.Streamed(x.bytes, x.bytes, x.blocks, x.rounds)
			continue
		}
		whole = moves{whole.bytes + x.bytes, whole.again + x.again, whole.rounds + x.rounds, x.blocks}
	}
	if p.shared {
		return bytes, seconds
	}
	memory := whole.bytes
	if p.cluster > 0 {
		return bytes, p.exchanged(m, whole)
	}
	if rows := min(whole.blocks, 2*int64(m.SMs)); rows*whole.again/p.f.Rows.Rows > m.L2 {
		memory += whole.again // the rows that are being computed do not lie in the cache
	}
	return bytes, m.Streamed(memory, whole.bytes+whole.again, whole.blocks, whole.rounds)
}

// exchanged is how long clusters take. Of each row the loads are waited for, and then an exchange after each pass: two ways to another
// multiprocessor, which are together no longer than one to memory. Where a multiprocessor has a single block, it has nothing
// in flight meanwhile.
func (p *rows) exchanged(m *machine.Machine, whole moves) float64 {
	rounds := max(1, whole.rounds)
	waits := rounds * float64(len(p.passes))
	t := m.Streamed(whole.bytes, whole.bytes+whole.again, whole.blocks, rounds+waits)
	if p.perSM == 1 {
		t = max(t, m.Streamed(whole.bytes, whole.bytes+whole.again, whole.blocks, 1)+waits*m.MemoryLatency)
	}
	return t
}

// count is the number of p's launches.
func (p *rows) count() int {
	n := 1
	if p.shared {
		n = len(p.sweeps)
	}
	return n + min(len(p.f.Nest.Columns), 1) + min(len(p.f.Nest.Totals), 1)
}

// seconds is how long p's kernels take on m.
func (p *rows) seconds(m *machine.Machine) float64 {
	_, t := p.streaming(m)
	return t + float64(p.count())*m.Start()
}

// pace is how fast p's kernels run, for the cost model.
func (p *rows) pace(m *machine.Machine) assemble.Pace {
	bytes, t := p.streaming(m)
	pace := assemble.Pace{Launches: p.count()}
	if t > float64(bytes)/m.Reach() {
		pace.Bandwidth = float64(bytes) / t
	}
	return pace
}
