package differential

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/pipelining"
	"dmir/analysis/plan"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/bench/models"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// chain is a step of n equal layers, h ← h + tanh(h·w)·v, whose state is one tuple of weights and one of
// their momenta.
func chain(n int, elem string) string {
	const comment = "// The weights of a layer: into the hidden width and back.\n"
	var b strings.Builder
	fmt.Fprintf(&b, "// A chain of %d layers.\n\n", n)
	fmt.Fprintf(&b, "!x = tensor<8x4x%s> // batch, width\n!w = tensor<4x8x%[1]s>\n!v = tensor<8x4x%[1]s>\n", elem)
	b.WriteString(comment + "!layer = tuple<!w, !v>\n!params = tuple<" + strings.TrimSuffix(strings.Repeat("!layer, ", n), ", ") + ">\n\n")
	fmt.Fprintf(&b, `// The batch is the same in each step.
func.func @train(%%x: !x, %%target: !x, %%params: !params {dm.stddev = 0.5}, %%m: !params {dm.init = 0.0})
    -> (tensor<%s>, !params {dm.state = "params"}, !params {dm.state = "m"}) {
  %%loss, %%d = dm.grad @loss %%x, %%target, %%params, wrt = [2] : (!x, !x, !params) -> (tensor<%[1]s>, !params)
  %%next, %%m_next = dm.momentum %%params, %%d, %%m, lr = 0.002 : (!params, !params, !params) -> (!params, !params) // no decay
  return %%loss, %%next, %%m_next : tensor<%[1]s>, !params, !params
}

func.func private @loss(%%x: !x, %%target: !x, %%params: !params) -> tensor<%[1]s> {
`, elem)
	layers := make([]string, n)
	for i := range layers {
		layers[i] = fmt.Sprintf("%%layer%d", i)
	}
	fmt.Fprintf(&b, "  %s = dm.unpack %%params : (!params) -> (%s)\n", strings.Join(layers, ", "), strings.TrimSuffix(strings.Repeat("!layer, ", n), ", "))
	last := "%x"
	for i, l := range layers {
		next := fmt.Sprintf("%%h%d", i)
		fmt.Fprintf(&b, "  %s = func.call @layer(%s, %s) : (!x, !layer) -> !x\n", next, last, l)
		last = next
	}
	fmt.Fprintf(&b, `  %%d = dm.sub %s, %%target : !x
  %%q = dm.mul %%d, %%d : !x
  %%loss = dm.reduce add %%q : (!x) -> tensor<%s>
  return %%loss : tensor<%[2]s>
}

func.func private @layer(%%h: !x, %%weights: !layer) -> !x {
  %%w, %%v = dm.unpack %%weights : (!layer) -> (!w, !v)
  %%z = dm.matmul %%h, %%w : (!x, !w) -> tensor<8x8x%[2]s>
  %%a = dm.tanh %%z : tensor<8x8x%[2]s>
  %%o = dm.matmul %%a, %%v : (tensor<8x8x%[2]s>, !v) -> !x
  %%y = dm.add %%h, %%o : !x
  return %%y : !x
}
`, last, elem)
	return b.String()
}

// example is a program of examples/, with other text in place of some.
func example(t *testing.T, name string, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(replace...).Replace(string(text))
}

