package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/base/work"
	"dmir/bench/models"
	"dmir/dialect/ir"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// load is the module of a text without errors.
func loadText(t *testing.T, text string) *ir.Module {
	t.Helper()
	p := program.Load(source.New("step.dmir", text), program.Options{})
	if p.HasErrors() {
		t.Fatalf("%v\n%s", p.Diags, text)
	}
	return p.Modules[0]
}

func cluster(t *testing.T, name string) *machine.Machine {
	t.Helper()
	m, ok := machine.Lookup(name)
	if !ok {
		t.Fatal("no machine ", name)
	}
	return m
}

func gpt(t *testing.T, layers int) string {
	t.Helper()
	text, err := models.GPT(models.Config{Layers: layers, Hidden: 512, Heads: 8, Vocabulary: 1024, Sequence: 256, Batch: 32})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A program without contractions: its mesh has an axis by what its ops divide, and one axis over which nothing is divided.
func TestNamesWithoutContractions(t *testing.T) {
	const text = `func.func @train(%x: tensor<SHAPExf32>, %w: tensor<1x1xf32>) -> (tensor<f32>, tensor<1x1xf32> {dm.state = "w"}) {
  %l, %d = dm.grad @loss %x, %w, wrt = [1] : (tensor<SHAPExf32>, tensor<1x1xf32>) -> (tensor<f32>, tensor<1x1xf32>)
  %n = dm.sgd %w, %d, lr = 0.1 : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  return %l, %n : tensor<f32>, tensor<1x1xf32>
}
func.func private @loss(%x: tensor<SHAPExf32>, %w: tensor<1x1xf32>) -> tensor<f32> {
  %a = dm.mul %x, %w : (tensor<SHAPExf32>, tensor<1x1xf32>) -> tensor<SHAPExf32>
  %l = dm.reduce add %a : (tensor<SHAPExf32>) -> tensor<f32>
  return %l : tensor<f32>
}
`
	for shape, want := range map[string]string{"1x1": "replica 4", "4194304x1": "data "} {
		m := loadText(t, strings.ReplaceAll(text, "SHAPE", shape))
		r, err := Search(t.Context(), m, m.Func("train"), Options{Machine: cluster(t, "dgx-h100"), Devices: 4})
		if err != nil {
			t.Fatal(err)
		}
		if names := r.Plans[0].Names; len(names) == 0 || !strings.HasPrefix(names[0], want) {
			t.Errorf("%s: %v, want %s", shape, names, want)
		}
		for _, p := range r.Plans {
			replicas := 0
			for _, a := range p.Axes {
				if strings.HasPrefix(a.Name, "replica") {
					replicas++
				}
			}
			if replicas > 1 {
				t.Errorf("%s: %v", shape, p.Axes)
			}
		}
	}
}

// Plans are sorted, differ, add up, and are no faster than the bound; their texts load without errors.
func TestPlans(t *testing.T) {
	need.Long(t)
	m := loadText(t, gpt(t, 8))
	r, err := Search(context.Background(), m, m.Func("train"), Options{Machine: cluster(t, "dgx-a100"), Devices: 8})
	if err != nil {
		t.Fatal(err)
	}
	if r.Model.Layers != 8 || r.Model.Samples != 32 || r.Model.Tokens != 32*256 {
		t.Errorf("the model is %+v", r.Model)
	}
	if r.Gap < 0 || r.Bound > r.Plans[0].Time {
		t.Errorf("bound %g, gap %g, time %g", r.Bound, r.Gap, r.Plans[0].Time)
	}
	seen := map[string]bool{}
	for i, p := range r.Plans {
		devices := 1
		for _, a := range p.Axes {
			devices *= a.Size
		}
		key := fmt.Sprint(p.Axes, p.Chunks, p.Schedule, p.Recompute)
		switch {
		case devices != 8:
			t.Errorf("plan %d has %d devices: %v", i+1, devices, p.Axes)
		case i > 0 && p.Time < r.Plans[i-1].Time*(1-2e-3):
			t.Errorf("plan %d takes %g, the one before it %g", i+1, p.Time, r.Plans[i-1].Time)
		case seen[key]:
			t.Errorf("plan %d is there twice: %s", i+1, key)
		case p.Objective < p.Bound*(1-1e-9):
			t.Errorf("plan %d has objective %g below its bound %g", i+1, p.Objective, p.Bound)
		case p.Memory.Total > r.Limit:
			t.Errorf("plan %d holds %d of %d bytes", i+1, p.Memory.Total, r.Limit)
		case p.MFU <= 0 || p.MFU > 1:
			t.Errorf("plan %d has a utilization of %g", i+1, p.MFU)
		}
		seen[key] = true
		layers := 0
		for _, s := range p.Stages {
			layers += s.Layers
		}
		if layers != 8 && layers != 0 {
			t.Errorf("the stages of plan %d have %d layers: %+v", i+1, layers, p.Stages)
		}
		text, err := r.Write(p)
		if err != nil {
			t.Fatal(err)
		}
		loadText(t, text)
		if !strings.Contains(text, "dm.mesh @plan") {
			t.Errorf("plan %d writes no mesh", i+1)
		}
	}
}

// A layer more costs the same however many there are: of equal layers three are looked at, and these stand for all.
func TestEqualLayersScale(t *testing.T) {
	need.Long(t)
	at := func(layers int) *Plan {
		m := loadText(t, gpt(t, layers))
		fix := Setting{Data: 2, Tensor: 2, Pipe: 1, Microbatches: 2, Recompute: None}
		r, err := Search(context.Background(), m, m.Func("train"), Options{Machine: cluster(t, "dgx-a100"), Devices: 4, Fix: fix, Top: 1})
		if err != nil {
			t.Fatal(err)
		}
		return r.Plans[0]
	}
	three, four, twelve := at(3), at(4), at(12)
	near := func(what string, have, want float64) {
		if math.Abs(have-want) > 5e-3*want {
			t.Errorf("%s of 12 layers is %g; from 3 and 4 follows %g", what, have, want)
		}
	}
	near("time", twelve.Time, three.Time+9*(four.Time-three.Time))
	near("memory", float64(twelve.Memory.Total), float64(three.Memory.Total)+9*float64(four.Memory.Total-three.Memory.Total))
}

// The strategies that are priced are those of a few layers, however many there are.
func TestWorkOfLayers(t *testing.T) {
	at := func(layers int) map[string]int {
		m := loadText(t, gpt(t, layers))
		counts := &work.Counts{}
		fix := Setting{Data: 2, Tensor: 2, Pipe: 1, Microbatches: 2, Recompute: None}
		if _, err := Search(context.Background(), m, m.Func("train"), Options{Machine: cluster(t, "dgx-a100"), Devices: 4, Fix: fix, Top: 1, Work: counts}); err != nil {
			t.Fatal(err)
		}
		return counts.Take()
	}
	few := at(12)
	for _, layers := range []int{48, 96} {
		many := at(layers)
		if few["strategies"] == 0 || many["strategies"] != few["strategies"] {
			t.Errorf("%d strategies are priced for %d layers, %d for 12", many["strategies"], layers, few["strategies"])
		}
		if many["nodes"] > few["nodes"] {
			t.Errorf("%d nodes stand for %d layers, %d for 12", many["nodes"], layers, few["nodes"])
		}
	}
}

const twoProducts = `func.func @train(%x: tensor<64x256xf32>, %w: tensor<256x256xf32> {dm.stddev = 0.1}, %v: tensor<256x256xf32> {dm.stddev = 0.1})
    -> (tensor<f32>, tensor<256x256xf32> {dm.state = "w"}, tensor<256x256xf32> {dm.state = "v"}) {
  %loss, %dw, %dv = dm.grad @loss %x, %w, %v, wrt = [1, 2]
      : (tensor<64x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>) -> (tensor<f32>, tensor<256x256xf32>, tensor<256x256xf32>)
  %w2 = dm.sgd %w, %dw, lr = 0.1 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %v2 = dm.sgd %v, %dv, lr = 0.1 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  return %loss, %w2, %v2 : tensor<f32>, tensor<256x256xf32>, tensor<256x256xf32>
}
func.func private @loss(%x: tensor<64x256xf32>, %w: tensor<256x256xf32>, %v: tensor<256x256xf32>) -> tensor<f32> {
  %h = dm.matmul %x, %w : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
  %y = dm.matmul %h, %v : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
  %q = dm.mul %y, %y : tensor<64x256xf32>
  %loss = dm.reduce add %q : (tensor<64x256xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
`

// A third axis that is asked for divides the sequence, or the experts of a mixture and elsewhere its samples, wherever contractions can be divided so.
func TestThirdAxis(t *testing.T) {
	sequence := strings.NewReplacer("64x256xf32", "8x16x256xf32").Replace(twoProducts)
	// Of 4 experts, each of which multiplies its 16 places of every sample.
	experts := strings.NewReplacer(
		"64x256xf32", "8x4x16x32xf32", "256x256xf32", "4x32x32xf32",
		"dm.matmul %x, %w", `dm.einsum "beci,eij->becj" %x, %w`, "dm.matmul %h, %v", `dm.einsum "beci,eij->becj" %h, %v`,
	).Replace(twoProducts)
	for _, c := range []struct {
		text string
		fix  Setting
		axis string
		has  string // the sharding of an argument
	}{
		{sequence, Setting{Data: 2, Context: 2, Tensor: 2}, "sequence", "{data}, {sequence}"},
		{experts, Setting{Data: 2, Expert: 4, Tensor: 1}, "expert", "{expert}, {}, {}"},
	} {
		m := loadText(t, c.text)
		c.fix.Pipe, c.fix.Microbatches, c.fix.Recompute = 1, 1, None
		r, err := Search(t.Context(), m, m.Func("train"), Options{Machine: cluster(t, "dgx-h100"), Devices: 8, Fix: c.fix, Top: 1})
		if err != nil {
			t.Fatal(err)
		}
		p := r.Plans[0]
		if !slices.ContainsFunc(p.Axes, func(a Axis) bool { return a.Name == c.axis && a.Size == max(c.fix.Context, c.fix.Expert) }) {
			t.Errorf("axes %v; want %s", p.Axes, c.axis)
		}
		if !slices.ContainsFunc(p.Values, func(v Value) bool { return strings.Contains(v.Sharding, c.has) }) {
			t.Errorf("%s: no argument has %s: %+v", c.axis, c.has, p.Values)
		}
	}
}

// What cannot be planned has one error, which says what to do.
func TestErrors(t *testing.T) {
	stated := strings.Replace(twoProducts, "%x: tensor<64x256xf32>,", "%x: tensor<64x256xf32> {dm.sharding = #dm.at<split = @pod[{data}, {}]>},", 1)
	for _, c := range []struct {
		name, text, target string
		o                  Options
		code, msg, help    string
	}{
		{"no devices", twoProducts, "dgx-h100", Options{}, CodeDevices, "one device or more", "--devices"},
		{"no links", twoProducts, "h200", Options{Devices: 4}, CodeLinks, "no cluster", "dgx-h100"},
		{"axes and devices", twoProducts, "dgx-h100", Options{Devices: 8, Fix: Setting{Data: 3}}, CodeDevices, "8 devices do not divide", "--devices"},
		{"two third axes", twoProducts, "dgx-h100", Options{Devices: 8, Fix: Setting{Context: 2, Expert: 2}}, CodeStated, "two axes", "one of them"},
		{"micro-batches", twoProducts, "dgx-h100", Options{Devices: 4, Fix: Setting{Microbatches: 33}}, CodeDevices, "has 64 elements: of 33 micro-batches, with 2 each but for the last, some would have none", "that divides 64 samples"},
		{"pipeline of no layers", twoProducts, "dgx-h100", Options{Devices: 8, Fix: Setting{Pipe: 8}}, CodeDevices, "pipeline of 8 stages", "fewer stages"},
		{"memory", twoProducts, "dgx-h100", Options{Devices: 4, Memory: 100_000}, CodeMemory, "lacks", "--memory"},
		{"mesh of another size", "dm.mesh @pod {data = 2}\n" + stated, "dgx-h100", Options{Devices: 4}, CodeStated, "2 devices (data = 2)", "devices of the mesh"},
		{"stages of its own", strings.Replace(twoProducts, "%y = dm.matmul %h, %v :", "%y = dm.matmul %h, %v {dm.stage = 1} :", 1), "dgx-h100", Options{Devices: 4}, CodeStated, "stages of its own", "dm.stage"},
		{"axis that the mesh lacks", "dm.mesh @pod {data = 4}\n" + stated, "dgx-h100", Options{Devices: 4, Fix: Setting{Tensor: 2}}, CodeStated, "no axis of 2", "mesh"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := loadText(t, c.text)
			c.o.Machine = cluster(t, c.target)
			_, err := Search(context.Background(), m, m.Func("train"), c.o)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("the error is %v", err)
			}
			if e.Code != c.code || !strings.Contains(e.Msg, c.msg) || !strings.Contains(e.Help, c.help) {
				t.Errorf("%s %q, help %q; want %s, %q, %q", e.Code, e.Msg, e.Help, c.code, c.msg, c.help)
			}
		})
	}
}

