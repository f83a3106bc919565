package machine

import (
	"math"

	"dmir/dialect/types"
)

// Product is Batch products of a matrix of Rows × Depth and one of Depth × Cols.
type Product struct {
	Batch, Rows, Cols, Depth int64
	Elem                     types.Elem // of the operands
	Turned                   bool       // the rows are those of the second operand
	Window                   Window     // of a convolution
	Groups                   int64      // that divide the rows, each with a second matrix of its own, where there are more than one
	Epilogue                 Epilogue   // of a kernel whose epilogue is known
	Phases                   int64      // of a convolution's outputs: of the batch so many share the depth, each with a part of it; 0: all have all of it
	Channels                 int64      // of which the parts are multiples
	Structured               bool       // the first operand, of the rows or, Turned, the columns, has two of each four elements along the depth
}

// FLOP is that of all multiplications and additions, of elements that are there.
func (p Product) FLOP() float64 {
	return 2 * p.present() * float64(p.Batch) * float64(p.Rows) * float64(p.Cols) * float64(p.Depth) / float64(max(p.Phases, 1))
}

// present is the part of the depth that both operands have.
func (p Product) present() float64 {
	if p.Structured {
		return 0.5
	}
	return 1
}

// StructuredBytes is what an operand with two of each four elements takes of the bytes that all would, with two bits for each of them.
const StructuredBytes = 0.5 + 1./16

// depth is how long a block's sum is, on average over phases, in whole steps.
func (p Product) depth(splits, step int64) float64 {
	if p.Phases <= 1 {
		return float64(ceil(ceil(p.Depth, splits), step) * step)
	}
	all := float64(p.Depth)
	if p.Channels%step != 0 { // the last step of a phase is half full on average
		all += float64(p.Phases*step) / 2
	}
	return all / float64(p.Phases*splits)
}

// half is the least extent of a shared operand: a tensor map's boxes have 64 lines or more.
const half = 64

// Pairs reports whether the blocks of p with tile t, whose operands tensor maps copy, form such pairs: from Hopper on, where the tiles
// and the multiprocessors are whole pairs, and each block has a part of what they share. Two tiles of groups share none.
func (m *Machine) Pairs(p Product, t Tile) bool {
	tiles, of, all := ceil(p.Rows, int64(t.Rows)), t.Cols, p.Cols
	switch t.Pair {
	case "":
		return true
	case PairRows:
	case PairCols:
		tiles, of, all = ceil(p.Cols, int64(t.Cols)), t.Rows, p.Rows
	default:
		return false
	}
	return m.generation() >= hopper && p.Groups == 0 && m.SMs%2 == 0 && tiles%2 == 0 && of >= 2*half && all > int64(of/2)
}

// ProductTime is how long a product takes with a tile, in seconds, besides what a kernel adds: the slower
// of Compute and L2, and the Tail.
type ProductTime struct {
	Blocks  int64
	Compute float64 // multiplications, spread over all multiprocessors evenly
	L2      float64 // the tiles' operands, from the level-2 cache
	Tail    float64 // edges that the tiles pad, multiprocessors that wait for the last wave, results that nothing hides; on a CPU what packs operands and stores results
	// Streams: a CPU multiplies while an operand comes from memory, which it reads once; else one of the two waits for the other.
	Streams bool
}

// Total is the time of the product.
func (t ProductTime) Total() float64 { return max(t.Compute, t.L2) + t.Tail }

// tiles are those of libraries, from the largest.
var tiles = [10]Tile{
	{Rows: 256, Cols: 128},
	{Rows: 128, Cols: 256},
	{Rows: 128, Cols: 128},
	{Rows: 128, Cols: 64},
	{Rows: 64, Cols: 128},
	{Rows: 64, Cols: 64},
	{Rows: 128, Cols: 32},
	{Rows: 32, Cols: 128},
	{Rows: 128, Cols: 16},
	{Rows: 16, Cols: 128},
}

// thin is the most rows or columns of a matrix that is multiplied as vectors, on the vector units. Convolutions are not.
const thin = 8

// BestProduct is the time of p with the best of the tiles that libraries have. Of a machine that names neither
// multiprocessors nor a cache it is that of the multiplications alone.
func (m *Machine) BestProduct(p Product) ProductTime {
	if m.SMs == 0 || m.L2Bandwidth == 0 {
		return ProductTime{Compute: p.FLOP() / m.Rate(true, p.Elem, "")}
	}
	best := ProductTime{}
	least := math.Inf(1)
	if p.Structured {
		for _, t := range tiles {
			t.Path = StructuredPath
			for _, t.Splits = range []int{1, 4} {
				if x := m.ProductTime(p, t); x.Total() < least {
					best, least = x, x.Total()
				}
			}
		}
		p.Structured = false // as one of dense matrices
	}
	rate, sharing := m.Rate(true, p.Elem, ""), m.sharing()
	for i, t := range tiles {
		t.Step = 64
		for t.Splits = 1; t.Splits <= 64; t.Splits *= 2 {
			x := m.productTime(p, t, rate*efficiencies[i], sharing)
			if x.Total() < least {
				best, least = x, x.Total()
			}
			if x.Blocks >= int64(m.SMs) || int64(t.Splits*8*t.Step) > p.Depth {
				break
			}
		}
	}
	if vector := p.FLOP() / m.Rate(false, p.Elem, ""); vector < least && min(p.Rows, p.Cols) <= thin && p.Window.Taps == 0 {
		return ProductTime{Compute: vector}
	}
	return best
}

