package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/plan/export"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/syntax/source"
)

// layers is a training step of four layers with momentum, whose text states a plan.
const layers = `func.func private @loss(%x: tensor<16x8xf32>, %labels: tensor<16x8xf32>, %a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>, %d: tensor<8x8xf32>) -> tensor<f32> {
  %h = dm.matmul %x, %a STAGE0 : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %i = dm.relu %h {dm.recompute} : tensor<16x8xf32>
  %j = dm.matmul %i, %b : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %k = dm.matmul %j, %c STAGE1 : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %l = dm.matmul %k, %d : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %e = dm.sub %l, %labels : tensor<16x8xf32>
  %s = dm.mul %e, %e : tensor<16x8xf32>
  %m = dm.mean %s, dims = [0, 1] : (tensor<16x8xf32>) -> tensor<f32>
  return %m : tensor<f32>
}
func.func @step(%x: tensor<16x8xf32> {dm.sharding = #rows}, %labels: tensor<16x8xf32> {dm.sharding = #rows},
    %a: tensor<8x8xf32> FIRST, %b: tensor<8x8xf32> SECOND, %c: tensor<8x8xf32> FIRST, %d: tensor<8x8xf32> SECOND,
    %ma: tensor<8x8xf32> STATE, %mb: tensor<8x8xf32> STATE, %mc: tensor<8x8xf32> STATE, %md: tensor<8x8xf32> STATE)
    -> (tensor<f32> {dm.name = "loss"}, tensor<8x8xf32> {dm.state = "a", dm.name = "NAME.0.weight"}, tensor<8x8xf32> {dm.state = "b", dm.name = "NAME.1.weight"},
        tensor<8x8xf32> {dm.state = "c", dm.name = "NAME.2.weight"}, tensor<8x8xf32> {dm.state = "d", dm.name = "NAME.3.weight"},
        tensor<8x8xf32> {dm.state = "ma"}, tensor<8x8xf32> {dm.state = "mb"}, tensor<8x8xf32> {dm.state = "mc"}, tensor<8x8xf32> {dm.state = "md"})
    attributes {dm.microbatches = 4SCHEDULE} {
  %l, %da, %db, %dc, %dd = dm.grad @loss %x, %labels, %a, %b, %c, %d, wrt = [2, 3, 4, 5]
      : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<f32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>)
  %na = dm.add %ma, %da : tensor<8x8xf32>
  %nb = dm.add %mb, %db : tensor<8x8xf32>
  %nc = dm.add %mc, %dc : tensor<8x8xf32>
  %nd = dm.add %md, %dd : tensor<8x8xf32>
  %a2 = dm.sub %a, %na : tensor<8x8xf32>
  %b2 = dm.sub %b, %nb : tensor<8x8xf32>
  %c2 = dm.sub %c, %nc : tensor<8x8xf32>
  %d2 = dm.sub %d, %nd : tensor<8x8xf32>
  return %l, %a2, %b2, %c2, %d2, %na, %nb, %nc, %nd : tensor<f32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
`

