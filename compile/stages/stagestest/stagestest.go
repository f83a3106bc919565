// Package stagestest writes training steps whose ops state stage, micro-batch and pass, as they are when the
// pass pipeline takes them. The derivatives are written out by hand, apart from package autodiff.
package stagestest

import (
	"fmt"
	"strings"

	"dmir/dialect/op"
)

// Step is a step of a chain of dense layers, h ← tanh(h·w), with squared error, one layer in each stage.
type Step struct {
	Stages, Micro int
	Mesh          string // "pipe = 2, data = 2"
	Schedule      string // "" for none: the step is no pipeline
	Data, Tensor  bool   // the rows of a micro-batch lie over data, the columns of weights over tensor
	Tied          bool   // the last layer has the weights of the first
	Skip          bool   // the output of the first layer is added to the input of the last
	Clip          bool   // gradients are divided by one more than the sum of the squares of all
}

type writer struct {
	strings.Builder
	stage, micro int // negative: none
	back         bool
}

func (w *writer) op(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	var attrs []string
	if w.stage >= 0 {
		attrs = append(attrs, fmt.Sprintf("%s = %d : i64", op.StageAttr, w.stage))
	}
	if w.micro >= 0 {
		attrs = append(attrs, fmt.Sprintf("%s = %d : i64", op.MicroAttr, w.micro))
	}
	if w.back {
		attrs = append(attrs, op.BackwardAttr)
	}
	if at := strings.LastIndex(text, " : "); len(attrs) > 0 {
		text = text[:at] + " {" + strings.Join(attrs, ", ") + "}" + text[at:]
	}
	w.WriteString("  " + text + "\n")
}

// Text is the step as text; it is @f.
func (s Step) Text() string {
	w := &writer{stage: -1, micro: -1}
	const mat, scalar = "tensor<4x4xf64>", "tensor<f64>"
	act := "tensor<8x4xf64>"
	all := fmt.Sprintf("tensor<%dx8x4xf64>", s.Micro)
	data, weight := all, mat
	if s.Data {
		data = fmt.Sprintf("tensor<%dx8x4xf64, #dm.at<split = @plan[{}, {data}, {}]>>", s.Micro)
	}
	if s.Tensor {
		weight = "tensor<4x4xf64, #dm.at<split = @plan[{}, {tensor}]>>"
	}
	layers := s.Stages
	own := func(k int) int { // the weights of layer k
		if s.Tied && k == layers-1 {
			return 0
		}
		return k
	}
	var weights []int
	for k := range layers {
		if own(k) == k {
			weights = append(weights, k)
		}
	}
	fmt.Fprintf(w, "dm.mesh @plan {%s}\nfunc.func @f(%%x: %s, %%y: %s", s.Mesh, data, data)
	for _, k := range weights {
		fmt.Fprintf(w, ", %%w%d: %s {dm.stddev = 0.7}, %%m%d: %s {dm.init = 0.0}, %%v%d: %s {dm.init = 0.0}", k, weight, k, weight, k, weight)
	}
	fmt.Fprintf(w, ", %%n: tensor<i64> {dm.init = 1}) -> (%s", scalar)
	for _, k := range weights {
		for _, name := range "wmv" {
			fmt.Fprintf(w, ", %s {dm.state = \"%c%d\"}", weight, name, k)
		}
	}
	w.WriteString(", tensor<i64> {dm.state = \"n\"})")
	if s.Schedule != "" {
		fmt.Fprintf(w, "\n    attributes {dm.microbatches = %d : i64, dm.pipeline = \"pipe\", dm.schedule = %q}", s.Micro, s.Schedule)
	}
	w.WriteString(" {\n")
	w.op("%%one = dm.constant dense<1> : tensor<i64>")
	w.op("%%unit = dm.constant dense<1.0> : %s", scalar)
	w.op("%%two = dm.constant dense<2.0> : %s", scalar)
	for i := range s.Micro {
		s.micro(w, i, layers, own, act, data, weight)
	}
	w.micro, w.back = -1, false
	if s.Clip {
		w.stage = -1
		for j, k := range weights {
			w.op("%%sq%d = dm.mul %%acc%d_%d, %%acc%d_%d : %s", k, k, s.Micro-1, k, s.Micro-1, mat)
			w.op("%%ss%d = dm.reduce add %%sq%d : (%s) -> %s", k, k, mat, scalar)
			before := "unit"
			if j > 0 {
				before = fmt.Sprintf("norm%d", weights[j-1])
			}
			w.op("%%norm%d = dm.add %%%s, %%ss%d : %s", k, before, k, scalar)
		}
	}
	outs, types := []string{fmt.Sprintf("%%loss_%d", s.Micro-1)}, []string{scalar}
	for _, k := range weights {
		w.stage = -1
		g := fmt.Sprintf("%%acc%d_%d", k, s.Micro-1)
		if s.Clip {
			w.op("%%clip%d = dm.div %s, %%norm%d : (%s, %s) -> %s", k, g, weights[len(weights)-1], mat, scalar, mat)
			g = fmt.Sprintf("%%clip%d", k)
		}
		w.stage = k
		w.op("%%w%d_, %%m%d_, %%v%d_ = dm.adam %%w%d, %s, %%m%d, %%v%d, %%n, lr = 0.01 : (%s, %s, %s, %s, tensor<i64>) -> (%s, %s, %s)",
			k, k, k, k, g, k, k, weight, mat, weight, weight, weight, weight, weight)
		outs = append(outs, fmt.Sprintf("%%w%d_", k), fmt.Sprintf("%%m%d_", k), fmt.Sprintf("%%v%d_", k))
		types = append(types, weight, weight, weight)
	}
	w.stage = -1
	w.op("%%n_ = dm.add %%n, %%one : tensor<i64>")
	fmt.Fprintf(w, "  return %s, %%n_ : %s, tensor<i64>\n}\n", strings.Join(outs, ", "), strings.Join(types, ", "))
	return w.String()
}

