// Package kernel says how a group of ops runs as one device kernel: its loops,
// and for each result the scalar expression that the kernel stores at each
// place. It turns ops on tensors into expressions for one element (evaluator),
// and finds the form of loops that computes every fold once. What a form looks
// like as text is compile/cuda's business.
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
	ClassRow         Class = "row"         // one block for each row: folds over the columns, then the elements
	ClassColumns     Class = "columns"     // folds over the rows, one thread for some columns
	ClassLoop        Class = "loop"        // one thread for each element, which folds by itself
	ClassContraction Class = "contraction" // tiles of a product, with expressions before and after
	ClassSpecial     Class = "special"     // one op that has a kernel of its own; see Main
)

// Form is how a group of ops runs as one kernel.
type Form struct {
	Class   Class
	Ops     []*ir.Op
	Outputs []*ir.Value
	Inputs  []*ir.Value // what it reads from memory, in order of first use
	Outs    []Out       // one for each of Outputs
	Rows    *Rows       // of Row and Columns
	Main    *ir.Op      // of Contraction and Special
	Mains   []*ir.Op    // of Contraction: Main and those of its shape that share an operand with it

	eval *evaluator
}

// Out is how one result is stored.
type Out struct {
	Value *ir.Value
	Loops []*Atom     // the variables of At and X; of Row and Columns those of Rows
	Level Level       // of Row and Columns
	At    Index       // place in memory, in elements
	If    []Condition // stored only where these hold
	X     *Expr
}

// Level says how many values there are of a result of a row kernel.
type Level string

// The levels.
const (
	PerElement Level = "element" // one for each row and column
	PerRow     Level = "row"
	PerColumn  Level = "column"
	PerKernel  Level = "kernel" // one in all
)

// Rows is the space of a row kernel. A row's elements lie at all values of the
// folded dimensions of a tensor of some shape.
type Rows struct {
	Rows, Cols int64
	Row, Col   *Atom // nil where there is one row or one column

	shape []int64
	dims  []int // folded
}

func alone(a *Atom) Index {
	if a == nil {
		return Index{}
	}
	return Alone(a)
}

func (r *Rows) row() Index { return alone(r.Row) }
func (r *Rows) col() Index { return alone(r.Col) }

// trailing reports whether the folded dims of r are the last ones, sizes of 1 aside.
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

// fits reports whether a fold of dims of a tensor of that shape runs over r's rows.
func (r *Rows) fits(shape []int64, dims []int) bool {
	return trailing(shape, dims) && trailing(r.shape, r.dims) || slices.Equal(shape, r.shape) && slices.Equal(dims, r.dims)
}

// across reports whether a fold of dims runs over r's columns.
func (r *Rows) across(shape []int64, dims []int) bool {
	var others []int
	for d := range shape {
		if !slices.Contains(dims, d) {
			others = append(others, d)
		}
	}
	return r.fits(shape, others)
}

// element is where row and column lie in a tensor of that shape; ok is false
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

// Of says how ops, which are in an order that computes them, run as one kernel
// that stores outs; the error is a *Reason. All sizes must be numbers.
func Of(ops []*ir.Op, outs []*ir.Value) (*Form, error) {
	if len(ops) == 0 || len(outs) == 0 {
		return nil, &Reason{Msg: "a kernel without results"}
	}
	for _, o := range ops {
		for _, v := range slices.Concat(o.Operands, o.Results) {
			if shape, ok := ShapeOf(v); !ok {
				return nil, reason(o, "sizes of %s are not known in numbers", v.Name)
			} else if v.Tensor() != nil && v.Tensor().Enc != "" {
				return nil, reason(o, "%s has a layout of another dialect", v.Name)
			} else if slices.Contains(shape, 0) {
				return nil, reason(o, "%s has no elements", v.Name)
			}
		}
		if !known(o) {
			return nil, reason(o, "no kernel computes %s", o.Name)
		}
	}
	f := &Form{Ops: ops, Outputs: outs}
	if o := special(ops); o != nil {
		return f.special(o)
	}
	if mains := contractions(ops); len(mains) > 0 {
		return f.contraction(mains)
	}
	plain, err := f.pointwise()
	if err != nil {
		return nil, err
	}
	if len(plain.eval.folds) == 0 {
		plain.Class = ClassPointwise
		return plain.finish()
	}
	var tried []*Rows
	for _, fold := range plain.eval.folds {
		for _, r := range rowsOf(fold) {
			if slices.ContainsFunc(tried, func(t *Rows) bool { return t.same(r) }) {
				continue
			}
			tried = append(tried, r)
			if g, err := f.byRows(r); err == nil {
				return g.finish()
			}
		}
	}
	if len(ops) > 1 && !plain.once() {
		return nil, reason(ops[0], "its folds are over different rows")
	}
	plain.Class = ClassLoop
	return plain.finish()
}

func (r *Rows) same(t *Rows) bool {
	return r.Rows == t.Rows && r.Cols == t.Cols && slices.Equal(r.shape, t.shape) && slices.Equal(r.dims, t.dims)
}