// ProductTime is the time of p with tile t. Blocks run in waves, of one on each multiprocessor; each takes the
// slower of its multiplications and of reading its operands, and stores its result, of which the multiplications
// of the next block hide half. The two blocks of a pair begin together, which takes no longer than a load from memory. Hopper's consumers compute the epilogue together behind the multiplications, or in turns, each beside
// those of the other. Edges are padded to whole tiles. Sums that blocks share are written, and read once
// more by another kernel; those of a cluster pass through distributed shared memory, and each of its blocks stores a part of the tile.
func (m *Machine) ProductTime(p Product, t Tile) ProductTime {
	if t.Path == WindowPath {
		return m.windowTime(p, t)
	}
	sharing := 1.0
	if m.generation() >= hopper && (t.Path == wgmmaPath || t.Path == pingpongPath) {
		sharing = neighbours
	}
	return m.productTime(p, t, m.Rate(t.Path != vectorPath, t.multiplied(p.Elem), t.Path)*t.efficiency(), sharing)
}

// multiplied is the type that t multiplies numbers of type e as: only tensor maps bring those of 8 bits to the tensor cores, threads widen them.
func (t Tile) multiplied(e types.Elem) types.Elem {
	if e.IsFloat() && e.Bytes() == 1 && (t.Path == warpPath || t.Path == gatherPath) {
		return types.F16
	}
	return e
}

// near is what the level-1 cache keeps beside the stages of a tile that gathers: of 256 kB these leave 60.
const near = 48 << 10

// OrderedTaps is the most taps of a window that a tile which gathers visits plane by plane.
const OrderedTaps = 16

// Again is the part of its reads that a tile which gathers makes of the level-2 cache, for so many outputs of p's window:
// elements that several taps meet, of up to 64 channels, come from the level-1 cache where that keeps them.
func (p Product) Again(outputs int64) float64 {
	w := p.Window
	if w.Taps <= 1 {
		return 1
	}
	met := w.Planes * (outputs + w.Span)
	keep := met
	if w.Taps <= OrderedTaps && p.Phases == 0 {
		keep /= w.Planes
	}
	channels := p.Depth / w.Taps
	if p.Phases > 0 {
		channels = p.Channels
	}
	if keep*min(64, channels)*2 > near {
		return 1
	}
	return min(1, float64(met)/float64(outputs*w.Taps))
}

// reads is the elements of both operands that a block reads from the level-2 cache for each value of the depth, and how many pass
// through its own memory, where that may be what it waits for: a tile that gathers writes both operands there, its consumers read
// the columns once each, and what comes from the level-1 cache is read there, too.
func (t Tile) reads(p Product) (far, near float64) {
	rows, cols := float64(t.Rows), float64(t.Cols)
	switch t.Pair {
	case PairRows:
		cols /= 2
	case PairCols:
		rows /= 2
	}
	if p.Structured {
		structured := &rows
		if p.Turned {
			structured = &cols
		}
		*structured *= StructuredBytes
	}
	if t.Path != gatherPath {
		return rows + cols, 0
	}
	near = 2*rows + 3*cols
	image := &rows
	if p.Turned {
		image = &cols
	}
	if part := p.Again(int64(*image)); part < 1 {
		near += *image
		*image *= part
	}
	return rows + cols, near
}

// The blocks of a cluster that share sums meet before they read each other's, and before they end: each takes no longer than a load from
// memory. That a multiprocessor reads distributed shared memory at half of the rate of the level-2 cache is an assumption, on the safe side: blocks
// compete for it (Luo et al., Dissecting the NVIDIA Hopper Architecture through Microbenchmarking, 2025).
const (
	clusterBarriers = 2
	distributed     = 2
	accumulator     = 4 // bytes of a sum
)

// line is how many bytes of its memory a multiprocessor accesses in a clock.
const line = 128

// down is how many tiles of so many rows lie one below the other. Each group has whole tiles, the last of which is half full on average.
func (p Product) down(rows int64) int64 {
	if p.Groups > 1 {
		return ceil(p.Rows, rows) + p.Groups/2
	}
	return ceil(p.Rows, rows)
}

