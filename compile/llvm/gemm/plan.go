package gemm

// Plan is how a product is computed.
type Plan struct {
	Shape   Shape
	Machine Machine

	// Few: B is read once where it lies, see stream.go. Else the sizes below hold.
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
	// Scratch is the bytes of memory that a thread needs.
	Scratch int64
}

// unroll is how many steps of k an iteration of the micro-kernel sums. Panels are padded
// to a multiple of it with zeros.
const unroll = 4

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
	if s.Rows <= fewRows && !s.Half && s.Window == nil {
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
	p.Scratch = p.layout().total
	return p
}

// lanes is the number of sums in a vector.
func (p Plan) lanes() int64 { return p.Machine.Bytes / p.Shape.Acc.Size() }

// chooseTile finds the tile of registers with the fewest estimated cycles for the whole
// product: a tile that divides the shape badly computes zeros, a small one loads more
// for each sum.
func (p *Plan) chooseTile() {
	s, regs, lanes := p.Shape, p.Machine.Registers, p.lanes()
	best := 0.0
	for v := int64(1); v <= 4; v++ {
		for mr := min((regs-p.Machine.spare-v)/v, 28, s.Rows); mr >= 1; mr-- {
			// Two sums or two loads start in a cycle, a sum takes four cycles, and B comes
			// from the L2 cache.
			step := max(float64(mr*v)/2, float64(mr+v)/2, 4) + 0.25*float64(v)
			cost := step * float64(ceil(s.Rows, mr)*ceil(s.Cols, v*lanes))
			if best == 0 || cost < best {
				best, p.MR, p.NR = cost, mr, v*lanes
			}
		}
	}
}

// chooseBlocks sets the sizes of blocks in memory.
func (p *Plan) chooseBlocks() {
	s, m, size := p.Shape, p.Machine, p.Shape.Acc.Size()
	products := int64(s.Products)
	// A sliver of A takes up to three quarters of the L1 cache: B only passes through it.
	kc := min(m.L1*3/4/(p.MR*size), maxKC)
	p.KC = even(s.Depth, kc, unroll)
	if p.KC >= 8*p.lanes() {
		p.KC = even(s.Depth, kc, 2*p.lanes()) // loops that pack have no rest
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
	p.Resident = p.packed()*p.passes()*size*products <= mostPacked
}

// even divides n into the fewest parts of at most limit, and returns a size of equal
// ones that is a multiple of unit.
func even(n, limit, unit int64) int64 {
	limit = max(limit/unit*unit, unit)
	return up(ceil(n, max(ceil(n, limit), 1)), unit)
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

func up(n, unit int64) int64 { return ceil(n, unit) * unit }

// layout is where things lie in the scratch memory, in bytes.
type layout struct {
	a, b, stage, sums int64
	packed, tile      int64 // bytes of B, and of the sums, of one product
	total             int64
}

func (p Plan) layout() layout {
	size := p.Shape.Acc.Size()
	var at int64
	take := func(elems int64) int64 {
		from := at
		at += up(elems*size, 64)
		return from
	}
	passes := int64(1)
	if p.Resident {
		passes = p.passes()
	}
	rows := p.MR
	if p.passes() > 1 {
		rows = p.MC
	}
	products := int64(p.Shape.Products)
	var l layout
	l.a = take(p.sliver().size * p.sliver().count)
	stage := max(p.NR*p.stage(), stageRows*p.stageRow())
	if w := p.Shape.Window; w != nil && w.Step > 1 {
		stage = max(stage, p.lines()*p.staged())
	}
	l.stage = take(stage)
	l.packed, l.tile = p.packed()*passes*size, rows*p.NC*size
	l.b = take(l.packed / size * products)
	l.sums = take(l.tile / size * products)
	l.total = at
	return l
}

// packed is the elements of B, of one product, that a pass needs.
func (p Plan) packed() int64 {
	if w := p.Shape.Window; w != nil {
		return p.KC / int64(len(w.Taps)) * w.Planes * p.span()
	}
	return p.NC * p.deep()
}

// deep is the depth of a packed panel of B: that of a pass, in whole transposed squares.
func (p Plan) deep() int64 { return up(p.KC, max(p.lanes(), unroll)) }

// width is the columns of a finished tile.
func (p Plan) width() int64 {
	return min(up(max(tileColumns, tileSums/p.MR/tileColumns*tileColumns), p.NR), p.NC)
}

// passes is in how many parts the depth is summed.
func (p Plan) passes() int64 { return ceil(p.Shape.Depth, p.KC) }

// stage is the depth of B that is evaluated before it is transposed.
func (p Plan) stage() int64 { return min(up(p.KC, p.lanes()), 64) }
