package kernel

import (
	"fmt"
	"slices"
)

// Nest is the order in which a row kernel computes its folds and stores its
// results:
//
//	for each row
//	  for each of Passes: along the row, join its folds
//	  store the results of a row, join Totals
//	  along the row: store the elements, join Columns
//	for each column: store what is computed from Columns
//	once: store what is computed from Totals
//
// Where an expression stands follows from what it depends on: the variables
// that must have values and the folds that must be complete. A fold over rows
// is complete only behind all of them, so nothing that a row needs can read it:
// a group with such a dependence has no nest over these rows.
type Nest struct {
	Passes  [][]*Expr // folds along a row; those of a pass read folds of the passes before alone
	Columns []*Expr   // folds over the rows, one value for each column
	Totals  []*Expr   // folds over the rows, of one value for each: one in all
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

// folded are the folds that are complete where results of a level are stored.
var folded = map[Level]Over{PerElement: RowFold, PerRow: RowFold, PerColumn: ColsFold, PerKernel: AllFold}

// bodyOf is the level at which what a fold joins is computed.
var bodyOf = map[Over]Level{RowFold: PerElement, ColsFold: PerElement, AllFold: PerRow}

// holds reports whether x can be computed at a level, with all folds that it needs.
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
		for _, f := range x.RowFolds() {
			if f.Over != folded[at] || !look(f.Args[0], bodyOf[f.Over]) {
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

// nest orders the folds of f's results, which hold at their levels.
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
			case ColsFold:
				n.Columns = append(n.Columns, x)
			case AllFold:
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

// Verify reports what f computes before it can be computed: a variable without
// a value, or a fold that is read before it is complete. Every form that Of
// gives passes; code generation asks it again before it writes text.
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
		for _, y := range x.RowFolds() {
			if !complete[y] {
				return fmt.Errorf("%s reads a fold (%s over %s) before it is complete", what, y.Kind, y.Over)
			}
		}
		return nil
	}
	bodies := func(folds []*Expr, over Over) error {
		for _, x := range folds {
			if x.Over != over {
				return fmt.Errorf("a fold over %s stands among those over %s", x.Over, over)
			}
			if err := check(x.Args[0], bodyOf[over], fmt.Sprintf("what a fold (%s over %s) joins", x.Kind, over)); err != nil {
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
	done := func(folds []*Expr) {
		for _, x := range folds {
			complete[x] = true
		}
	}
	for _, pass := range n.Passes {
		if err := bodies(pass, RowFold); err != nil {
			return err
		}
		done(pass)
	}
	for _, err := range []error{stored(PerRow), bodies(n.Totals, AllFold), stored(PerElement), bodies(n.Columns, ColsFold)} {
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

// verifyElements is Verify for a kernel whose threads compute elements by
// themselves, and for what is computed of the elements of a product.
func (f *Form) verifyElements() error {
	for _, o := range f.Outs {
		if o.X == nil {
			continue // of a kernel of its own
		}
		vars := present(append(slices.Clone(o.Loops), f.Lane)...)
		if a := missing(o.X, vars); a != nil {
			return fmt.Errorf("%s reads the variable %s, which has no value for each of its elements", o.Value.Name, a.Name)
		}
		if len(o.X.RowFolds()) > 0 {
			return fmt.Errorf("%s reads a fold over rows, of which its kernel has none", o.Value.Name)
		}
		if !within(o.At.free(), vars) {
			return fmt.Errorf("the place of %s in memory reads a variable that has no value for each of its elements", o.Value.Name)
		}
	}
	return nil
}
