package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// workload is one row: a program, and what others compute for it.
type workload struct {
	name    string
	text    string
	fn      string           // the function; "" where there is one
	bind    map[string]int64 // sizes of symbols
	dir     string           // of the arrays that the text names
	inputs  string           // an archive with its arguments; "": they are random
	gemm    []int            // rows, columns and depth of the product that OpenBLAS computes
	exact   bool             // the product is all of the row
	torch   []string
	onnx    string
	attrs   map[string]any
	fill    bool    // the model gets random weights
	bound   bool    // by memory: a copy of as many bytes is measured
	largest float64 // difference between results, of their root mean square; 0: 1e-4
}

// function writes a program of one function: its arguments, its body and the type of %y.
func function(args, body, result string) string {
	return "func.func @main(" + args + ") -> " + result + " {\n" + body + "\n  return %y : " + result + "\n}\n"
}

func f32(shape ...int) string {
	var b strings.Builder
	b.WriteString("tensor<")
	for _, n := range shape {
		fmt.Fprintf(&b, "%dx", n)
	}
	return b.String() + "f32>"
}

// product is the row of a product, with a bias and gelu if epilogue is set.
func product(name string, m, n, k int, epilogue bool) workload {
	x, w, y, b := f32(m, k), f32(k, n), f32(m, n), f32(n)
	args := fmt.Sprintf("%%x: %s, %%w: %s {dm.stddev = 0.03}", x, w)
	dot := fmt.Sprintf("dm.matmul %%x, %%w : (%s, %s) -> %s", x, w, y)
	if !epilogue {
		return workload{name: name, text: function(args, "  %y = "+dot, y), gemm: []int{m, n, k}, exact: true, torch: []string{"gemm"}, onnx: "gemm"}
	}
	body := "  %h = " + dot + fmt.Sprintf("\n  %%s = dm.add %%h, %%b : (%s, %s) -> %s\n  %%y = dm.gelu %%s : %s", y, b, y, y)
	return workload{name: name, text: function(args+", %b: "+b, body, y), gemm: []int{m, n, k}, torch: []string{"gemm_bias_gelu"}, onnx: "gemm_bias_gelu"}
}

// rowwise are the rows that memory bounds.
func rowwise() (all []workload) {
	add := func(name, kind, args, body, result string) {
		all = append(all, workload{name: name, text: function(args, body, result), torch: []string{kind}, onnx: kind, bound: true})
	}
	for _, shape := range [][]int{{8, 16, 512, 512}, {4096, 1024}} {
		n := shape[len(shape)-1]
		x, s := f32(shape...), f32(n)
		size := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(shape)), "x"), "[]")
		add("softmax_"+size, "softmax", "%x: "+x, fmt.Sprintf("  %%y = dm.softmax %%x, dim = %d : %s", len(shape)-1, x), x)
		add("layer_norm_"+size, "layer_norm", fmt.Sprintf("%%x: %s, %%s: %s, %%c: %s", x, s, s),
			fmt.Sprintf("  %%y = dm.layer_norm %%x, %%s, %%c : (%s, %s, %s) -> %s", x, s, s, x), x)
		add("chain_"+size, "chain", fmt.Sprintf("%%x: %s, %%s: %s, %%c: %s, %%r: %s", x, s, s, x),
			fmt.Sprintf("  %%0 = dm.mul %%x, %%s : (%s, %s) -> %s\n  %%1 = dm.add %%0, %%c : (%s, %s) -> %s\n  %%2 = dm.silu %%1 : %s\n  %%y = dm.add %%2, %%r : %s", x, s, x, x, s, x, x, x), x)
	}
	for _, shape := range [][]int{{8192, 4096}, {4096, 1024}} {
		x, size := f32(shape...), fmt.Sprintf("%dx%d", shape[0], shape[1])
		sum, turned := f32(shape[1]), f32(shape[1], shape[0])
		add("column_sum_"+size, "column_sum", "%x: "+x, fmt.Sprintf("  %%y = dm.reduce add %%x, dims = [0] : (%s) -> %s", x, sum), sum)
		add("transpose_"+size, "transpose", "%x: "+x, fmt.Sprintf("  %%y = dm.transpose %%x, dims = [1, 0] : (%s) -> %s", x, turned), turned)
	}
	return all
}