// plannedPrograms are training steps of a few thousand operations.
func plannedPrograms(t *testing.T) map[string]string {
	t.Helper()
	written := func(text string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	c := models.Config{Layers: 4, Hidden: 8, Heads: 2, FF: 16, Vocabulary: 16, Sequence: 4, Batch: 8, Element: "f32", Rate: 0.01}
	return map[string]string{
		"transformer": example(t, "transformer_train.dmir"),
		"chain 4":     chain(4, "f64"),
		"chain 8":     chain(8, "f32"),
		"gpt":         written(models.GPT(c)),
		"groups":      groups,
		"mixture":     written(models.Mixture(c, models.Experts{Count: 4, Chosen: 2, FF: 8, Group: 4})),
		"lstm": example(t, "lstm_train.dmir", "16x16x32", "4x8x8", "16x32", "8x8", "16x64x", "8x8x", "16x256", "8x32", "32x256", "8x32",
			"64x256", "8x32", "<256x", "<32x", "64x10", "8x10", "16x10", "8x10", "<16xi64", "<8xi64",
			"[64]", "[8]", "[128]", "[16]", "[192]", "[24]", "[256]", "[32]"),
		"cnn": example(t, "cnn_train.dmir", "<512x", "<8x", "32x32x32xf32", "4x8x8xf32", "32x16x16", "4x4x4", "64x16x16", "8x4x4", "<64x8x8x10", "<8x2x2x10", "64x8x8", "8x2x2",
			"3x32x32", "3x8x8", "<32x3x3x3", "<4x3x3x3", "<64x32x3x3", "<8x4x3x3", "<32x", "<4x", "<64x", "<8x"),
	}
}

// groups is a step with a grouped and two depthwise convolutions, the last of one spatial dimension.
const groups = `// Channels by groups.
!x = tensor<8x4x6x6xf32>
!h = tensor<8x8x6x6xf32>
!w = tensor<8x2x3x3xf32> // 2 groups of 4 channels made of 2
!d = tensor<8x1x3x3xf32>
!line = tensor<8x8x12xf32>
!l = tensor<8x1x3xf32>
!v = tensor<8x4xf32>

func.func @train(%x: !x, %labels: tensor<8xi64> {dm.init = 2}, %w: !w {dm.stddev = 0.4}, %d: !d {dm.stddev = 0.4}, %l: !l {dm.stddev = 0.4}, %v: !v {dm.stddev = 0.4})
    -> (tensor<f32>, !w {dm.state = "w"}, !d {dm.state = "d"}, !l {dm.state = "l"}, !v {dm.state = "v"}) {
  %loss, %dw, %dd, %dl, %dv = dm.grad @loss %x, %labels, %w, %d, %l, %v, wrt = [2, 3, 4, 5] : (!x, tensor<8xi64>, !w, !d, !l, !v) -> (tensor<f32>, !w, !d, !l, !v)
  %w_next = dm.sgd %w, %dw, lr = 0.1 : !w
  %d_next = dm.sgd %d, %dd, lr = 0.1 : !d
  %l_next = dm.sgd %l, %dl, lr = 0.1 : !l
  %v_next = dm.sgd %v, %dv, lr = 0.1 : !v
  return %loss, %w_next, %d_next, %l_next, %v_next : tensor<f32>, !w, !d, !l, !v
}

func.func private @loss(%x: !x, %labels: tensor<8xi64>, %w: !w, %d: !d, %l: !l, %v: !v) -> tensor<f32> {
  %a = dm.convolution %x, %w, padding = [[1, 1], [1, 1]], feature_group_count = 2 : (!x, !w) -> !h
  %b = dm.gelu %a : !h
  %c = dm.convolution %b, %d, window_strides = [3, 1], padding = [[1, 1], [1, 1]], feature_group_count = 8 : (!h, !d) -> tensor<8x8x2x6xf32>
  %e = dm.reshape %c : (tensor<8x8x2x6xf32>) -> !line
  %f = dm.convolution %e, %l, padding = [[2, 0]], feature_group_count = 8 : (!line, !l) -> !line
  %g = dm.mean %f, dims = [2] : (!line) -> tensor<8x8xf32>
  %y = dm.matmul %g, %v : (tensor<8x8xf32>, !v) -> tensor<8x4xf32>
  %loss = dm.cross_entropy %y, %labels : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}
`

// A planned is a program with a plan written into it.
type planned struct {
	text string
	plan *plan.Plan
}

// planFor writes the best plan for four devices of setting fix into text.
func planFor(t *testing.T, text string, fix plan.Setting) planned {
	t.Helper()
	p := loaded(t, text)
	cluster, ok := machine.Lookup("dgx-h100")
	if !ok {
		t.Fatal("no dgx-h100")
	}
	r, err := request.New(p, request.Asked{Machine: cluster, Devices: 4})
	if err != nil {
		t.Fatal(err)
	}
	r.Options.Fix = fix
	found, err := r.Search(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := found.Write(found.Plans[0])
	if err != nil {
		t.Fatal(err)
	}
	return planned{out, found.Plans[0]}
}

func loaded(t *testing.T, text string) *program.Program {
	t.Helper()
	p := program.Load(source.New("step.dmir", text), program.Options{})
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			t.Fatalf("%s: %s\n%s", d.Code, d.Message, text)
		}
	}
	return p
}

