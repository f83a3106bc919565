package ptx

import (
	"math/bits"
	"slices"
)

// Traffic is what the accesses of a kernel move, of the blocks that are followed and of the accesses whose addresses are known.
type Traffic struct {
	// Read and Written are the sectors of global memory that a block accesses, however often: what a cache between it and the memory
	// leaves.
	Read, Written Moved
	// Loads and Stores are the sectors of each access of a warp.
	Loads, Stores Moved
	// Shared are the passes over the banks of shared memory.
	Shared Moved
}

// Moved counts what accesses move, and the least that could hold the bytes that they access.
type Moved struct{ Used, Least int }

// Ratio is how many times the least is used, 1 where nothing is.
func (m Moved) Ratio() float64 { return float64(max(1, m.Used)) / float64(max(1, m.Least)) }

func (m *Moved) add(o Moved) { m.Used, m.Least = m.Used+o.Used, m.Least+o.Least }

const (
	sectorBytes = 32 // of global memory, which is read and written by whole sectors
	banks       = 32 // of shared memory, of which each gives a word of four bytes in a pass
	// sampled is how often the accesses of one instruction are counted in a block: loops repeat themselves.
	sampled = 64
)

// footprint is, by sector, which of its bytes a block accesses.
type footprint map[uint64]uint32

// moved counts the sectors.
func (f footprint) moved() Moved {
	held := 0
	for _, mask := range f {
		held += bits.OnesCount32(mask)
	}
	return Moved{len(f), (held + sectorBytes - 1) / sectorBytes}
}

// accesses are the addresses at which the threads of mask access n bytes each; none where they are not known or the instruction
// was counted often enough.
func (w *warp) accesses(at int, base register, off int64, mask uint32, skip func(lane int) bool) []uint64 {
	if !base.known() || w.maybe > 0 || w.b.counted[at] >= sampled {
		return nil
	}
	w.b.counted[at]++
	out := w.addresses[:0]
	for lane := range 32 {
		if mask>>lane&1 == 1 && (skip == nil || !skip(lane)) {
			out = append(out, base.each(lane)+uint64(off))
		}
	}
	return out
}

// sectors counts accesses of n bytes of global memory, and adds them to the footprint of the block.
func (m *Moved) sectors(f footprint, at []uint64, n int) {
	if len(at) == 0 || n == 0 || at[0] < globalBase {
		return
	}
	own := make(footprint, len(at))
	for _, a := range at {
		for end := a + uint64(n); a < end; {
			sector, from := a/sectorBytes, a%sectorBytes
			to := min(sectorBytes, end-sector*sectorBytes)
			mask := uint32(1<<to - 1<<from)
			own[sector] |= mask
			f[sector] |= mask
			a = (sector + 1) * sectorBytes
		}
	}
	m.add(own.moved())
}

// passes counts accesses of n bytes of shared memory: those of 16 bytes go by eight threads, those of eight by sixteen, and in a pass each
// bank gives one word.
func (m *Moved) passes(at []uint64, n int) {
	if n == 0 {
		return
	}
	threads := 32 / max(1, n/4)
	for part := range slices.Chunk(at, max(1, threads)) {
		var words [banks][]uint64
		most := 0
		for _, a := range part {
			for word := a / 4; word <= (a+uint64(n)-1)/4; word++ {
				if held := &words[word%banks]; !slices.Contains(*held, word) {
					*held = append(*held, word)
					most = max(most, len(*held))
				}
			}
		}
		m.add(Moved{most, 1})
	}
}
