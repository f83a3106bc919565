package kernel

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Class is a form of loops.
type Class string

// The classes.
const (
	ClassPointwise   Class = "pointwise"   // one thread for each element of the results
	ClassRow         Class = "row"         // one block for each row: reductions over the columns, then the elements
	ClassColumns     Class = "columns"     // reductions over the rows, one thread for some columns
	ClassLoop        Class = "loop"        // one thread for each element, with serial reductions
	ClassContraction Class = "contraction" // tiles of a product, with prologue and epilogue
	ClassLibrary     Class = "library"     // one op that a library kernel computes, see Main, and moves by which its operands are views
)

// Form is how a group of ops runs as one kernel.
type Form struct {
	Class   Class
	Ops     []*ir.Op
	Outputs []*ir.Value
	Inputs  []*ir.Value // what it reads from memory, in order of first use
	Outs    []Out       // one for each of Outputs, or several that store parts of it
	Rows    *Rows       // of Row and Columns
	Nest    *Nest       // of Row and Columns
	Main    *ir.Op      // of Contraction and Library
	Mains   []*ir.Op    // of Contraction: Main and those of its shape that share an operand with it
	// Views are, of Library, how each operand and each result of Main lies in
	// memory, nil for one that lies as a tensor of its own.
	Views []*View
	// Over are the results that overwrite their operands; see OfOver.
	Over map[*ir.Value]bool
	// Groups are the groups of updates that reductions run over; see Grouped.
	Groups []*Groups
	// Pieces are those of the reductions over groups.
	Pieces []*Pieces

	// Cells divide the results of Pointwise and Loop; nil: a thread computes single elements, or V neighbours.
	Cells []*Cells

	// V is the vector width: the number of neighbouring elements that one thread
	// computes at a time, numbered by Lane, which is nil where V is 1. See Widen.
	V    int64
	Lane *Atom

	eval        *evaluator
	grouped     bool
	stride, run int64 // of Turn
	in          planes
	spaces      []space // of Pointwise and Loop
	dim         int     // of Contraction: the dimension of the result along which V neighbours lie
}

// Out is how one result is stored.
type Out struct {
	Value *ir.Value
	// Loops are the variables of At and X. Of Pointwise and Loop it is the one
	// that counts steps of V elements, nil for a single step, or the two of Turn or three of Planes; of Contraction one
	// for each dimension of the product, nil for those of size 1; of Row and
	// Columns they are in Rows.
	Loops []*Atom
	Level Level       // of Row and Columns
	At    Index       // offset in memory, in elements
	If    []Condition // stored only where these hold
	X     *Expr
	N     int64 // number of elements stored, if a part of Value; 0: all
}

// Elements is the number of elements that o stores.
func (o Out) Elements() int64 {
	if o.N > 0 {
		return o.N
	}
	return Product(shapeOf(o.Value))
}

// Level is the part of a row kernel's space for which a result has a value
// each.
type Level string

// The levels.
const (
	PerElement Level = "element" // one for each row and column
	PerRow     Level = "row"
	PerColumn  Level = "column"
	PerKernel  Level = "kernel" // a single one
)

// Rows is the iteration space of a row kernel. The elements of a row are those
// along the reduced dimensions of a tensor of some shape.
type Rows struct {
	Rows, Cols int64
	// Row counts rows, Col steps of V columns; nil where there is only one.
	Row, Col *Atom

	at    Index // of the column
	lane  *Atom
	shape []int64
	dims  []int // reduced
}

func alone(a *Atom) Index {
	if a == nil {
		return Index{}
	}
	return IndexOf(a)
}

// Reduces reports whether f, a contraction, has results that reduce its elements,
// for which Outs has nothing.
func (f *Form) Reduces() bool {
	return slices.ContainsFunc(f.Outputs, func(v *ir.Value) bool { return len(f.Storing(v)) == 0 })
}

// Storing are those of f.Outs that store parts of v.
func (f *Form) Storing(v *ir.Value) []Out {
	var outs []Out
	for _, o := range f.Outs {
		if o.Value == v {
			outs = append(outs, o)
		}
	}
	return outs
}

