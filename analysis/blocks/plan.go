package blocks

// Plan is how a product is computed.
type Plan struct {
	Shape   Shape
	Machine Machine

	// Few: B is read once where it lies. Else the sizes below hold.
	Few bool
	// MR × NR is the tile of C in registers, NR whole vectors.
	MR, NR int64
	// MC × NC is the block of C of a task, and KC the depth that one pass over it sums.
	MC, NC, KC int64
	// Resident: a packed block of B has the whole depth and serves all rows.
	Resident bool

	// Tasks is the number of tasks, which are independent of each other. Consecutive ones
	// share packed operands.
	Tasks int64
}

// Unroll is how many steps of k an iteration of the micro-kernel sums. Panels are padded
// to a multiple of it with zeros.
const Unroll = 4

// Bounds of plans, measured with squares, projections and attention heads on a Sapphire
// Rapids core.
const (
	fewRows     = 12       // of a product that streams B
	maxKC       = 512      // more saves little of the traffic of partial sums
	mostPacked  = 16 << 20 // bytes of a resident block of B
	taskSteps   = 1 << 20  // multiplications of a task that make its overhead small
	wantTasks   = 128      // so that static ranges of up to 64 threads are even
	mostRows    = 256      // of a block, whose partial sums are in the L2 cache
	tileColumns = 64       // of a finished tile of many rows
	tileSums    = 1024     // of one with few rows, so that its overhead is small
)

// Choose plans a product for an architecture.
func Choose(s Shape, arch string) Plan {
	p := Plan{Shape: s, Machine: MachineOf(arch)}
	if s.Rows <= fewRows && !s.Half && s.Window == nil && !s.Grouped {
		p.Few = true
		p.chooseStream()
		return p
	}
	p.chooseTile()
	if s.Window != nil {
		p.chooseWindow()
	} else {
		p.chooseBlocks()
	}
	p.Tasks = s.Batch * ceil(s.Cols, p.NC) * ceil(s.Rows, p.MC)
	return p
}

// Lanes is the number of sums in a vector.
func (p Plan) Lanes() int64 { return p.Machine.Bytes / p.Shape.Acc.Size() }

// chooseTile finds the tile of registers with the fewest estimated cycles for the whole
// product: a tile that divides the shape badly computes zeros, a small one loads more
// for each sum.
func (p *Plan) chooseTile() {
	s, regs, lanes := p.Shape, p.Machine.Registers, p.Lanes()
	best := 0.0
	for v := int64(1); v <= 4; v++ {
		for mr := min((regs-p.Machine.spare-v)/v, 28, s.Rows); mr >= 1; mr-- {
			cost := p.step(mr, v) * float64(ceil(s.Rows, mr)*ceil(s.Cols, v*lanes))
			if best == 0 || cost < best {
				best, p.MR, p.NR = cost, mr, v*lanes
			}
		}
	}
}

// step is about how many cycles a step of k takes for a tile of rows and of vectors: two sums or two loads start in a cycle,
// a sum takes four cycles, and B comes from the L2 cache.
func (p *Plan) step(rows, vectors int64) float64 {
	return max(float64(rows*vectors)/2, float64(rows+vectors)/2, 4) + 0.25*float64(vectors)
}

// chooseBlocks sets the sizes of blocks in memory.
func (p *Plan) chooseBlocks() {
	s, m, size := p.Shape, p.Machine, p.Shape.Acc.Size()
	products := int64(s.Products)
	// A sliver of A takes up to three quarters of the L1 cache: B only passes through it.
	kc := min(m.L1*3/4/(p.MR*size), maxKC)
	p.KC = even(s.Depth, kc, Unroll)
	if p.KC >= 8*p.Lanes() {
		p.KC = even(s.Depth, kc, 2*p.Lanes()) // loops that pack have no rest
	}
	// A pass over B, KC × NC, takes up to three quarters of the L2 cache.
	nc := max(m.L2*3/4/(p.KC*size*products), p.NR)
	tasks := max(min(wantTasks, s.Batch*s.Rows*s.Cols*s.Depth*products/taskSteps), 1)
	if s.Rows <= mostRows {
		// Tasks have all rows, so that no part of B is packed twice or kept for later.
		p.MC = up(s.Rows, p.MR)
		p.NC = even(s.Cols, min(nc, max(s.Cols*s.Batch/tasks, min(s.Rows, 2*tileColumns), tileColumns)), p.NR)
		return
	}
	// Tasks have few rows, since a thread packs B once for all its rows, but A once for each
	// block of columns. Columns are divided further where rows alone make too few tasks.
	least := 2 * p.MR
	if s.A == Outer {
		least = 8 * p.MR // rows are evaluated in runs of memory
	}
	most := s.Batch * s.Cols * ceil(s.Rows, least) / tasks
	p.NC = even(s.Cols, min(nc, max(most, 4*tileColumns)), p.NR)
	rows := s.Rows * s.Batch * ceil(s.Cols, p.NC) / tasks
	p.MC = even(s.Rows, min(max(rows, least), mostRows), p.MR)
	p.Resident = p.Packed()*p.Passes()*size*products <= mostPacked
}

