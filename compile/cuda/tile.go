package cuda

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/compile/kernel"
	"dmir/dialect/types"
)

// Path is the main loop of a contraction.
type Path string

// The paths.
const (
	Wgmma    Path = "wgmma"                // Hopper's warpgroup products, fed by tensor maps; two consumers share a tile
	Pingpong Path = "pingpong"             // the same; consumers have tiles of their own, and take turns
	Gather   Path = "gather"               // consumers share a tile, with an operand that a warpgroup gathers by cp.async
	Fused    Path = machine.FusedPath      // all products of attention's gradient in one kernel of warpgroup products
	Mma      Path = "mma"                  // tensor cores warp by warp, sm_80 up (sm_100 too: tcgen05 is not used)
	MmaSp    Path = machine.StructuredPath // tensor cores warp by warp, with an operand that has two of each four elements
	Fma      Path = "fma"                  // vector units, for every element type
)

// warpgroups reports whether the main loop is that of Hopper's warpgroup products.
func (p Path) warpgroups() bool { return p.bulk() || p == Gather }

// bulk reports whether tensor maps copy both operands for it.
func (p Path) bulk() bool { return p == Wgmma || p == Pingpong }

// Config is the tiling of a contraction.
type Config struct {
	Path       Path
	BM, BN, BK int // of a block
	WM, WN     int // of a warp (mma), of a thread (fma)
	Stages     int // of the pipeline (mma, wgmma, pingpong, gather)
	Splits     int // blocks that a sum is split over
	// Cluster: they are a cluster, and add their partial sums up on the chip; else a second kernel does it.
	Cluster bool
	TF32    bool // of f32 rounded to TF32, on tensor cores
	Pair    machine.Pair
	Phases  bool // of the phases of a convolution
	StreamK bool // the last waves of tiles are shared by their steps
}

func (c Config) String() string { return c.tile().String() }

// threads of a block.
func (c Config) threads() int {
	switch c.Path {
	case Wgmma, Pingpong, Gather:
		return 384
	case Mma, MmaSp:
		return c.BM / c.WM * (c.BN / c.WN) * 32
	}
	return c.BM / c.WM * (c.BN / c.WN)
}

// shared is the bytes of dynamic shared memory, as the prelude's tiles count them. The parts of a cluster's sums take the memory of the
// stages.
func (c Config) shared(elem types.Elem) int {
	if c.Cluster {
		whole := c
		whole.Cluster = false
		return max(whole.shared(elem), c.BM*(c.BN+8)*accBytes(elem))
	}
	switch c.Path {
	case Wgmma, Pingpong, Gather:
		return c.Stages*(c.BM+c.BN)*128 + 8*16*(32+8)*4 + (2*c.Stages+2)*8
	case MmaSp: // the rows of either operand may have half of the elements, and metadata
		const whole, half = 64 * 2, 32*2 + 8
		return max(c.Stages*max(c.BM*half+c.BN*whole, c.BM*whole+c.BN*half), c.threads()/32*16*(c.WN+8)*4)
	case Mma:
		warps, padding := c.threads()/32, 0
		if c.TF32 {
			padding = 16
		}
		return max(c.Stages*(c.BM+c.BN+padding)*c.BK*c.width(), warps*16*(c.WN+8)*4)
	}
	return 2 * c.BK * (c.BM + 4 + c.BN + 4) * accBytes(elem)
}

// width is the bytes of an element in the shared memory of a tile that tensor cores multiply.
func (c Config) width() int {
	switch {
	case c.TF32:
		return 4
	case c.bytes():
		return 1
	}
	return 2
}

// accBytes is the size of an accumulator on the vector units.
func accBytes(elem types.Elem) int {
	if elem == types.F64 || elem.IsInt() && elem.Bytes() == 8 {
		return 8
	}
	return 4
}

// registers estimates those of a thread: its sums, a step's operands, and
// addresses.
func (c Config) registers(elem types.Elem) int {
	switch c.Path {
	case Wgmma, Pingpong, Gather:
		return 168
	case Mma:
		return min(255, c.WM*c.WN/32+c.WM/4+c.WN/4+40)
	case MmaSp:
		return min(255, c.WM*c.WN/32+c.WM/2+c.WN/2+40)
	}
	return min(255, (c.WM*c.WN+c.WM+c.WN)*accBytes(elem)/4+96)
}

