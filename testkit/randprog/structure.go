package randprog

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Structure returns a program for analyses of structure: a function @f of about n
// ops, element-wise chains, contractions, views, updates in place, kernels, loops,
// branches and calls, and the function that it calls. Sizes are numbers or, where
// symbolic, partly the symbols n and m.
func Structure(seed uint64, n int, symbolic bool) string {
	w := &structure{r: rand.New(rand.NewPCG(seed, 7)), left: n, symbolic: symbolic}
	args := []string{"%p: tensor<i1>", "%at: tensor<i64>", "%row: " + w.typ(structureRow)}
	for i := range 4 {
		v := operand{fmt.Sprintf("%%x%d", i), i % structureShapes}
		args = append(args, v.name+": "+w.typ(v.shape))
		w.values = append(w.values, v)
	}
	for w.left > 0 {
		w.op(0)
	}
	var names, types []string
	for _, v := range w.values[len(w.values)-min(3, len(w.values)):] {
		names, types = append(names, v.name), append(types, w.typ(v.shape))
	}
	return fmt.Sprintf("func.func @f(%s) -> (%s) {\n%s  return %s : %s\n}\n%s", strings.Join(args, ", "), strings.Join(types, ", "),
		w.out.String(), strings.Join(names, ", "), strings.Join(types, ", "), fmt.Sprintf(structureCallee, w.typ(0)))
}

const structureCallee = `func.func private @g(%%x: %[1]s) -> %[1]s {
  %%y = dm.exp %%x : %[1]s
  %%z = dm.mul %%y, %%x : %[1]s
  return %%z : %[1]s
}
`

// operand is a value of one of the structureShapes.
type operand struct {
	name  string
	shape int
}

// The shapes: a matrix, the same seen as another, a larger one.
const (
	structureShapes = 3
	structureRow    = structureShapes
)

// structure writes the programs of Structure.
type structure struct {
	r        *rand.Rand
	out      strings.Builder
	values   []operand
	left     int  // ops to write
	fused    bool // in a kernel, where only plain ops stand
	next     int
	symbolic bool
}

func (w *structure) typ(shape int) string {
	if w.symbolic {
		return [...]string{
			"tensor<?x16xf32, #dm.at<dims = [n]>>", "tensor<16x?xf32, #dm.at<dims = [n]>>",
			"tensor<?x?xf32, #dm.at<dims = [n, m]>>", "tensor<1x16xf32>",
		}[shape]
	}
	return [...]string{"tensor<8x16xf32>", "tensor<16x8xf32>", "tensor<8x64xf32>", "tensor<1x16xf32>"}[shape]
}

func (w *structure) name() string {
	w.next++
	return fmt.Sprintf("%%v%d", w.next)
}

func (w *structure) pick(shape int) (operand, bool) {
	for range 16 {
		v := w.values[len(w.values)-1-w.r.IntN(min(len(w.values), 24))]
		if w.r.IntN(6) == 0 {
			v = w.values[w.r.IntN(len(w.values))]
		}
		if shape < 0 || v.shape == shape {
			return v, true
		}
	}
	return operand{}, false
}

func (w *structure) line(depth int, format string, args ...any) {
	fmt.Fprintf(&w.out, "%s%s\n", strings.Repeat("  ", depth+1), fmt.Sprintf(format, args...))
}

// op writes one op at the depth, which may be a region with ops in it.
func (w *structure) op(depth int) {
	w.left--
	x, _ := w.pick(-1)
	y, same := w.pick(x.shape)
	t := w.typ(x.shape)
	name := w.name()
	give := func(shape int) { w.values = append(w.values, operand{name, shape}) }
	choice := w.r.IntN(14)
	if depth > 2 || w.fused {
		choice %= 8
	}
	switch {
	case choice < 3 || !same:
		w.line(depth, "%s = dm.%s %s : %s", name, [...]string{"exp", "relu", "tanh"}[w.r.IntN(3)], x.name, t)
		give(x.shape)
	case choice < 6:
		w.line(depth, "%s = dm.add %s, %s : %s", name, x.name, y.name, t)
		give(x.shape)
	case choice == 6 && x.shape < 2: // a view
		w.line(depth, "%s = dm.reshape %s : (%s) -> %s", name, x.name, t, w.typ(1-x.shape))
		give(1 - x.shape)
	case choice == 7 && x.shape == 0: // in place, at the last use
		w.line(depth, "%s = dm.dynamic_update_slice %s, %%row, %%at, %%at : (%s, %s, tensor<i64>, tensor<i64>) -> %s", name, x.name, t, w.typ(structureRow), t)
		give(0)
	case choice == 8 && x.shape == 0:
		w.line(depth, "%s = func.call @g(%s) : (%s) -> %s", name, x.name, t, t)
		give(0)
	case choice == 9:
		w.region(depth, fmt.Sprintf("%s = dm.if %%p : (tensor<i1>) -> %s {", name, t), x.shape, "} else {")
		give(x.shape)
	case choice == 10:
		w.loop(depth, name, x, t)
		give(x.shape)
	case choice >= 11:
		w.fused = true
		w.region(depth, fmt.Sprintf("%s = dm.kernel -> %s {", name, t), x.shape, "")
		w.fused = false
		give(x.shape)
	default:
		w.line(depth, "%s = dm.mul %s, %s : %s", name, x.name, x.name, t)
		give(x.shape)
	}
}

func (w *structure) region(depth int, head string, shape int, other string) {
	w.line(depth, "%s", head)
	w.block(depth+1, shape)
	if other != "" {
		w.line(depth, "%s", other)
		w.block(depth+1, shape)
	}
	w.line(depth, "}")
}

// block writes a few ops and yields a value of the shape; what it defined
// cannot be used after it.
func (w *structure) block(depth, shape int) {
	before := len(w.values)
	for range 1 + w.r.IntN(4) {
		w.op(depth)
	}
	y, ok := w.pick(shape)
	if !ok {
		for _, v := range w.values {
			if v.shape == shape {
				y = v
			}
		}
	}
	w.line(depth, "dm.yield %s : %s", y.name, w.typ(shape))
	w.values = w.values[:before]
}

func (w *structure) loop(depth int, name string, x operand, t string) {
	trips := [...]string{", trip_count = 3", ", trip_count = 1"}[w.r.IntN(2)]
	if w.symbolic && w.r.IntN(2) == 0 {
		trips = ""
	}
	c, d := w.name(), w.name()
	w.line(depth, "%s = dm.while %s%s : (%s) -> %s {", name, x.name, trips, t, t)
	w.line(depth, "^bb0(%s: %s):", c, t)
	w.line(depth+1, "dm.yield %%p : tensor<i1>")
	w.line(depth, "} do {")
	w.line(depth, "^bb0(%s: %s):", d, t)
	w.values = append(w.values, operand{d, x.shape})
	w.block(depth+1, x.shape)
	w.values = w.values[:len(w.values)-1]
	w.line(depth, "}")
}
