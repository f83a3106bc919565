package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/internal/need"
)

// windows writes a program of convolutions and pools, of one argument each, with what may
// be fused into them.
type windows struct {
	*rand.Rand
	body, args strings.Builder
	results    []string
	types      []string
	n          int
}

func (w *windows) one(in ...int) int { return in[w.IntN(len(in))] }

func (w *windows) line(format string, args ...any) string {
	w.n++
	name := fmt.Sprintf("%%%d", w.n)
	fmt.Fprintf(&w.body, "  %s = %s\n", name, fmt.Sprintf(format, args...))
	return name
}

func (w *windows) argument(shape []int, elem string) (name, typ string) {
	w.n++
	name, typ = fmt.Sprintf("%%a%d", w.n), tensorOf(shape, elem)
	if w.args.Len() > 0 {
		w.args.WriteString(", ")
	}
	fmt.Fprintf(&w.args, "%s: %s", name, typ)
	if strings.Contains(elem, "f") { // numbers of which a deviation can be said
		w.args.WriteString(" {dm.stddev = 0.5}")
	}
	return name, typ
}

func tensorOf(shape []int, elem string) string {
	return "tensor<" + strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", "x") + "x" + elem + ">"
}

func list(xs any) string { return strings.ReplaceAll(fmt.Sprint(xs), " ", ", ") }

// geometry is that of the spatial dimensions of a window op.
type geometry struct {
	in, window, stride, dilation, out []int
	padding                           [][]int
}

func (w *windows) geometry(dims int) (g geometry) {
	for range dims {
		for {
			in, k, s, d := 1+w.IntN(w.one(6, 20, 40)), 1+w.IntN(w.one(1, 3, 5, 8)), w.one(1, 1, 1, 2, 2, 3), w.one(1, 1, 1, 2)
			low, high := w.IntN(3), w.IntN(3)
			out := (in+low+high-((k-1)*d+1))/s + 1
			if in+low+high < (k-1)*d+1 || out < 1 {
				continue
			}
			g.in, g.window, g.stride, g.dilation = append(g.in, in), append(g.window, k), append(g.stride, s), append(g.dilation, d)
			g.padding, g.out = append(g.padding, []int{low, high}), append(g.out, out)
			break
		}
	}
	return g
}

func (w *windows) convolution() {
	elem := []string{"f32", "f32", "f32", "f64", "f16", "bf16", "i32"}[w.IntN(7)]
	g := w.geometry(w.one(1, 2, 2, 2, 3))
	images, groups, in, out := w.one(1, 1, 2, 3), w.one(1, 1, 1, 2, 5), w.one(1, 3, 8, 40), w.one(1, 2, 7, 30)
	x, xt := w.argument(append([]int{images, groups * in}, g.in...), elem)
	k, kt := w.argument(append([]int{groups * out, in}, g.window...), elem)
	if w.IntN(3) == 0 {
		x = w.line("dm.abs %s : %s", x, xt) // computed where the image is copied
	}
	shape := append([]int{images, groups * out}, g.out...)
	t := tensorOf(shape, elem)
	y := w.line("dm.convolution %s, %s, window_strides = %s, padding = %s, rhs_dilation = %s, feature_group_count = %d : (%s, %s) -> %s",
		x, k, list(g.stride), list(g.padding), list(g.dilation), groups, xt, kt, t)
	if elem != "i32" && w.IntN(2) == 0 {
		c := []string{y}
		types := []string{t}
		for range 4 {
			a, at := w.argument([]int{groups * out}, elem)
			c, types = append(c, a), append(types, at)
		}
		c[4] = w.line("dm.mul %s, %s : %s", c[4], c[4], types[4])
		y = w.line("dm.batch_norm %s, epsilon = 0.5 : (%s) -> %s", strings.Join(c, ", "), strings.Join(types, ", "), t)
	}
	if w.IntN(2) == 0 {
		y = w.line("dm.relu %s : %s", y, t)
	}
	w.result(y, t)
	if w.IntN(4) == 0 {
		order := w.Perm(len(shape))
		turned := make([]int, len(shape))
		for i, d := range order {
			turned[i] = shape[d]
		}
		to := tensorOf(turned, elem)
		w.result(w.line("dm.transpose %s, dims = %s : (%s) -> %s", y, list(order), t, to), to)
	}
}

func (w *windows) pool() {
	elem, kind := []string{"f32", "f32", "f64", "f16", "i32"}[w.IntN(5)], []string{"max", "add", "min"}[w.IntN(3)]
	g := w.geometry(w.one(1, 2, 2))
	lead := []int{w.one(1, 2), w.one(1, 5, 9)}
	ones := []int{1, w.one(1, 1, 1, min(3, lead[1]))} // of channels, too, as in local response normalization
	pad := ones[1] / 2
	x, xt := w.argument(append(lead, g.in...), elem)
	t := tensorOf(append(append([]int{}, lead[0], lead[1]+2*pad-ones[1]+1), g.out...), elem)
	y := w.line("dm.reduce_window %s %s, window_dimensions = %s, window_strides = %s, window_dilations = %s, padding = %s : (%s) -> %s",
		kind, x, list(append(ones, g.window...)), list(append([]int{1, 1}, g.stride...)), list(append([]int{1, 1}, g.dilation...)),
		list(append([][]int{{0, 0}, {pad, pad}}, g.padding...)), xt, t)
	w.result(y, t)
}

func (w *windows) result(name, typ string) {
	w.results, w.types = append(w.results, name), append(w.types, typ)
}

func (w *windows) program() string {
	for range 6 {
		if w.IntN(4) == 0 {
			w.pool()
		} else {
			w.convolution()
		}
	}
	types := strings.Join(w.types, ", ")
	return fmt.Sprintf("func.func @main(%s) -> (%s) {\n%s  return %s : %s\n}\n", &w.args, types, &w.body, strings.Join(w.results, ", "), types)
}

// Random convolutions and pools agree with the reference on the processor.
func TestRandomWindows(t *testing.T) {
	need.Long(t)
	needCPU(t)
	var cases []Case
	for seed := range *onCPU / 4 {
		w := &windows{Rand: rand.New(rand.NewPCG(*first+seed, 9))}
		cases = append(cases, Case{Name: fmt.Sprintf("windows, seed %d", *first+seed), Text: w.program(), Seed: 7, Device: "cpu"})
	}
	for _, f := range found(t, cases) {
		report(t, f)
	}
}