// resident is the intended number of blocks on a multiprocessor: as many as
// shared memory and registers allow, where a thread needs `more` registers than
// usual. The kernel declares it, so that ptxas may use all registers.
func (c Config) resident(elem types.Elem, m *machine.Machine, more int) int {
	if c.Path.warpgroups() {
		return 1
	}
	perSM := min(int(m.SharedMemory)/(c.shared(elem)+1024), 65536/(c.threads()*min(255, c.registers(elem)+more)), 2048/c.threads())
	return max(1, perSM)
}

// The tiles that templates are tested with.
var (
	wgmmaTiles = []Config{
		{Path: Wgmma, BM: 128, BN: 256, BK: 64, Stages: 4},
		{Path: Wgmma, BM: 256, BN: 128, BK: 64, Stages: 4},
		{Path: Wgmma, BM: 128, BN: 128, BK: 64, Stages: 6},
		{Path: Wgmma, BM: 128, BN: 64, BK: 64, Stages: 8},
		{Path: Pingpong, BM: 128, BN: 128, BK: 64, Stages: 6},
		{Path: Pingpong, BM: 64, BN: 256, BK: 64, Stages: 5},
		{Path: Pingpong, BM: 64, BN: 128, BK: 64, Stages: 8},
		{Path: Pingpong, BM: 128, BN: 64, BK: 64, Stages: 8},
	}
	// Tiles of f8 numbers: two sets of sums of half a tile's rows fit the registers.
	byteTiles = []Config{
		{Path: Wgmma, BM: 256, BN: 128, BK: 128, Stages: 4},
		{Path: Wgmma, BM: 128, BN: 128, BK: 128, Stages: 6},
		{Path: Wgmma, BM: 128, BN: 64, BK: 128, Stages: 8},
	}
	// Tiles that gather leave a part of the level-1 cache to the elements that several taps of a window meet.
	gatherTiles = []Config{
		{Path: Gather, BM: 128, BN: 256, BK: 64, Stages: 3},
		{Path: Gather, BM: 256, BN: 128, BK: 64, Stages: 3},
		{Path: Gather, BM: 128, BN: 128, BK: 64, Stages: 4},
		{Path: Gather, BM: 256, BN: 64, BK: 64, Stages: 4},
		{Path: Gather, BM: 128, BN: 64, BK: 64, Stages: 6},
	}
	mmaTiles = []Config{
		{Path: Mma, BM: 128, BN: 256, BK: 32, WM: 64, WN: 64, Stages: 3},
		{Path: Mma, BM: 256, BN: 128, BK: 32, WM: 64, WN: 64, Stages: 3},
		{Path: Mma, BM: 128, BN: 128, BK: 32, WM: 64, WN: 32, Stages: 4},
		{Path: Mma, BM: 64, BN: 128, BK: 32, WM: 32, WN: 64, Stages: 4},
		{Path: Mma, BM: 128, BN: 64, BK: 32, WM: 64, WN: 32, Stages: 4},
		{Path: Mma, BM: 64, BN: 64, BK: 32, WM: 32, WN: 32, Stages: 4},
		{Path: Mma, BM: 128, BN: 16, BK: 64, WM: 32, WN: 16, Stages: 4},
		{Path: Mma, BM: 16, BN: 128, BK: 64, WM: 16, WN: 32, Stages: 4},
	}
	// Tiles of grouped products with few rows or columns, as rows of blocks have.
	blockTiles = []Config{
		{Path: Mma, BM: 32, BN: 128, BK: 64, WM: 32, WN: 32, Stages: 4},
		{Path: Mma, BM: 64, BN: 32, BK: 64, WM: 32, WN: 16, Stages: 4},
		{Path: Mma, BM: 32, BN: 32, BK: 64, WM: 16, WN: 16, Stages: 4},
	}
	// Tiles of products with a 2:4 matrix, which has two fragments or more of a warp's rows or columns.
	structuredTiles = []Config{
		{Path: MmaSp, BM: 128, BN: 256, BK: 64, WM: 64, WN: 64, Stages: 3},
		{Path: MmaSp, BM: 256, BN: 128, BK: 64, WM: 64, WN: 64, Stages: 3},
		{Path: MmaSp, BM: 128, BN: 128, BK: 64, WM: 64, WN: 32, Stages: 3},
		{Path: MmaSp, BM: 64, BN: 128, BK: 64, WM: 32, WN: 64, Stages: 4},
		{Path: MmaSp, BM: 128, BN: 64, BK: 64, WM: 64, WN: 32, Stages: 4},
		{Path: MmaSp, BM: 64, BN: 64, BK: 64, WM: 32, WN: 32, Stages: 4},
		{Path: MmaSp, BM: 128, BN: 16, BK: 64, WM: 32, WN: 16, Stages: 4},
		{Path: MmaSp, BM: 16, BN: 128, BK: 64, WM: 16, WN: 32, Stages: 4},
	}
	fmaTiles = []Config{
		{Path: Fma, BM: 128, BN: 128, BK: 8, WM: 8, WN: 8},
		{Path: Fma, BM: 64, BN: 64, BK: 16, WM: 4, WN: 4},
		{Path: Fma, BM: 128, BN: 32, BK: 16, WM: 4, WN: 8},
		{Path: Fma, BM: 32, BN: 128, BK: 16, WM: 4, WN: 8},
	}
)

