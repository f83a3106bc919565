package kernel

import (
	"fmt"
	"slices"
)

// Nest is the order in which a row kernel computes its reductions and stores its
// results:
//
//	for each row
//	  for each of Passes: along the row, accumulate its reductions
//	  store the results of a row, accumulate Totals
//	  along the row: store the elements, accumulate Columns
//	for each column: store what is computed from Columns
//	once: store what is computed from Totals
//
// The position of an expression follows from its dependences: the variables that
// must have values and the reductions that must be complete. A reduction over rows
// is complete only after all of them, so no value of a row can depend on it: a
// group with such a dependence has no nest over these rows.
type Nest struct {
	Passes  [][]*Expr // reductions along a row; those of a pass read only reductions of passes before
	Columns []*Expr   // reductions over the rows, one value for each column
	Totals  []*Expr   // reductions over the rows of one value for each
}

// rowVars and colVars are the variables that number the rows, and the elements of a row.
func (r *Rows) rowVars() []*Atom { return present(r.Row) }
func (r *Rows) colVars() []*Atom { return present(r.Col, r.lane) }

func present(atoms ...*Atom) []*Atom {
	return slices.DeleteFunc(atoms, func(a *Atom) bool { return a == nil })
}

// vars are the variables that have values where results of a level are stored.
func (r *Rows) vars(at Level) []*Atom {
	switch at {
	case PerElement:
		return append(r.rowVars(), r.colVars()...)
	case PerRow:
		return r.rowVars()
	case PerColumn:
		return r.colVars()
	}
	return nil
}

// completeAt are the reductions that are complete where results of a level are stored.
var completeAt = map[Level]Over{PerElement: RowReduction, PerRow: RowReduction, PerColumn: ColumnReduction, PerKernel: FullReduction}

// bodyOf is the level at which the operand of a reduction is computed.
var bodyOf = map[Over]Level{RowReduction: PerElement, ColumnReduction: PerElement, FullReduction: PerRow}

// holds reports whether x can be computed at a level, with all reductions that it reads.
func (r *Rows) holds(x *Expr, at Level) bool {
	type place struct {
		x  *Expr
		at Level
	}
	seen := map[place]bool{}
	var look func(x *Expr, at Level) bool
	look = func(x *Expr, at Level) bool {
		p := place{x, at}
		if seen[p] {
			return true
		}
		seen[p] = true
		if missing(x, r.vars(at)) != nil {
			return false
		}
		for _, f := range x.RowReductions() {
			if f.Over != completeAt[at] || !look(f.Args[0], bodyOf[f.Over]) {
				return false
			}
		}
		return true
	}
	return look(x, at)
}

// missing is a variable that x depends on and that is not among vars, nil where
// there is none.
func missing(x *Expr, vars []*Atom) *Atom {
	for _, a := range x.Free() {
		if !slices.Contains(vars, a) {
			return a
		}
	}
	return nil
}

// nest orders the reductions of f's results, which can be computed at their levels.
func (f *Form) nest() *Nest {
	n := &Nest{}
	pass := map[*Expr]int{}
	for _, o := range f.Outs {
		Walk(o.X, func(x *Expr) {
			if _, seen := pass[x]; seen || !x.overRows() {
				return
			}
			d := 0
			for _, y := range x.over {
				d = max(d, pass[y]+1)
			}
			pass[x] = d
			switch x.Over {
			case ColumnReduction:
				n.Columns = append(n.Columns, x)
			case FullReduction:
				n.Totals = append(n.Totals, x)
			default:
				for len(n.Passes) <= d {
					n.Passes = append(n.Passes, nil)
				}
				n.Passes[d] = append(n.Passes[d], x)
			}
		})
	}
	return n
}

// Verify reports a use before its definition: a variable without a value, or a
// reduction that is read before it is complete. Every form that Of returns is
// valid; code generation verifies it again before it writes text.
func (f *Form) Verify() error {
	if f.Rows == nil {
		return f.verifyElements()
	}
	n, r := f.Nest, f.Rows
	complete := map[*Expr]bool{}
	check := func(x *Expr, at Level, what string) error {
		if a := missing(x, r.vars(at)); a != nil {
			return fmt.Errorf("%s reads the variable %s, which has no value for each %s", what, a.Name, at)
		}
		for _, y := range x.RowReductions() {
			if !complete[y] {
				return fmt.Errorf("%s reads a reduction (%s over %s) before it is complete", what, y.Kind, y.Over)
			}
		}
		return nil
	}
	bodies := func(reductions []*Expr, over Over) error {
		for _, x := range reductions {
			if x.Over != over {
				return fmt.Errorf("a reduction over %s is listed among those over %s", x.Over, over)
			}
			if err := check(x.Args[0], bodyOf[over], fmt.Sprintf("the operand of a reduction (%s over %s)", x.Kind, over)); err != nil {
				return err
			}
		}
		return nil
	}
	stored := func(at Level) error {
		for _, o := range f.Outs {
			if o.Level != at {
				continue
			}
			if err := check(o.X, at, o.Value.Name); err != nil {
				return err
			}
			if !within(o.At.free(), r.vars(at)) {
				return fmt.Errorf("the place of %s in memory reads a variable that has no value for each %s", o.Value.Name, at)
			}
		}
		return nil
	}
	done := func(reductions []*Expr) {
		for _, x := range reductions {
			complete[x] = true
		}
	}
	for _, pass := range n.Passes {
		if err := bodies(pass, RowReduction); err != nil {
			return err
		}
		done(pass)
	}
	for _, err := range []error{stored(PerRow), bodies(n.Totals, FullReduction), stored(PerElement), bodies(n.Columns, ColumnReduction)} {
		if err != nil {
			return err
		}
	}
	clear(complete)
	done(n.Columns)
	if err := stored(PerColumn); err != nil {
		return err
	}
	clear(complete)
	done(n.Totals)
	return stored(PerKernel)
}

func within(free, vars []*Atom) bool {
	for _, a := range free {
		if !slices.Contains(vars, a) {
			return false
		}
	}
	return true
}

// verifyElements is Verify for a kernel whose threads compute single elements, and
// for the epilogue of a contraction.
func (f *Form) verifyElements() error {
	for _, o := range f.Outs {
		if o.X == nil {
			continue // of a library kernel
		}
		vars := present(append(slices.Clone(o.Loops), f.Lane)...)
		if a := missing(o.X, vars); a != nil {
			return fmt.Errorf("%s reads the variable %s, which has no value for each of its elements", o.Value.Name, a.Name)
		}
		if len(o.X.RowReductions()) > 0 {
			return fmt.Errorf("%s reads a reduction over rows, but its kernel has no rows", o.Value.Name)
		}
		places := o.At.free()
		for _, c := range o.If {
			places = union(places, c.X.free())
		}
		if !within(places, vars) {
			return fmt.Errorf("the place of %s in memory reads a variable that has no value for each of its elements", o.Value.Name)
		}
	}
	return nil
}