// productTime is that of a tile whose multiplications have this rate, and which shares reads with so many others.
func (m *Machine) productTime(p Product, t Tile, rate, sharing float64) ProductTime {
	size := float64(p.Elem.Bytes())
	splits := int64(max(t.Splits, 1))
	rows, cols, step := int64(t.Rows), int64(t.Cols), int64(max(t.Step, 1))
	blocks := p.Batch * p.down(rows) * ceil(p.Cols, cols) * splits
	depth := p.depth(splits, step)
	sms := float64(m.SMs)
	area := float64(t.Rows) * float64(t.Cols)

	compute := 2 * area * depth * p.present() / (rate / sms)
	far, near := t.reads(p)
	reads := far * depth * size / sharing
	active := min(float64(blocks), sms)
	loads := reads / min(m.L2Bandwidth/active, 2*m.L2Bandwidth/sms)
	if near > 0 && m.Clock > 0 {
		loads = max(loads, near*depth*size/(line*m.Clock))
	}
	at := int64(m.SMs) // blocks at a time
	e := p.Epilogue
	exchange := 0.0
	switch {
	case t.Cluster:
		at = max(1, at/splits) * splits // a group of multiprocessors has whole clusters
		exchange = area * accumulator * float64(splits-1) / float64(splits) / (m.L2Bandwidth / sms / distributed)
		area /= float64(splits) // of the epilogue and the stores
	case splits > 1: // the kernel that adds the sums up has it
		e = Epilogue{}
	}
	store := area * size / (m.L2Bandwidth / sms)
	waves := float64(ceil(blocks, at))
	total := 0.0
	if t.Path == pingpongPath {
		own := max(store, m.epilogue(e, area, warpgroup))
		total = waves*max(compute, loads, (max(compute, loads)+own)/2) + own
	} else {
		behind := store / 2
		if t.Path == wgmmaPath || t.Path == gatherPath {
			behind = max(behind, m.epilogue(e, area, 2*warpgroup))
		}
		total = waves*(max(compute, loads)+behind) + store/2
		if s, ok := m.StreamK(p, t); ok && t.StreamK {
			n := float64(s.Steps)
			alone := max(compute, reads*sharing/(m.L2Bandwidth/sms)) // neighbours are at other steps, and read other lines
			total = m.streamTime(s, max(compute, reads/(m.L2Bandwidth/sms))/n, alone/n, behind, store/2, area)
		}
	}
	if t.Pair != "" {
		total += m.MemoryLatency
	}
	switch {
	case t.Cluster:
		total += waves*exchange + clusterBarriers*m.MemoryLatency
	case splits > 1:
		sums := accumulator * float64(p.Batch) * float64(p.Rows) * float64(p.Cols)
		total += 2*sums*float64(splits)/m.L2Bandwidth + m.Start() + m.epilogue(p.Epilogue, sums/accumulator/sms, 4*warpgroup)
	}
	out := ProductTime{Blocks: blocks, Compute: p.FLOP() / rate, L2: float64(blocks) * reads / m.L2Bandwidth}
	out.Tail = max(0, total-max(out.Compute, out.L2))
	return out
}

// efficiency is the part of the reachable rate that a tile's main loop has, by how many products it computes for
// each operand that it reads: the larger the tile, the less often the loop waits.
func (t Tile) efficiency() float64 {
	return min(1, math.Pow(float64(t.Rows)*float64(t.Cols)/float64(t.Rows+t.Cols)/large, 0.4))
}

// efficiencies are those of tiles: each op's time asks for all of them.
var efficiencies = func() (all [10]float64) {
	for i, t := range tiles {
		all[i] = t.efficiency()
	}
	return all
}()

// WindowPath is the path of a convolution that threads compute as sums over windows: each has Rows lines of Cols outputs, and takes
// Step slots of the issue of instructions.
const WindowPath = "window"

// windowTime is the time of p as sums over windows: that of the issue of instructions, or of the multiplications where a machine
// multiplies fewer numbers in a clock than it issues. Four instructions of 32 lanes are issued in a clock of a multiprocessor.
func (m *Machine) windowTime(p Product, t Tile) ProductTime {
	issue := m.Rate(false, types.F32, "") / 2
	if lanes := float64(m.SMs) * m.Clock * 4 * 32; lanes > issue && m.Clock > 0 {
		issue = lanes * m.Rate(false, types.F32, "") / m.Peak(false, types.F32)
	}
	slots := float64(p.Batch) * float64(p.Rows) * float64(p.Cols) / float64(t.Rows*t.Cols) * float64(t.Step)
	return ProductTime{Compute: max(slots/issue, p.FLOP()/m.Rate(false, p.Elem, ""))}
}

// The paths that time is reckoned for in their own way: products on the vector units, of warps, and those of warpgroups that
// share a tile, take turns, or have an operand that another one gathers.
const (
	vectorPath   = "fma"
	warpPath     = "mma"
	wgmmaPath    = "wgmma"
	pingpongPath = "pingpong"
	gatherPath   = "gather"

	// StructuredPath is that of warps whose first operand has two of each four elements (mma.sp). The rate of a machine is that of dense
	// matrices, and of the multiplications that are left it is the same: with this sparsity data sheets state twice as many FLOP/s.
	StructuredPath = "mma_sp"
)

// warpgroup is its threads.
const warpgroup = 128

// large is the reuse of a tile of 128 × 256.
const large = 128 * 256 / (128 + 256)

func ceil(a, b int64) int64 { return (a + b - 1) / b }