func (r *Rows) row() Index { return alone(r.Row) }
func (r *Rows) col() Index { return r.at }

// trailing reports whether the reduced dims of r are the last ones, sizes of 1
// aside.
func trailing(shape []int64, dims []int) bool {
	seen := false
	for d, n := range shape {
		if n == 1 {
			continue
		}
		if slices.Contains(dims, d) {
			seen = true
		} else if seen {
			return false
		}
	}
	return true
}

// fits reports whether a reduction of dims of a tensor of that shape is along
// r's rows.
func (r *Rows) fits(shape []int64, dims []int) bool {
	return trailing(shape, dims) && trailing(r.shape, r.dims) || slices.Equal(shape, r.shape) && slices.Equal(dims, r.dims)
}

// across reports whether a reduction of dims is along r's columns.
func (r *Rows) across(shape []int64, dims []int) bool {
	var others []int
	for d := range shape {
		if !slices.Contains(dims, d) {
			others = append(others, d)
		}
	}
	return r.fits(shape, others)
}

// element is the index of row and column in a tensor of that shape; ok is false
// where the tensor has other rows.
func (e *evaluator) element(shape []int64) (idx []Index, ok bool) {
	r := e.rows
	if slices.Equal(shape, r.shape) && !trailing(r.shape, r.dims) {
		idx = make([]Index, len(shape))
		var rows, cols []int64
		for d, n := range shape {
			if slices.Contains(r.dims, d) {
				cols = append(cols, n)
			} else {
				rows = append(rows, n)
			}
		}
		ri, ci := e.Unlinear(r.row(), rows), e.Unlinear(r.col(), cols)
		for d := range shape {
			if slices.Contains(r.dims, d) {
				idx[d], ci = ci[0], ci[1:]
			} else {
				idx[d], ri = ri[0], ri[1:]
			}
		}
		return idx, true
	}
	return e.Unlinear(r.row().Times(r.Cols).Add(r.col()), shape), trailing(r.shape, r.dims)
}

// Of returns the form in which ops, in an executable order, run as one kernel
// that stores outs; the error is a *Reason. All sizes must be numbers.
func Of(ops []*ir.Op, outs []*ir.Value) (*Form, error) {
	return of(&Form{Ops: ops, Outputs: outs, V: 1})
}

// of finds the form of a kernel of f's ops.
func of(f *Form) (*Form, error) {
	ops, outs := f.Ops, f.Outputs
	if len(ops) == 0 || len(outs) == 0 {
		return nil, &Reason{Msg: "a kernel without results"}
	}
	for _, o := range ops {
		for _, v := range slices.Concat(o.Operands, o.Results) {
			if shape, ok := ShapeOf(v); !ok {
				return nil, reason(o, "the sizes of %s are not known numbers", v.Name)
			} else if v.Tensor() != nil && v.Tensor().Enc != "" {
				return nil, reason(o, "%s has a layout of another dialect", v.Name)
			} else if slices.Contains(shape, 0) {
				return nil, reason(o, "%s has no elements", v.Name)
			}
		}
		if !known(o) {
			return nil, reason(o, "there is no kernel for %s", o.Name)
		}
	}
	if o := LibraryOp(ops); o != nil {
		return f.library(o)
	}
	if mains := contractions(ops); len(mains) > 0 {
		return f.contraction(mains)
	}
	plain, err := f.pointwise()
	if err != nil {
		return nil, err
	}
	if len(plain.eval.reductions) == 0 && !plain.loops() {
		plain.Class = ClassPointwise
		return plain.finish()
	}
	var tried []*Rows
	for _, space := range plain.eval.reductions {
		for _, r := range rowsOf(space) {
			if slices.ContainsFunc(tried, func(t *Rows) bool { return t.same(r) }) {
				continue
			}
			tried = append(tried, r)
			if g, err := f.byRows(r); err == nil {
				return g.finish()
			}
		}
	}
	if several(ops) && !plain.once() {
		return nil, reason(ops[0], "its reductions are over different rows")
	}
	plain.Class = ClassLoop
	return plain.finish()
}

