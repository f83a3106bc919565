package cuda

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// emitter writes the statements that compute expressions, each once, in the
// innermost scope that encloses all its uses.
type emitter struct {
	*unit
	scopes  []scope
	atoms   map[*kernel.Atom]code // names of the variables that have values here
	params  map[*ir.Value]ident
	invalid *[]string // expressions that cannot be computed where they are used
	// loaded are loads that were read before.
	loaded func(x *kernel.Expr) (code, bool)
	// given are expressions computed elsewhere, such as reductions over rows.
	given map[*kernel.Expr]code
	// lane are expressions with an array of one value for each lane.
	lane map[*kernel.Expr]ident
	next int
	// approximate are exponentials that only results of at most 16 bits depend
	// on.
	approximate map[*kernel.Expr]bool
	runs        map[*kernel.Atom]run
	lists       map[*kernel.Groups]lists
	sums        map[*kernel.Pieces][]levelSums
	team        *team // that shares the segments of reductions; nil: a thread has them alone
	// stored are loads that were read before, as they are in memory; of those with a name.
	stored map[*kernel.Expr]stored
	// lanesOf is the variable that numbers lanes; nil: there is none.
	lanesOf *kernel.Atom
}

// scope is the contents of a pair of braces.
type scope struct {
	names map[*kernel.Expr]code // of the expressions computed in it
	bound []*kernel.Atom        // variables that have values only in it
	loads []*kernel.Expr        // those of emitter.stored that were read in it
}

// emitter writes into u.
func (t *text) emitter(u *unit) *emitter {
	return &emitter{
		unit: u, scopes: []scope{{names: map[*kernel.Expr]code{}}}, atoms: map[*kernel.Atom]code{}, invalid: &t.invalid,
		params: t.named, given: map[*kernel.Expr]code{}, lane: map[*kernel.Expr]ident{}, runs: map[*kernel.Atom]run{}, lists: map[*kernel.Groups]lists{}, sums: map[*kernel.Pieces][]levelSums{}, stored: map[*kernel.Expr]stored{},
	}
}

// fail records that an expression cannot be computed here, which makes the
// kernel invalid.
func (e *emitter) fail(format string, args ...any) code {
	*e.invalid = append(*e.invalid, fmt.Sprintf(format, args...))
	return cpp("unsound")
}

// param is the parameter for v.
func (e *emitter) param(v *ir.Value) code {
	if n, ok := e.params[v]; ok {
		return cpp("%s", n)
	}
	return e.fail("%s is read but is not a parameter", v.Name)
}

// bind defines the value of a variable up to the end of the scope.
func (e *emitter) bind(a *kernel.Atom, value code) {
	if a != nil {
		e.atoms[a] = value
		top := &e.scopes[len(e.scopes)-1]
		top.bound = append(top.bound, a)
	}
}

// open and close enclose the statements between them in braces.
func (e *emitter) open(format string, args ...any) { e.openAs(block, format, args...) }

func (e *emitter) openAs(s style, format string, args ...any) {
	e.enter(s, format, args...)
	e.scopes = append(e.scopes, scope{names: map[*kernel.Expr]code{}})
}

func (e *emitter) close() {
	for _, a := range e.scopes[len(e.scopes)-1].bound {
		delete(e.atoms, a)
	}
	for _, x := range e.scopes[len(e.scopes)-1].loads {
		delete(e.stored, x)
	}
	e.scopes = e.scopes[:len(e.scopes)-1]
	e.leave()
}

// pragma adds an annotation of the loop that follows.
func (e *emitter) pragma(text string) { e.add(&stmt{head: cpp(text), style: bare}) }

func (e *emitter) name(prefix string) ident {
	e.next++
	return ident(prefix + strconv.Itoa(e.next))
}

