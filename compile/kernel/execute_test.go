package kernel

import (
	"fmt"
	"math"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/random"
	"dmir/dialect/types"
)

// executor computes forms one element at a time, in double precision, from the values that their ops have by the reference
// executor. It panics with an unknown where an expression has no function here.
type executor struct {
	values map[*ir.Value][]float64 // as they lie in memory
	vars   map[*Atom]int64
	parts  map[*Expr]float64
	sums   []float64         // of Acc
	memo   map[*Expr]float64 // of what is the same for all elements
	free   bool              // indices may leave their bounds
	left   int               // how many expressions are still computed before it gives up
}

type unknown string

// loop calls visit for all values of the variables.
func (m *executor) loop(vars []*Atom, visit func()) {
	if len(vars) == 0 {
		visit()
		return
	}
	if vars[0] == nil {
		m.loop(vars[1:], visit)
		return
	}
	old, bound := m.vars[vars[0]]
	for i := vars[0].Min; i <= vars[0].Max; i++ {
		m.vars[vars[0]] = i
		m.loop(vars[1:], visit)
	}
	if delete(m.vars, vars[0]); bound {
		m.vars[vars[0]] = old
	}
}

func (m *executor) index(x Index) int64 {
	sum := x.C
	for _, t := range x.Terms {
		sum += t.Coef * m.atom(t.Atom)
	}
	return sum
}

func (m *executor) atom(a *Atom) int64 {
	var v int64
	switch a.Kind {
	case Var:
		x, ok := m.vars[a]
		if !ok {
			panic(fmt.Sprintf("the variable %s has no value here", a.Name))
		}
		v = x
	case Div:
		v = floorDiv(m.index(a.X), a.N)
	case Mod:
		x := m.index(a.X)
		v = x - floorDiv(x, a.N)*a.N
	case Within:
		v = m.index(a.X)
	case Datum:
		v = int64(m.eval(a.E))
	}
	if (v < a.Min || v > a.Max) && !m.free {
		panic(fmt.Sprintf("%d is not within %d and %d", v, a.Min, a.Max))
	}
	return v
}

func (m *executor) holds(conditions []Condition) bool {
	for _, c := range conditions {
		if x := m.index(c.X); x < c.Lo || x >= c.Hi {
			return false
		}
	}
	return true
}

func (m *executor) eval(x *Expr) float64 {
	if m.left--; m.left < 0 {
		panic(unknown("the rest"))
	}
	if x.Elem == types.InvalidElem {
		panic(x.Op + " has no type")
	}
	switch x.Op {
	case Number:
		if x.Elem.IsFloat() {
			return x.Num
		}
		return float64(x.Int)
	case Load:
		return m.values[x.Buf][m.index(x.At)]
	case Count:
		if x.Kind == Spaced {
			return x.Par[0] + x.Par[1]*float64(m.index(x.At))
		}
		return float64(m.index(x.At))
	case Acc:
		return m.sums[x.Int]
	case Guard:
		if m.holds(x.If) {
			return m.eval(x.Args[0])
		}
		return m.eval(x.Args[1])
	case Part:
		return m.parts[x]
	case Search:
		n, over := 0.0, false
		m.loop(x.Vars, func() {
			switch first := m.eval(x.Args[0]) != 0; {
			case first && over:
				panic("a search finds one behind what is none")
			case first:
				n++
			default:
				over = true
			}
		})
		return n
	case Reduce:
		if len(x.Free()) > 0 || x.ReadsSums() || len(m.parts) > 0 {
			return m.reduce(x)
		}
		v, ok := m.memo[x]
		if !ok {
			v = m.reduce(x)
			m.memo[x] = v
		}
		return v
	}
	args := make([]float64, len(x.Args))
	for i, a := range x.Args {
		args[i] = m.eval(a)
	}
	if f := binaryOps[x.Op]; f != nil && (x.Args[0].Elem != x.Elem || x.Args[1].Elem != x.Elem) {
		panic(fmt.Sprintf("%s of %s and %s is of %s", x.Op, x.Args[0].Elem, x.Args[1].Elem, x.Elem))
	}
	v, ok := apply(x, args, m.index(x.At))
	if !ok {
		panic(unknown(x.Op))
	}
	if x.Elem.IsInt() {
		return float64(tensor.Wrap(x.Elem, int64(v)))
	}
	return v
}