// loop is a training step of four layers that are one loop over stacked weights, cut into stages.
const loop = `dm.mesh @pod {pipe = 2, data = 2}
#rows = #dm.at<split = @pod[{data}, {}]>
func.func private @loss(%x: tensor<16x8xf32>, %labels: tensor<16x8xf32>, %in: tensor<8x8xf32>, %w: tensor<4x8x8xf32>, %out: tensor<8x8xf32>) -> tensor<f32> {
  %h = dm.matmul %x, %in : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %l = dm.scan %h, %w, carries = 1, save = carries {dm.stages = 2} : (tensor<16x8xf32>, tensor<4x8x8xf32>) -> tensor<16x8xf32> {
  ^bb0(%c: tensor<16x8xf32>, %wi: tensor<8x8xf32>):
    %z = dm.matmul %c, %wi : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %a = dm.relu %z : tensor<16x8xf32>
    dm.yield %a : tensor<16x8xf32>
  }
  %y = dm.matmul %l, %out : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %e = dm.sub %y, %labels : tensor<16x8xf32>
  %s = dm.mul %e, %e : tensor<16x8xf32>
  %m = dm.mean %s, dims = [0, 1] : (tensor<16x8xf32>) -> tensor<f32>
  return %m : tensor<f32>
}
func.func @step(%x: tensor<16x8xf32> {dm.sharding = #rows}, %labels: tensor<16x8xf32> {dm.sharding = #rows},
    %in: tensor<8x8xf32>, %w: tensor<4x8x8xf32>, %out: tensor<8x8xf32>, %m: tensor<4x8x8xf32> {dm.sharding = #dm.at<split = @pod[{data}, {}, {}]>})
    -> (tensor<f32> {dm.name = "loss"}, tensor<8x8xf32> {dm.state = "in"}, tensor<4x8x8xf32> {dm.state = "w"}, tensor<8x8xf32> {dm.state = "out"}, tensor<4x8x8xf32> {dm.state = "m"})
    attributes {dm.microbatches = 4, dm.pipeline = "pipe", dm.schedule = "gpipe"} {
  %l, %din, %dw, %dout = dm.grad @loss %x, %labels, %in, %w, %out, wrt = [2, 3, 4]
      : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<8x8xf32>) -> (tensor<f32>, tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<8x8xf32>)
  %in2 = dm.sub %in, %din : tensor<8x8xf32>
  %m2 = dm.add %m, %dw : tensor<4x8x8xf32>
  %w2 = dm.sub %w, %m2 : tensor<4x8x8xf32>
  %out2 = dm.sub %out, %dout : tensor<8x8xf32>
  return %l, %in2, %w2, %out2, %m2 : tensor<f32>, tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<8x8xf32>, tensor<4x8x8xf32>
}
`

// A planned is a program with a plan that is exported.
type planned struct {
	name, path, text string
	at               map[string]string // of what stands in layers, which follows text, in capitals; nil: text is all
}

var programs = []planned{
	{"pipeline", "model.dmir", `dm.mesh @pod {pipe = 2, data = 2, tensor = 2}
#rows = #dm.at<split = @pod[{data}, {}]>
`, map[string]string{
		"FIRST": "{dm.sharding = #dm.at<split = @pod[{}, {tensor}]>}", "SECOND": "{dm.sharding = #dm.at<split = @pod[{tensor}, {}]>}",
		"STAGE0": "{dm.stage = 0}", "STAGE1": "{dm.stage = 1}", "SCHEDULE": `, dm.pipeline = "pipe", dm.schedule = "zb-h1"`, "NAME": "h",
	}},
	{"states", "model.dmir", `dm.mesh @pod {replica = 2, data = 4}
#rows = #dm.at<split = @pod[{data}, {}]>
`, map[string]string{"STATE": "{dm.sharding = #dm.at<split = @pod[{data}, {}]>}", "NAME": "h"}},
	{"axes", "model.dmir", `dm.mesh @pod {data = 2, tensor = 2, tensor2 = 2}
#rows = #dm.at<split = @pod[{data}, {}]>
`, map[string]string{"FIRST": "{dm.sharding = #dm.at<split = @pod[{tensor2}, {tensor}]>}", "STATE": "{dm.sharding = #dm.at<split = @pod[{data}, {}]>}", "NAME": "h"}},
	// Names are data: in none of the languages do they end a string or a comment.
	{"names", "a'b\"\n$(touch x)\u2028.dmir", `dm.mesh @pod {data = 2, tensor = 2}
#rows = #dm.at<split = @pod[{data}, {}]>
`, map[string]string{"FIRST": "{dm.sharding = #dm.at<split = @pod[{}, {tensor}]>}", "NAME": `\\\"\"\"'''$(touch x)\n#{}é𝔐`}},
	{"loop", "model.dmir", loop, nil},
}

