package randprog

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"dmir/dialect/dim"
)

// Calls returns a program whose function @f calls functions with symbols in several sizes, and the same program with a
// function of its own, in numbers, for each of these. The first result of @f is a scalar, so that it has a gradient.
func Calls(seed uint64) (generic, static string) {
	c := &calls{r: rand.New(rand.NewPCG(seed, 23))}
	for range 2 + c.r.IntN(3) {
		c.function()
	}
	c.main()
	return c.text(true), c.text(false)
}

// shape is the sizes of a value.
type shape []dim.Dim

func (s shape) in(env map[string]dim.Dim) shape {
	out := make(shape, len(s))
	for i, d := range s {
		out[i] = d.Subst(env)
	}
	return out
}

// String is the type of f32 tensors of the shape.
func (s shape) String() string {
	var b strings.Builder
	var names []string
	for _, d := range s {
		if n, ok := d.Int(); ok {
			fmt.Fprintf(&b, "%dx", n)
			continue
		}
		b.WriteString("?x")
		names = append(names, d.String())
	}
	if names == nil {
		return "tensor<" + b.String() + "f32>"
	}
	return "tensor<" + b.String() + "f32, #dm.at<dims = [" + strings.Join(names, ", ") + "]>>"
}

// sizedValue is a value of a function.
type sizedValue struct {
	name  string
	shape shape
}

// line is an op of a function: its text, with TYPE for each of its shapes, or a call.
type line struct {
	text   string
	shapes []shape
	calls  *generic
	env    map[string]dim.Dim // what the call binds
	in     []sizedValue
	out    sizedValue
}

// generic is a function with symbols.
type generic struct {
	name   string
	params []sizedValue // the first one is r by c
	lines  []line
	result sizedValue
}

// calls writes the programs of Calls.
type calls struct {
	r     *rand.Rand
	funcs []*generic
	f     *generic // that is being written
	next  int
}

func (c *calls) fresh() string {
	c.next++
	return fmt.Sprintf("%%v%d", c.next)
}

func (c *calls) add(text string, out shape, more ...shape) sizedValue {
	v := sizedValue{c.fresh(), out}
	c.f.lines = append(c.f.lines, line{text: "  " + v.name + " = " + text, shapes: append(more, out), out: v})
	return v
}

// param is a parameter of a shape.
func (c *calls) param(s shape) sizedValue {
	v := sizedValue{c.fresh(), s}
	c.f.params = append(c.f.params, v)
	return v
}

// function writes a function of a matrix, and of what its ops take beside it. Its columns are c, 2*c or c + 1.
func (c *calls) function() {
	r, cols := dim.Sym("r"), dim.Sym("c")
	c.f = &generic{name: fmt.Sprintf("g%d", len(c.funcs))}
	switch c.r.IntN(4) {
	case 0:
		cols = cols.Scale(2)
	case 1:
		cols = cols.Add(dim.Const(1))
	}
	x := c.param(shape{r, cols})
	for range 2 + c.r.IntN(4) {
		x = c.step(x)
	}
	c.f.result = x
	c.funcs = append(c.funcs, c.f)
}

// step is an op on the matrix x.
func (c *calls) step(x sizedValue) sizedValue {
	rows, cols := x.shape[0], x.shape[1]
	switch k := c.r.IntN(10); {
	case k == 0:
		return c.add("dm.tanh "+x.name+" : TYPE", x.shape)
	case k == 1:
		y := c.param(shape{cols})
		return c.add("dm.add "+x.name+", "+y.name+" : (TYPE, TYPE) -> TYPE", x.shape, x.shape, y.shape)
	case k == 2:
		w := c.param(shape{cols, dim.Sym("k")})
		return c.add("dm.matmul "+x.name+", "+w.name+" : (TYPE, TYPE) -> TYPE", shape{rows, dim.Sym("k")}, x.shape, w.shape)
	case k == 3:
		return c.add("dm.transpose "+x.name+", dims = [1, 0] : (TYPE) -> TYPE", shape{cols, rows}, x.shape)
	case k == 4:
		return c.add("dm.softmax "+x.name+", dim = 1 : TYPE", x.shape)
	case k == 5:
		return c.add("dm.concatenate "+x.name+", "+x.name+", dim = 1 : (TYPE, TYPE) -> TYPE", shape{rows, cols.Scale(2)}, x.shape, x.shape)
	case k == 6:
		if half, ok := cols.Div(dim.Const(2)); ok {
			return c.add("dm.reshape "+x.name+" : (TYPE) -> TYPE", shape{rows.Scale(2), half}, x.shape)
		}
		one := dim.Const(1)
		return c.add("dm.broadcast "+c.add("dm.reduce add "+x.name+", dims = [1], keep_dims = true : (TYPE) -> TYPE", shape{rows, one}, x.shape).name+", dims = [0, 1] : (TYPE) -> TYPE", x.shape, shape{rows, one})
	case k < 9 && len(c.funcs) > 0:
		if v, ok := c.call(c.funcs[c.r.IntN(len(c.funcs))], x); ok {
			return v
		}
	}
	return c.add("dm.mul "+x.name+", "+x.name+" : TYPE", x.shape)
}

