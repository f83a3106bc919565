package randprog

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Options choose among the programs of a seed.
type Options struct {
	// Gradient selects functions with derivatives: all results are floating-point, of
	// differentiable ops.
	Gradient bool
	// Ops is about how many ops the function has; 0: a few.
	Ops int
	// State adds results that are the next values of arguments.
	State bool
	// Checks puts checks that hold into regions and functions.
	Checks bool
	// Tuples has loops carry them.
	Tuples bool
}

// Program returns a valid function @f, with at most one other function, forward or
// to be differentiated: every op of the registry, reductions of every dimension and
// of one another, values moved before, between and behind them, several results.
//
// Programs are numerically stable. The writer tracks the interval of each value, and
// whether every correct execution computes the same bits (exact). Operands are scaled
// so that an op does not overflow and is not near a pole, and values with rounding
// errors are not compared, so that two correct executions agree up to rounding.
func Program(seed uint64, o Options) string {
	w := &writer{r: rand.New(rand.NewPCG(seed, 8)), grad: o.Gradient, checks: o.Checks, tuples: o.Tuples, indent: "  ", used: map[string]bool{}}
	w.elem = w.pick("f32", "f32", "f32", "f32", "f32", "f64", "f64", "f16", "bf16", "i32")
	if w.grad {
		w.elem = w.pick("f64", "f64", "f32", "f32", "f16", "bf16")
	}
	w.arguments()
	w.weigh()
	n := o.Ops
	if n == 0 {
		n = 3 + w.r.IntN(10)
		if w.grad { // the gradient has about four times as many
			n = 2 + w.r.IntN(6)
		}
	}
	for tries := 0; w.written < n && tries < 8*n; tries++ {
		w.statement()
	}
	if o.State && !w.grad {
		w.states()
	}
	return w.function()
}

// value is a tensor of the program.
type value struct {
	name, elem string
	shape      []int
	lo, hi     float64 // bounds of its elements
	exact      bool    // the same bits in every correct execution
	depth      int     // reductions of reductions
	arg        bool
}

func (v value) typ() string {
	if len(v.shape) == 0 {
		return "tensor<" + v.elem + ">"
	}
	var b strings.Builder
	for _, d := range v.shape {
		fmt.Fprintf(&b, "%dx", d)
	}
	return "tensor<" + b.String() + v.elem + ">"
}

func (v value) top() float64 { return max(math.Abs(v.lo), math.Abs(v.hi)) }

func (v value) float() bool { return isFloat(v.elem) }

func isFloat(elem string) bool {
	return elem == "f64" || elem == "f32" || elem == "f16" || elem == "bf16"
}

func isF8(elem string) bool { return strings.HasPrefix(elem, "f8") }

// isI4 reports whether elem is one of the packed types, which are moved and converted.
func isI4(elem string) bool { return elem == "i4" || elem == "ui4" }

func isInt(elem string) bool { return !isFloat(elem) && !isF8(elem) && !isI4(elem) && elem != "i1" }

// limit bounds the values of a type, so that one more op does not overflow.
func limit(elem string) float64 {
	switch elem {
	case "f64", "f32", "bf16":
		return 1e5
	case "f16":
		return 2e4
	case "i64", "ui64", "i32", "ui32":
		return 1e8
	case "i16", "ui16":
		return 3e4
	case "i1":
		return 1
	case "i4", "ui4":
		return 7
	case "f8E4M3FN":
		return 400
	case "f8E5M2":
		return 5e4
	}
	return 120
}

// coarse reports whether a type has few digits, so that executions may differ.
func coarse(elem string) bool { return elem == "f16" || elem == "bf16" || isF8(elem) }

type writer struct {
	r       *rand.Rand
	out     strings.Builder
	indent  string
	elem    string // the type of most values
	grad    bool
	plain   bool // in a region that holds no regions
	checks  bool
	tuples  bool
	vals    []value
	args    []value
	used    map[string]bool
	names   int
	written int
	table   []weighted
	extra   string // another function
	state   []state
}

// state is the value that is an argument's next one.
type state struct {
	arg  string
	next value
}