// What the text states stays, and nothing of it is written again.
func TestStatedStays(t *testing.T) {
	text := "dm.mesh @pod {data = 2, model = 2}\n" + strings.Replace(twoProducts, "%w: tensor<256x256xf32> {", "%w: tensor<256x256xf32> {dm.sharding = #dm.at<split = @pod[{}, {model}]>, ", 1)
	m := loadText(t, text)
	r, err := Search(context.Background(), m, m.Func("train"), Options{Machine: cluster(t, "dgx-h100"), Devices: 4})
	if err != nil {
		t.Fatal(err)
	}
	written, err := r.Write(r.Plans[0])
	if err != nil {
		t.Fatal(err)
	}
	loadText(t, written)
	if strings.Count(written, "dm.mesh") != 1 || !strings.Contains(written, "%w: tensor<256x256xf32> {dm.sharding = #dm.at<split = @pod[{}, {model}]>, dm.stddev") {
		t.Error(written)
	}
}

// Layers that are equal and connected alike are found, whether they are calls or written out; others are none.
func TestLayers(t *testing.T) {
	layer := func(i int, x, more string) string {
		return fmt.Sprintf("  %%a%d = dm.matmul %s, %%w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n  %%b%d = dm.%s %%a%d : tensor<8x8xf32>\n  %%c%d = dm.add %%b%d, %s : tensor<8x8xf32>\n",
			i, x, i, more, i, i, i, x)
	}
	program := func(n int, unlike int) string {
		text := "func.func @f(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {\n"
		x := "%x"
		for i := range n {
			act := "relu"
			if i == unlike {
				act = "tanh"
			}
			text += layer(i, x, act)
			x = fmt.Sprintf("%%c%d", i)
		}
		return text + "  return " + x + " : tensor<8x8xf32>\n}\n"
	}
	calls := "func.func @f(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {\n"
	for i := range 6 {
		calls += fmt.Sprintf("  %%%d = func.call @layer(%%%s, %%w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n", i, []string{"x", "0", "1", "2", "3", "4"}[i])
	}
	calls += "  return %5 : tensor<8x8xf32>\n}\nfunc.func private @layer(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {\n" + layer(9, "%x", "relu") + "  return %c9 : tensor<8x8xf32>\n}\n"
	cheap := strings.ReplaceAll(strings.ReplaceAll(program(6, -1), "dm.matmul", "dm.mul"), "(tensor<8x8xf32>, tensor<8x8xf32>) -> ", "")
	// Equal products of a gradient.
	const update = `func.func @f(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<f32>, tensor<8x8xf32>) {
  %l, %d = dm.grad @loss %x, %w, wrt = [1] : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<f32>, tensor<8x8xf32>)
  %p = dm.matmul %d, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %q = dm.matmul %p, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %n = dm.sgd %w, %q, lr = 0.1 : tensor<8x8xf32>
  return %l, %n : tensor<f32>, tensor<8x8xf32>
}
func.func private @loss(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<f32> {
  %a = dm.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = dm.tanh %a : tensor<8x8xf32>
  %l = dm.mean %b : (tensor<8x8xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
`
	// Each layer reads the first one's result.
	skip := strings.ReplaceAll(program(6, -1), "dm.add %b4, %c3", "dm.add %b4, %c0")
	for _, c := range []struct {
		name, text  string
		count, left int
	}{
		{"written out", program(6, -1), 6, 3},
		{"calls", calls, 6, 3},
		{"three", program(3, -1), 3, 3},
		{"two", program(2, -1), 2, 2},
		{"one of another kind at the end", program(7, 6), 6, 3},
		{"one of another kind in the middle", program(9, 4), 4, 3},
		{"a skip over several", skip, 2, 2}, // behind it
		{"another result of the layer before", strings.ReplaceAll(program(6, -1), "dm.matmul %c3", "dm.matmul %b3"), 2, 2}, // behind it
		{"cheap ops", cheap, 0, 0},
		{"an update", update, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := loadText(t, c.text)
			s, err := newStraight(m, m.Funcs[0], nil, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			count, left := 0, 0
			if s.layers != nil {
				count, left = s.layers.count, s.layers.left
			}
			if count != c.count || left != c.left {
				t.Errorf("%d layers, of which %d stay; want %d and %d", count, left, c.count, c.left)
			}
		})
	}
}