// reduce is the value of a reduction: over all values of its variables, over a segment, or over the updates of a row.
func (m *executor) reduce(x *Expr) float64 {
	empty := true
	var acc float64
	step := func() {
		body := x.Args[0]
		if (x.Kind == First || x.Kind == Last) && x.Groups == nil {
			if body.Op == Guard && !m.holds(body.If) {
				return
			}
		}
		v := m.eval(body)
		switch {
		case x.Kind == Region:
			m.parts[x.Args[3]], m.parts[x.Args[4]] = acc, v
			acc = m.eval(x.Args[2])
		case empty || x.Kind == Last:
			acc = v
		case x.Kind != First:
			acc, _ = apply(&Expr{Op: x.Kind, Elem: x.Elem}, []float64{acc, v}, 0)
		}
		empty = false
	}
	if x.Kind == Region {
		acc = m.eval(x.Args[1])
	}
	switch {
	case x.Span != nil:
		for k := m.index(x.Span.From); k < m.index(x.Span.To); k++ {
			m.with(x.Vars[0], k, step)
		}
	case x.Groups != nil:
		g, group := x.Groups, m.index(x.At)
		for u := range g.Updates {
			m.with(g.Batch, group/(g.Rows+1), func() {
				m.with(g.Update, u, func() {
					if m.index(g.Place) == group%(g.Rows+1) {
						m.with(x.Vars[0], u, step)
					}
				})
			})
		}
	default:
		m.loop(x.Vars, step)
	}
	switch {
	case !empty || x.Kind == Region:
		return acc
	case x.Kind == First || x.Kind == Last:
		return m.eval(x.Args[1])
	}
	f, i := Identity(x.Kind, x.Elem)
	if x.Elem.IsFloat() {
		return f
	}
	return float64(i)
}

// with calls visit where a variable, which may be none, has a value.
func (m *executor) with(a *Atom, v int64, visit func()) {
	if a == nil {
		visit()
		return
	}
	old, bound := m.vars[a]
	m.vars[a] = v
	visit()
	if delete(m.vars, a); bound {
		m.vars[a] = old
	}
}

var unary = map[string]func(float64) float64{
	"neg": func(x float64) float64 { return -x }, "abs": math.Abs, "exp": math.Exp, "log": math.Log, "log1p": math.Log1p, "sqrt": math.Sqrt, "cbrt": math.Cbrt,
	"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) }, "tanh": math.Tanh, "atanh": math.Atanh, "sinh": math.Sinh, "sin": math.Sin, "cos": math.Cos, "tan": math.Tan,
	"erf": math.Erf, "erfc": math.Erfc, "erfinv": math.Erfinv, "floor": math.Floor, "logistic": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"silu": func(x float64) float64 { return x / (1 + math.Exp(-x)) }, "relu": func(x float64) float64 { return max(x, 0) },
}

var binaryOps = map[string]func(x, y float64) float64{
	"add": func(x, y float64) float64 { return x + y }, "sub": func(x, y float64) float64 { return x - y }, "mul": func(x, y float64) float64 { return x * y },
	"div": func(x, y float64) float64 { return x / y }, "max": func(x, y float64) float64 { return max(x, y) }, "min": func(x, y float64) float64 { return min(x, y) },
	"rem": math.Mod, "pow": math.Pow, "atan2": math.Atan2,
}

// apply is a scalar function, that of element number at where it is random; ok is false for one that is not here.
func apply(x *Expr, v []float64, at int64) (result float64, ok bool) {
	truth := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	if len(v) == 2 && !x.Elem.IsFloat() && (x.Op == "and" || x.Op == "or" || x.Op == "xor") {
		switch a, b := int64(v[0]), int64(v[1]); x.Op {
		case "and":
			return float64(a & b), true
		case "or":
			return float64(a | b), true
		default:
			return float64(a ^ b), true
		}
	}
	if f := unary[x.Op]; f != nil {
		return f(v[0]), true
	}
	if x.Op == "div" && !x.Elem.IsFloat() {
		if v[1] == 0 {
			return 0, false
		}
		return math.Trunc(v[0] / v[1]), true
	}
	if f := binaryOps[x.Op]; f != nil {
		return f(v[0], v[1]), true
	}
	switch x.Op {
	case "clamp":
		return min(max(v[1], v[0]), v[2]), true
	case "select":
		if v[0] != 0 {
			return v[1], true
		}
		return v[2], true
	case "not":
		if x.Elem.Bits() == 1 {
			return 1 - v[0], true
		}
		return float64(^int64(v[0])), true
	case Keep:
		return truth(int64(tensor.NewStream(x.Seed, random.Dropout).Half(uint64(at))) >= x.Int), len(v) == 0
	case "convert":
		if x.Elem.Bits() == 1 {
			return truth(v[0] != 0), true
		}
		if x.Elem.IsFloat() && x.Elem.Bytes() < 4 {
			return float64(tensor.Round64(x.Elem, v[0])), true
		}
		if x.Elem.IsInt() {
			return float64(tensor.ToInt(x.Elem, v[0])), true
		}
		return v[0], true
	case "compare":
		i := slices.Index([]string{"eq", "ne", "lt", "le", "gt", "ge"}, x.Kind)
		if i < 0 {
			return 0, false
		}
		return truth([]bool{v[0] == v[1], v[0] != v[1], v[0] < v[1], v[0] <= v[1], v[0] > v[1], v[0] >= v[1]}[i]), true
	}
	return 0, false
}

