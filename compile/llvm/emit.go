package llvm

import (
	"fmt"
	"math"

	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/scalar"
	dm "dmir/dialect/ir"
	"dmir/dialect/types"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// emitter writes the instructions that compute expressions, each once, in the
// innermost scope that encloses all its uses.
type emitter struct {
	*code.Func
	lib    *scalar.Lib
	lines  *lines
	params map[*dm.Value]value.Value // the buffers, as bytes
	scopes []scope
	atoms  map[*kernel.Atom]value.Value
	// given are expressions computed elsewhere, such as reductions over rows.
	given map[*kernel.Expr]value.Value
	// acc is the sum of products of a contraction, at the current element.
	acc func(x *kernel.Expr) value.Value
	// held are expressions that an array has, one value for each column; column is
	// the current one.
	held   map[*kernel.Expr]value.Value
	column value.Value
	ranges map[*kernel.Atom]segment // of the variables of loops that are parts of longer ones
	lists  map[*kernel.Groups]lists
	inside bool      // a loop over a segment that is no vector code
	bad    *[]string // why expressions cannot be computed where they are used
}

// scope is a part of the function in which values may be used.
type scope struct {
	values map[*kernel.Expr]value.Value
	index  map[*kernel.Atom]value.Value // of divisions
	bound  []*kernel.Atom               // variables that have values only in it
}

func newScope() scope {
	return scope{values: map[*kernel.Expr]value.Value{}, index: map[*kernel.Atom]value.Value{}}
}

// within runs body in a scope of its own.
func (e *emitter) within(body func()) {
	e.scopes = append(e.scopes, newScope())
	body()
	for _, a := range e.scopes[len(e.scopes)-1].bound {
		delete(e.atoms, a)
	}
	e.scopes = e.scopes[:len(e.scopes)-1]
}

// bind defines the value of a variable, which may be nil, up to the end of the scope.
func (e *emitter) bind(a *kernel.Atom, v value.Value) {
	if a == nil {
		return
	}
	e.atoms[a] = v
	top := &e.scopes[len(e.scopes)-1]
	top.bound = append(top.bound, a)
}

// loop is For with a scope around body, in which a, if not nil, is the variable.
func (e *emitter) loop(a *kernel.Atom, first, last value.Value, how code.Loop, body func(i value.Value)) {
	e.For(first, last, how, func(i value.Value) {
		e.within(func() {
			e.bind(a, i)
			body(i)
		})
	})
}

// fold is Fold with a scope around body, in which a, if not nil, is the variable.
func (e *emitter) fold(a *kernel.Atom, first, last value.Value, how code.Loop, begin []value.Value, body func(i value.Value, acc []value.Value) []value.Value) []value.Value {
	return e.Fold(first, last, how, begin, func(i value.Value, acc []value.Value) (out []value.Value) {
		e.within(func() {
			e.bind(a, i)
			out = body(i, acc)
		})
		return out
	})
}

// fail records that an expression cannot be computed here, which makes the kernel
// invalid.
func (e *emitter) fail(t lltypes.Type, format string, args ...any) value.Value {
	*e.bad = append(*e.bad, fmt.Sprintf(format, args...))
	return constant.NewUndef(t)
}

// buffer is the memory of v.
func (e *emitter) buffer(v *dm.Value) value.Value {
	if p, ok := e.params[v]; ok {
		return p
	}
	return e.fail(code.Bytes, "%s is read but is not a parameter", v.Name)
}

// value is x, after the instructions that compute it.
func (e *emitter) value(x *kernel.Expr) value.Value {
	if v, ok := e.given[x]; ok {
		return v
	}
	for i := len(e.scopes) - 1; i >= 0; i-- {
		if v, ok := e.scopes[i].values[x]; ok {
			return v
		}
	}
	var v value.Value
	if p, ok := e.held[x]; ok && e.column != nil {
		v = e.lib.Load(e.Func, kept(x.Elem), p, e.column)
	} else {
		v = e.compute(x)
	}
	e.scopes[len(e.scopes)-1].values[x] = v
	return v
}

func (e *emitter) compute(x *kernel.Expr) value.Value {
	t := scalar.Register(x.Elem)
	switch x.Op {
	case kernel.Number:
		return e.lib.Number(x)
	case kernel.Guard:
		return e.guard(x)
	case kernel.Reduce:
		if x.Over != kernel.OwnLoop {
			return e.fail(t, "a reduction (%s over %s) is read before it is complete", x.Kind, x.Over)
		}
		return e.reduction(x)
	case kernel.Search:
		return e.search(x)
	case kernel.Part:
		return e.fail(t, "a partial result of a reduction by a region is read outside of it")
	case kernel.Acc:
		if e.acc == nil {
			return e.fail(t, "a sum of products is read where there is none")
		}
		return e.acc(x)
	case kernel.Load:
		at := e.index(x.At)
		from := e.lines.from(e.Func)
		v := e.lib.Load(e.Func, x.Elem, e.buffer(x.Buf), at)
		from.are(x.From)
		return v
	}
	var args []value.Value
	for _, a := range x.Args {
		args = append(args, e.value(a))
	}
	switch x.Op {
	case kernel.Count, kernel.Keep, kernel.Random:
		args = append(args, e.index(x.At))
	}
	from := e.lines.from(e.Func)
	defer func() { from.are(x.From) }()
	if x.Op == "div" && kept(x.Elem) == types.F32 && x.Args[1].Op == kernel.Reduce && x.Args[1].Over == kernel.RowReduction {
		return e.shared(args[0], args[1])
	}
	return e.lib.Apply(e.Func, x, args)
}

// shared is x / y for many x with the same y, within 1.5 units in the last place if that
// is a normal number: the part that depends on y alone leaves the loop, and is computed
// once. Both are scaled so that the reciprocal of y is normal.
func (e *emitter) shared(x, y value.Value) value.Value {
	number := func(v float64) value.Value { return constant.NewFloat(lltypes.Float, v) }
	size := e.Call(e.M.Declare("llvm.fabs.f32", lltypes.Float, lltypes.Float), y)
	s := e.NewSelect(e.NewFCmp(enum.FPredOLT, size, number(0x1p-64)), number(0x1p64), number(1))
	s = e.NewSelect(e.NewFCmp(enum.FPredOGT, size, number(0x1p64)), number(0x1p-64), s)
	return e.NewFMul(e.NewFMul(x, s), e.NewFDiv(number(1), e.NewFMul(y, s)))
}

// guard is one of two values under a condition; the loads of the other one may be out
// of bounds.
func (e *emitter) guard(x *kernel.Expr) value.Value {
	part := func(y *kernel.Expr) func() []value.Value {
		return func() (out []value.Value) {
			e.within(func() { out = []value.Value{e.value(y)} })
			return out
		}
	}
	return e.Choose(e.conditions(x.If), part(x.Args[0]), part(x.Args[1]))[0]
}

// under runs f where cs hold, in a scope of its own if there are any.
func (e *emitter) under(cs []kernel.Condition, f func()) {
	if len(cs) == 0 {
		f()
		return
	}
	e.If(e.conditions(cs), func() { e.within(f) })
}

// conditions is whether all of cs hold. Those behind the first are evaluated only
// where it holds if they read data, which may lie out of bounds otherwise.
func (e *emitter) conditions(cs []kernel.Condition) value.Value {
	all := value.Value(constant.True)
	for i, c := range cs {
		if i > 0 && reads(cs[i:]) {
			return e.Choose(all, func() (out []value.Value) {
				e.within(func() { out = []value.Value{e.conditions(cs[i:])} })
				return out
			}, func() []value.Value { return []value.Value{constant.False} })[0]
		}
		and := func(v value.Value) {
			if all == value.Value(constant.True) {
				all = v
			} else {
				all = e.NewAnd(all, v)
			}
		}
		lo, hi := e.bounds(c.X)
		if hi < c.Lo || lo >= c.Hi {
			return constant.False
		}
		if lo >= c.Lo && hi < c.Hi {
			continue
		}
		x := e.index(c.X)
		if lo < c.Lo {
			and(e.NewICmp(enum.IPredSGE, x, code.Int(c.Lo)))
		}
		if hi >= c.Hi {
			and(e.NewICmp(enum.IPredSLT, x, code.Int(c.Hi)))
		}
	}
	return all
}

// reads reports whether conditions depend on data.
func reads(cs []kernel.Condition) bool {
	found := false
	for _, c := range cs {
		c.X.Atoms(func(a *kernel.Atom) { found = found || a.Kind == kernel.Datum })
	}
	return found
}

// selects reports whether the reduction x is one of the values of its body.
func selects(x *kernel.Expr) bool { return x.Kind == kernel.First || x.Kind == kernel.Last }

// accumulator is the form in which loops hold what the reduction x has reduced so far.
func (e *emitter) accumulator(x *kernel.Expr) scalar.Accumulator {
	return e.lib.Accumulator(x.Kind, kept(x.Elem), true)
}

// combines reports whether the reduction x combines values by an op.
func combines(x *kernel.Expr) bool { return !selects(x) && x.Kind != kernel.Region }

// begin is what a loop over the values of the reduction x begins with.
func (e *emitter) begin(x *kernel.Expr) value.Value {
	if !combines(x) {
		return e.value(x.Args[1])
	}
	return e.accumulator(x).Begin(e.Func, e.lib.Identity(x.Kind, x.Elem))
}

// end is the value of the reduction x, given what a loop has accumulated.
func (e *emitter) end(x *kernel.Expr, acc value.Value) value.Value {
	if !combines(x) {
		return acc
	}
	return e.accumulator(x).Value(e.Func, acc)
}

// accumulate is acc, what a loop over the values of the reduction x holds so far, with a
// value of its body.
func (e *emitter) accumulate(x *kernel.Expr, acc value.Value, body *kernel.Expr) value.Value {
	switch {
	case selects(x):
		return e.value(body)
	case x.Kind == kernel.Region:
		e.given[x.Args[3]], e.given[x.Args[4]] = acc, e.value(body)
		defer func() { delete(e.given, x.Args[3]); delete(e.given, x.Args[4]) }()
		return e.value(x.Args[2])
	}
	v := e.value(body)
	from := e.lines.from(e.Func)
	v = e.accumulator(x).Add(e.Func, acc, v)
	from.are(x.From)
	return v
}

// reduction computes a serial reduction.
func (e *emitter) reduction(x *kernel.Expr) (out value.Value) {
	body := x.Args[0]
	if x.Groups != nil {
		return e.eachUpdate(x)
	}
	if !x.Rare() {
		e.hoist(body)
	}
	begin := e.begin(x)
	if selects(x) {
		return e.selected(x, begin)
	}
	defer func() { out = e.end(x, out) }()
	if x.Span != nil {
		return e.overSegment(x, begin)
	}
	var nest func(vars []*kernel.Atom, acc value.Value) value.Value
	nest = func(vars []*kernel.Atom, acc value.Value) value.Value {
		if len(vars) == 0 {
			return e.step(x, body, acc)
		}
		if unrolls(x) {
			for i := range vars[0].Max + 1 {
				e.ranges[vars[0]] = segment{i, i + 1}
				acc = e.fold(vars[0], code.Int(i), code.Int(i+1), code.Loop{}, []value.Value{acc}, func(_ value.Value, acc []value.Value) []value.Value {
					return []value.Value{nest(vars[1:], acc[0])}
				})[0]
			}
			delete(e.ranges, vars[0])
			return acc
		}
		how := code.Loop{Vectorize: len(vars) == 1 && vars[0].Max >= 16}
		return e.fold(vars[0], code.Int(0), code.Int(vars[0].Max+1), how, []value.Value{acc}, func(_ value.Value, acc []value.Value) []value.Value {
			return []value.Value{nest(vars[1:], acc[0])}
		})[0]
	}
	return nest(x.Vars, begin)
}

// step is acc with the value of body; one that is guarded and otherwise changes
// nothing is left out where its conditions do not hold.
func (e *emitter) step(x, body *kernel.Expr, acc value.Value) value.Value {
	if body.Op != kernel.Guard || x.Kind == kernel.Region || body.Args[1].Op != kernel.Number || !isIdentity(body.Args[1], x.Kind) {
		return e.accumulate(x, acc, body)
	}
	return e.Choose(e.conditions(body.If), func() (out []value.Value) {
		e.within(func() { out = []value.Value{e.accumulate(x, acc, body.Args[0])} })
		return out
	}, func() []value.Value { return []value.Value{acc} })[0]
}

func isIdentity(x *kernel.Expr, kind string) bool {
	f, i := kernel.Identity(kind, x.Elem)
	if x.Elem.IsFloat() {
		return math.Float64bits(x.Num) == math.Float64bits(f)
	}
	return x.Int == i
}

// selected is the first or the last value of the body of x, a guard, over its single
// variable; begin if there is none.
func (e *emitter) selected(x *kernel.Expr, begin value.Value) value.Value {
	body := x.Args[0]
	one := func(acc value.Value) value.Value {
		if body.Op != kernel.Guard {
			return e.value(body)
		}
		return e.Choose(e.conditions(body.If), func() (out []value.Value) {
			e.within(func() { out = []value.Value{e.value(body.Args[0])} })
			return out
		}, func() []value.Value { return []value.Value{acc} })[0]
	}
	if len(x.Vars) == 0 {
		return one(begin)
	}
	n := x.Vars[0].Max + 1
	visit := func(i value.Value) value.Value { // backwards for the first, which is then the last found
		if x.Kind == kernel.Last {
			return i
		}
		return e.NewSub(code.Int(n-1), i)
	}
	return e.Fold(code.Int(0), code.Int(n), code.Loop{}, []value.Value{begin}, func(i value.Value, acc []value.Value) (out []value.Value) {
		e.within(func() {
			e.bind(x.Vars[0], visit(i))
			out = []value.Value{one(acc[0])}
		})
		return out
	})[0]
}

// hoist computes, before a loop around x is opened, those subexpressions of x that
// can be computed here and are not under a guard.
func (e *emitter) hoist(x *kernel.Expr) {
	kernel.Hoist(x, e.done, e.ready, func(x *kernel.Expr) { e.value(x) })
}

// done reports whether x is already computed.
func (e *emitter) done(x *kernel.Expr) bool {
	if _, ok := e.given[x]; ok {
		return true
	}
	if _, ok := e.held[x]; ok {
		return true
	}
	for _, s := range e.scopes {
		if _, ok := s.values[x]; ok {
			return true
		}
	}
	return false
}

// ready reports whether x can be computed here: its free variables have values, and
// the reductions over rows that it reads are complete.
func (e *emitter) ready(x *kernel.Expr) bool { return kernel.Ready(x, e.atoms, e.given) }

// store stores v as o.
func (e *emitter) store(o kernel.Out, v value.Value) {
	at := e.index(o.At)
	from := e.lines.from(e.Func)
	e.lib.Store(e.Func, o.Value.Elem(), e.buffer(o.Value), at, v)
	from.are(o.Value.Op)
}

// storeAll computes outs and stores them: all values first, since a result may
// overwrite operands of others.
func (e *emitter) storeAll(outs []kernel.Out) {
	var plain []kernel.Out
	for _, o := range outs {
		if len(o.If) > 0 {
			e.under(o.If, func() { e.store(o, e.rounded(o)) })
			continue
		}
		plain = append(plain, o)
	}
	values := make([]value.Value, len(plain))
	for i, o := range plain {
		values[i] = e.rounded(o)
	}
	for i, o := range plain {
		e.store(o, values[i])
	}
}

// rounded is what o stores; a conversion to the stored type is left to the store.
func (e *emitter) rounded(o kernel.Out) value.Value {
	x, elem := o.X, o.Value.Elem()
	for x.Op == "convert" && x.Elem == elem && elem.IsFloat() && elem.Bytes() < 4 && x.Args[0].Elem.IsFloat() && x.Args[0].Elem != types.F64 && !e.done(x) {
		x = x.Args[0]
	}
	return e.value(x)
}