// trained is what n steps of the program on so many devices return and keep, by name. The losses of all steps
// are among it.
func trained(t *testing.T, text, device string, devices, n int) map[string]*tensor.Tensor {
	t.Helper()
	p := loaded(t, text)
	m, fn, err := driver.Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	j := driver.Job{Program: p, Module: m, Fn: fn, Seed: 7, Device: device}
	if devices > 1 {
		j.On.Devices = devices
	}
	steps, err := driver.Open(t.Context(), j)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	defer steps.Close()
	flat, _ := flatten.Func(fn)
	args, err := interp.Inputs(t.Context(), flat, nil, j.Seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*tensor.Tensor{}
	for i := range n {
		res, err := steps.Step(t.Context(), args)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		args = make([]*tensor.Tensor, len(args))
		for _, r := range res {
			out[fmt.Sprintf("%s of step %d", r.Name, i+1)] = r.Tensor
		}
	}
	state, err := steps.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range state {
		out[r.Name] = r.Tensor
	}
	return out
}

// settings are those that a plan is asked for, by name, with the programs that have one.
var settings = []struct {
	name string
	fix  plan.Setting
	of   string // programs; empty: all
}{
	{"data 4", plan.Setting{Data: 4, Tensor: 1, Pipe: 1}, ""},
	{"tensor 4", plan.Setting{Data: 1, Tensor: 4, Pipe: 1}, ""},
	{"data 2, tensor 2", plan.Setting{Data: 2, Tensor: 2, Pipe: 1}, ""},
	{"micro-batches", plan.Setting{Data: 2, Tensor: 2, Pipe: 1, Microbatches: 2}, ""},
	{"split states", plan.Setting{Data: 4, Tensor: 1, Pipe: 1, States: plan.StatesSplit}, ""},
	{"ZeRO-3", plan.Setting{Data: 4, Tensor: 1, Pipe: 1, Microbatches: 1, States: plan.StatesParameters}, ""},
	{"ZeRO-3, micro-batches, recompute", plan.Setting{Data: 4, Tensor: 1, Pipe: 1, Microbatches: 2, Recompute: plan.Full, States: plan.StatesParameters}, deep},
	{"ZeRO-3 in stages", plan.Setting{Data: 2, Pipe: 2, Microbatches: 2, Schedule: op.Schedule1F1B, States: plan.StatesParameters}, "chain 4, chain 8"},
	{"recompute without stages", plan.Setting{Data: 1, Tensor: 4, Pipe: 1, Microbatches: 1, Recompute: plan.Full}, deep},
	{"the best", plan.Setting{}, ""},
	{"1f1b", plan.Setting{Pipe: 2, Data: 2, Microbatches: 2, Schedule: op.Schedule1F1B}, deep},
	{"gpipe", plan.Setting{Pipe: 2, Data: 2, Microbatches: 2, Schedule: op.ScheduleGPipe}, deep},
	{"zb-h1", plan.Setting{Pipe: 2, Data: 2, Microbatches: 4, Schedule: op.ScheduleZBH1}, deep},
	{"recompute full", plan.Setting{Pipe: 2, Tensor: 2, Microbatches: 2, Recompute: plan.Full}, deep},
	{"recompute selective", plan.Setting{Pipe: 2, Tensor: 2, Microbatches: 2, Recompute: plan.Selective}, deep},
	{"zb-v", plan.Setting{Pipe: 2, Data: 2, Microbatches: 2, Schedule: op.ScheduleZBV}, "chain 4, chain 8, gpt, mixture"},
	{"interleaved", plan.Setting{Pipe: 4, Chunks: 2, Microbatches: 4, Schedule: op.ScheduleInterleaved}, "chain 8"},
	{"zb-v 4", plan.Setting{Pipe: 4, Microbatches: 8, Schedule: op.ScheduleZBV}, "chain 8"},
}

// deep are the programs that are cut into stages.
const deep = "transformer, chain 4, chain 8, gpt, mixture"

// A plan is the text it was made of with what it adds, and the step runs as that of one device: of each program under
// a quarter of the settings in turn, the others of which the next programs have.
func TestPlannedProgramsTrainAlike(t *testing.T) {
	need.Long(t)
	texts := plannedPrograms(t)
	for k, name := range slices.Sorted(maps.Keys(texts)) {
		text := texts[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const steps = 3
			want := trained(t, text, "reference", 1, steps)
			tolerance := 2e-4
			if strings.Contains(text, "f64") {
				tolerance = 1e-9
			}
			for i, s := range settings {
				if s.of != "" && !strings.Contains(s.of, name) || !need.Turn(t, i+k, 4) {
					continue
				}
				t.Run(s.name, func(t *testing.T) {
					p := planFor(t, text, s.fix)
					if formatted(text) == text && formatted(p.text) != p.text {
						t.Errorf("not formatted:\n%s", format.Diff("step.dmir", p.text, formatted(p.text)))
					}
					for _, e := range p.plan.Edits() {
						if e.Span.Start != e.Span.End {
							t.Errorf("%q takes the place of %q", e.Text, text[e.Span.Start:e.Span.End])
						}
					}
					for _, device := range append([]string{"reference"}, compiledOn(name, s.name)...) {
						got := trained(t, p.text, device, 4, steps)
						for what, x := range want {
							if d := apart(x, got[what]); !(d <= tolerance) {
								t.Errorf("%s: %s is %v away from that of one device\n%s", device, what, d, p.text)
								return
							}
						}
					}
				})
			}
		})
	}
}