// described is the description of the plan of p; another is searched in a second.
func (p planned) described(t *testing.T) *export.Portable {
	t.Helper()
	text := p.text
	if p.at != nil {
		text += layers
	}
	for _, key := range []string{"FIRST", "SECOND", "STATE", "STAGE0", "STAGE1", "SCHEDULE", "NAME"} {
		text = strings.ReplaceAll(text, key, p.at[key])
	}
	m, _ := machine.Lookup("dgx-h100")
	loaded := program.Load(source.New(p.path, text), program.Options{Target: m})
	if loaded.HasErrors() {
		t.Fatalf("%s: %v", p.name, loaded.Diags)
	}
	r, err := request.New(loaded, request.Asked{})
	if err != nil {
		t.Fatal(err)
	}
	search := func(s plan.Setting) (*plan.Plan, error) {
		if s.Schedule == "1f1b" && s.Tensor == 2 {
			return nil, &plan.Error{Msg: "no plan fits"}
		}
		data, err := json.Marshal(s)
		return &plan.Plan{Time: 500e-6, Names: []string{string(data)}}, err
	}
	d, err := export.Read(context.Background(), export.Source{Program: loaded, Module: r.Module, Func: r.Func, Options: r.Options, Search: search})
	if err != nil {
		t.Fatal(err)
	}
	for k := range d.Stages {
		if p.at == nil {
			break
		}
		d.Stages[k].Layers = 1 + 2*k // as the planner tells of a plan that it found
	}
	d.Predicted = export.Predicted{Seconds: 400e-6, Memory: 2e6, Sent: 1e6} // what is predicted other tests hold
	return d
}

// Of a loop that is cut into stages each stage has layers, and arguments with an element for each layer are used by all stages, in pieces.
func TestLoop(t *testing.T) {
	d := planned{"loop", "model.dmir", loop, nil}.described(t)
	var got []string
	for _, s := range d.Stages {
		got = append(got, fmt.Sprintf("%d layers at %d, line %d", s.Layers, s.Place, s.Line))
	}
	for _, a := range d.Arguments {
		got = append(got, fmt.Sprint(a.Name, a.Stages, a.Stacked))
	}
	for _, a := range d.Results[1:] {
		got = append(got, fmt.Sprint(a.Stages, a.Stacked))
	}
	want := "2 layers at 0, line 4; 2 layers at 1, line 5; x[0] false; labels[1] false; in[0] false; w[0 1] true; out[1] false; m[0 1] true; " +
		"[0] false; [0 1] true; [1] false; [0 1] true"
	if text := strings.Join(got, "; "); text != want || d.Chunks != 1 || d.Recompute != plan.Full {
		t.Errorf("%d stages on a device, recomputation %s; %s\nwant %s", d.Chunks, d.Recompute, text, want)
	}
}

// Tools whose micro-batches have equally many samples refuse others.
func TestUnequalMicrobatches(t *testing.T) {
	d := programs[0].described(t)
	for _, c := range []struct {
		tool    string
		micro   int
		refused bool
	}{{"jax", 4, false}, {"jax", 3, true}, {"torch", 4, false}, {"torch", 3, true}, {"megatron", 3, false}} {
		d.Microbatches = c.micro
		err := export.Lookup(c.tool).Write(io.Discard, d)
		if no := (*plan.Error)(nil); c.refused != errors.As(err, &no) || c.refused && (no.Code != plan.CodeExport || !strings.Contains(no.Msg, "16 are not divided by 3 micro-batches")) {
			t.Errorf("%s with %d micro-batches: %v", c.tool, c.micro, err)
		}
	}
}