const (
	most   = 6000    // elements of a tensor
	points = 1 << 18 // multiplications of a contraction
)

func count(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func (w *writer) pick(of ...string) string { return of[w.r.IntN(len(of))] }

func (w *writer) chance(of int) bool { return w.r.IntN(of) == 0 }

// size is a random size of a dimension: mostly small, sometimes 1, or just above the
// size of a warp, a tile or a block.
func (w *writer) size() int {
	switch k := w.r.IntN(50); {
	case k < 5:
		return 1
	case k < 34:
		return 2 + w.r.IntN(8)
	case k < 46:
		return []int{12, 16, 17, 24, 31, 32, 33, 40}[w.r.IntN(8)]
	case k < 49:
		return []int{64, 65, 96, 129}[w.r.IntN(4)]
	}
	return []int{257, 512, 1025}[w.r.IntN(3)]
}

func (w *writer) shape(rank int) []int {
	for {
		s := make([]int, rank)
		for i := range s {
			s[i] = w.size()
		}
		if count(s) <= most/2 {
			return s
		}
	}
}

// arguments writes arguments of shapes that broadcast: one that most values have, its rows,
// columns and parts with dimensions of size 1, and indices.
func (w *writer) arguments() {
	base := w.shape([]int{1, 2, 2, 2, 2, 3, 3, 4}[w.r.IntN(8)])
	shapes := [][]int{base}
	for range 1 + w.r.IntN(3) {
		s := slices.Clone(base)
		switch w.r.IntN(5) {
		case 0:
		case 1:
			s = s[w.r.IntN(len(s)+1):]
		case 2:
			s[w.r.IntN(len(s))] = 1
		case 3:
			s = []int{base[w.r.IntN(len(base))], w.size()}
			if count(s) > most/2 {
				s = s[:1]
			}
		default:
			w.r.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
		}
		shapes = append(shapes, s)
	}
	for _, s := range shapes {
		elem := w.elem
		if w.chance(8) {
			elem = w.pick("f32", "f64", "f16", "bf16")
		}
		w.argument(elem, s)
	}
	if w.chance(3) {
		w.argument(w.pick("i64", "i32", "i32", "ui32", "i16", "i8", "ui8", "ui16", "ui64"), base)
	}
	if w.chance(3) {
		w.argument(w.pick("i64", "i32"), base[w.r.IntN(len(base)):])
	}
	if w.chance(5) {
		w.argument("i1", base)
	}
	if w.chance(5) {
		w.argument(w.pick("i4", "i4", "ui4"), base)
	}
}

func (w *writer) argument(elem string, shape []int) value {
	v := value{name: fmt.Sprintf("%%a%d", len(w.args)), elem: elem, shape: slices.Clone(shape), lo: -7, hi: 7, exact: true, arg: true}
	if isInt(elem) {
		v.lo, v.hi = 0, 9
	}
	switch elem {
	case "i4":
		v.lo, v.hi = -8, 7
	case "ui4":
		v.lo, v.hi = 0, 9
	case "i1":
		v.lo, v.hi = 0, 1
	}
	w.args = append(w.args, v)
	w.vals = append(w.vals, v)
	return v
}

func (w *writer) fresh(elem string, shape []int, lo, hi float64, exact bool, from ...value) value {
	w.names++
	if elem[0] == 'u' {
		lo = max(lo, 0)
	}
	v := value{name: fmt.Sprintf("%%v%d", w.names), elem: elem, shape: slices.Clone(shape), lo: lo, hi: hi, exact: exact}
	for _, f := range from {
		v.depth = max(v.depth, f.depth)
	}
	return v
}

// find picks a value that want accepts, recent ones more often.
func (w *writer) find(want func(value) bool) (value, bool) {
	for range 10 {
		v := w.vals[len(w.vals)-1-w.r.IntN(min(len(w.vals), 1+w.r.IntN(len(w.vals))))]
		if want(v) {
			return v, true
		}
	}
	var all []value
	for _, v := range w.vals {
		if want(v) {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return value{}, false
	}
	return all[w.r.IntN(len(all))], true
}

func floats(v value) bool { return v.float() && v.top() <= limit(v.elem) }

func numbers(v value) bool { return (v.float() || isInt(v.elem)) && v.top() <= limit(v.elem) }

func ranked(n int, f func(value) bool) func(value) bool {
	return func(v value) bool { return len(v.shape) >= n && f(v) }
}

func spell(vs []value) (names, types string) {
	var ns, ts []string
	for _, v := range vs {
		ns, ts = append(ns, v.name), append(ts, v.typ())
	}
	return strings.Join(ns, ", "), strings.Join(ts, ", ")
}

// emit writes "outs = dm.head ins clauses : (types) -> types" and records outs.
func (w *writer) emit(head, clauses string, outs, ins []value) {
	w.line(head, clauses, "", outs, ins)
	w.vals = append(w.vals, outs...)
}

func (w *writer) line(head, clauses, region string, outs, ins []value) {
	names, types := spell(ins)
	results, into := spell(outs)
	if len(outs) != 1 {
		into = "(" + into + ")"
	}
	text := "dm." + head
	if names != "" {
		text += " " + names
	}
	switch {
	case clauses == "":
	case names == "":
		text += " " + clauses
	default:
		text += ", " + clauses
	}
	if strings.HasPrefix(head, "rng") && names == "" && clauses != "" {
		text = "dm." + head + ", " + clauses
	}
	if names == "" {
		text += " : " + into
	} else {
		text += " : (" + types + ") -> " + into
	}
	fmt.Fprintf(&w.out, "%s%s = %s%s\n", w.indent, results, text, region)
	for _, v := range ins {
		w.used[v.name] = true
	}
	w.written++
}

// one writes an op with one result and returns it.
func (w *writer) one(head, clauses string, out value, ins ...value) value {
	w.emit(head, clauses, []value{out}, ins)
	return out
}

// constant is a number as a tensor without dimensions.
func (w *writer) constant(elem string, x float64) value {
	v := w.fresh(elem, nil, x, x, true)
	fmt.Fprintf(&w.out, "%s%s = dm.constant dense<%s> : %s\n", w.indent, v.name, number(elem, x), v.typ())
	return v
}

func number(elem string, x float64) string {
	switch {
	case elem == "i1":
		return strconv.FormatBool(x != 0)
	case isInt(elem), isI4(elem):
		return strconv.FormatInt(int64(x), 10)
	}
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// function is the whole text, with the results that are used by nothing and a
// few others.
func (w *writer) function() string {
	var results []value
	for _, v := range slices.Backward(w.vals) {
		if v.arg || w.grad && !v.float() {
			continue
		}
		if (!w.used[v.name] || w.chance(5)) && len(results) < 4 {
			results = append(results, v)
		}
	}
	if len(results) == 0 || w.grad && !slices.ContainsFunc(results, value.float) {
		v, ok := w.find(func(v value) bool { return !v.arg && (v.float() || !w.grad) })
		if !ok {
			if v, ok = w.find(value.float); ok {
				v = w.one("tanh", "", w.fresh(v.elem, v.shape, -1, 1, false), v)
			} else { // all arguments are integers
				v = w.vals[0]
				v = w.one("convert", "", w.fresh("f32", v.shape, v.lo, v.hi, true), v)
			}
		}
		results = append(results, v)
	}
	slices.Reverse(results)
	results = slices.DeleteFunc(results, func(v value) bool {
		return slices.ContainsFunc(w.state, func(s state) bool { return s.next.name == v.name })
	})
	var args []string
	for _, a := range w.args {
		args = append(args, a.name+": "+a.typ())
	}
	_, signature := spell(results)
	for _, s := range w.state {
		results = append(results, s.next)
		if signature != "" {
			signature += ", "
		}
		signature += fmt.Sprintf("%s {dm.state = %q}", s.next.typ(), s.arg[1:])
	}
	names, types := spell(results)
	return fmt.Sprintf("func.func @f(%s) -> (%s) {\n%s  return %s : %s\n}\n%s", strings.Join(args, ", "), signature, w.out.String(), names, types, w.extra)
}