// rowsOf are the spaces in which fold might be one over rows or columns.
func rowsOf(fold folding) []*Rows {
	r := &Rows{Rows: 1, Cols: 1, shape: fold.shape, dims: fold.dims}
	var others []int
	for d, n := range fold.shape {
		if slices.Contains(fold.dims, d) {
			r.Cols *= n
		} else {
			others = append(others, d)
			r.Rows *= n
		}
	}
	// A fold of the leading dimensions has its columns side by side in memory.
	if c := (&Rows{Rows: r.Cols, Cols: r.Rows, shape: fold.shape, dims: others}); trailing(fold.shape, others) && r.Rows > 1 {
		return []*Rows{c, r}
	}
	return []*Rows{r}
}

// pointwise gives every result loops of its own; results of equal shape share them.
func (f *Form) pointwise() (*Form, error) {
	g := *f
	g.eval = newEvaluator(newSpace(), f.Ops)
	loops := map[string][]*Atom{}
	for _, v := range f.Outputs {
		shape := shapeOf(v)
		key := ir.Value{Type: v.Type}.Type.String()
		if t := v.Tensor(); t != nil {
			key = t.With(t.Shape...).String() // without the placement
			key = key[:len(key)-len(t.Elem.String())-1]
		}
		vars, known := loops[key]
		if !known {
			for range shape {
				vars = append(vars, nil)
			}
			for d, n := range shape {
				if n > 1 {
					vars[d] = g.eval.Loop("i", n)
				}
			}
			loops[key] = vars
		}
		idx := make([]Index, len(shape))
		for d, a := range vars {
			idx[d] = alone(a)
		}
		g.Outs = append(g.Outs, Out{Value: v, Loops: slices.DeleteFunc(slices.Clone(vars), func(a *Atom) bool { return a == nil }), At: Place(v, idx), X: g.eval.at(v, idx)})
	}
	return &g, g.eval.why
}

// once reports whether no fold of f is computed more often than its operand has elements.
func (f *Form) once() bool {
	for _, o := range f.Outs {
		n := int64(1)
		for _, a := range o.Loops {
			n *= a.Max + 1
		}
		ok := true
		Walk(o.X, func(x *Expr) {
			if x.Op != Fold {
				return
			}
			work := n
			for _, v := range x.Vars {
				work *= v.Max + 1
			}
			size := work
			Walk(x.Args[0], func(y *Expr) {
				if y.Op == Fold {
					ok = false
				}
				if y.Op == Load {
					size = min(size, product(shapeOf(y.Buf)))
				}
			})
			_ = size
		})
		if !ok {
			return false
		}
	}
	return len(f.Outs) == 1
}

// byRows tries to compute every result over the rows r.
func (f *Form) byRows(r *Rows) (*Form, error) {
	g := *f
	g.Outs = nil
	s := newSpace()
	rows := *r
	if r.Rows > 1 {
		rows.Row = s.Loop("row", r.Rows)
	}
	if r.Cols > 1 {
		rows.Col = s.Loop("col", r.Cols)
	}
	g.Rows = &rows
	g.eval = newEvaluator(s, f.Ops)
	g.eval.rows = &rows
	g.Class = ClassColumns
	for _, v := range f.Outputs {
		out, err := g.rowOut(v)
		if err != nil {
			return nil, err
		}
		Walk(out.X, func(x *Expr) {
			if x.Op == Fold && x.Over == RowFold {
				g.Class = ClassRow
			}
		})
		g.Outs = append(g.Outs, out)
	}
	return &g, nil
}

// rowOut finds the level at which v is computed without folds of its own.
func (f *Form) rowOut(v *ir.Value) (Out, error) {
	e, r := f.eval, f.Rows
	shape := shapeOf(v)
	n := product(shape)
	try := func(level Level, size int64, idx []Index, ok bool) (Out, bool) {
		if !ok || n != size {
			return Out{}, false
		}
		e.why = nil
		out := Out{Value: v, Level: level, At: Place(v, idx), X: e.at(v, idx)}
		fits := e.why == nil
		Walk(out.X, func(x *Expr) {
			if x.Op != Fold {
				return
			}
			switch x.Over {
			case OwnLoop:
				fits = false
			case ColsFold:
				fits = fits && level == PerColumn
			case AllFold:
				fits = fits && level == PerKernel
			case RowFold:
				fits = fits && (level == PerElement || level == PerRow || inside(out.X, x))
			}
		})
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

// inside reports whether x lies below a fold over rows in e, so that it is
// computed row by row.
func inside(e, x *Expr) bool {
	found, loose := false, false
	var look func(e *Expr, below bool)
	seen := map[*Expr]bool{}
	look = func(e *Expr, below bool) {
		if e == x {
			found, loose = true, loose || !below
			return
		}
		if seen[e] && below {
			return
		}
		seen[e] = true
		below = below || e.Op == Fold && (e.Over == ColsFold || e.Over == AllFold)
		for _, a := range e.Args {
			look(a, below)
		}
	}
	look(e, false)
	return found && !loose
}

// finish lists what the kernel reads.
func (f *Form) finish() (*Form, error) {
	seen := map[*ir.Value]bool{}
	for _, o := range f.Outs {
		f.reads(o.X, seen)
		o.At.Atoms(func(a *Atom) {
			if a.Kind == Datum {
				f.reads(a.E, seen)
			}
		})
	}
	return f, nil
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
	if d == nil {
		return false
	}
	switch o.Name {
	case "dm.while", "dm.if", "dm.kernel", "dm.yield":
		return false
	}
	return true
}
