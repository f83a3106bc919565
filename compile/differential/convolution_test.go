package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/testkit/need"
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

// Random convolutions and pools, half of them in turn, agree with the reference on the processor.
func TestRandomWindows(t *testing.T) {
	need.Long(t)
	needCPU(t)
	var cases []Case
	for seed := range *onCPU / 2 {
		if !need.Turn(t, int(seed), 2) {
			continue
		}
		w := &windows{Rand: rand.New(rand.NewPCG(*first+seed, 9))}
		cases = append(cases, Case{Name: fmt.Sprintf("windows, seed %d", *first+seed), Text: w.program(), Seed: 7, Device: "cpu"})
	}
	for _, f := range found(t, cases) {
		report(t, f)
	}
}

// convolved is a convolution of images with channels last, as frameworks lay them out for tensor cores.
type convolved struct {
	name    string
	x, w, y []int // images, height, width, channels; height, width, channels of a group, features; y: height, width
	clauses string
	groups  int
	elem    string
}

var convolvedCases = []convolved{
	{"3x3", []int{2, 9, 10, 16}, []int{3, 3, 16, 24}, []int{9, 10}, "padding = [[1, 1], [1, 1]]", 1, "f16"},
	{"tiles and steps with an edge", []int{3, 13, 11, 40}, []int{3, 3, 40, 72}, []int{13, 11}, "padding = [[1, 1], [1, 1]]", 1, "bf16"},
	{"one tap", []int{2, 7, 9, 64}, []int{1, 1, 64, 32}, []int{7, 9}, "window_strides = [1, 1]", 1, "f16"},
	{"one tap, strided", []int{2, 9, 9, 32}, []int{1, 1, 32, 16}, []int{5, 5}, "window_strides = [2, 2]", 1, "f16"},
	{"strided, padded on one side", []int{2, 12, 13, 8}, []int{3, 3, 8, 16}, []int{6, 6}, "window_strides = [2, 2], padding = [[0, 1], [1, 0]]", 1, "f16"},
	{"strides of three and one", []int{1, 14, 9, 16}, []int{5, 2, 16, 8}, []int{5, 9}, "window_strides = [3, 1], padding = [[2, 2], [1, 0]]", 1, "bf16"},
	{"dilated", []int{2, 11, 12, 16}, []int{3, 3, 16, 16}, []int{11, 10}, "rhs_dilation = [2, 3], padding = [[2, 2], [2, 2]]", 1, "f16"},
	{"groups", []int{2, 8, 7, 48}, []int{3, 3, 16, 24}, []int{8, 7}, "padding = [[1, 1], [1, 1]], feature_group_count = 3", 3, "f16"},
	{"groups without whole accesses", []int{2, 8, 7, 12}, []int{3, 3, 4, 9}, []int{8, 7}, "padding = [[1, 1], [1, 1]], feature_group_count = 3", 3, "f16"},
	{"transposed", []int{2, 5, 6, 16}, []int{4, 4, 16, 8}, []int{10, 12}, "lhs_dilation = [2, 2], padding = [[2, 2], [2, 2]]", 1, "f16"},
	{"three channels", []int{2, 17, 15, 3}, []int{7, 7, 3, 16}, []int{9, 8}, "window_strides = [2, 2], padding = [[3, 3], [3, 3]]", 1, "f16"},
	{"f32", []int{2, 9, 10, 16}, []int{3, 3, 16, 24}, []int{5, 5}, "window_strides = [2, 2], padding = [[1, 1], [1, 1]]", 1, "f32"},
}

// text is the program: the result and both gradients, of a result times g.
func (c convolved) text() string {
	y := []int{c.x[0], c.y[0], c.y[1], c.w[3]}
	turn := func(s []int, dims ...int) []int {
		var out []int
		for _, d := range dims {
			out = append(out, s[d])
		}
		return out
	}
	of := func(s []int) string { return tensorOf(s, c.elem) }
	x, w, g := of(c.x), of(c.w), of(y)
	inner, filters, result := of(turn(c.x, 0, 3, 1, 2)), of(turn(c.w, 3, 2, 0, 1)), of(turn(y, 0, 3, 1, 2))
	return fmt.Sprintf(`func.func private @loss(%%x: %[1]s, %%w: %[2]s, %%g: %[3]s) -> tensor<f32> {
  %%a = dm.transpose %%x, dims = [0, 3, 1, 2] : (%[1]s) -> %[4]s
  %%b = dm.transpose %%w, dims = [3, 2, 0, 1] : (%[2]s) -> %[5]s
  %%y = dm.convolution %%a, %%b, %[7]s : (%[4]s, %[5]s) -> %[6]s
  %%z = dm.transpose %%y, dims = [0, 2, 3, 1] : (%[6]s) -> %[3]s
  %%m = dm.mul %%z, %%g : %[3]s
  %%f = dm.convert %%m : (%[3]s) -> %[8]s
  %%s = dm.reduce add %%f : (%[8]s) -> tensor<f32>
  return %%s : tensor<f32>
}
func.func @main(%%x: %[1]s, %%w: %[2]s, %%g: %[3]s) -> (%[3]s, %[1]s, %[2]s) {
  %%a = dm.transpose %%x, dims = [0, 3, 1, 2] : (%[1]s) -> %[4]s
  %%b = dm.transpose %%w, dims = [3, 2, 0, 1] : (%[2]s) -> %[5]s
  %%y = dm.convolution %%a, %%b, %[7]s : (%[4]s, %[5]s) -> %[6]s
  %%z = dm.transpose %%y, dims = [0, 2, 3, 1] : (%[6]s) -> %[3]s
  %%l, %%d, %%e = dm.grad @loss %%x, %%w, %%g, wrt = [0, 1] : (%[1]s, %[2]s, %[3]s) -> (tensor<f32>, %[1]s, %[2]s)
  return %%z, %%d, %%e : %[3]s, %[1]s, %[2]s
}
`, x, w, g, inner, filters, result, c.clauses, tensorOf(y, "f32"))
}

// Convolutions of images with channels last and their gradients agree with the reference, in turn as portable code and for Hopper; those whose
// channels are whole accesses copy them to shared memory, but for small filters of groups, whose
// channels and features the gradient exchanges where it reads them.
func TestConvolutionsWithChannelsLast(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	var cases []Case
	for i, c := range convolvedCases {
		portable, arch := Case{Name: c.name, Text: c.text(), Seed: 7, Func: "main"}, Case{Name: c.name, Text: c.text(), Seed: 7, Func: "main", Arch: "sm_90a"}
		if need.Turn(t, i+1, 2) {
			cases = append(cases, arch)
		}
		if !need.Turn(t, i, 2) {
			continue
		}
		cases = append(cases, portable)
		source := built(t, portable).built.Source
		whole := c.elem != "f32" && c.w[2]%8 == 0 && c.w[3]/c.groups%8 == 0
		if single := strings.Contains(source, "direct = false"); whole == single && c.groups == 1 {
			t.Errorf("%s: elements are loaded through registers: %t", c.name, single)
		}
	}
	agree(t, cases)
}
