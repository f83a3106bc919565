package attend

import (
	"dmir/analysis/blocks"

	"github.com/llir/llvm/ir/types"
)

// Sizes of blocks. On a Sapphire Rapids core half and twice as many keys or queries are
// within 3 % of these.
const (
	blockKeys   = 128
	blockPanels = 4
	wantTasks   = 128 // for which blocks are made smaller
	leastTasks  = 32  // for which keys are divided
	leastPart   = 512 // keys of a part that make its overhead small
)

// sizes are the sizes of blocks.
type sizes struct {
	Shape
	machine blocks.Machine
	lanes   int64
	vecs    int64 // vectors in a panel of queries
	panel   int64 // queries in a panel
	panels  int64 // of a block of queries
	keys    int64 // of a block of scores
}

func newSizes(s Shape, arch string) sizes {
	z := sizes{Shape: s, machine: blocks.MachineOf(arch)}
	z.lanes = z.machine.Bytes / z.size()
	// Of panels that waste equally few lanes the widest.
	best := int64(0)
	for v := int64(1); v <= tileVecs(&z); v++ {
		if v > 1 && v*z.lanes*max(s.Depth, s.Value)*z.size() > z.machine.L1 {
			break
		}
		if padded := up(s.Queries, v*z.lanes); best == 0 || padded <= best {
			best, z.vecs = padded, v
		}
	}
	z.panel = z.vecs * z.lanes
	z.panels = max(1, min(blockPanels, ceil(s.Queries, z.panel), s.Heads*s.Queries/z.panel/wantTasks))
	return z
}

// fitKeys sets the keys of a block to whole tiles, whose rows it returns.
func (s *sizes) fitKeys() int64 {
	n := min(s.Keys, blockKeys)
	rows := s.rows(n, s.vecs)
	s.keys = up(n, rows)
	return rows
}

func (s *sizes) elem() *types.FloatType {
	if s.Double {
		return types.Double
	}
	return types.Float
}

func (s *sizes) size() int64 {
	if s.Double {
		return 8
	}
	return 4
}

// most is the rows of a tile of C, of as many vectors, that the registers hold beside a
// row of B and an element of A.
func (s *sizes) most(vecs int64) int64 { return min((s.machine.Registers-vecs-1)/vecs, mostRows) }

// mostRows bounds the rows of a tile.
const mostRows = 14

// tileVecs is the vectors of the widest tile, of which registers hold enough rows to
// hide the latency of sums.
func tileVecs(s *sizes) int64 {
	if s.machine.Registers < 32 {
		return 3
	}
	return 4
}

// rows is the rows of tiles that divide n most evenly.
func (s *sizes) rows(n, vecs int64) int64 { return ceil(n, ceil(n, s.most(vecs))) }

// block is the number of queries of a block.
func (s *sizes) block() int64 { return s.panels * s.panel }

// blocks is the number of blocks of queries of a head.
func (s *sizes) blocks() int64 { return ceil(s.Queries, s.block()) }

func ceil(a, b int64) int64 { return (a + b - 1) / b }

func up(n, unit int64) int64 { return ceil(n, unit) * unit }

// arena gives out scratch memory.
type arena struct{ at, size int64 }

// take is the offset of n elements.
func (a *arena) take(n int64) int64 {
	from := a.at
	a.at += up(n*a.size, 64)
	return from
}
