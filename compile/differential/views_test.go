package differential

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/testkit/need"
)

// viewedOp is an op whose operands are views, one after the other.
type viewedOp struct {
	name, text string // with operands called %0, %1, …
	operands   []string
	results    string
	elems      []string // that E stands for; nil: f32
}

const heads = "tensor<2x4x9x16xE>"

var viewedOps = []viewedOp{
	{"matmul", "dm.matmul %0, %1", []string{"tensor<3x17x8xE>", "tensor<8x12xE>"}, "tensor<3x17x12xE>", []string{"f32", "bf16"}},
	{"matmul of rows", "dm.matmul %0, %1", []string{"tensor<1x40xE>", "tensor<40x24xE>"}, "tensor<1x24xE>", nil},
	{"matmul transposed", "dm.matmul %0, %1, transpose_a = true, transpose_b = true", []string{"tensor<16x32xE>", "tensor<24x16xE>"}, "tensor<32x24xE>", []string{"f16"}},
	{"einsum", `dm.einsum "bthd,bshd->bhts" %0, %1`, []string{"tensor<2x7x3x8xE>", "tensor<2x5x3x8xE>"}, "tensor<2x3x7x5xE>", nil},
	{"einsum without a sum", `dm.einsum "b,bk->bk" %0, %1`, []string{"tensor<6xf16>", "tensor<6x5xf16>"}, "tensor<6x5xf64>", nil},
	{"einsum of integers without a sum", `dm.einsum "b,bk->bk" %0, %1`, []string{"tensor<6xi32>", "tensor<6x5xi32>"}, "tensor<6x5xi64>", nil},
	{"einsum of integers", `dm.einsum "ij,jk->ik" %0, %1`, []string{"tensor<6x5xui8>", "tensor<5x4xui8>"}, "tensor<6x4xui64>", nil},
	{"convolution", "dm.convolution %0, %1, window_strides = [1, 2], padding = [[1, 1], [0, 1]]", []string{"tensor<2x4x9x8xE>", "tensor<6x4x3x3xE>"}, "tensor<2x6x9x4xE>", nil},
	{"convolution in groups", "dm.convolution %0, %1, feature_group_count = 2", []string{"tensor<2x4x9x8xE>", "tensor<6x2x3x1xE>"}, "tensor<2x6x7x8xE>", []string{"f16"}},
	{"attention", "dm.attention %0, %1, %2", []string{heads, "tensor<2x2x7x16xE>", "tensor<2x2x7x8xE>"}, "tensor<2x4x9x8xE>", []string{"f32", "f16"}},
	{"attention of one query", "dm.attention %0, %1, %2", []string{"tensor<2x4x1x16xE>", "tensor<2x2x70x16xE>", "tensor<2x2x70x8xE>"}, "tensor<2x4x1x8xE>", nil},
	{"attention with a mask", "dm.attention %0, %1, %2, %3, causal = true", []string{heads, "tensor<2x4x9x16xE>", "tensor<2x4x9x16xE>", "tensor<2x1x9x9xE>"}, heads, []string{"f32", "bf16"}},
	{"attention with a bias of keys", "dm.attention %0, %1, %2, %3", []string{heads, "tensor<2x4x9x16xE>", "tensor<2x4x9x16xE>", "tensor<4x1x9xE>"}, heads, nil},
	{
		"attention_grad", "dm.attention_grad %0, %1, %2, %3, %4, %5",
		[]string{heads, "tensor<2x2x7x16xE>", "tensor<2x2x7x8xE>", "tensor<2x4x9x8xE>", "tensor<2x4x9xf32>", "tensor<2x4x9x8xE>"},
		"(" + heads + ", tensor<2x2x7x16xE>, tensor<2x2x7x8xE>)",
		[]string{"f32", "f16"},
	},
	{"cumsum", "dm.cumsum %0, dim = 1, reverse = true", []string{"tensor<4x9x3xE>"}, "tensor<4x9x3xE>", nil},
	{"cummax", "dm.cummax %0, exclusive = true", []string{"tensor<4x9x3xE>"}, "tensor<4x9x3xE>", nil},
	{"cumprod", "dm.cumprod %0, dim = 0", []string{"tensor<4x9x3xE>"}, "tensor<4x9x3xE>", nil},
	{"argmax", "dm.argmax %0, dim = 1", []string{"tensor<4x9x3xE>"}, "tensor<4x3xi64>", nil},
	{"sort", "dm.sort %0, dim = 1", []string{"tensor<4x9x3xE>"}, "(tensor<4x9x3xE>, tensor<4x9x3xi64>)", nil},
	{"top_k", "dm.top_k %0, k = 2", []string{"tensor<4x3x9xE>"}, "(tensor<4x3x2xE>, tensor<4x3x2xi64>)", nil},
	{"maximum pool", "dm.reduce_window max %0, window_dimensions = [1, 1, 2, 3], window_strides = [1, 1, 2, 1]", []string{"tensor<2x3x8x9xE>"}, "tensor<2x3x4x7xE>", nil},
	{
		"select_and_scatter", "dm.select_and_scatter max %0, %1, window_dimensions = [1, 1, 2, 2], window_strides = [1, 1, 2, 2]",
		[]string{"tensor<2x3x8x6xE>", "tensor<2x3x4x3xE>"},
		"tensor<2x3x8x6xE>", nil,
	},
	{"softmax", "dm.softmax %0", []string{"tensor<4x9x24xE>"}, "tensor<4x9x24xE>", []string{"f32", "f16"}},
	{"layer_norm", "dm.layer_norm %0, %1, %2", []string{"tensor<4x9x24xE>", "tensor<24xE>", "tensor<24xE>"}, "tensor<4x9x24xE>", nil},
	{"reduce", "dm.reduce max %0, dims = [1]", []string{"tensor<4x9x24xE>"}, "tensor<4x24xE>", nil},
	{"scatter", "dm.scatter add %0, %1, %2", []string{"tensor<7x5xE>", "tensor<4xi64>", "tensor<4x5xE>"}, "tensor<7x5xE>", nil},
}