// storage is the prelude's type of an element in memory.
func storage(elem types.Elem) string {
	switch elem {
	case types.F8E4M3FN:
		return "dm::f8e4"
	case types.F8E5M2:
		return "dm::f8e5"
	case types.F32, types.TF32:
		return "float"
	case types.F64:
		return "double"
	case types.I1:
		return "bool"
	}
	return "dm::" + strings.Replace(elem.String(), "ui", "u", 1)
}

// register is the type in which an element is computed.
func register(elem types.Elem) string {
	switch {
	case elem.IsFloat() && elem != types.F64:
		return "float"
	case elem == types.I4:
		return storage(types.I8)
	case elem == types.UI4:
		return storage(types.UI8)
	}
	return storage(elem)
}

func small(elem types.Elem) bool { return elem.IsFloat() && elem.Bytes() < 4 }

// narrowed reports whether elements are computed in a wider type than they are
// stored in.
func narrowed(elem types.Elem) bool { return small(elem) || elem.Packed() }

// value is the name of x, or a literal, after the statements that compute it.
func (e *emitter) value(x *kernel.Expr) code {
	if v, ok := e.given[x]; ok {
		return v
	}
	if n, ok := e.lane[x]; ok {
		at, ok := e.atoms[e.lanesOf]
		if !ok {
			return e.fail("a value of each neighbour is read where there is no neighbour")
		}
		return cpp("%s[%s]", n, at)
	}
	for i := len(e.scopes) - 1; i >= 0; i-- {
		if v, ok := e.scopes[i].names[x]; ok {
			return v
		}
	}
	if x.Op == kernel.Number {
		return cpp("%s", number(x))
	}
	if x.Op == kernel.Load && e.loaded != nil {
		if v, ok := e.loaded(x); ok {
			return v
		}
	}
	if x.Op == "convert" && !narrowed(x.Elem) && register(x.Elem) == register(x.Args[0].Elem) {
		return e.value(x.Args[0])
	}
	var n ident
	switch x.Op {
	case kernel.Guard:
		n = e.guard(x)
	case kernel.Reduce:
		if x.Over != kernel.OwnLoop {
			return e.fail("a reduction (%s over %s) is read before it is complete", x.Kind, x.Over)
		}
		n = e.loop(x)
	case kernel.Search:
		n = e.search(x)
	case kernel.Part:
		return e.fail("a partial result of a reduction by a region is read outside of it")
	default:
		v := e.expression(x)
		n = e.name("t")
		e.lineOf(x.From, "const %s %s = %s", register(x.Elem), def(n), v)
	}
	v := cpp("%s", n)
	e.scopes[len(e.scopes)-1].names[x] = v
	return v
}

func number(x *kernel.Expr) string {
	switch {
	case x.Elem == types.I1:
		return strconv.FormatBool(x.Int != 0)
	case !x.Elem.IsFloat() && x.Elem == types.UI64:
		return fmt.Sprintf("%dull", uint64(x.Int))
	case !x.Elem.IsFloat() && x.Int == math.MinInt64:
		return "(-9223372036854775807ll - 1)"
	case x.Elem == types.I64:
		return fmt.Sprintf("%s(%dll)", storage(x.Elem), x.Int)
	case !x.Elem.IsFloat():
		return fmt.Sprintf("%s(%d)", register(x.Elem), x.Int)
	case x.Elem == types.F64:
		return float(x.Num, 64)
	}
	return float(x.Num, 32)
}