// TestTools compares the files that are written with those in testdata, and gives each to a parser of its language.
func TestTools(t *testing.T) {
	var python, shells []string
	folder := t.TempDir()
	for _, p := range programs {
		d := p.described(t)
		for _, name := range []string{"torch", "torchtitan", "megatron", "deepspeed", "nemo"} {
			f := export.Lookup(name)
			var b bytes.Buffer
			err := f.Write(&b, d)
			if no := (*plan.Error)(nil); p.at == nil && name == "torch" {
				if !errors.As(err, &no) || no.Code != plan.CodeExport || no.At == nil || no.At.Name != "dm.scan" || no.Help == "" {
					t.Errorf("of a loop that is cut into stages PyTorch's module is %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(folder, p.name+"."+name+f.Extension)
			if err := os.WriteFile(at, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			var values map[string]any
			switch f.Extension {
			case ".json":
				if err := json.Unmarshal(b.Bytes(), &values); err != nil {
					t.Errorf("%s: %v", at, err)
				}
			case ".yaml":
				if err := yaml.Unmarshal(b.Bytes(), &values); err != nil || values["model"] == nil {
					t.Errorf("%s: %v", at, err)
				}
			case ".py":
				python = append(python, at)
			case ".sh":
				shells = append(shells, at)
			}
			text, code, _ := strings.Cut(b.String(), "BUCKET = ") // what follows is the same in all modules
			if golden := filepath.Join("testdata", p.name+"."+name); *update {
				if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if want, err := os.ReadFile(golden); err != nil || string(want) != text {
				t.Errorf("%s is not as written before (%v; -update writes it):\n%s", golden, err, text)
			}
			if strings.ContainsAny(b.String(), "\r\u2028\x00") || name == "torch" && code == "" {
				t.Errorf("%s has control characters, or no code", at)
			}
		}
	}
	parsed(t, python)
	sourced(t, shells)
}

// parsed has Python read files, and tell what the tables of modules for PyTorch hold.
func parsed(t *testing.T, files []string) {
	const script = `
import ast, json, sys
for at in sys.argv[1:]:
    tree = ast.parse(open(at, encoding="utf-8").read(), at)
    values = {s.targets[0].id: s.value for s in tree.body if isinstance(s, ast.Assign)}
    if "PARAMETERS" in values:
        print(json.dumps(list(ast.literal_eval(values["PARAMETERS"]))))
`
	at, err := exec.LookPath("python3")
	if err != nil {
		return
	}
	out, err := exec.Command(at, append([]string{"-c", script}, files...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var got []string
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil || len(lines) != len(programs)-1 {
		t.Fatalf("%v: %s", err, out)
	}
	if want := "\\\"\"\"'''$(touch x)\n#{}é𝔐.0.weight"; len(got) != 4 || got[0] != want {
		t.Errorf("Python reads the names %q, want %q first", got, want)
	}
}

// sourced has a shell read files: their array has pairs of a flag and a value, or flags, and nothing else runs.
func sourced(t *testing.T, files []string) {
	at, err := exec.LookPath("bash")
	if err != nil {
		return
	}
	for _, file := range files {
		run := exec.Command(at, "-eu", "-c", `. "$1"; printf '%s\n' "${PLAN[@]}"; ls`, "bash", file)
		run.Dir = t.TempDir()
		out, err := run.CombinedOutput()
		if words := strings.Fields(string(out)); err != nil || len(words) < 6 || words[0] != "--tensor-model-parallel-size" || words[len(words)-1] == "x" {
			t.Errorf("%s: %v: %s", file, err, out)
		}
	}
}

// TestUsed: an argument is used as it lies, or gathered along axes over which it lies in pieces; PyTorch's module has it as it is used.
func TestUsed(t *testing.T) {
	m, _ := machine.Lookup("dgx-h100")
	path := "../../../examples/transformer_train.dmir"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	load := func(text string) *program.Program {
		return program.Load(source.New(path, text), program.Options{Target: m})
	}
	r, err := request.New(load(string(data)), request.Asked{Devices: 4})
	if err != nil {
		t.Fatal(err)
	}
	r.Options.Fix = plan.Setting{Tensor: 4}
	found, err := r.Search(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	best := found.Plans[0]
	text, err := found.Write(best)
	if err != nil {
		t.Fatal(err)
	}
	planned := load(text)
	module, fn, err := request.Step(planned, r.Func.Name)
	if err != nil {
		t.Fatal(err)
	}
	d, err := export.Read(context.Background(), export.Source{Program: planned, Module: module, Func: fn, Options: r.Options, Plan: best})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := export.Lookup("torch").Write(&b, d); err != nil {
		t.Fatal(err)
	}
	gathered := 0
	for _, a := range d.Arguments {
		for dim, axes := range a.Used {
			if slices.ContainsFunc(axes, func(axis string) bool { return !slices.Contains(a.Spec[dim], axis) }) {
				t.Errorf("%s lies as %v and is used as %v", a.Name, a.Spec, a.Used)
			}
		}
		if a.Used != nil && a.Kind == plan.Parameter {
			gathered++
			if a.Used.Whole() && !strings.Contains(b.String(), `"`+a.Path+`": {},`) {
				t.Errorf("%s is used whole, and the module divides it", a.Path)
			}
		}
	}
	if gathered == 0 {
		t.Error("no parameter is gathered")
	}
}