// A viewOf writes how an operand, called name and of the shape, is a view of the
// argument that it returns the shape of; nil where there is none. Constants have no
// argument.
type viewOf func(w *views, name string, shape []int, elem string) (line string, argument []int)

// views writes one program.
type views struct {
	*rand.Rand
	dir string
}

// move is a line with one operand, the argument.
func move(op, clauses, name string, from, to []int, elem string) (string, []int) {
	if clauses != "" {
		clauses = ", " + clauses
	}
	return fmt.Sprintf("%s = dm.%s %sx%s : (%s) -> %s", name, op, name, clauses, tensorOf(from, elem), tensorOf(to, elem)), from
}

// with is shape with size n along dimension d.
func with(shape []int, d, n int) []int {
	out := slices.Clone(shape)
	out[d] = n
	return out
}

func counting(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// repeated is a broadcast of dimension -back, which has size 1 in the argument.
func repeated(back int) viewOf {
	return func(_ *views, name string, shape []int, elem string) (string, []int) {
		d := len(shape) - back
		if d < 0 {
			return "", nil
		}
		return move("broadcast", "", name, with(shape, d, 1), shape, elem)
	}
}

// cut is a slice of what is larger by some at each side.
func cut(low, stride int) viewOf {
	return func(_ *views, name string, shape []int, elem string) (string, []int) {
		start, limit, strides, from := make([]int, len(shape)), slices.Clone(shape), make([]int, len(shape)), slices.Clone(shape)
		for d, n := range shape {
			start[d], strides[d] = low, 1
			if d == len(shape)/2 {
				strides[d] = stride
			}
			limit[d] = low + (n-1)*strides[d] + 1
			from[d] = limit[d] + 1
		}
		return move("slice", fmt.Sprintf("start_indices = %s, limit_indices = %s, strides = %s", list(start), list(limit), list(strides)), name, from, shape, elem)
	}
}

// exchanged is a transpose that exchanges two dimensions.
func exchanged(i, j int) viewOf {
	return func(_ *views, name string, shape []int, elem string) (string, []int) {
		a, b := len(shape)-i, len(shape)-j
		if min(a, b) < 0 {
			return "", nil
		}
		order, from := counting(len(shape)), slices.Clone(shape)
		order[a], order[b], from[a], from[b] = b, a, shape[b], shape[a]
		return move("transpose", "dims = "+list(order), name, from, shape, elem)
	}
}

func turned(back int) viewOf {
	return func(_ *views, name string, shape []int, elem string) (string, []int) {
		if back > len(shape) {
			return "", nil
		}
		return move("reverse", fmt.Sprintf("dims = [%d]", len(shape)-back), name, shape, shape, elem)
	}
}

// constant is a constant of the shape that from gives, moved.
func constant(inFile bool, of viewOf) viewOf {
	return func(w *views, name string, shape []int, elem string) (string, []int) {
		line, from := "", shape
		if of != nil {
			if line, from = of(w, name, shape, elem); from == nil {
				return "", nil
			}
		}
		elements := 1
		for _, n := range from {
			elements *= n
		}
		e, _ := types.ElemByName(elem)
		x := tensor.New(e, from...)
		numbers := make([]string, elements)
		for i := range numbers {
			n := w.IntN(9)
			if e.IsFloat() {
				x.SetFloat(i, float64(n-4)/4)
				numbers[i] = fmt.Sprintf("%.2f", float64(n-4)/4)
			} else {
				x.SetInt(i, int64(n%4))
				numbers[i] = fmt.Sprint(n % 4)
			}
		}
		value := "dense<" + nested(numbers, from) + ">"
		if inFile {
			file := fmt.Sprintf("c%d.npy", w.Uint64())
			if tensor.SaveNPY(filepath.Join(w.dir, file), x) != nil {
				return "", nil
			}
			value = fmt.Sprintf("#dm.file<%q>", file)
		}
		value = fmt.Sprintf("dm.constant %s : %s", value, tensorOf(from, elem))
		if of == nil {
			return name + " = " + value, nil
		}
		return name + "x = " + value + "\n  " + line, nil
	}
}

// nested are the elements of a literal.
func nested(numbers []string, shape []int) string {
	if len(shape) == 0 {
		return numbers[0]
	}
	step := len(numbers) / shape[0]
	parts := make([]string, shape[0])
	for i := range parts {
		parts[i] = nested(numbers[i*step:][:step], shape[1:])
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func number(_ *views, name string, shape []int, elem string) (string, []int) {
	value := "1"
	if e, _ := types.ElemByName(elem); e.IsFloat() {
		value = "0.5"
	}
	return fmt.Sprintf("%s = dm.constant dense<%s> : %s", name, value, tensorOf(shape, elem)), nil
}

func flat(_ *views, name string, shape []int, elem string) (string, []int) {
	n := 1
	for _, k := range shape {
		n *= k
	}
	return move("reshape", "", name, []int{n}, shape, elem)
}

func led(_ *views, name string, shape []int, elem string) (string, []int) {
	return move("reshape", "", name, append([]int{1}, shape...), shape, elem)
}

func padded(_ *views, name string, shape []int, elem string) (string, []int) {
	d := len(shape) / 2
	if shape[d] < 2 {
		return "", nil
	}
	low, zeros := make([]int, len(shape)), make([]int, len(shape))
	low[d] = 1
	from := with(shape, d, shape[d]-1)
	zero := "0"
	if e, _ := types.ElemByName(elem); e.IsFloat() {
		zero = "0.0"
	}
	return fmt.Sprintf("%sz = dm.constant dense<%s> : tensor<%s>\n  %s = dm.pad %sx, %sz, low = %s, high = %s : (%s, tensor<%s>) -> %s",
		name, zero, elem, name, name, name, list(low), list(zeros), tensorOf(from, elem), elem, tensorOf(shape, elem)), from
}

var viewsOf = []struct {
	name string
	of   viewOf
}{
	{"repeated along the last dimension", repeated(1)},
	{"repeated along the last but one", repeated(2)},
	{"repeated along the third from the end", repeated(3)},
	{"all one element", func(_ *views, name string, shape []int, elem string) (string, []int) {
		return fmt.Sprintf("%s = dm.broadcast %sx, dims = [] : (tensor<%s>) -> %s", name, name, elem, tensorOf(shape, elem)), []int{}
	}},
	{"turned along the last", turned(1)},
	{"turned along the last but one", turned(2)},
	{"turned along the third from the end", turned(3)},
	{"transposed at the end", exchanged(1, 2)},
	{"transposed before the end", exchanged(2, 3)},
	{"transposed at the ends", exchanged(1, 3)},
	{"cut", cut(1, 1)},
	{"cut at 8", cut(8, 1)},
	{"cut with a stride", cut(0, 2)},
	{"flat", flat},
	{"with one more dimension", led},
	{"padded", padded},
	{"a number", number},
	{"constant", constant(false, nil)},
	{"constant turned", constant(false, turned(1))},
	{"constant flat", constant(false, flat)},
	{"constant repeated", constant(false, repeated(2))},
	{"in a file", constant(true, nil)},
	{"in a file, flat", constant(true, flat)},
	{"in a file, transposed", constant(true, exchanged(1, 2))},
	{"in a file, repeated", constant(true, repeated(2))},
	{"in a file, cut", constant(true, cut(1, 1))},
}

// program is a function of all views of operand i of o, and what it shows as.
func (w *views) program(o viewedOp, i int, elem string, from, to int) string {
	in := func(s string) string { return strings.ReplaceAll(s, "E>", elem+">") }
	var args, lines, results, kinds []string
	typesOf := make([]string, len(o.operands))
	for k, t := range o.operands {
		typesOf[k] = in(t)
		if k != i {
			args = append(args, fmt.Sprintf("%%o%d: %s", k, typesOf[k]))
		}
	}
	t := strings.Split(strings.TrimSuffix(strings.TrimPrefix(typesOf[i], "tensor<"), ">"), "x")
	shape := make([]int, len(t)-1)
	for k := range shape {
		fmt.Sscan(t[k], &shape[k])
	}
	own := t[len(shape)]
	for k, v := range viewsOf[from:to] {
		name := fmt.Sprintf("%%v%d", k)
		line, argument := v.of(w, name, shape, own)
		if line == "" {
			continue
		}
		if argument != nil {
			typ := tensorOf(argument, own)
			if len(argument) == 0 {
				typ = "tensor<" + own + ">"
			}
			args = append(args, name+"x: "+typ)
		}
		lines = append(lines, line)
		text := o.text
		for p := range o.operands {
			by := fmt.Sprintf("%%o%d", p)
			if p == i {
				by = name
			}
			text = strings.ReplaceAll(text, fmt.Sprintf("%%%d", p), by)
		}
		out := strings.Split(strings.Trim(in(o.results), "()"), ", ")
		var names []string
		for r := range out {
			names = append(names, fmt.Sprintf("%%r%d_%d", k, r))
		}
		lines = append(lines, fmt.Sprintf("%s = %s : (%s) -> %s", strings.Join(names, ", "), text, strings.Join(typesOf, ", "), in(o.results)))
		results, kinds = append(results, names...), append(kinds, out...)
	}
	all := strings.Join(kinds, ", ")
	return fmt.Sprintf("func.func @f(%s) -> (%s) {\n  %s\n  return %s : %s\n}\n", strings.Join(args, ", "), all, strings.Join(lines, "\n  "), strings.Join(results, ", "), all)
}

// cases are the programs of o, in the folder of w.
func (w *views) cases(o viewedOp, device string) []Case {
	elems := o.elems
	if elems == nil {
		elems = []string{"f32"}
	}
	var cases []Case
	for _, elem := range elems {
		for i := range o.operands {
			const each = 13
			for from := 0; from < len(viewsOf); from += each {
				name := fmt.Sprintf("%s of %s, operand %d, from %s", o.name, elem, i, viewsOf[from].name)
				cases = append(cases, Case{Name: name, Text: w.program(o, i, elem, from, from+each), Seed: 5, Device: device, Arrays: tensor.In(w.dir)})
			}
		}
	}
	return cases
}

// sampled are one of every few cases, at least one, the k-th kind's own.
func sampled(cases []Case, k int) []Case {
	var out []Case
	for i, c := range cases {
		if i%*every == k%min(*every, len(cases)) {
			out = append(out, c)
		}
	}
	return out
}

// Each operand of each kind of kernel is read as what it is, where it is a view: repeated,
// turned around, transposed, cut, in another shape, a constant, in a file. Each kind runs on one of the two devices in turn.
func TestViews(t *testing.T) {
	need.Long(t)
	for i, device := range []string{"", "cpu"} {
		for k, o := range viewedOps {
			if !need.Turn(t, i+k, 2) {
				continue
			}
			t.Run(cmp.Or(device, "emulator")+" "+o.name, func(t *testing.T) {
				if device == "" {
					needEmulator(t)
				} else {
					needCPU(t)
				}
				w := &views{rand.New(rand.NewPCG(3, 4)), t.TempDir()}
				for _, f := range found(t, sampled(w.cases(o, device), k)) {
					t.Errorf("%v\n%s", f, f.Case.Text)
				}
			})
		}
	}
}