// results are what a form stores: of each output the elements by their place in memory, NaN where nothing is stored.
func (m *executor) results(f *Form) map[*ir.Value][]float64 {
	stored := map[*ir.Value][]float64{}
	for _, v := range f.Outputs {
		stored[v] = make([]float64, Product(shapeOf(v)))
		for i := range stored[v] {
			stored[v][i] = math.NaN()
			if f.Over[v] { // what it is written over
				stored[v][i] = m.values[op.UpdatesIn(f.Ops, v)[0].Operands[0]][i]
			}
		}
	}
	if f.Class == ClassContraction {
		m.product(f, stored)
		return stored
	}
	for _, o := range f.Outs {
		vars := o.Loops
		if f.Rows != nil {
			vars = f.Rows.vars(o.Level)
		} else if f.Lane != nil {
			vars = append(slices.Clone(vars), f.Lane)
		}
		m.loop(vars, func() { m.store(o, stored) })
	}
	return stored
}

func (m *executor) store(o Out, stored map[*ir.Value][]float64) {
	if m.holds(o.If) {
		stored[o.Value][m.index(o.At)] = m.eval(o.X)
	}
}

// product computes a contraction as its tiled form says, with neighbours along the variable that the form has them along.
func (m *executor) product(f *Form, stored map[*ir.Value][]float64) {
	t, err := f.Tiled()
	if err != nil {
		panic(err)
	}
	v := int64(1)
	if t.Cols%2 == 0 {
		v = 2
	}
	outs, reductions, flat, err := t.Results(v)
	if err != nil {
		panic(err)
	}
	a, at := t.A("m", 1)
	bs, bt := t.B("n", 1)
	totals, kept := map[*ir.Value]map[int64]float64{}, map[*ir.Value]map[int64]int64{} // kept: of which row or column a total is
	m.loop([]*Atom{flat.Z, flat.M, flat.N, flat.Lane}, func() {
		column := m.vars[flat.N]*v + m.vars[flat.Lane]
		m.sums = make([]float64, len(bs))
		from, to := int64(0), t.Depth
		z := m.vars[flat.Z]
		if g := t.Grouping(); g != nil {
			m.vars[g.Z] = z
			if !g.Rows {
				from, to = m.index(g.First), m.index(g.End)
			} else {
				for z = range g.Count {
					if m.vars[g.Z] = z; m.vars[flat.M] >= m.index(g.First) && m.vars[flat.M] < m.index(g.End) {
						break
					}
				}
			}
			delete(m.vars, nil)
		}
		for k := from; k < to; k++ {
			for _, s := range []struct {
				a *Atom
				v int64
			}{{at.Z, z}, {at.M, m.vars[flat.M]}, {at.K, k}, {bt.Z, z}, {bt.N, column}, {bt.K, k}} {
				if s.a != nil {
					m.vars[s.a] = s.v
				}
			}
			x := m.eval(a)
			for i, b := range bs {
				m.sums[i] += x * m.eval(b)
			}
		}
		for _, o := range outs {
			m.store(o, stored)
		}
		for _, r := range reductions {
			for from, to := range map[*Atom]*Atom{flat.Z: r.Kept.Z, flat.M: r.Kept.M} {
				if to != nil {
					m.vars[to] = m.vars[from]
				}
			}
			if r.Kept.N != nil {
				m.vars[r.Kept.N] = column
			}
			if totals[r.Value] == nil {
				totals[r.Value], kept[r.Value] = map[int64]float64{}, map[int64]int64{}
			}
			place, x := m.index(r.At), m.eval(r.X)
			own := m.vars[flat.M]
			if r.Rows {
				own = column
			}
			if old, ok := kept[r.Value][place]; ok && old != own {
				panic(fmt.Sprintf("%s has a value for each row: %t, and this one is of several", r.Value.Name, !r.Rows))
			}
			kept[r.Value][place] = own
			if sum, ok := totals[r.Value][place]; ok {
				x, _ = apply(&Expr{Op: r.Kind, Elem: r.X.Elem}, []float64{sum, x}, 0)
			}
			totals[r.Value][place] = x
		}
	})
	for v, elements := range totals {
		for place, x := range elements {
			stored[v][place] = x
		}
	}
}