// even divides n into the fewest parts of at most limit, and returns a size of equal
// ones that is a multiple of unit.
func even(n, limit, unit int64) int64 {
	limit = max(limit/unit*unit, unit)
	return up(ceil(n, max(ceil(n, limit), 1)), unit)
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

func up(n, unit int64) int64 { return ceil(n, unit) * unit }

// Packed is the elements of B, of one product, that a pass needs.
func (p Plan) Packed() int64 {
	if w := p.Shape.Window; w != nil {
		return p.KC / int64(len(w.Taps)) * w.Planes * p.Span()
	}
	return p.NC * p.Deep()
}

// Deep is the depth of a packed panel of B: that of a pass, in whole transposed squares.
func (p Plan) Deep() int64 { return up(p.KC, max(p.Lanes(), Unroll)) }

// Width is the columns of a finished tile.
func (p Plan) Width() int64 {
	return min(up(max(tileColumns, tileSums/p.MR/tileColumns*tileColumns), p.NR), p.NC)
}

// Passes is in how many parts the depth is summed.
func (p Plan) Passes() int64 { return ceil(p.Shape.Depth, p.KC) }

// Span is the elements of a plane that a block of columns needs, and what whole vectors
// store beyond them.
func (p Plan) Span() int64 { return up(p.NC+p.Shape.Window.Halo(), p.Lanes()) + p.Lanes() }

// windowRows is the rows of a task whose sums take longer than to copy its part of the image.
const windowRows = 16

// chooseWindow sets the sizes of blocks of a product whose B is an image.
func (p *Plan) chooseWindow() {
	s, m, size := p.Shape, p.Machine, p.Shape.Acc.Size()
	w, taps := s.Window, int64(len(s.Window.Taps))
	kc := min(m.L1*3/4/(p.MR*size), maxKC)
	p.KC = even(s.Depth/taps, max(kc/taps, 1), 1) * taps
	tasks := max(min(wantTasks, s.Batch*s.Rows*s.Cols*s.Depth/taskSteps), 1)
	// The planes of a pass take up to half of the L2 cache.
	nc := max(m.L2/2/(p.KC/taps*w.Planes*size)-w.Halo(), p.NR)
	p.MC = even(s.Rows, mostRows, p.MR)
	p.NC = even(s.Cols, min(nc, max(s.Cols*s.Batch*ceil(s.Rows, p.MC)/tasks, 4*tileColumns)), p.NR)
	if rows := s.Rows * s.Batch * ceil(s.Cols, p.NC) / tasks; rows < p.MC {
		p.MC = even(s.Rows, max(rows, windowRows), p.MR)
	}
	p.Resident = s.Rows > p.MC && p.Packed()*p.Passes()*size <= mostPacked
}

// Bounds of the columns of a task, where neighbours are columns: a short run of memory
// costs more, a long one leaves few tasks.
const (
	leastRun = 256
	mostRun  = 1024
	wantRuns = 8 // tasks
)

// streamSteps is the multiplications of a task that make its overhead small. They take
// longer than others, since they wait for memory.
const streamSteps = taskSteps / 16

// chooseStream plans a product that streams B.
func (p *Plan) chooseStream() {
	s := p.Shape
	p.MR, p.MC, p.KC = s.Rows, s.Rows, s.Depth
	run := min(max(s.Batch*s.Cols/wantRuns, leastRun), mostRun)
	if s.B == Depth { // each column is a run of memory
		tasks := min(wantTasks, max(s.Batch*s.Rows*s.Cols*s.Depth/streamSteps, 1))
		run = max(s.Batch*s.Cols/tasks, 1)
	}
	p.NC = min(up(run, p.Lanes()), up(s.Cols, p.Lanes()))
	p.Tasks = s.Batch * ceil(s.Cols, p.NC)
}