// call calls g with x for its matrix; ok is false where g does not take it.
func (c *calls) call(g *generic, x sizedValue) (v sizedValue, ok bool) {
	env := map[string]dim.Dim{"r": x.shape[0]}
	if _, symbol := g.params[0].shape[1].Symbol(); symbol {
		env["c"] = x.shape[1]
	} else if _, size, ok := g.params[0].shape[1].Solve(x.shape[1]); ok {
		env["c"] = size
	} else {
		return v, false
	}
	env["k"] = x.shape[0] // where numbers are not wanted
	if _, number := x.shape[0].Int(); number {
		env["k"] = dim.Const(1 + c.r.Int64N(5))
	}
	in := []sizedValue{x}
	for _, p := range g.params[1:] {
		in = append(in, c.param(p.shape.in(env)))
	}
	v = sizedValue{c.fresh(), g.result.shape.in(env)}
	for _, d := range v.shape {
		if n, _ := d.Int(); n > 64 {
			return v, false
		}
	}
	c.f.lines = append(c.f.lines, line{calls: g, env: env, in: in, out: v})
	return v, true
}

// main writes @f.
func (c *calls) main() {
	c.f = &generic{name: "f"}
	number := func() dim.Dim { return dim.Const(2 * (1 + c.r.Int64N(3))) }
	xs := []sizedValue{c.param(shape{number(), number()}), c.param(shape{number(), number().Add(dim.Const(1))})}
	for range 4 + c.r.IntN(3) {
		if v, ok := c.call(c.funcs[c.r.IntN(len(c.funcs))], xs[c.r.IntN(len(xs))]); ok {
			xs = append(xs, v)
		}
	}
	var sum sizedValue
	for _, x := range xs {
		s := c.add("dm.reduce add "+x.name+", dims = [0, 1] : (TYPE) -> TYPE", shape{}, x.shape)
		if sum.name != "" {
			s = c.add("dm.add "+sum.name+", "+s.name+" : TYPE", shape{})
		}
		sum = s
	}
	c.f.result = sum
}

// text is the program, with symbols or with a function for each sizes.
func (c *calls) text(symbols bool) string {
	w := &callsText{symbols: symbols, names: map[string]string{}}
	w.function(c.f, "f", nil)
	if symbols {
		for _, g := range c.funcs {
			w.function(g, g.name, nil)
		}
	}
	return w.out.String()
}

type callsText struct {
	symbols bool
	names   map[string]string // of the functions in numbers
	out     strings.Builder
}

// function writes g in the sizes of env.
func (w *callsText) function(g *generic, name string, env map[string]dim.Dim) {
	var b strings.Builder
	var later []func()
	for i, p := range g.params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.name + ": " + p.shape.in(env).String())
	}
	private := "private "
	if name == "f" {
		private = ""
	}
	head := fmt.Sprintf("func.func %s@%s(%s) -> %s {\n", private, name, b.String(), g.result.shape.in(env))
	b.Reset()
	b.WriteString(head)
	for _, l := range g.lines {
		if l.calls == nil {
			text := l.text
			for _, s := range l.shapes {
				text = strings.Replace(text, "TYPE", s.in(env).String(), 1)
			}
			b.WriteString(text + "\n")
			continue
		}
		called := l.calls.name
		if !w.symbols {
			own := map[string]dim.Dim{}
			for s, d := range l.env {
				own[s] = d.Subst(env)
			}
			key := fmt.Sprintf("%s %s %s %s", called, own["r"], own["c"], own["k"])
			if w.names[key] == "" {
				w.names[key] = fmt.Sprintf("%s_%d", called, len(w.names))
				n := w.names[key]
				later = append(later, func() { w.function(l.calls, n, own) })
			}
			called = w.names[key]
		}
		var names, types []string
		for _, v := range l.in {
			names, types = append(names, v.name), append(types, v.shape.in(env).String())
		}
		fmt.Fprintf(&b, "  %s = func.call @%s(%s) : (%s) -> %s\n", l.out.name, called, strings.Join(names, ", "), strings.Join(types, ", "), l.out.shape.in(env))
	}
	fmt.Fprintf(&b, "  return %s : %s\n}\n", g.result.name, g.result.shape.in(env))
	w.out.WriteString(b.String())
	for _, f := range later {
		f()
	}
}
