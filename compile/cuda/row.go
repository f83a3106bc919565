package cuda

import (
	"fmt"
	"slices"

	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// rowPlan is how the threads share the rows: a warp or a block for each row,
// and how often they step along it.
type rowPlan struct {
	v       int64 // neighbours of a thread
	chunks  int64 // of v columns in a row
	warp    bool  // a warp for each row, else a block
	threads int   // of a block
	share   int64 // threads of a row
	steps   int64 // of a thread along its row
	blocks  int64
	loop    bool // a block takes several rows, one after the other
	memory  bool // sums of columns are kept in memory: there are too many for registers
}

// cacheBytes is how much of a row each thread keeps in registers, at most.
const cacheBytes = 192

// sumRegisters is how many sums of columns a thread keeps in registers, at most.
const sumRegisters = 40

func (g *generator) planRows(f *kernel.Form, cols, alls int) rowPlan {
	sums := cols+alls > 0
	r := f.Rows
	p := rowPlan{v: min(8, 16/widestOf(f))}
	for p.v > 1 && (r.Cols%p.v != 0 || r.Cols/p.v < 32) {
		p.v /= 2
	}
	p.chunks = r.Cols / p.v
	sms := g.multiprocessors()
	p.warp = !sums && p.chunks <= 32*8 && r.Rows >= 2*sms
	if p.warp {
		p.threads, p.share = 128, 32
		p.blocks = (r.Rows + 3) / 4
	} else {
		p.share = 32
		for p.share < 512 && p.share*4 < p.chunks || p.share < 128 && p.share < p.chunks {
			p.share *= 2
		}
		p.threads = int(p.share)
		p.blocks = r.Rows
	}
	p.steps = (p.chunks + p.share - 1) / p.share
	if most := rowBlocks(r.Rows, p.share*p.steps, sms); sums && p.blocks > most {
		p.loop, p.blocks = true, most
	}
	p.memory = p.steps*p.v*int64(cols) > sumRegisters
	return p
}

// widestOf is the bytes of the widest element that f reads or writes along its
// rows. What is read for a whole row, or where the sums of columns are finished,
// does not count.
func widestOf(f *kernel.Form) int64 {
	widest := int64(1)
	see := func(x *kernel.Expr) {
		kernel.Walk(x, func(y *kernel.Expr) {
			if y.Op == kernel.Load && f.Rows.Col != nil {
				y.At.Atoms(func(a *kernel.Atom) {
					if a == f.Rows.Col || a.Kind == kernel.Datum {
						widest = max(widest, y.Elem.Bytes())
					}
				})
			}
		})
	}
	for _, o := range f.Outs {
		switch o.Level {
		case kernel.PerElement:
			widest = max(widest, kernel.ElemOf(o.Value).Bytes())
			see(o.X)
		case kernel.PerRow:
			see(o.X)
		default:
			kernel.Walk(o.X, func(x *kernel.Expr) {
				if x.Op == kernel.Fold && x.Over != kernel.OwnLoop {
					see(x.Args[0])
				}
			})
		}
	}
	return widest
}

// rowBlocks is how many blocks take the rows in turn where each keeps sums of
// columns. A block waits for memory and then for its threads, row after row, so
// that a multiprocessor needs about a thousand loads of a row's chunks under way;
// but a block has 16 rows, so that its sums are fewer bytes than its rows.
func rowBlocks(rows, chunks, sms int64) int64 {
	return max(2*sms, min(1024/chunks*sms, 8*sms, rows/16))
}

// rowKernel is a row kernel while it is written.
type rowKernel struct {
	*emitter
	f     *kernel.Form
	p     rowPlan
	cache map[*kernel.Expr]string // arrays that hold what was read of the row
	// unrolled tells that there are such arrays: registers are found by constant numbers only.
	unrolled bool
	cols     []*kernel.Expr // folds over rows, one value for each column
	alls     []*kernel.Expr // folds over rows, one value in all
	acc      map[*kernel.Expr]string
	// The memory for the sums of blocks, and what it is called.
	colTemps, allTemps []*temp
	colNames, allNames []string
}

// row is one row of the form for each warp or block: what is read of it stays in
// registers while the folds are computed one after the other.
func (g *generator) row(f *kernel.Form, name string) ([]launch, error) {
	cols, alls := f.Nest.Columns, f.Nest.Totals
	p := g.planRows(f, len(cols), len(alls))
	if n := g.splitsOf(f, p); n > 1 {
		return g.splitRows(f, name, p.v, n)
	}
	plain := f
	if p.v > 1 {
		w, err := f.Widen(p.v, 0)
		if err != nil {
			return nil, err
		}
		f = w
		cols, alls = f.Nest.Columns, f.Nest.Totals
	}
	ns := newNames()
	for _, v := range f.Inputs {
		ns.add(v, artifact.In)
	}
	for _, o := range f.Outs {
		if o.Level == kernel.PerElement || o.Level == kernel.PerRow {
			ns.add(o.Value, artifact.Out)
		}
	}
	k := &rowKernel{emitter: g.emitter(ns.of), f: f, p: p, cache: map[*kernel.Expr]string{}, cols: cols, alls: alls, acc: map[*kernel.Expr]string{}}
	k.coarse = coarse(f.Outs)
	k.temps(ns)
	k.start()
	for _, pass := range f.Nest.Passes {
		k.folds(pass)
	}
	k.outputs()
	if p.loop {
		k.close()
	}
	// Without a number of blocks ptxas aims at more of them than registers allow, and spills.
	l := launch{name: name, class: string(f.Class), threads: p.threads, blocks: max(1, 256/p.threads), grid: [3]int{int(p.blocks), 1, 1}}
	k.partials()
	l.params, l.body = ns.params, k.b.String()
	all := []launch{l}
	if len(cols) > 0 {
		all = append(all, g.finishColumns(plain, name+"_columns", k.colTemps, p.blocks))
	}
	if len(alls) > 0 {
		all = append(all, g.finishAll(plain, name+"_total", k.allTemps, p.blocks))
	}
	if len(all) > 1 {
		all[0].differs = "partial sums of blocks are written and read once more"
	}
	return all, nil
}

// start says which row this is, and reads what is needed more than once.
func (k *rowKernel) start() {
	r, p := k.f.Rows, k.p
	if !p.warp {
		seen := map[types.Elem]bool{}
		for _, x := range slices.Concat(k.f.Nest.Passes...) {
			if elem := scratchElem(x.Elem); !seen[elem] {
				seen[elem] = true
				k.line("DM_SHARED(%s, %s, 32);", storage(elem), scratchName(elem))
			}
		}
		k.line("const dm::i32 first = dm::thread();")
	} else {
		k.line("const dm::i32 first = dm::lane();")
	}
	for _, x := range k.cols {
		if p.memory {
			break
		}
		n := k.name("sum")
		k.acc[x] = n
		k.lineOf(x.From, "%s %s[%d][%d];", register(x.Elem), n, p.steps, p.v)
		k.line("DM_UNROLL")
		k.line("for (int s = 0; s < %d; s++) for (int j = 0; j < %d; j++) %s[s][j] = %s;", p.steps, p.v, n, start(x.Kind, x.Elem))
	}
	for _, x := range k.alls {
		n := k.name("total")
		k.acc[x] = n
		k.lineOf(x.From, "%s %s = %s;", register(x.Elem), n, start(x.Kind, x.Elem))
	}
	switch {
	case p.loop:
		k.open("for (dm::i32 row = dm::block(); row < %d; row += dm::blocks())", r.Rows)
	case p.warp:
		k.line("const dm::i32 row = dm::block() * %d + dm::warp();", p.threads/32)
		if r.Rows%int64(p.threads/32) != 0 {
			k.line("if (row >= %d) return;", r.Rows)
		}
	default:
		k.line("const dm::i32 row = dm::block();")
	}
	k.bind(r.Row, "row")
	k.read()
}

// read keeps in registers what the passes over the row read twice or more.
func (k *rowKernel) read() {
	passes := map[*kernel.Expr]int{}
	count := func(xs []*kernel.Expr) {
		seen := map[*kernel.Expr]bool{}
		for _, x := range xs {
			k.passLoads(x, seen)
		}
		for x := range seen {
			passes[x]++
		}
	}
	for _, level := range k.f.Nest.Passes {
		var xs []*kernel.Expr
		for _, x := range level {
			xs = append(xs, x.Args[0])
		}
		count(xs)
	}
	count(k.last())
	var room int64 = cacheBytes
	if k.p.share >= 512 { // there are half as many registers for each thread
		room /= 2
	}
	var keep []*kernel.Expr
	for _, x := range k.order() {
		if passes[x] < 2 {
			continue
		}
		room -= k.p.steps * k.p.v * x.Elem.Bytes()
		keep = append(keep, x)
	}
	if room < 0 { // what is left to read again keeps as many addresses in registers
		keep = nil
	}
	if len(keep) == 0 {
		return
	}
	names := make([]string, len(keep))
	for i, x := range keep {
		n := k.name("c")
		names[i] = n
		if k.p.v > 1 {
			k.line("dm::Vec<%s, %d> %s[%d];", storage(x.Elem), k.p.v, n, k.p.steps)
		} else {
			k.line("%s %s[%d];", storage(x.Elem), n, k.p.steps)
		}
	}
	k.unrolled = true
	k.along(func() {
		for i, x := range keep {
			n := names[i]
			if k.p.v > 1 {
				base, _ := k.beside(x.At, k.f.Lane, k.p.v)
				k.lineOf(x.From, "%s[s] = %s.template load<%d>(%s);", n, k.param(x.Buf), k.p.v, k.index(base))
			} else {
				k.lineOf(x.From, "%s[s] = %s[%s];", n, k.param(x.Buf), k.index(x.At))
			}
		}
	})
	for i, x := range keep {
		k.cache[x] = names[i]
	}
}

// along is the loop over the steps of a thread along its row.
func (k *rowKernel) along(body func()) {
	p, cols := k.p, k.f.Rows.Cols
	// What registers hold is found by constant numbers only.
	if k.unrolled || len(k.cols) > 0 && !p.memory || p.steps <= 4 {
		k.line("DM_UNROLL")
	} else {
		k.line("DM_NO_UNROLL")
	}
	k.open("for (int s = 0; s < %d; s++)", p.steps)
	k.line("const %s col = first + %s;", counter(cols), scaled("s", p.share, cols))
	k.bind(k.f.Rows.Col, "col")
	if p.chunks%p.share != 0 {
		k.open("if (col < %d)", p.chunks)
		body()
		k.close()
	} else {
		body()
	}
	k.close()
}

// lanesOfRow are the neighbours of one step, which know what was read before.
func (k *rowKernel) lanesOfRow() *lanes {
	outer := k.loaded
	k.loaded = func(x *kernel.Expr) string {
		n, ok := k.cache[x]
		switch {
		case !ok && outer != nil:
			return outer(x)
		case !ok:
			return ""
		case k.p.v > 1:
			return fmt.Sprintf("dm::wide(%s[s][%s])", n, k.atoms[k.f.Lane])
		}
		return fmt.Sprintf("dm::wide(%s[s])", n)
	}
	l := k.lanes(k.f.Lane, k.p.v)
	l.skip = func(x *kernel.Expr) bool { _, ok := k.cache[x]; return ok }
	end := l.end
	l.end = func() { end(); k.loaded = outer }
	return l
}

// startFolds gives each fold of a level the variable that it is joined in.
func (k *rowKernel) startFolds(level []*kernel.Expr) []string {
	accs := make([]string, len(level))
	for i, x := range level {
		k.hoist(x.Args[0])
		accs[i] = k.name("f")
		k.lineOf(x.From, "%s %s = %s;", register(x.Elem), accs[i], start(x.Kind, x.Elem))
	}
	return accs
}

// joinFolds joins the elements of one place along the row to the folds of a level.
func (k *rowKernel) joinFolds(level []*kernel.Expr, accs []string) {
	l := k.lanesOfRow()
	for _, x := range level {
		l.ready(x.Args[0])
	}
	l.each(func() {
		for i, x := range level {
			k.lineOf(x.From, "%s = %s;", accs[i], joined(x.Kind, x.Elem, accs[i], k.value(x.Args[0])))
		}
	})
	l.end()
}

// folds computes the folds of one level in one pass along the row.
func (k *rowKernel) folds(level []*kernel.Expr) {
	accs := k.startFolds(level)
	k.along(func() { k.joinFolds(level, accs) })
	for i, x := range level {
		k.lineOf(x.From, "%s = %s;", accs[i], k.together(x, accs[i]))
		k.given[x] = accs[i]
	}
}

func scratchElem(elem types.Elem) types.Elem {
	switch {
	case elem == types.I1 || !elem.IsFloat() && elem.Bytes() < 4:
		return types.I32
	case small(elem):
		return types.F32
	}
	return elem
}

func scratchName(elem types.Elem) string { return "scratch_" + elem.String() }

// together joins the parts of all threads of a row.
func (k *rowKernel) together(x *kernel.Expr, acc string) string {
	how := map[string]string{"add": "sum", "max": "max", "min": "min", "mul": "product", "and": "min", "or": "max"}[x.Kind]
	if x.Elem == types.I1 {
		how = map[string]string{"add": "max", "max": "max", "or": "max"}[x.Kind]
		if how == "" {
			how = "min"
		}
	}
	elem := scratchElem(x.Elem)
	arg := acc
	if elem != x.Elem && !small(x.Elem) {
		arg = storage(elem) + "(" + acc + ")"
	}
	text := fmt.Sprintf("dm::warp_%s(%s)", how, arg)
	if !k.p.warp {
		text = fmt.Sprintf("dm::block_%s(%s, %s)", how, arg, scratchName(elem))
	}
	if arg != acc {
		return register(x.Elem) + "(" + text + ")"
	}
	return text
}