// several reports whether ops are more than one, constants aside.
func several(ops []*ir.Op) bool {
	n := 0
	for _, o := range ops {
		if o.Name != op.Constant {
			n++
		}
	}
	return n > 1
}

func (r *Rows) same(t *Rows) bool {
	return r.Rows == t.Rows && r.Cols == t.Cols && slices.Equal(r.shape, t.shape) && slices.Equal(r.dims, t.dims)
}

// rowsOf are the spaces in which a reduction might be over rows or columns.
func rowsOf(space reducedSpace) []*Rows {
	r := &Rows{Rows: 1, Cols: 1, shape: space.shape, dims: space.dims}
	var others []int
	for d, n := range space.shape {
		if slices.Contains(space.dims, d) {
			r.Cols *= n
		} else {
			others = append(others, d)
			r.Rows *= n
		}
	}
	// Where the last dimensions stay, neighbouring columns are contiguous in
	// memory.
	if c := (&Rows{Rows: r.Cols, Cols: r.Rows, shape: space.shape, dims: others}); r.Rows > 1 && (trailing(space.shape, others) || lastElements(space.shape, others) >= 16) {
		return []*Rows{c, r}
	}
	return []*Rows{r}
}

// lastElements is the number of elements of the last dimensions as far as they are of dims.
func lastElements(shape []int64, dims []int) int64 {
	n := int64(1)
	for d := len(shape) - 1; d >= 0 && (shape[d] == 1 || slices.Contains(dims, d)); d-- {
		n *= shape[d]
	}
	return n
}

// pointwise gives every result a loop of its own over its elements, as they lie in
// memory; results of equal shape and order share it.
func (f *Form) pointwise() (*Form, error) {
	g := *f
	g.Outs = nil
	s := newSpace()
	if g.V > 1 {
		g.Lane = s.Loop("lane", g.V)
	}
	g.eval = newEvaluator(s, f.Ops)
	g.eval.grouped, g.eval.v, g.eval.lane = f.grouped, g.V, g.Lane
	g.eval.cells = g.Cells != nil
	type loop struct {
		shape []int64
		order []int // of the dimensions in memory, nil: as they are
		vars  []*Atom
		n     int64  // of cells, 0: results are not in cells
		cells []cell // the elements of a step, one but for results in cells
	}
	var loops []loop
	g.spaces = nil
	for _, v := range f.Outputs {
		for _, part := range g.stored(v) {
			shape := shapeOf(part.of)
			var order []int
			if t := part.of.Tensor(); t != nil {
				order = t.At.Order
			}
			i := slices.IndexFunc(loops, func(l loop) bool { return slices.Equal(l.shape, shape) && slices.Equal(l.order, order) })
			if i < 0 {
				i = len(loops)
				loops = append(loops, loop{shape: shape, order: order})
				l, inMemory := &loops[i], inMemory(shape, order)
				var at Index
				if c := g.cellsOf(inMemory); c != nil {
					l.n = c.Count() / g.V * g.V
					l.vars, l.cells = s.cells(c, g.V, g.Lane)
				} else if g.run > 0 {
					if l.vars, at = s.turned(Product(shape)/g.V, g.stride, g.run); l.vars == nil {
						return nil, reason(f.Ops[0], "steps are not divided as they were to be turned")
					}
					at = at.Times(g.V).Add(IndexOf(g.Lane))
				} else if n := Product(shape); g.in.divide(n) {
					l.vars, at = s.planes(n, g.in, g.V, g.Lane)
				} else {
					l.vars = make([]*Atom, 1)
					l.vars[0], at = s.wide("i", n, g.V, g.Lane)
				}
				if l.cells == nil {
					l.cells = []cell{{at: s.Unlinear(at, inMemory)}}
				}
				g.spaces = append(g.spaces, space{inMemory, l.vars, l.cells[0].at})
			}
			for _, c := range loops[i].cells {
				g.eval.edge = c.inside
				out := part.at(byDimension(c.at, order))
				g.eval.edge = nil
				out.Loops = loops[i].vars
				if loops[i].n > 0 {
					out.N = loops[i].n
					out.If = append(c.inside, out.If...)
				}
				g.Outs = append(g.Outs, out)
			}
		}
	}
	return &g, g.eval.why
}