// compiledOn are the devices on which a planned program is compiled as well. With DMIR_PLANNED_ALL in the environment
// all programs are, for each.
func compiledOn(program, setting string) []string {
	if os.Getenv("DMIR_PLANNED_ALL") != "" {
		return []string{"cpu", "emulator"}
	}
	switch program + ", " + setting {
	case "chain 4, zb-h1", "chain 4, zb-v", "chain 4, ZeRO-3", "chain 4, ZeRO-3 in stages":
		return []string{"cpu"}
	case "chain 4, 1f1b", "chain 8, interleaved", "gpt, gpipe": // the last has kernels of hundreds of arguments
		return []string{"cpu", "emulator"}
	}
	return nil
}

func formatted(text string) string { return format.File(parse.File(source.New("step.dmir", text))) }

// The devices of a planned pipeline run the tasks of the plan's timeline, in its order, and played out with the
// times of its stages these take as long as the plan says.
func TestPlannedPipelinesTakeTheTimeOfThePlan(t *testing.T) {
	for _, s := range settings {
		if s.fix.Pipe < 2 {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			p := planFor(t, chain(8, "f64"), s.fix)
			tl := p.plan.Timeline
			ran := executed(t, p.text)
			for d, lane := range tl.Devices {
				var want []string
				for _, span := range lane.Spans {
					want = append(want, span.Task.String())
				}
				if !slices.Equal(ran[d], want) {
					t.Errorf("device %d ran %v, the plan has %v", d, ran[d], want)
				}
			}
			var times pipelining.Times
			for _, stage := range p.plan.Stages {
				times.Forward = append(times.Forward, stage.Forward)
				times.Backward = append(times.Backward, stage.Backward-stage.Weight)
				times.Weight = append(times.Weight, stage.Weight)
				times.Transfer = append(times.Transfer, stage.Transfer)
			}
			order := make([][]pipelining.Task, len(ran))
			for d, list := range ran {
				times.Once = append(times.Once, tl.Devices[d].Once.End-tl.Devices[d].Once.Start)
				for _, text := range list {
					order[d] = append(order[d], taskOf(t, text))
				}
			}
			again, err := pipelining.Simulate(order, tl.Schedule, tl.Shape, times, pipelining.Memory{})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(again.Total-p.plan.Time) > 1e-9*p.plan.Time {
				t.Errorf("what the devices ran takes %v, and the plan says %v", again.Total, p.plan.Time)
			}
		})
	}
}

// executed is the tasks that the devices at each place of the pipeline run in a step, in their order.
func executed(t *testing.T, text string) [][]string {
	t.Helper()
	m, fn, err := driver.Pick(loaded(t, text), "")
	if err != nil {
		t.Fatal(err)
	}
	flatModule, flat, _ := flatten.In(m, fn)
	p, err := driver.Divide(t.Context(), flatModule, flat, nil, driver.Distribution{Devices: 4})
	if err != nil {
		t.Fatal(err)
	}
	args, err := interp.Inputs(t.Context(), flat, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	places := map[*ir.Block]int{}
	for d, f := range p.Functions() {
		places[f.Body] = d
	}
	out := make([][]string, len(places))
	seen := map[*ir.Op]bool{} // devices of one place run the same ops
	var mu sync.Mutex
	_, _, err = p.Run(t.Context(), args, interp.Options{Results: func(o *ir.Op, _ []*tensor.Tensor) {
		mu.Lock()
		defer mu.Unlock()
		d, ok := places[o.Parent]
		task := o.Str(op.TaskAttr)
		if n := len(out[d]); ok && !seen[o] && task != "" && (n == 0 || out[d][n-1] != task) {
			out[d] = append(out[d], task)
		}
		seen[o] = true
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func taskOf(t *testing.T, text string) (k pipelining.Task) {
	t.Helper()
	var kind string
	if _, err := fmt.Sscanf(text, "%d%1s%d", &k.Stage, &kind, &k.Micro); err != nil {
		t.Fatalf("%q is no task: %v", text, err)
	}
	k.Kind = pipelining.Kind(strings.Index("FBW", kind))
	return k
}

// apart is the largest difference of the elements of two tensors, relative to the largest element.
func apart(want, got *tensor.Tensor) float64 {
	if got == nil || want.Len() != got.Len() {
		return math.Inf(1)
	}
	most, largest := 0.0, 1.0
	for i := range want.Len() {
		a, b := want.Float(i), got.Float(i)
		if math.IsNaN(b) {
			return b
		}
		most, largest = max(most, math.Abs(a-b)), max(largest, math.Abs(a))
	}
	return most / largest
}
