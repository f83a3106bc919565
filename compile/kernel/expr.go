package kernel

import (
	"encoding/binary"
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Expr is a scalar expression of a kernel, as a function of the loop variables
// of its indices. Equal expressions of a space are one pointer, so that a
// shared subexpression is computed once.
//
// Op is the name of a scalar op of the dialect without "dm." ("add", "exp",
// "select", …; operands and result have the meaning that the registry gives
// them for one element) or one of the names below.
type Expr struct {
	Op   string
	Elem types.Elem
	Args []*Expr

	Num  float64     // of Number, where Elem is a floating-point type
	Int  int64       // of Number otherwise; of Keep the threshold
	Buf  *ir.Value   // of Load; of a Search for the segment that has element At the positions
	At   Index       // of Load: the element's offset in memory; of Count: the number; of Keep and Random: the element's number; of a Reduce with Groups: the group's number
	Kind string      // of Reduce: add, mul, max, min, and, or; of compare the direction; of Random the distribution; of gelu the approximation
	Seed uint64      // of Keep and Random
	Par  [2]float64  // of Random: low and high, or mean and deviation; of a Count that is Spaced: start and step
	Vars []*Atom     // of Reduce: the loop variables; of Search the one that numbers elements
	Over Over        // of Reduce
	If   []Condition // of Guard: all must hold for Args[0] to be computed; otherwise it is Args[1]
	// Span is, of a Reduce over a segment, the range of its variable.
	Span *Span
	// Groups are, of a Reduce over the updates of one row of a scatter, those that
	// it is one of; see Form.Grouped.
	Groups *Groups
	// Pieces are those of its groups, and Cell the number of its value among those of
	// an update; nil where its groups are not cut.
	Pieces *Pieces
	Cell   Index

	// From is the op that the expression was first made for: the one that
	// computes it or, of a Load, reads it; nil where there is no single one.
	// Expressions that differ only in From are equal.
	From *ir.Op

	space *Space // nil: none
	id    int    // in its space, from 1 on
	free  []*Atom
	over  []*Expr
	data  []*Expr // what its indices depend on
	sums  bool
}

// exprKey identifies an expression of a space.
type exprKey struct {
	op, kind string
	elem     types.Elem
	num      uint64
	int      int64
	buf      *ir.Value
	seed     uint64
	par      [2]uint64
	over     Over
	span     *Span
	groups   *Groups
	pieces   *Pieces
	parts    int // At, Cell, Args, Vars and If; see Space.intern
}

// Free are the free variables of x: those that occur in it, except the loop
// variables of its reductions. x can be computed wherever they have values and
// the reductions of RowReductions are complete.
func (x *Expr) Free() []*Atom { return x.free }

// RowReductions are the reductions over rows or columns of the kernel that x
// reads directly.
func (x *Expr) RowReductions() []*Expr {
	if x.overRows() {
		return []*Expr{x}
	}
	return x.over
}

// ReadsSums reports whether x reads a sum of products, an Acc.
func (x *Expr) ReadsSums() bool { return x.sums }

// overRows reports whether x is a reduction over rows or columns of the kernel,
// which is complete only after a pass over them.
func (x *Expr) overRows() bool { return x.Op == Reduce && x.Over != OwnLoop }

// Over is the loops of the kernel that a reduction runs over.
type Over string

// The ranges of reductions.
const (
	OwnLoop         Over = ""        // loops of its own, inside one thread
	RowReduction    Over = "row"     // the columns of the kernel's row: one value for each row
	ColumnReduction Over = "columns" // the rows of the kernel: one value for each column
	FullReduction   Over = "all"     // the rows of the kernel, of one value for each row: one value in all
)

// First and Last are the kinds of a reduction whose value is the first or the
// last that its body, a guard, computes, and Args[1] if there is none.
const (
	First = "first"
	Last  = "last"
)

// Region is the kind of a reduction by a region: it starts from Args[1];
// Args[2] combines the accumulator, Args[3], with the next value of its body,
// Args[4].
const Region = "region"

// KeyStep is what keys of different numbers differ by at least: places can be told apart within it.
const KeyStep = 1 << 16

// The operations that are no ops of the dialect.
const (
	Number = "number"    // a constant
	Load   = "load"      // an element of Buf
	Count  = "count"     // the index At as a number, or with the kind Spaced that of dm.iota
	Acc    = "acc"       // the sum of products of a contraction, here
	Reduce = "reduction" // Args[0] over all values of Vars
	Search = "search"    // how many values of Vars there are, from 0 on, for which Args[0] (i1) holds, which it does for none behind them
	Guard  = "guard"
	Part   = "part"      // one of the two operands of a reduction's region; Vars is a variable that identifies it
	Keep   = "keep"      // whether dropout keeps an element (i1): half At of stream 1 of Seed, mixed with the step Args[0] if there is one, is Int or more
	Key    = "order_key" // Args[0], a float of 16 bits, as an i32: equal numbers have equal keys, larger ones larger keys, and NaN the largest one; multiples of KeyStep
	Random = "random"    // dm.rng's element At, of Seed and Args as in Keep
)

// Spaced is the kind of a Count that starts at Par[0] and counts in steps of Par[1].
const Spaced = "spaced"

// Condition is Lo <= X < Hi.
type Condition struct {
	X      Index
	Lo, Hi int64
}

// Equal reports whether c and d are the same condition.
func (c Condition) Equal(d Condition) bool { return c.Lo == d.Lo && c.Hi == d.Hi && c.X.Equal(d.X) }

// always and never report whether c is known to hold, and not to hold,
// statically.
func (c Condition) always() bool {
	lo, hi := c.X.Bounds()
	return lo >= c.Lo && hi < c.Hi
}

func (c Condition) never() bool {
	lo, hi := c.X.Bounds()
	return hi < c.Lo || lo >= c.Hi
}

// reduced is c without a common factor of the terms of X, so that conditions that hold together are equal.
func (c Condition) reduced() Condition {
	g := int64(0)
	for _, t := range c.X.Terms {
		g = GCD(g, t.Coef)
	}
	if g <= 1 {
		return c
	}
	y := Index{Terms: make([]Term, len(c.X.Terms))}
	for i, t := range c.X.Terms {
		y.Terms[i] = Term{t.Coef / g, t.Atom}
	}
	return Condition{X: y, Lo: -floorDiv(c.X.C-c.Lo, g), Hi: -floorDiv(c.X.C-c.Hi, g)}
}

func (s *Space) expr(e Expr) *Expr {
	b := e.Cell.appendTo(e.At.appendTo(s.key[:0]))
	b = binary.AppendUvarint(b, uint64(len(e.Args)))
	for _, a := range e.Args {
		b = binary.AppendUvarint(b, uint64(a.id))
	}
	b = binary.AppendUvarint(b, uint64(len(e.Vars)))
	for _, v := range e.Vars {
		b = binary.AppendUvarint(b, uint64(v.id))
	}
	b = appendConditions(b, e.If)
	key := exprKey{
		op: e.Op, kind: e.Kind, elem: e.Elem, num: math.Float64bits(e.Num), int: e.Int, buf: e.Buf, seed: e.Seed,
		par: [2]uint64{math.Float64bits(e.Par[0]), math.Float64bits(e.Par[1])}, over: e.Over, span: e.Span, groups: e.Groups, pieces: e.Pieces,
		parts: s.intern(b),
	}
	if old := s.exprs[key]; old != nil {
		return old
	}
	e.space, e.id, e.From = s, len(s.exprs)+1, s.from
	e.depend()
	s.exprs[key] = &e
	return &e
}

// appendConditions appends what identifies conditions in their space.
func appendConditions(b []byte, conds []Condition) []byte {
	for _, c := range conds {
		b = binary.AppendVarint(binary.AppendVarint(c.X.appendTo(b), c.Lo), c.Hi)
	}
	return b
}

// indices visits the indices of e that are not numbers.
func (e *Expr) indices(visit func(Index)) {
	index := func(x Index) {
		if len(x.Terms) > 0 {
			visit(x)
		}
	}
	index(e.At)
	index(e.Cell)
	if e.Span != nil {
		index(e.Span.From)
		index(e.Span.To)
	}
	for _, c := range e.If {
		index(c.X)
	}
}

// dataOf computes Data.
func (e *Expr) dataOf() (data []*Expr) {
	e.indices(func(x Index) {
		x.Atoms(func(a *Atom) {
			if a.Kind == Datum {
				data = append(data, a.E)
			}
		})
	})
	return data
}

// Data are the expressions that the indices of e depend on, in their order.
func (e *Expr) Data() []*Expr {
	if e.space == nil {
		return e.dataOf()
	}
	return e.data
}

// depend computes the dependences of e from those of its operands.
func (e *Expr) depend() {
	e.sums = e.Op == Acc
	e.data = e.dataOf()
	for _, a := range e.Args {
		e.free, e.over = union(e.free, a.free), union(e.over, a.RowReductions())
		e.sums = e.sums || a.sums
	}
	e.indices(func(x Index) { e.free = union(e.free, x.free()) })
	for _, d := range e.data {
		e.over = union(e.over, d.RowReductions())
		e.sums = e.sums || d.sums
	}
	bound := e.Vars
	switch {
	case e.Op == Part:
		e.free = e.Vars
	case e.Op == Reduce && e.Kind == Region:
		bound = slices.Concat(bound, e.Args[3].Vars, e.Args[4].Vars)
	}
	if e.Op == Reduce || e.Op == Search {
		e.free = slices.DeleteFunc(slices.Clone(e.free), func(a *Atom) bool { return slices.Contains(bound, a) })
	}
}

// union is a and the elements of b that a lacks; a and b are not changed.
func union[T comparable](a, b []T) []T {
	if len(a) == 0 {
		return b
	}
	out := a[:len(a):len(a)]
	for _, x := range b {
		if !slices.Contains(a, x) {
			out = append(out, x)
		}
	}
	return out
}

func (s *Space) number(elem types.Elem, v float64) *Expr {
	if elem.IsFloat() {
		return s.expr(Expr{Op: Number, Elem: elem, Num: v})
	}
	return s.expr(Expr{Op: Number, Elem: elem, Int: int64(v)})
}

// guard is yes where all conditions hold and no elsewhere; conditions that are
// known statically are left out.
func (s *Space) guard(conds []Condition, yes, no *Expr) *Expr {
	var open []Condition
	for _, c := range conds {
		if c.never() {
			return no
		}
		if !c.always() {
			open = append(open, c.reduced())
		}
	}
	if len(open) == 0 || yes == no {
		return yes
	}
	return s.expr(Expr{Op: Guard, Elem: yes.Elem, Args: []*Expr{yes, no}, If: open})
}

// Walk visits e and its subexpressions, each once, operands first.
func Walk(e *Expr, visit func(*Expr)) { walk(e, &visited{}, nil, visit) }

// WalkOutside is Walk without the operands of reductions over rows, which are
// complete where e is computed.
func WalkOutside(e *Expr, visit func(*Expr)) { walk(e, &visited{}, (*Expr).overRows, visit) }

func walk(e *Expr, seen *visited, stop func(*Expr) bool, visit func(*Expr)) {
	if !seen.add(e) {
		return
	}
	if stop == nil || !stop(e) {
		for _, a := range e.Args {
			walk(a, seen, stop, visit)
		}
		for _, x := range e.Data() {
			walk(x, seen, stop, visit)
		}
	}
	visit(e)
}

// visited is a set of expressions: of one space by their numbers, and any others.
type visited struct {
	space  *Space
	bits   []uint64
	others map[*Expr]bool
}

// add adds e and reports whether it was not in the set.
func (v *visited) add(e *Expr) bool {
	if v.space == nil {
		v.space = e.space
	}
	if e.space == nil || e.space != v.space {
		if v.others[e] {
			return false
		}
		if v.others == nil {
			v.others = map[*Expr]bool{}
		}
		v.others[e] = true
		return true
	}
	if v.bits == nil {
		v.bits = make([]uint64, len(e.space.exprs)/64+1)
	}
	w, bit := &v.bits[e.id/64], uint64(1)<<(e.id%64)
	if *w&bit != 0 {
		return false
	}
	*w |= bit
	return true
}