// The same with TF32, whose lines of shared memory have as many bytes.
var (
	bulkTiles    = slices.Concat(byteTiles, wgmmaTiles, tf32Tiles(wgmmaTiles))
	mmaTF32Tiles = tf32Tiles(mmaTiles)
	allTiles     = slices.Concat(paired(bulkTiles), gatherTiles, mmaTiles, mmaTF32Tiles, blockTiles, tf32Tiles(blockTiles), structuredTiles, fmaTiles)
)

func tf32Tiles(tiles []Config) []Config {
	tiles = slices.Clone(tiles)
	for i := range tiles {
		tiles[i].BK, tiles[i].TF32 = tiles[i].BK/2, true
	}
	return tiles
}

// productShape is what the choice of a tile depends on.
type productShape struct {
	batch, rows, cols, depth int64
	products                 int
	elems                    [2]types.Elem
	sum                      types.Elem
	half, reduces            bool
	structured               bool           // an operand has two of each four elements along the depth: A, or B where turned
	window                   machine.Window // of a convolution
	turned                   bool           // whose image is B
	operands                 int64          // elements of both; 0: those of the matrices
	groups                   int64          // of a grouped product, 0 of others: of its rows, where the batch is 1, else each of the batch
	phases, channels         int64          // of a convolution's outputs, that share the depth in parts of so many; 0: all have all of it
	epilogue                 machine.Epilogue
	fits                     func(Config) bool // whether both operands of a tile get to Hopper's products on its path; nil: no
}

func shapeOf(t *kernel.Tiled) productShape {
	a, b := t.Elements()
	p := productShape{
		batch: t.Batch, rows: t.Rows, cols: t.Cols, depth: t.Depth, products: t.Products, elems: t.Elems, sum: t.Elem, half: t.Half, reduces: t.Reduces,
		window: cost.WindowOf(t.Main(), t.Phases() > 0), turned: t.Turned(), operands: a + b,
	}
	p.structured = t.Structured()
	if p.phases = t.Phases(); p.phases > 0 {
		p.channels = t.Channels()
	}
	if g := t.Grouping(); g != nil {
		p.groups = g.Count
		if g.Rows {
			p.batch = 1
		} else {
			p.depth = ceil(p.depth, g.Count)
		}
	}
	return p
}

// tf32 reports whether operands are rounded to TF32.
func (p productShape) tf32() bool { return p.elems[0] == types.TF32 }

// tensorElem is the 16-bit type that holds both operands exactly, for tensor
// cores, or TF32; false where there is none.
func (p productShape) tensorElem() (types.Elem, bool) {
	if p.half || !p.sum.IsFloat() || p.sum == types.F64 {
		return 0, false
	}
	if p.tf32() {
		return types.TF32, true
	}
	exact := func(e types.Elem) types.Elem {
		if e.IsFloat() && e.Bytes() == 1 {
			return types.F16 // both f8 types are subsets of it
		}
		return e
	}
	a, b := exact(p.elems[0]), exact(p.elems[1])
	return a, a == b && (a == types.F16 || a == types.BF16)
}

