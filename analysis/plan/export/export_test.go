package export_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/plan/export"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/syntax/source"
)

// step is a training step of two layers whose text states a plan: data 2 × tensor 2 in two stages, with Adam's moments over data.
const step = `dm.mesh @pod {pipe = 2, data = 2, tensor = 2}
#rows = #dm.at<split = @pod[{data}, {}]>
#columns = #dm.at<split = @pod[{}, {tensor}]>
#both = #dm.at<split = @pod[{data}, {tensor}]>
func.func private @loss(%x: tensor<16x8xf32>, %w: tensor<8x32xf32>, %v: tensor<32x8xf32>) -> tensor<f32> {
  %h = dm.matmul %x, %w {dm.sharding = #both, dm.stage = 0} : (tensor<16x8xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
  %a = dm.relu %h {dm.recompute} : tensor<16x32xf32>
  %y = dm.matmul %a, %v {dm.stage = 1} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
  %l = dm.mean %y, dims = [0, 1] : (tensor<16x8xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
func.func @step(%x: tensor<16x8xf32> {dm.sharding = #rows}, %w: tensor<8x32xf32> {dm.sharding = #columns}, %v: tensor<32x8xf32>,
    %m: tensor<8x32xf32> {dm.sharding = #both}, %n: tensor<32x8xf32>)
    -> (tensor<f32>, tensor<8x32xf32> {dm.state = "w"}, tensor<32x8xf32> {dm.state = "v"}, tensor<8x32xf32> {dm.state = "m"}, tensor<32x8xf32> {dm.state = "n"})
    attributes {dm.microbatches = 4, dm.pipeline = "pipe", dm.schedule = "1f1b"} {
  %l, %dw, %dv = dm.grad @loss %x, %w, %v, wrt = [1, 2] : (tensor<16x8xf32>, tensor<8x32xf32>, tensor<32x8xf32>) -> (tensor<f32>, tensor<8x32xf32>, tensor<32x8xf32>)
  %m2 = dm.add %m, %dw : tensor<8x32xf32>
  %n2 = dm.add %n, %dv : tensor<32x8xf32>
  %w2 = dm.sub %w, %m2 : tensor<8x32xf32>
  %v2 = dm.sub %v, %n2 : tensor<32x8xf32>
  return %l, %w2, %v2, %m2, %n2 : tensor<f32>, tensor<8x32xf32>, tensor<32x8xf32>, tensor<8x32xf32>, tensor<32x8xf32>
}
`

// read is the description of the plan that a program's text states.
func read(t *testing.T, text string) *export.Portable {
	t.Helper()
	m, _ := machine.Lookup("dgx-h100")
	p := program.Load(source.New("f.dmir", text), program.Options{Target: m})
	if p.HasErrors() {
		t.Fatalf("%v", p.Diags)
	}
	r, err := request.New(p, request.Asked{})
	if err != nil {
		t.Fatal(err)
	}
	if !export.Stated(r.Module, r.Func) {
		t.Fatal("the text states no plan")
	}
	d, err := export.Read(context.Background(), export.Source{Program: p, Module: r.Module, Func: r.Func, Options: r.Options})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRead(t *testing.T) {
	p := read(t, step)
	var got []string
	say := func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	say("%s %d samples, %d micro-batches, %s %s of %d, %s", p.Function, p.Samples, p.Microbatches, p.Pipeline, p.Schedule, p.Chunks, p.Recompute)
	for _, a := range p.Axes {
		say("axis %s %d %s", a.Name, a.Size, a.Role)
	}
	for _, a := range p.Arguments {
		say("%s %s %s%v %v batch %d of %d stages %v", a.Name, a.Kind, a.Elem, a.Shape, a.Spec, a.Batch, a.Of, a.Stages)
	}
	for _, a := range p.Results {
		say("-> %q next %d %v", a.Name, a.Next, a.Spec)
	}
	for _, a := range p.Activations {
		say("%s of %s at %d %v", a.Name, a.Function, a.Line, a.Spec)
	}
	for _, s := range p.Stages {
		say("stage at %d, line %d", s.Place, s.Line)
	}
	want := []string{
		"step 16 samples, 4 micro-batches, pipe 1f1b of 1, selective",
		"axis pipe 2 pipe", "axis data 2 data", "axis tensor 2 tensor",
		"x samples f32[16 8] [[data] []] batch 0 of -1 stages [0]",
		"w parameter f32[8 32] [[] [tensor]] batch -1 of -1 stages [0]",
		"v parameter f32[32 8] [[tensor] []] batch -1 of -1 stages [1]",
		"m state f32[8 32] [[data] [tensor]] batch -1 of 1 stages [0]",
		"n state f32[32 8] [[tensor] []] batch -1 of 2 stages [1]",
		`-> "" next -1 []`, `-> "w" next 1 [[] [tensor]]`, `-> "v" next 2 [[tensor] []]`, `-> "m" next 3 [[data] [tensor]]`, `-> "n" next 4 [[tensor] []]`,
		"h of loss at 6 [[data] [tensor]]",
		"stage at 0, line 6", "stage at 1, line 8",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if p.Predicted.Seconds <= 0 || p.Predicted.Memory <= 0 || p.Predicted.Sent <= 0 || len(p.Predicted.Collectives) == 0 {
		t.Errorf("predicted %+v", p.Predicted)
	}
	if p.Size(export.Data) != 2 || p.StatesSplit() || p.ParametersSplit() || p.Recompute != plan.Selective {
		t.Errorf("%d devices with samples, states split %t, parameters split %t", p.Size(export.Data), p.StatesSplit(), p.ParametersSplit())
	}
}

// Axes of which the text names parts are these parts.
func TestParts(t *testing.T) {
	p := read(t, `dm.mesh @line {x = 8}
#rows = #dm.at<split = @line[{x:(1)2}, {}]>
#columns = #dm.at<split = @line[{}, {x:(2)4}]>
#both = #dm.at<split = @line[{x}, {}]>
func.func @f(%a: tensor<16x8xf32> {dm.sharding = #rows}, %b: tensor<8x32xf32> {dm.sharding = #columns}, %c: tensor<16x32xf32> {dm.sharding = #both}) -> tensor<16x32xf32> {
  %h = dm.matmul %a, %b : (tensor<16x8xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
  %y = dm.add %h, %c : tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}
`)
	got := fmt.Sprintln(p.Axes[0].Name, p.Axes[0].Size, p.Axes[1].Name, p.Axes[1].Size, p.Arguments[0].Spec, p.Arguments[1].Spec, p.Arguments[2].Spec)
	if want := "x_1 2 x_2 4 [[x_1] []] [[] [x_2]] [[x_1 x_2] []]\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFormats(t *testing.T) {
	for _, f := range export.Formats() {
		if export.Lookup(f.Name) != f || f.Doc == "" || f.Tool == "" || !strings.HasPrefix(f.Extension, ".") || !strings.Contains(export.Table(), f.Doc) {
			t.Errorf("%+v", f)
		}
	}
	if export.Lookup("") != nil {
		t.Error("a format without a name")
	}
}

var update = flag.Bool("update", false, "write the table of formats into the documentation")

// The documentation lists the formats that there are.
func TestTable(t *testing.T) {
	const begin, end = "<!-- formats -->\n", "<!-- /formats -->\n"
	path := filepath.Join("..", "..", "..", "docs", "PLANNING.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	have, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of formats", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+export.Table()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if have != export.Table() {
		t.Errorf("%s has\n%s\nwhere there is\n%s\nwrite it with go test ./analysis/plan/export -update", path, have, export.Table())
	}
}