// micro writes the forward and the backward pass of a micro-batch.
func (s Step) micro(w *writer, i, layers int, own func(int) int, act, data, weight string) {
	const mat, scalar = "tensor<4x4xf64>", "tensor<f64>"
	w.micro, w.back = i, false
	input := func(name string, stage int) {
		w.stage = stage
		w.op("%%%s%d = dm.slice %%%s, start_indices = [%d], limit_indices = [%d], dims = [0] : (%s) -> tensor<1x8x4xf64>", name, i, name, i, i+1, data)
		w.op("%%%s%d_0 = dm.reshape %%%s%d : (tensor<1x8x4xf64>) -> %s", name, i, name, i, act)
	}
	input("x", 0)
	h := fmt.Sprintf("%%x%d_0", i)
	ins := make([]string, layers)
	for k := range layers {
		w.stage = k
		if s.Skip && k == layers-1 && k > 1 {
			w.op("%%skip%d = dm.add %s, %%h0_%d : %s", i, h, i, act)
			h = fmt.Sprintf("%%skip%d", i)
		}
		ins[k] = h
		w.op("%%z%d_%d = dm.matmul %s, %%w%d : (%s, %s) -> %s", k, i, h, own(k), act, weight, act)
		w.op("%%h%d_%d = dm.tanh %%z%d_%d : %s", k, i, k, i, act)
		h = fmt.Sprintf("%%h%d_%d", k, i)
	}
	input("y", layers-1)
	w.op("%%miss%d = dm.sub %s, %%y%d_0 : %s", i, h, i, act)
	w.op("%%square%d = dm.mul %%miss%d, %%miss%d : %s", i, i, i, act)
	if w.op("%%part%d = dm.reduce add %%square%d : (%s) -> %s", i, i, act, scalar); i == 0 {
		w.op("%%loss_0 = dm.add %%part0, %%part0 : %s", scalar)
	} else {
		w.op("%%loss_%d = dm.add %%loss_%d, %%part%d : %s", i, i-1, i, scalar)
	}
	w.back = true
	w.op("%%d%d_%d = dm.mul %%miss%d, %%two : (%s, %s) -> %s", layers, i, i, act, scalar, act)
	grads := map[int]string{}
	for k := layers - 1; k >= 0; k-- {
		w.stage = k
		d := fmt.Sprintf("%%d%d_%d", k+1, i)
		if s.Skip && k == 0 && layers > 2 {
			w.op("%%both%d = dm.add %s, %%d%d_%d : %s", i, d, layers-1, i, act)
			d = fmt.Sprintf("%%both%d", i)
		}
		w.op("%%t%d_%d = dm.mul %%h%d_%d, %%h%d_%d : %s", k, i, k, i, k, i, act)
		w.op("%%u%d_%d = dm.mul %s, %%t%d_%d : %s", k, i, d, k, i, act)
		w.op("%%s%d_%d = dm.sub %s, %%u%d_%d : %s", k, i, d, k, i, act)
		g := fmt.Sprintf("%%g%d_%d", k, i)
		w.op("%s = dm.einsum \"bi,bo->io\" %s, %%s%d_%d : (%s, %s) -> %s", g, ins[k], k, i, act, act, mat)
		if was := grads[own(k)]; was != "" {
			w.stage = layers - 1
			w.op("%s_ = dm.add %s, %s : %s", g, was, g, mat)
			g += "_"
		}
		grads[own(k)] = g
		if w.stage = k; k > 0 {
			w.op("%%d%d_%d = dm.einsum \"bo,io->bi\" %%s%d_%d, %%w%d : (%s, %s) -> %s", k, i, k, i, own(k), act, weight, act)
		}
	}
	w.back = false
	for k := range layers {
		if own(k) != k {
			continue
		}
		w.stage = k
		if s.Tied && k == 0 {
			w.stage = layers - 1
		}
		if i == 0 {
			w.op("%%acc%d_0 = dm.add %s, %s : %s", k, grads[k], grads[k], mat)
		} else {
			w.op("%%acc%d_%d = dm.add %%acc%d_%d, %s : %s", k, i, k, i-1, grads[k], mat)
		}
	}
}