// cellsOf are the cells of results of that shape, nil where they are not in cells.
func (f *Form) cellsOf(shape []int64) *Cells {
	i := slices.IndexFunc(f.Cells, func(c *Cells) bool { return slices.Equal(c.shape, shape) })
	if i < 0 {
		return nil
	}
	return f.Cells[i]
}

// inMemory is a shape in the order in which its dimensions lie in memory; nil: as they are.
func inMemory(shape []int64, order []int) []int64 {
	if order == nil {
		return shape
	}
	out := make([]int64, len(shape))
	for i, d := range order {
		out[i] = shape[d]
	}
	return out
}

// byDimension is an index whose parts are in the order of memory in that of dimensions.
func byDimension(at []Index, order []int) []Index {
	if order == nil {
		return at
	}
	idx := make([]Index, len(at))
	for i, d := range order {
		idx[d] = at[i]
	}
	return idx
}

// Widen is f with vectors of v neighbouring elements: of a pointwise kernel's
// elements, of a row's columns, along dimension dim of a product. v must divide
// their number.
func (f *Form) Widen(v int64, dim int) (*Form, error) {
	g := *f
	g.V, g.dim, g.Inputs, g.Lane = v, dim, nil, nil
	var err error
	h := &g
	switch f.Class {
	case ClassPointwise, ClassLoop:
		h, err = g.pointwise()
	case ClassRow, ClassColumns:
		h, err = g.byRows(f.Rows)
	case ClassContraction:
		return g.contraction(f.Mains)
	default:
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	h.Class, h.Groups, h.Pieces = f.Class, h.eval.groups, h.eval.pieces
	return h.finish()
}

// Turn is f, a pointwise kernel with V neighbours, with its steps in runs: the first variable of an output's loops numbers
// runs, the second the steps of a run, of which there are n with stride - 1 others between them. What is read may lie side by
// side along a run while neighbours lie far apart.
func (f *Form) Turn(stride, n int64) (*Form, error) {
	g := *f
	g.stride, g.run = stride, n
	return g.Widen(f.V, f.dim)
}

// turned are the variables of runs and of the steps of one, and the step that they stand for; nil where steps are not whole
// runs.
func (s *Space) turned(steps, stride, n int64) ([]*Atom, Index) {
	if n < 2 || steps%(stride*n) != 0 {
		return nil, Index{}
	}
	run := s.Loop("run", steps/n)
	along := s.Loop("k", n)
	of := IndexOf(run)
	return []*Atom{run, along}, s.Div(of, stride).Times(n * stride).Add(IndexOf(along).Times(stride)).Add(s.Mod(of, stride))
}

// loops reports whether f's threads have serial reductions or data-dependent
// stores.
func (f *Form) loops() bool {
	return slices.ContainsFunc(f.Outs, func(o Out) bool { return reduces(o.X) || f.Over[o.Value] && len(o.If) > 0 })
}

// maxRows bounds the rows of a row kernel, which are counted in 32 bits.
const maxRows = 1 << 30

// byRows is the form that computes every result over the rows r, if there is
// one.
func (f *Form) byRows(r *Rows) (*Form, error) {
	if r.Rows > maxRows {
		return nil, reason(f.Ops[0], "%d rows exceed the limit of a launch", r.Rows)
	}
	g := *f
	g.Outs = nil
	s := newSpace()
	rows := *r
	if r.Rows > 1 {
		rows.Row = s.Loop("row", r.Rows)
	}
	if g.V > 1 {
		g.Lane = s.Loop("lane", g.V)
	}
	rows.lane = g.Lane
	rows.Col, rows.at = s.wide("col", r.Cols, g.V, g.Lane)
	g.Rows = &rows
	g.eval = newEvaluator(s, f.Ops)
	g.eval.rows = &rows
	for _, v := range f.Outputs {
		for _, part := range g.stored(v) {
			out, err := g.rowOut(v, part)
			if err != nil {
				return nil, err
			}
			g.Outs = append(g.Outs, out)
		}
	}
	g.Nest = g.nest()
	g.Class = ClassColumns
	if len(g.Nest.Passes) > 0 {
		g.Class = ClassRow
	}
	for _, o := range g.Outs {
		// Sums over the rows are stored by the launch that combines those of the
		// blocks; another expression would not be stored.
		if g.Class == ClassRow && (o.Level == PerColumn || o.Level == PerKernel) && !reduces(o.X) ||
			o.Level == PerColumn && len(g.Nest.Columns) == 0 || o.Level == PerKernel && len(g.Nest.Totals) == 0 {
			return nil, reason(o.Value.Op, "%s has other rows than the rest of the kernel", o.Value.Name)
		}
	}
	if g.Class == ClassColumns && r.Cols > 1 {
		for _, o := range g.Outs {
			if o.Level == PerKernel {
				return nil, reason(o.Value.Op, "%s is a single value beside a reduction of each of %d columns", o.Value.Name, r.Cols)
			}
		}
	}
	return &g, nil
}

func reduces(x *Expr) bool {
	found := false
	Walk(x, func(y *Expr) { found = found || y.Op == Reduce })
	return found
}

// rowOut finds the level at which a part of v is computed without serial reductions.
func (f *Form) rowOut(v *ir.Value, part part) (Out, error) {
	e, r := f.eval, f.Rows
	shape := shapeOf(part.of)
	n := Product(shape)
	try := func(level Level, size int64, idx []Index, ok bool) (Out, bool) {
		if !ok || n != size {
			return Out{}, false
		}
		e.why = nil
		out := part.at(idx)
		out.Level = level
		fits := e.why == nil && len(out.If) == 0 && r.holds(out.X, level)
		Walk(out.X, func(x *Expr) { fits = fits && (x.Op != Reduce || x.Over != OwnLoop) })
		return out, fits
	}
	idx, ok := e.element(shape)
	if out, fits := try(PerElement, r.Rows*r.Cols, idx, ok); fits {
		return out, nil
	}
	if out, fits := try(PerRow, r.Rows, e.Unlinear(r.row(), shape), true); fits {
		return out, nil
	}
	if out, fits := try(PerColumn, r.Cols, e.Unlinear(r.col(), shape), true); fits {
		return out, nil
	}
	if out, fits := try(PerKernel, 1, e.Unlinear(Index{}, shape), true); fits {
		return out, nil
	}
	return Out{}, reason(v.Op, "%s has other rows than the rest of the kernel", v.Name)
}

// finish verifies f and lists what the kernel reads.
func (f *Form) finish() (*Form, error) {
	if err := f.Verify(); err != nil {
		return nil, reason(f.Ops[0], "%v", err)
	}
	seen := map[*ir.Value]bool{}
	for _, o := range f.Outs {
		for _, x := range o.Exprs() {
			f.reads(x, seen)
		}
	}
	return f, nil
}

// Exprs are the expressions that storing o evaluates: its value, and the data in
// its place and in its conditions.
func (o *Out) Exprs() []*Expr {
	xs := []*Expr{o.X}
	data := func(a *Atom) {
		if a.Kind == Datum {
			xs = append(xs, a.E)
		}
	}
	o.At.Atoms(data)
	for _, c := range o.If {
		c.X.Atoms(data)
	}
	return xs
}

func (f *Form) reads(x *Expr, seen map[*ir.Value]bool) {
	Walk(x, func(x *Expr) {
		if x.Op == Load && !seen[x.Buf] {
			seen[x.Buf] = true
			f.Inputs = append(f.Inputs, x.Buf)
		}
	})
}

// known reports whether some kernel computes o.
func known(o *ir.Op) bool {
	d := op.Of(o)
	return d != nil && d.Kernel != op.Structure
}