// elem is the type of an operand in shared memory for tile c, of p that tensor cores take: its own for tiles of f8 numbers.
func (p productShape) elem(c Config, which int) (types.Elem, bool) {
	if c.bytes() {
		e := p.elems[which]
		return e, !p.half && e.IsFloat() && e.Bytes() == 1
	}
	return p.tensorElem()
}

// bytes reports whether the tile is one of f8 numbers.
func (c Config) bytes() bool { return c.Path.bulk() && c.BK == 128 }

// Candidates are the tiles that can compute t on an architecture, least
// predicted time first, for measurements to choose from.
func Candidates(t *kernel.Tiled, target Target) []Config {
	p := shapeOf(t)
	if target.Arch == "sm_90a" {
		p.fits = feeding(t)
		p.epilogue = epilogueOf(t)
	}
	return p.candidates(target)
}

func (p productShape) candidates(target Target) []Config {
	tiles := fmaTiles
	if p.structured {
		tiles = structuredTiles
	} else if _, ok := p.tensorElem(); ok {
		fed := func(tiles []Config) []Config {
			return slices.DeleteFunc(slices.Clone(tiles), func(c Config) bool { return p.fits == nil || !p.fits(c) })
		}
		if bulk := fed(bulkTiles); len(bulk) > 0 {
			tiles = bulk
		} else if p.tf32() {
			tiles = mmaTF32Tiles
			if p.groups > 0 {
				tiles = slices.Concat(tiles, tf32Tiles(blockTiles))
			}
		} else {
			tiles = slices.Concat(fed(gatherTiles), mmaTiles)
			if p.groups > 0 {
				tiles = slices.Concat(tiles, blockTiles)
			}
		}
	}
	type timed struct {
		c Config
		t float64
	}
	var all []timed
	for _, c := range paired(tiles) {
		c.Phases = p.phases > 0
		if int64(c.shared(p.sum)) > target.Machine.SharedMemory || !p.takes(c) || !p.pairs(c, target.Machine) {
			continue
		}
		for splits := 1; splits <= mostSplits; splits *= 2 {
			if c.Splits, c.Cluster = splits, false; splits > 1 && (p.half || p.reduces || p.groups > 0 || int64(splits*4*c.BK) > p.depth) {
				break
			}
			all = append(all, timed{c, p.time(c, target.Machine)})
			if c.Cluster = true; p.clusters(c, target) {
				all = append(all, timed{c, p.time(c, target.Machine)})
			}
		}
		if c.Splits, c.Cluster, c.StreamK = 1, false, true; p.streams(c, target.Machine) {
			all = append(all, timed{c, p.time(c, target.Machine)})
		}
	}
	// There are few entries: insertion keeps the order of the tables among
	// equals.
	for i := 1; i < len(all); i++ {
		for j := i; j > 0 && all[j].t < all[j-1].t; j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	out := make([]Config, len(all))
	for i, a := range all {
		out[i] = a.c
	}
	return out
}

// paired are tiles and, of those whose operands tensor maps copy, the same in pairs.
func paired(tiles []Config) (all []Config) {
	for _, c := range tiles {
		all = append(all, c)
		if !c.Path.bulk() {
			continue
		}
		for _, c.Pair = range []machine.Pair{machine.PairRows, machine.PairCols} {
			all = append(all, c)
		}
	}
	return all
}

// pairs reports whether the blocks of p with tile c form the pairs that it has, and both operands get to them so.
func (p productShape) pairs(c Config, m *machine.Machine) bool {
	return c.Pair == "" || c.Path.bulk() && m.Pairs(p.product(), c.tile()) && (p.fits == nil || p.fits(c))
}

// clusters reports whether the blocks that share a sum of p with tile c can be a cluster: of a portable size, each with a single tile whose
// sums its shared memory holds.
func (p productShape) clusters(c Config, target Target) bool {
	return dependent(target.Arch) && !p.structured && slices.Contains(clusterSizes, int64(c.Splits)) && c.Pair == "" &&
		int64(c.shared(p.sum)) <= target.Machine.SharedMemory
}

// streams reports whether blocks can share the steps of p's last tiles with tile c. Registers that hold two sets of sums of f8 numbers for 256 rows have
// no room for where the block is.
func (p productShape) streams(c Config, m *machine.Machine) bool {
	_, ok := m.StreamK(p.product(), c.tile())
	return ok && !p.half && !p.structured && p.groups == 0 && c.alone(p.sum, m) && !(c.bytes() && c.BM > 128)
}

// alone reports whether a multiprocessor has one block with tile c at a time.
func (c Config) alone(elem types.Elem, m *machine.Machine) bool { return c.resident(elem, m, 0) == 1 }

// shares reports whether the pairs of c share operand `which`.
func (c Config) shares(which int) bool {
	return c.Pair == machine.PairCols && which == 0 || c.Pair == machine.PairRows && which == 1
}

// takes reports whether c can compute p.
func (p productShape) takes(c Config) bool {
	if p.structured || c.Path == MmaSp {
		_, ok := p.tensorElem()
		lines := c.WM // of a warp, of the structured operand
		if p.turned {
			lines = c.WN
		}
		return ok && p.structured && c.Path == MmaSp && !p.tf32() && p.elems[0].Bytes() == 2 && p.products == 1 && p.depth%int64(c.BK) == 0 && lines%32 == 0
	}
	for which := range 2 {
		if _, ok := p.elem(c, which); c.bytes() && !ok || c.Path != Fma && c.TF32 != p.tf32() {
			return false
		}
	}
	if p.products == 2 {
		switch c.Path {
		case Fma:
			return c.WN == 8
		case Mma:
			return c.WN > 16
		case Wgmma, Pingpong, Gather:
			return c.BN >= 128
		}
	}
	return true
}

// time predicts the seconds that p takes with tile c, by the model of costs: the product with this tile, and no less
// than the operands and the result take at the bandwidth that kernels reach.
func (p productShape) time(c Config, m *machine.Machine) float64 {
	x := m.ProductTime(p.product(), c.tile())
	// Among memory-bound tiles the one that computes less is better, and a smaller gain is not worth the memory of shared sums.
	t := math.Max(x.Total(), p.bytes()/m.Reach()) + x.Total()/1000
	if c.Splits > 1 && !c.Cluster || c.StreamK {
		t *= 1.05
	}
	if c.Path == Pingpong { // the first tile of a block has one consumer's warps alone
		t *= 1.01
	}
	return t
}

// bytes is what p moves at least: its operands, the result, and what the epilogue does.
func (p productShape) bytes() float64 {
	elem, cols := p.elems[0], p.cols*int64(p.products)
	bytes := float64(p.batch) * float64(elem.Bytes()) * (float64(p.rows*p.depth) + float64(cols*p.depth) + float64(p.rows*p.cols))
	if p.operands > 0 {
		bytes = float64(elem.Bytes()) * float64(p.operands+p.batch*p.rows*p.cols)
	}
	return bytes + float64(p.batch)*(p.epilogue.Read+p.epilogue.Written)*float64(p.rows*cols)
}

// product is p as the model of costs has it.
func (p productShape) product() machine.Product {
	x := machine.Product{Batch: p.batch, Rows: p.rows, Cols: p.cols * int64(p.products), Depth: p.depth, Elem: p.elems[0], Window: p.window, Turned: p.turned, Structured: p.structured, Epilogue: p.epilogue, Phases: p.phases, Channels: p.channels}
	if p.batch == 1 {
		x.Groups = p.groups
	}
	return x
}

// tile is c as the model of costs has it.
func (c Config) tile() machine.Tile {
	return machine.Tile{Path: string(c.Path), Rows: c.BM, Cols: c.BN, Step: c.BK, Splits: c.Splits, Cluster: c.Cluster, Pair: c.Pair, Phases: c.Phases, StreamK: c.StreamK}
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// key identifies a product and an architecture in the file of measured choices.
func (p productShape) key(arch string) string {
	parts := []string{arch, fmt.Sprintf("%dx%dx%dx%d", p.batch, p.rows, p.cols, p.depth), p.elems[0].String(), p.elems[1].String(), p.sum.String()}
	for _, part := range []struct {
		is   bool
		name string
	}{{p.groups > 0, fmt.Sprintf("%d groups", p.groups)}, {p.phases > 0, fmt.Sprintf("%d phases", p.phases)}, {p.products == 2, "two"}, {p.structured, "2:4"}, {p.half, "half"}, {p.reduces, "folds"}} {
		if part.is {
			parts = append(parts, part.name)
		}
	}
	return strings.Join(parts, " ")
}
