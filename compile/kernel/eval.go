package kernel

import (
	"fmt"
	"math"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// evaluator lowers the values of a group of ops to scalars: an expression for
// the element at an index.
type evaluator struct {
	*Space
	inside     map[*ir.Op]bool
	memo       map[elementKey]*Expr
	block      map[*ir.Value]*Expr // the arguments of a scalar region
	acc        func(o *ir.Op, idx []Index) *Expr
	rows       *Rows // the space in which reductions are over rows or columns; nil: every reduction is a loop
	reductions []reducedSpace
	grouped    bool      // the updates of scatters are in groups
	groups     []*Groups // that the expressions made so far read
	pieces     []*Pieces
	v          int64 // the vector width, and the variable that numbers neighbours; nil: there is one
	lane       *Atom
	visits     int64 // see Form.Visits
	segments   []*segment
	cells      bool        // results are in cells
	edge       []Condition // under which the element that is being lowered is inside; what it reads is under them
	// A composite is expanded on first use; stands maps its operands in the
	// expansion to values.
	expanded map[*ir.Op][]*ir.Value
	stands   map[*ir.Value]*ir.Value
	why      error
}

// elementKey identifies an element of a value.
type elementKey struct {
	v  *ir.Value
	at int // its index, and the conditions under which it is read; see Space.intern
}

// An element of a kernel is computed from at most leastPlaces others and mostPlaces for each op. Ops that cut and
// join tensors, one behind the other, read what is before them at more and more places.
const (
	leastPlaces = 512
	mostPlaces  = 4
)

// reducedSpace is the iteration space of a reduction: the operand's shape and
// the reduced dimensions.
type reducedSpace struct {
	shape []int64
	dims  []int
}

func newEvaluator(s *Space, ops []*ir.Op) *evaluator {
	e := &evaluator{
		Space: s, inside: map[*ir.Op]bool{}, memo: map[elementKey]*Expr{}, block: map[*ir.Value]*Expr{},
		expanded: map[*ir.Op][]*ir.Value{}, stands: map[*ir.Value]*ir.Value{},
	}
	for _, o := range ops {
		e.inside[o] = true
	}
	return e
}

// Reason is why a group of ops cannot run as one kernel.
type Reason struct {
	Op  *ir.Op // the op concerned
	Msg string
}

func (r *Reason) Error() string { return r.Msg }

func reason(o *ir.Op, format string, args ...any) *Reason {
	return &Reason{Op: o, Msg: fmt.Sprintf(format, args...)}
}

func (e *evaluator) fail(o *ir.Op, elem types.Elem, format string, args ...any) *Expr {
	if e.why == nil {
		e.why = reason(o, format, args...)
	}
	return e.number(elem, 0)
}

// ShapeOf is the shape of a value in numbers; ok is false where a size is a symbol.
func ShapeOf(v *ir.Value) (shape []int64, ok bool) {
	t := v.Tensor()
	if t == nil {
		_, scalar := v.Type.(types.Scalar)
		return nil, scalar
	}
	shape = make([]int64, len(t.Shape))
	for i, d := range t.Shape {
		if shape[i], ok = d.Int(); !ok {
			return nil, false
		}
	}
	return shape, true
}

func shapeOf(v *ir.Value) []int64 {
	s, _ := ShapeOf(v)
	return s
}

// Place is the offset of the element at idx of v in v's memory, in elements.
func Place(v *ir.Value, idx []Index) Index {
	shape := shapeOf(v)
	if t := v.Tensor(); t != nil && t.At.Order != nil {
		var x Index
		for _, d := range t.At.Order {
			x = x.Times(shape[d]).Add(idx[d])
		}
		return x
	}
	return Linear(idx, shape)
}

// at is the element of v at idx.
func (e *evaluator) at(v *ir.Value, idx []Index) *Expr {
	if known := e.block[v]; known != nil {
		return known
	}
	if w := e.stands[v]; w != nil {
		return e.at(w, idx)
	}
	b := e.key[:0]
	for _, x := range idx {
		b = x.appendTo(b)
	}
	key := elementKey{v, e.intern(appendConditions(b, e.edge))}
	if old := e.memo[key]; old != nil {
		return old
	}
	var x *Expr
	switch {
	case v.Op != nil && v.Op.Name == op.Constant && splat(v.Op) != nil:
		x = splat(v.Op).number(e.Space, v.Elem())
	case v.Op == nil || !e.inside[v.Op] || v.Op.Name == op.Constant: // whose elements are in memory
		x = e.guard(e.edge, e.expr(Expr{Op: Load, Elem: v.Elem(), Buf: v, At: Place(v, idx)}), e.number(v.Elem(), 0))
	default:
		if len(e.memo) > leastPlaces+mostPlaces*len(e.inside) {
			return e.fail(v.Op, v.Elem(), "each element needs more than %d others: what it reads is computed again at too many places", leastPlaces+mostPlaces*len(e.inside))
		}
		outer := e.from
		e.from = v.Op
		x = e.op(v, v.Op, idx)
		e.from = outer
	}
	e.memo[key] = x
	return x
}

type constant struct {
	f float64
	i int64
}

func (c *constant) number(s *Space, elem types.Elem) *Expr {
	if elem.IsFloat() {
		return s.expr(Expr{Op: Number, Elem: elem, Num: c.f})
	}
	return s.expr(Expr{Op: Number, Elem: elem, Int: c.i})
}

// splat is the single value of a constant, nil where it has several.
func splat(o *ir.Op) *constant {
	switch a := o.Attr("value").(type) {
	case *types.Dense:
		if a.Len() != 1 {
			return nil
		}
		if a.Elem.IsFloat() {
			return &constant{f: a.Float(0)}
		}
		return &constant{f: float64(a.Int(0)), i: a.Int(0)}
	case types.Float:
		return &constant{f: a.V}
	case types.Int:
		return &constant{f: float64(a.V), i: a.V}
	case types.Bool:
		if a {
			return &constant{f: 1, i: 1}
		}
		return &constant{}
	}
	return nil
}

// aligned is idx for an operand that broadcasts to the shape idx runs over.
func aligned(v *ir.Value, idx []Index) []Index {
	shape := shapeOf(v)
	out := make([]Index, len(shape))
	for i, n := range shape {
		if n != 1 {
			out[i] = idx[len(idx)-len(shape)+i]
		}
	}
	return out
}

func (e *evaluator) scalar(name string, elem types.Elem, args ...*Expr) *Expr {
	return e.expr(Expr{Op: name, Elem: elem, Args: args})
}

// elements lowers the element at idx of v, a result of o, for the ops whose
// entries have no scalar function, move or expansion.
var elements map[string]func(e *evaluator, v *ir.Value, o *ir.Op, idx []Index) *Expr

func init() {
	type result = func(e *evaluator, o *ir.Op, idx []Index) *Expr
	one := func(f result) func(*evaluator, *ir.Value, *ir.Op, []Index) *Expr {
		return func(e *evaluator, _ *ir.Value, o *ir.Op, idx []Index) *Expr { return f(e, o, idx) }
	}
	elements = map[string]func(*evaluator, *ir.Value, *ir.Op, []Index) *Expr{
		"dm.convert":            one((*evaluator).convert),
		"dm.dropout":            (*evaluator).dropout,
		"dm.map":                (*evaluator).region,
		"dm.einsum":             one((*evaluator).contracted),
		"dm.matmul":             one((*evaluator).contracted),
		"dm.grouped_matmul":     one((*evaluator).contracted),
		"dm.structured_einsum":  one((*evaluator).contracted),
		"dm.convolution":        one((*evaluator).contracted),
		"dm.reduce":             one((*evaluator).reduce),
		"dm.reduce_window":      one((*evaluator).window),
		"dm.scatter":            one((*evaluator).scatter),
		"dm.select_and_scatter": one((*evaluator).selectAndScatter),
		"dm.segment_reduce":     one((*evaluator).segmentReduce),
		"dm.segment_ids":        one((*evaluator).segmentIDs),
		"dm.searchsorted":       one((*evaluator).searchSorted),
		"dm.iota":               one((*evaluator).iota),
		"dm.rng":                (*evaluator).rng,
	}
}

// op is the element at idx of v, a result of o.
func (e *evaluator) op(v *ir.Value, o *ir.Op, idx []Index) *Expr {
	elem := v.Elem()
	if f := elements[o.Name]; f != nil {
		return f(e, v, o, idx)
	}
	d := op.Of(o)
	if m := op.MoveOf(o); m != nil {
		return e.move(o, m, idx)
	}
	if d != nil && d.Scalar != nil {
		x := Expr{Op: d.Name, Elem: elem, Args: make([]*Expr, len(o.Operands)), Kind: op.Str(o, d.Scalar.Form)}
		for i, w := range o.Operands {
			x.Args[i] = e.at(w, aligned(w, idx))
			if d.Scalar.Jumps {
				x.Args[i] = e.rounded(x.Args[i])
			}
		}
		return e.expr(x)
	}
	if d != nil && d.Expand != nil && d.Kernel != op.Library {
		if x := e.composite(v, o); x != nil {
			return e.at(x, idx)
		}
	}
	return e.fail(o, elem, "%s is not computed element by element", o.Name)
}

// convert is the operand's element in the result's type. A conversion to
// integers is discontinuous.
func (e *evaluator) convert(o *ir.Op, idx []Index) *Expr {
	elem := o.Results[0].Elem()
	x := e.at(o.Operands[0], idx)
	if x.Elem == elem {
		return x
	}
	if !elem.IsFloat() {
		x = e.rounded(x)
	}
	return e.scalar("convert", elem, x)
}

// contracted is an element of a product: from the sums of the kernel's main
// loop, or a sum of its own.
func (e *evaluator) contracted(o *ir.Op, idx []Index) *Expr {
	if e.acc != nil {
		if x := e.acc(o, idx); x != nil {
			return x
		}
	}
	switch d := op.Of(o); {
	case d.Is(op.Windowed):
		return e.convolution(o, idx)
	case d.Expand != nil:
		return e.at(e.composite(o.Results[0], o), idx)
	}
	return e.product(o, idx)
}

func (e *evaluator) iota(o *ir.Op, idx []Index) *Expr {
	d, _ := op.Dim(o, "dim", len(idx))
	x := Expr{Op: Count, Elem: o.Results[0].Elem(), At: idx[d]}
	if !op.Counts(o) {
		x.Kind, x.Par = Spaced, [2]float64{op.Float(o, "start"), op.Float(o, "step")}
	}
	return e.expr(x)
}

// composite is the expression of v, a result of o, in the expansion of o; nil
// where o has none.
func (e *evaluator) composite(v *ir.Value, o *ir.Op) *ir.Value {
	vs, known := e.expanded[o]
	if !known {
		c := *o
		c.Operands = make([]*ir.Value, len(o.Operands))
		for i, w := range o.Operands {
			c.Operands[i] = &ir.Value{Type: w.Type}
			e.stands[c.Operands[i]] = w
		}
		block := &ir.Block{Ops: []*ir.Op{&c}}
		c.Parent = block
		vs = op.Of(o).Expand(&ir.Builder{Block: block, At: o}, &c)
		for _, x := range block.Ops[:len(block.Ops)-1] {
			e.inside[x] = true
		}
		e.expanded[o] = vs
	}
	if v.Index >= len(vs) {
		return nil
	}
	return vs[v.Index]
}

// rounded is x rounded to its element type, for uses that depend on the last
// bit: kernels compute small types in f32.
func (e *evaluator) rounded(x *Expr) *Expr {
	if !x.Elem.IsFloat() || x.Elem.Bytes() >= 4 || x.Op == Load || x.Op == Number || x.Op == "convert" {
		return x
	}
	return e.scalar("convert", x.Elem, x)
}

func (e *evaluator) dropout(v *ir.Value, o *ir.Op, idx []Index) *Expr {
	elem, rate := v.Elem(), op.Float(o, "rate")
	at := Linear(idx, shapeOf(o.Operands[0]))
	if n := op.NumberingOf(o); n.First != nil {
		all := Product(n.Whole)
		first := e.at(n.First, nil)
		if first.Elem != types.I64 {
			first = e.scalar("convert", types.I64, first)
		}
		at = e.datum(first, all).Add(Linear(idx, n.Whole))
	}
	keep := e.expr(Expr{
		Op: Keep, Elem: types.I1, Seed: uint64(op.Int(o, "seed")), At: at,
		Int:  int64(math.Ceil(rate * 0x1p32)), // as tensor.Threshold
		Args: e.step(o),
	})
	if v.Index == 1 {
		if elem == types.I1 {
			return keep
		}
		return e.scalar("convert", elem, keep)
	}
	scale := e.scalar("select", elem, keep, e.number(elem, 1/(1-rate)), e.number(elem, 0))
	return e.scalar("mul", elem, e.at(o.Operands[0], idx), scale)
}

// step is the step of an op that draws random numbers, nil where it has none.
func (e *evaluator) step(o *ir.Op) []*Expr {
	if v := op.StepOf(o); v != nil {
		return []*Expr{e.at(v, nil)}
	}
	return nil
}

func (e *evaluator) rng(v *ir.Value, o *ir.Op, idx []Index) *Expr {
	x := Expr{Op: Random, Elem: v.Elem(), Kind: op.Str(o, "distribution"), Seed: uint64(op.Int(o, "seed")), At: Linear(idx, shapeOf(v)), Args: e.step(o)}
	if x.Kind == "normal" {
		x.Par = [2]float64{op.Float(o, "mean"), op.Float(o, "stddev")}
	} else {
		x.Par = [2]float64{op.Float(o, "low"), op.Float(o, "high")}
		if x.Elem.IsInt() {
			x.Par = [2]float64{math.Ceil(x.Par[0]), math.Ceil(x.Par[1])}
		}
	}
	return e.expr(x)
}

// region evaluates the scalar region of a dm.map on the operands' elements.
func (e *evaluator) region(v *ir.Value, o *ir.Op, idx []Index) *Expr {
	elem, body := v.Elem(), o.Body(0)
	if body == nil || len(body.Args) != len(o.Operands) || len(o.Regions[0].Blocks) != 1 {
		return e.fail(o, elem, "dm.map with a region that branches")
	}
	inner := newEvaluator(e.Space, body.Ops)
	for i, a := range body.Args {
		inner.block[a] = e.at(o.Operands[i], aligned(o.Operands[i], idx))
	}
	last := body.Terminator()
	if last == nil || v.Index >= len(last.Operands) {
		return e.fail(o, elem, "dm.map whose region yields nothing")
	}
	x := inner.at(last.Operands[v.Index], nil)
	if inner.why != nil && e.why == nil {
		e.why = inner.why
	}
	return x
}
