package cuda

import (
	"dmir/analysis/machine"
	"dmir/compile/kernel"
)

// moves is what one sweep reads and writes, and the bytes of loads that all blocks
// which run at once have in flight.
type moves struct{ bytes, blocks, flight int64 }

// moves are those of p's sweeps.
func (p *rows) moves(m *machine.Machine) []moves {
	r := p.f.Rows
	held := map[*kernel.Expr]bool{} // in registers
	out := make([]moves, len(p.sweeps))
	for i, s := range p.sweeps {
		var read, wide, written int64
		for _, x := range p.f.Streams(s.reads, 1) {
			elements := r.Cols
			if r.Row == nil || x.DependsOn(r.Row) {
				elements *= r.Rows
			}
			if !held[x] {
				read += elements * x.Elem.Bytes()
				wide += x.Elem.Bytes()
			}
			held[x] = p.resident
		}
		blocks := r.Rows
		if !p.shared || i == len(p.passes) {
			blocks = p.blocks
		}
		if i == len(p.passes) {
			for _, o := range levelOuts(p.f, kernel.PerElement) {
				written += r.Rows * r.Cols * o.Value.Elem().Bytes()
			}
			for _, x := range p.f.Nest.Columns {
				n := p.blocks
				if p.memory && p.loop { // each row updates them
					n = r.Rows
				}
				written += 2 * n * r.Cols * accumulatorElem(x.Elem).Bytes()
			}
		}
		out[i] = moves{bytes: read + written, blocks: blocks * s.splits}
		if read > 0 {
			// The threads of a multiprocessor whose registers most kernels leave: half of
			// those that it can hold.
			const threads = 1024
			running := min(out[i].blocks*int64(p.threads), threads*int64(max(m.SMs, 1)))
			steps := s.unroll
			if steps == 0 {
				steps = s.steps
			}
			// Stores are waited for by nothing.
			out[i].flight = int64(float64(running*steps*p.v*wide) * float64(read+written) / float64(read))
		}
	}
	return out
}

// seconds is how long p's kernels take on m, which the choice between plans
// compares and the cost model shows.
func (p *rows) seconds(m *machine.Machine) float64 {
	launches := 1
	if p.shared {
		launches = len(p.sweeps)
	}
	t := float64(launches) * m.Start()
	for _, x := range p.moves(m) {
		if x.bytes > 0 {
			t += float64(x.bytes) / m.Streaming(x.blocks, x.flight)
		}
	}
	return t
}