// A product of a batch with one matrix has the same plans whether it is written as dm.matmul or as dm.einsum: its gradient by
// the matrix is one contraction.
func TestSpellings(t *testing.T) {
	const text = `func.func @step(%x: tensor<8x512x1024xbf16>, %u: tensor<1024x4096xbf16> {dm.stddev = 0.2}, %d: tensor<4096x1024xbf16> {dm.stddev = 0.2}) -> (tensor<bf16>, tensor<1024x4096xbf16> {dm.state = "u"}, tensor<4096x1024xbf16> {dm.state = "d"}) {
  %l, %du, %dd = dm.grad @loss %x, %u, %d, wrt = [1, 2] : (tensor<8x512x1024xbf16>, tensor<1024x4096xbf16>, tensor<4096x1024xbf16>) -> (tensor<bf16>, tensor<1024x4096xbf16>, tensor<4096x1024xbf16>)
  %nu = dm.sgd %u, %du, lr = 0.1 : tensor<1024x4096xbf16>
  %nd = dm.sgd %d, %dd, lr = 0.1 : tensor<4096x1024xbf16>
  return %l, %nu, %nd : tensor<bf16>, tensor<1024x4096xbf16>, tensor<4096x1024xbf16>
}
func.func private @loss(%x: tensor<8x512x1024xbf16>, %u: tensor<1024x4096xbf16>, %d: tensor<4096x1024xbf16>) -> tensor<bf16> {
  %a = dm.matmul %x, %u : (tensor<8x512x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<8x512x4096xbf16>
  %b = dm.silu %a : tensor<8x512x4096xbf16>
  %c = dm.matmul %b, %d : (tensor<8x512x4096xbf16>, tensor<4096x1024xbf16>) -> tensor<8x512x1024xbf16>
  %e = dm.add %x, %c : tensor<8x512x1024xbf16>
  %f = dm.mul %e, %e : tensor<8x512x1024xbf16>
  %l = dm.mean %f : (tensor<8x512x1024xbf16>) -> tensor<bf16>
  return %l : tensor<bf16>
}
`
	var tables []string
	for _, written := range []string{text, strings.ReplaceAll(text, "dm.matmul", `dm.einsum "bmk,kn->bmn"`)} {
		m := loadText(t, written)
		r, err := Search(t.Context(), m, m.Func("step"), Options{Machine: cluster(t, "dgx-h100"), Devices: 8})
		if err != nil {
			t.Fatal(err)
		}
		table := ""
		for _, p := range r.Plans {
			table += fmt.Sprintf("%v %v, sent %v, memory %v\n", p.Axes, p.Time, p.Sent, p.Memory.Total)
		}
		tables = append(tables, table)
	}
	if tables[0] != tables[1] || tables[0] == "" {
		t.Errorf("dm.matmul:\n%sdm.einsum:\n%s", tables[0], tables[1])
	}
}