func float(v float64, bits int) string {
	suffix, kind := "", "double"
	if bits == 32 {
		suffix, kind = "f", "float"
	}
	switch {
	case math.IsNaN(v):
		return "dm::nan<" + kind + ">()"
	case math.IsInf(v, 1):
		return "dm::infinity<" + kind + ">()"
	case math.IsInf(v, -1):
		return "-dm::infinity<" + kind + ">()"
	}
	s := strconv.FormatFloat(v, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	if v < 0 || math.Signbit(v) {
		return "(" + s + suffix + ")"
	}
	return s + suffix
}

// expression is the C++ expression for x, whose operands have names.
func (e *emitter) expression(x *kernel.Expr) code {
	switch x.Op {
	case kernel.Load:
		return cpp("dm::wide(%s[%s])", e.param(x.Buf), e.index(x.At))
	case kernel.Count:
		if x.Kind == kernel.Spaced {
			return cpp("dm::spaced<%s>(%s, %s, %s)", storage(x.Elem), float(x.Par[0], 64), float(x.Par[1], 64), e.index(x.At))
		}
		return cpp("dm::convert<%s>(dm::i64(%s))", register(x.Elem), e.index(x.At))
	case kernel.Acc:
		if x.Elem.IsInt() {
			return cpp("%s(%s[%d][%s])", storage(x.Elem), accumulators, x.Int, e.index(x.At))
		}
		return cpp("%s[%d][%s]", accumulators, x.Int, e.index(x.At))
	case kernel.Keep:
		seed := e.seed(x)
		if base, ok := contiguous(x.At, e.lanesOf, 2); ok { // neighbours share a random number
			return cpp("dm::keeps(%s, %s, %s, %dull)", seed, e.index(base), e.atoms[e.lanesOf], x.Int)
		}
		return cpp("dm::keeps(%s, %s, %dull)", seed, e.index(x.At), x.Int)
	case kernel.Random:
		return e.random(x)
	}
	args := make([]any, len(x.Args))
	for i, a := range x.Args {
		args[i] = e.value(a)
	}
	switch {
	case x.Op == "convert" && narrowed(x.Elem): // rounded, in the type of the computation
		return cpp("dm::wide(dm::convert<%s>(%s))", storage(x.Elem), args[0])
	case x.Op == "convert":
		return cpp("dm::convert<%s>(%s)", storage(x.Elem), args[0])
	case x.Op == "bitcast":
		return bitcast(x, args[0])
	case x.Op == kernel.Key:
		return cpp("dm::order_key<false>(dm::narrow<%s>(%s))", storage(x.Args[0].Elem), args[0])
	case x.Op == "div" && register(x.Elem) == "float" && x.Args[1].Op == kernel.Reduce && x.Args[1].Over == kernel.RowReduction:
		return cpp("dm::quotient_shared(%s, %s)", args...) // the divisor is shared by the row
	case e.approximate[x]:
		return cpp("dm::exp_coarse(%s)", args...)
	}
	return cpp(scalarFormat(x), args...)
}

// bitcast takes the bits of a number as those of another one, both as they are stored.
func bitcast(x *kernel.Expr, arg any) code {
	format, from := "%s", x.Args[0].Elem
	if narrowed(from) {
		format = "dm::convert<" + storage(from) + ">(%s)"
	}
	format = "dm::bits_as<" + storage(x.Elem) + ">(" + format + ")"
	if narrowed(x.Elem) {
		format = "dm::wide(" + format + ")"
	}
	return cpp(format, arg)
}

// scalarFormat is the C++ expression of a scalar op with %s for its operands.
func scalarFormat(x *kernel.Expr) string {
	in := x.Elem
	if len(x.Args) > 0 {
		in = x.Args[0].Elem
	}
	flag, integer := in == types.I1, !in.IsFloat()
	cast := func(s string) string { // C++ computes small integers as int
		if integer && !flag && in.Bytes() < 4 {
			return storage(x.Elem) + "(" + s + ")"
		}
		return s
	}
	switch x.Op {
	case "add":
		if flag {
			return "%s | %s"
		}
		return cast("%s + %s")
	case "sub":
		return cast("%s - %s")
	case "mul":
		if flag {
			return "%s & %s"
		}
		return cast("%s * %s")
	case "div":
		if !integer {
			return "%s / %s"
		}
	case "max":
		if flag {
			return "%s | %s"
		}
	case "min":
		if flag {
			return "%s & %s"
		}
	case "and":
		return cast("%s & %s")
	case "or":
		return cast("%s | %s")
	case "xor":
		return cast("%s ^ %s")
	case "not":
		if flag {
			return "!%s"
		}
		return cast("~%s")
	case "neg":
		return cast("-%s")
	case "relu":
		return "dm::max(%s, " + register(in) + "(0))"
	case "select":
		return "%s ? %s : %s"
	case "clamp":
		return "dm::min(dm::max(%[2]s, %[1]s), %[3]s)"
	case "compare":
		return "%s " + map[string]string{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[strings.ToLower(x.Kind)] + " %s"
	case "gelu":
		if x.Kind == "tanh" {
			return "dm::gelu_tanh(%s)"
		}
		return "dm::gelu(%s)"
	}
	return "dm::" + x.Op + "(%s" + strings.Repeat(", %s", len(x.Args)-1) + ")"
}

// approximate are the exponentials on which only results of at most 16 bits
// depend.
func approximate(outs []kernel.Out) map[*kernel.Expr]bool {
	out, exact := map[*kernel.Expr]bool{}, map[*kernel.Expr]bool{}
	for _, o := range outs {
		kernel.Walk(o.X, func(x *kernel.Expr) {
			switch {
			case x.Op != "exp" || register(x.Elem) != "float":
			case small(o.Value.Elem()):
				out[x] = true
			default:
				exact[x] = true
			}
		})
	}
	for x := range exact {
		delete(out, x)
	}
	return out
}

// seed is the seed of a Keep or a Random.
func (e *emitter) seed(x *kernel.Expr) code {
	if len(x.Args) == 0 {
		return cpp("%dull", x.Seed)
	}
	return cpp("dm::seed_of(%dull, dm::u64(%s))", x.Seed, e.value(x.Args[0]))
}

func (e *emitter) random(x *kernel.Expr) code {
	at := e.index(x.At)
	if x.Kind == "normal" {
		return cpp("dm::convert<%s>(%s + %s * dm::normal(%s, 2, %s))", register(x.Elem), float(x.Par[0], 64), float(x.Par[1], 64), e.seed(x), at)
	}
	return cpp("dm::uniform_between<%s>(%s, %s, %s, %s)", storage(x.Elem), float(x.Par[0], 64), float(x.Par[1], 64), e.seed(x), at)
}

// guard computes one of two values under a condition.
func (e *emitter) guard(x *kernel.Expr) ident {
	n := e.name("t")
	e.lineOf(x.From, "%s %s", register(x.Elem), def(n))
	e.open("if (%s)", e.conditions(x.If))
	e.assign(x.From, n, e.value(x.Args[0]))
	e.close()
	e.open("else")
	e.assign(x.From, n, e.value(x.Args[1]))
	e.close()
	return n
}

// assign assigns to a variable, or to an element of one.
func (e *emitter) assign(o *ir.Op, to any, value code) { e.lineOf(o, "%s = %s", to, value) }

func (e *emitter) conditions(cs []kernel.Condition) code {
	var all code
	and := func(c code) {
		if all.format == "" {
			all = c
		} else {
			all = cpp("%s && %s", all, c)
		}
	}
	for _, c := range cs {
		x := e.index(c.X)
		lo, hi := c.X.Bounds()
		if lo < c.Lo {
			and(cpp("%s >= %d", x, c.Lo))
		}
		if hi >= c.Hi {
			and(cpp("%s < %d", x, c.Hi))
		}
	}
	return all
}

// identity is the identity element of a reduction of that kind.
func identity(kind string, elem types.Elem) string {
	f, i := kernel.Identity(kind, elem)
	return number(&kernel.Expr{Op: kernel.Number, Elem: elem, Num: f, Int: i})
}

// combined is the combination of two partial results of a reduction.
func combined(kind string, elem types.Elem, a, b any) code {
	return cpp(scalarFormat(&kernel.Expr{Op: kind, Elem: elem, Args: []*kernel.Expr{{Elem: elem}, {Elem: elem}}}), a, b)
}

// selects reports whether the reduction x is one of the values of its body.
func selects(x *kernel.Expr) bool { return x.Kind == kernel.First || x.Kind == kernel.Last }

// begin is what the reduction x begins with.
func (e *emitter) begin(x *kernel.Expr) code {
	if selects(x) || x.Kind == kernel.Region {
		return e.value(x.Args[1])
	}
	return cpp("%s", identity(x.Kind, x.Elem))
}

// accumulate adds a value of its body to sum, what x has reduced so far.
func (e *emitter) accumulate(x *kernel.Expr, sum code, body *kernel.Expr) {
	switch {
	case selects(x):
		e.assign(x.From, sum, e.value(body))
	case x.Kind == kernel.Region:
		e.given[x.Args[3]], e.given[x.Args[4]] = sum, e.value(body)
		e.assign(x.From, sum, e.value(x.Args[2]))
	default:
		e.assign(x.From, sum, combined(x.Kind, x.Elem, sum, e.value(body)))
	}
}

// loop computes a serial reduction.
func (e *emitter) loop(x *kernel.Expr) ident {
	sum, body := e.name("f"), x.Args[0]
	if x.Groups == nil && !x.Rare() {
		e.hoist(body)
	}
	begin := e.begin(x)
	e.lineOf(x.From, "%s %s = %s", register(x.Elem), def(sum), begin)
	if x.Groups != nil {
		e.eachUpdate(x, func(y *kernel.Expr) { e.accumulate(x, cpp("%s", sum), y) })
		return sum
	}
	if x.Span != nil {
		e.overSegment(x, func(y *kernel.Expr) { e.accumulate(x, cpp("%s", sum), y) })
		e.together(x, sum)
		return sum
	}
	for _, v := range x.Vars {
		n := e.name("k")
		e.open("for (%s %s = 0; %s < %d; %s++)", counter(v.Max+1), def(n), n, v.Max+1, n)
		e.bind(v, cpp("%s", n))
	}
	when := body.Op == kernel.Guard && (selects(x) || x.Kind != kernel.Region && body.Args[1].Op == kernel.Number && number(body.Args[1]) == identity(x.Kind, x.Elem))
	if when {
		e.open("if (%s)", e.conditions(body.If))
		body = body.Args[0]
	}
	e.accumulate(x, cpp("%s", sum), body)
	if x.Kind == kernel.First && len(x.Vars) > 0 {
		e.line("break")
	}
	if when {
		e.close()
	}
	for range x.Vars {
		e.close()
	}
	return sum
}

// counter is the type of a variable that counts to n in steps of up to a million.
func counter(n int64) string {
	if n > math.MaxInt32-1<<20 {
		return "dm::i64"
	}
	return "dm::i32"
}

// scaled is a * b, where b is a constant, in the type that counts to n.
func scaled(a code, b, n int64) code {
	if counter(n) == "dm::i64" {
		a = cpp("dm::i64(%s)", a)
	}
	return cpp("%s * %d", a, b)
}

// hoist computes, before a loop around x is opened, those subexpressions of x
// that can be computed here and are not under a guard.
func (e *emitter) hoist(x *kernel.Expr) {
	kernel.Hoist(x, func(x *kernel.Expr) bool { return e.done(x) || e.inLanes(x) }, e.ready, func(x *kernel.Expr) { e.value(x) })
}

// ready reports whether x can be computed here: its free variables have values,
// and the reductions over rows that it reads are complete.
func (e *emitter) ready(x *kernel.Expr) bool { return kernel.Ready(x, e.atoms, e.given) }

// done reports whether x is already computed.
func (e *emitter) done(x *kernel.Expr) bool {
	if _, ok := e.given[x]; ok {
		return true
	}
	for _, s := range e.scopes {
		if _, ok := s.names[x]; ok {
			return true
		}
	}
	return false
}

// inLanes reports whether an array holds x for each lane.
func (e *emitter) inLanes(x *kernel.Expr) bool {
	_, held := e.lane[x]
	return held
}
