package machine

import (
	"math"
	"math/bits"

	"dmir/dialect/types"
)

// Sort is a dm.sort or dm.top_k: of lines of N elements the first Most in order.
type Sort struct {
	Lines, N, Most int64
	Elem           types.Elem
}

// SortForm is how a GPU sorts lines.
type SortForm int

const (
	// SortTeams: a line has some lanes of a warp, by a bitonic network.
	SortTeams SortForm = iota
	// SortBlock: a line has a block, by digits in shared memory.
	SortBlock
	// SortDigits: a line has many blocks, which move its elements by digits in memory.
	SortDigits
	// SortSelect: blocks read a line once and sort what may be among its first elements.
	SortSelect
)

// SortPlan is the form of a Sort and how threads divide it.
type SortPlan struct {
	Form SortForm
	// Team is the lanes of a line, of SortTeams; Threads those of a block, of the other forms; Items the elements of each.
	Team, Threads, Items int64
	// Chunks is how many blocks share a line; Scans says that a launch of its own adds up their counts.
	Chunks int64
	Scans  bool
	// Passes are the digits of a key.
	Passes int64
}

const (
	// sortTeam is the longest line that a team sorts: of longer ones the network has more stages than keys have digits.
	sortTeam = 128
	// sortBytes is what a block's elements have at most, in bytes, beside 8192 elements.
	sortBytes = 32 << 10
	// sortThreads are the threads of a block of SortDigits and SortSelect.
	sortThreads = 256
	// sortResident is how many blocks of SortDigits and SortSelect a multiprocessor has at once.
	sortResident = 3
	// sortAdded is how many counts of a digit each block adds up by itself: more take longer than another launch.
	sortAdded = 32
	// The most elements of SortSelect, so many that its room takes a tile behind them, and how many a part reads at least.
	sortSelected = 1024
	sortPart     = 4096
)

// SortPlan is how m sorts s. The code generator and the time of the cost model have it from here.
func (m *Machine) SortPlan(s Sort) SortPlan {
	size := s.Elem.Bytes()
	p := SortPlan{Team: 1, Threads: sortThreads, Items: 1, Chunks: 1, Passes: size}
	if s.N <= sortTeam {
		for p.Team < 32 && p.Team < s.N {
			p.Team *= 2
		}
		for p.Team*p.Items < s.N {
			p.Items *= 2
		}
		return p
	}
	if s.N <= min(8192, sortBytes/size) {
		p.Form = SortBlock
		for _, c := range [][2]int64{{64, 4}, {128, 4}, {128, 8}, {256, 8}, {256, 16}, {512, 16}} {
			if p.Threads, p.Items = c[0], c[1]; p.Threads*p.Items >= s.N {
				return p
			}
		}
	}
	resident := max(1, sortResident*m.sorters()/max(1, s.Lines))
	if s.Most <= sortSelected && s.Most < s.N {
		p.Form, p.Items = SortSelect, 8
		// A second launch reads the first elements of all parts: as many as a part has, where parts are as many as this.
		p.Chunks = max(1, min(resident, int64(math.Sqrt(float64(s.N)/float64(s.Most))), s.N/max(sortPart, s.Most)))
		return p
	}
	p.Form, p.Items = SortDigits, max(8, min(16, 64/size))
	p.Chunks = min(resident, ceil(s.N, p.Threads*p.Items))
	p.Scans = p.Chunks > sortAdded
	return p
}

// sorters are the multiprocessors of m, an H100's where its data have none.
func (m *Machine) sorters() int64 {
	if m.SMs > 0 {
		return int64(m.SMs)
	}
	return 132
}

// Launches is how many kernels p is.
func (p SortPlan) Launches() int64 {
	switch {
	case p.Form == SortSelect && p.Chunks > 1:
		return 2
	case p.Form == SortDigits && p.Scans:
		return 3 * p.Passes
	case p.Form == SortDigits:
		return 2 * p.Passes
	}
	return 1
}

// Instructions of a thread for an element, as compiled (bench/sass).
const (
	exchangeSlots = 4   // of a stage of a network, and
	wordSlots     = 2   // for each 32 bits of a key and its place
	digitSlots    = 115 // to find the place of a digit among those of a block, and to move the element there
	countSlots    = 18  // to count a digit of a chunk
	selectSlots   = 30  // to compare an element with the last one selected
	lineSlots     = 30  // to read and to write
)

// SortTime is how long the instructions of s take, in seconds, at the rate of multiply-adds.
func (m *Machine) SortTime(s Sort) float64 {
	p := m.SortPlan(s)
	padded, slots := s.N, float64(lineSlots)
	switch p.Form {
	case SortTeams:
		padded = p.Team * p.Items
		stages := bits.Len64(uint64(padded)) - 1
		words := int64(1)
		if n := s.Elem.Bytes(); n >= 4 {
			words = n/4 + 1
		}
		slots += float64(stages*(stages+1)/2) * float64(exchangeSlots+wordSlots*words)
	case SortBlock:
		padded = p.Threads * p.Items
		slots += float64(p.Passes * digitSlots)
	case SortDigits:
		slots += float64(p.Passes * (countSlots + digitSlots))
	case SortSelect:
		slots += selectSlots
		// The room is sorted at least once in each part.
		return (float64(s.Lines*s.N)*slots + float64(s.Lines*p.Chunks*p.Threads*p.Items*p.Passes*digitSlots)) / (m.Rate(false, types.F32, "") / 2)
	}
	return float64(s.Lines*padded) * slots / (m.Rate(false, types.F32, "") / 2)
}