// The batch of a step is that of the arguments which neither gradients are taken of nor updates touch, whatever types the results have.
func TestBatch(t *testing.T) {
	const loss = `
func.func private @loss(%x: tensor<32x64xf32>, %s: tensor<64xf32>, %w: tensor<64x64xf32>) -> tensor<f32> {
  %a = dm.mul %x, %s : (tensor<32x64xf32>, tensor<64xf32>) -> tensor<32x64xf32>
  %b = dm.matmul %a, %w : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %l = dm.mean %b : (tensor<32x64xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
`
	const momentum = `func.func @step(%x: tensor<32x64xf32>, %n: tensor<f32> {dm.init = 1.0}, %s: tensor<64xf32>, %w: tensor<64x64xf32>, %m: tensor<64x64xf32>) -> (tensor<f32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %l, %d = dm.grad @loss %x, %s, %w, wrt = [2] : (tensor<32x64xf32>, tensor<64xf32>, tensor<64x64xf32>) -> (tensor<f32>, tensor<64x64xf32>)
  %v = dm.add %m, %d : tensor<64x64xf32>
  %u = dm.sub %w, %v : tensor<64x64xf32>
  return %l, %u, %v : tensor<f32>, tensor<64x64xf32>, tensor<64x64xf32>
}
` + loss
	const inputs = `func.func @step(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %l, %dx, %dw = dm.grad @loss %x, %w, wrt = [0, 1] : (tensor<64x64xf32>, tensor<64x64xf32>) -> (tensor<f32>, tensor<64x64xf32>, tensor<64x64xf32>)
  %u = dm.sgd %w, %dw, lr = 0.1 : tensor<64x64xf32>
  return %dx, %u : tensor<64x64xf32>, tensor<64x64xf32>
}
func.func private @loss(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<f32> {
  %b = dm.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %l = dm.mean %b : (tensor<64x64xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
`
	deep := regexp.MustCompile(` \{dm\.(stddev|state|init)[^}]*\}`).ReplaceAllString(gpt(t, 5), "")
	for _, c := range []struct {
		name, text, fn string
		named          []string
		samples, whole string
	}{
		{"momentum written out", momentum, "step", nil, "%x", "%s"},
		{"named", momentum, "step", []string{"%x"}, "%x", ""},
		{"what the batch goes through", momentum, "step", []string{"s"}, "a batch along dimension 0 of %s goes through %w, which the step keeps from step to step or initializes", ""},
		{"not of the same samples", momentum, "step", []string{"x", "s"}, "a batch along the other arguments that --batch names does not go through %s", ""},
		{"no such argument", momentum, "step", []string{"y"}, "@step has no argument %y", ""},
		{"the gradient of an input is returned", inputs, "step", nil, "%x", ""},
		{"layers that are left out, of arguments that state nothing", deep, "train", nil, "%ids %labels", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := loadText(t, c.text)
			s, err := newSearch(m, m.Func(c.fn), Options{Machine: cluster(t, "dgx-h100"), Devices: 4, Batch: c.named})
			if err != nil {
				if !strings.Contains(err.Error(), c.samples) {
					t.Errorf("%v, want %q", err, c.samples)
				}
				return
			}
			if got, whole := strings.Join(s.samples, " "), strings.Join(s.whole, " "); got != c.samples || whole != c.whole {
				t.Errorf("samples of %q, the same for all %q; want %q, %q", got, whole, c.samples, c.whole)
			}
		})
	}
}

// Of the axes that divide a dimension the last one is that along which pieces are gathered and sums scattered, in whichever order the
// mesh has them: data of a moment, whose gradient is summed over the samples.
func TestOrderOfAxes(t *testing.T) {
	text, err := os.ReadFile("../../examples/mlp_train.dmir")
	if err != nil {
		t.Fatal(err)
	}
	for _, axes := range []string{"data = 4, tensor = 2", "tensor = 2, data = 4"} {
		m := loadText(t, strings.Replace("dm.mesh @pod {"+axes+"}\n"+string(text), "%x: !inputs", "%x: !inputs {dm.sharding = #dm.at<split = @pod[{data}, {}]>}", 1))
		fix := Setting{Data: 4, Tensor: 2, Pipe: 1, Microbatches: 1, States: StatesSplit}
		r, err := Search(t.Context(), m, m.Func("train"), Options{Machine: cluster(t, "dgx-h100"), Devices: 8, Fix: fix, Top: 1})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Plans[0].Values, func(v Value) bool { return v.Name == "%m_b1" })
		if i < 0 || !strings.Contains(r.Plans[0].Values[i].Sharding, "{tensor, data}") {
			t.Errorf("mesh %s: %+v", axes, r.Plans[0].Values)
		}
	}
}
