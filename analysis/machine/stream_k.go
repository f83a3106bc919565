package machine

// StreamK is how the blocks of a kernel, or its pairs of blocks, share a product whose tiles are no whole waves of them (Osama et al.,
// Stream-K, PPoPP 2023): each computes Whole tiles, and then an equal part of the steps of the Rest, which are numbered through. A tile that a part
// ends in is finished by the worker whose part has its first step, from the sums that those behind leave in memory.
type StreamK struct {
	Workers int64 // blocks, or pairs of them
	Blocks  int64 // of a worker
	Whole   int64 // tiles, or pairs of them, of each worker
	Rest    int64 // that all workers share: more than one for each of them, where there are whole ones, so that two share one at most
	Steps   int64 // of a tile's sum
}

// leastPart is the fewest steps of a worker's part.
const leastPart = 8

// StreamK is how p is shared with tile t; ok is false where it has whole waves, few steps, or sums whose lengths differ.
func (m *Machine) StreamK(p Product, t Tile) (s StreamK, ok bool) {
	if t.Path != wgmmaPath && t.Path != warpPath || t.Splits > 1 || t.Phases || p.Phases > 0 || p.Groups > 1 || m.SMs < 2 {
		return s, false
	}
	s = StreamK{Workers: int64(m.SMs), Blocks: 1, Steps: ceil(p.Depth, int64(max(t.Step, 1)))}
	if t.Pair != "" {
		s.Blocks = 2
		s.Workers /= 2
	}
	tiles := p.Batch * ceil(p.Rows, int64(t.Rows)) * ceil(p.Cols, int64(t.Cols)) / s.Blocks
	if tiles%s.Workers == 0 {
		return s, false
	}
	s.Whole = max(0, tiles/s.Workers-1)
	s.Rest = tiles - s.Whole*s.Workers
	return s, s.Workers > 1 && s.Rest*s.Steps >= leastPart*s.Workers
}

// From is the first step of worker n's part; its last one is before From(n+1).
func (s StreamK) From(n int64) int64 { return s.Rest * s.Steps * n / s.Workers }

// Parts is how many blocks leave sums in memory: those whose part begins inside of a tile.
func (s StreamK) Parts() (n int64) {
	for w := range s.Workers {
		if s.From(w)%s.Steps != 0 {
			n += s.Blocks
		}
	}
	return n
}

// Sharers is how many workers leave sums of one tile at most, besides the one that finishes it.
func (s StreamK) Sharers() int64 { return (s.Steps-2)/(s.Rest*s.Steps/s.Workers) + 1 }

// Finished is how many tiles of the Rest a worker finishes at most.
func (s StreamK) Finished() int64 { return (ceil(s.Rest*s.Steps, s.Workers)-1)/s.Steps + 1 }

// fixups is how many loads from memory the end of a shared tile waits for, one behind the other: a flag, the sums, and the first
// operands of the part that follows.
const fixups = 3

// streamTime is the time of a product that s shares: of a step, while neighbours are at the same one (whole), and else (alone); behind is what
// each tile takes behind its steps, and last what the last one takes besides. A worker stores the sums of a tile at most, and reads those of all that share
// its last one; a launch before clears the flags by which it waits for them.
func (m *Machine) streamTime(s StreamK, whole, alone, behind, last, area float64) float64 {
	sums := area * accumulator / (m.L2Bandwidth / float64(m.SMs))
	part := float64(ceil(s.Rest*s.Steps, s.Workers)) * alone
	total := float64(s.Whole)*(float64(s.Steps)*whole+behind) + part + float64(s.Finished())*behind + last
	return total + float64(1+s.Sharers())*sums + fixups*m.MemoryLatency + m.Start()
}