func attention(name string, causal bool) workload {
	q := f32(8, 16, 512, 64)
	text := function(fmt.Sprintf("%%q: %s, %%k: %s, %%v: %s", q, q, q), fmt.Sprintf("  %%y = dm.attention %%q, %%k, %%v, causal = %t : (%s, %s, %s) -> %s", causal, q, q, q, q), q)
	return workload{name: name, text: text, torch: []string{"attention"}, attrs: map[string]any{"causal": causal}}
}

// convolution is a product with a moving window, of images in the order NCHW.
func convolution(name string, channels, size, features, window int) workload {
	x, w, y := f32(1, channels, size, size), f32(features, channels, window, window), f32(1, features, size, size)
	pad := (window - 1) / 2
	body := fmt.Sprintf("  %%y = dm.convolution %%x, %%w, padding = [[%d, %d], [%d, %d]] : (%s, %s) -> %s", pad, pad, pad, pad, x, w, y)
	return workload{name: name, text: function(fmt.Sprintf("%%x: %s, %%w: %s {dm.stddev = 0.04}", x, w), body, y), torch: []string{"convolution"}, onnx: "convolution", attrs: map[string]any{"pad": pad}}
}

// table lists all rows.
func table(here, models string) (all []workload, err error) {
	for _, n := range []int{512, 1024, 2048, 4096} {
		all = append(all, product(fmt.Sprintf("gemm_%d", n), n, n, n, false))
	}
	for _, s := range []struct {
		name    string
		m, n, k int
	}{{"qkv", 4096, 3072, 1024}, {"out", 4096, 1024, 1024}, {"up", 4096, 4096, 1024}, {"down", 4096, 1024, 4096}} {
		all = append(all, product("gemm_bert_"+s.name, s.m, s.n, s.k, false))
	}
	all = append(all, product("bias_gelu_1024", 1024, 1024, 1024, true), product("bias_gelu_bert_up", 4096, 4096, 1024, true))
	all = append(all, rowwise()...)
	all = append(all, attention("attention", false), attention("attention_causal", true),
		convolution("conv_3x3_64x56x56", 64, 56, 64, 3), convolution("conv_1x1_256x14x14", 256, 14, 1024, 1))
	bert, err := os.ReadFile(filepath.Join(here, "testdata", "bert.dmir"))
	if err != nil {
		return nil, err
	}
	all = append(all,
		workload{name: "bert_forward", text: string(bert), fn: "forward", torch: []string{"bert", "bert_sdpa"}, onnx: "bert"},
		workload{name: "bert_train", text: string(bert), fn: "train", torch: []string{"bert_train", "bert_train_sdpa"}, largest: 1e-3})
	files, err := filepath.Glob(filepath.Join(models, "*", "*.onnx"))
	deeper, err2 := filepath.Glob(filepath.Join(models, "*", "*", "*.onnx"))
	if err != nil || err2 != nil {
		return nil, fmt.Errorf("-models %s: %w", models, err)
	}
	for _, file := range append(files, deeper...) {
		all = append(all, model(file)...)
	}
	return all, nil
}

// model lists the rows of a model in ONNX, whose text is made when it is needed
// (imported). One whose weights are one number repeated has a second row, with random ones.
func model(file string) []workload {
	name := "model_" + strings.TrimSuffix(filepath.Base(file), ".onnx")
	w := workload{name: name, onnx: "model", attrs: map[string]any{"file": file}, largest: 1e-3}
	if name == "model_network" {
		w.name, w.inputs = "model_"+filepath.Base(filepath.Dir(file)), filepath.Join(filepath.Dir(file), "inputs.npz")
		return []workload{w}
	}
	random := w
	random.name, random.fill, random.attrs = name+"_random", true, map[string]any{"file": file}
	return []workload{w, random}
}

// imported adds the text of a model, in the folder dir.
func (w *workload) imported(o *options, dir string) error {
	file, ok := w.attrs["file"].(string)
	if !ok {
		return nil
	}
	run := func(name string, args ...string) error {
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w: %s", name, args[0], err, out)
		}
		return nil
	}
	if w.fill {
		from := file
		file = filepath.Join(dir, w.name+".onnx")
		w.attrs["file"] = file
		if err := run(o.python, filepath.Join(o.here, "fill.py"), from, file); err != nil {
			return err
		}
	}
	to := filepath.Join(dir, w.name+".dmir")
	if err := run(o.dmir, "import", "-o", to, file); err != nil {
		return err
	}
	text, err := os.ReadFile(to)
	w.text, w.dir = string(text), dir
	return err
}
