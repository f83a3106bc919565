package stages_test

import (
	"os"
	"strings"
	"testing"

	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/compile/stages/stagestest"
)

// A program that is differentiated and cut into micro-batches here, with dropout, tied weights, a value that
// skips a stage and Adam, makes the steps that one device makes of it.
func TestTrainingStep(t *testing.T) {
	b, err := os.ReadFile("testdata/tied.dmir")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	alone := strings.NewReplacer(", dm.pipeline = \"pipe\", dm.schedule = \"1f1b\"", "", "@step", "@f").Replace(text)
	u := passtest.Unit(t, alone, "f", nil)
	if err := pass.Run(u, pipeline.Divide(), nil); err != nil {
		t.Fatal(err)
	}
	want, state := one(t, passtest.Text(t, u), 3)
	for _, c := range []struct {
		name string
		with []string // replacements
		same bool     // to the bit
	}{
		{"gpipe", []string{"1f1b", "gpipe"}, true},
		{"1f1b", nil, true},
		{"zb-h1", []string{"1f1b", "zb-h1"}, true},
		{"interleaved on 2 devices", []string{"1f1b", "interleaved", "pipe = 4", "pipe = 2"}, true},
		{"zb-v on 2 devices", []string{"1f1b", "zb-v", "pipe = 4", "pipe = 2"}, true},
		{"8 micro-batches", []string{"dm.microbatches = 4", "dm.microbatches = 8"}, false},
		{"3 micro-batches, of 3, 3 and 2 samples", []string{"dm.microbatches = 4", "dm.microbatches = 3"}, false},
		{"1 micro-batch", []string{"dm.microbatches = 4", "dm.microbatches = 1"}, false},
		{"over data", []string{"pipe = 4", "pipe = 4, data = 2", "!x = tensor<8x6xf64>", "!x = tensor<8x6xf64, #dm.at<split = @plan[{data}, {}]>>"}, false},
		{"over tensor", []string{"pipe = 4", "pipe = 4, tensor = 2", "!w = tensor<6x6xf64>", "!w = tensor<6x6xf64, #dm.at<split = @plan[{}, {tensor}]>>"}, false},
		{"computed again", []string{"%h1 = dm.gelu %z1", "%h1 = dm.gelu %z1 {dm.recompute}"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, gotState := together(t, strings.NewReplacer(append(c.with, "@step", "@f")...).Replace(text), 3)
			tolerance := 1e-9
			if c.same {
				tolerance = 0
			}
			for i := range want {
				if far(want[i], got[i], tolerance) {
					t.Fatalf("losses %v, want %v", got, want)
				}
			}
			for i := range state {
				for k := range state[i].Len() {
					if state[i].Elem.IsFloat() && far(state[i].Float(k), gotState[i].Float(k), tolerance) {
						t.Fatalf("result %d: %s, want %s", i, gotState[i], state[i])
					}
				}
			}
		})
	}
}

const branch = `  %h1_1 = dm.if %more {dm.stage = 1 : i64, dm.micro = 1 : i64} : (tensor<i1>) -> tensor<8x4xf64> {
    %a = dm.tanh %z1_1 {dm.stage = 0 : i64} : tensor<8x4xf64>
    dm.yield %a : tensor<8x4xf64>
  } else {
    dm.yield %z1_1 : tensor<8x4xf64>
  }`

// Each way in which stages do not make a pipeline has an error at the line that it is about.
func TestErrors(t *testing.T) {
	good := stagestest.Step{Stages: 2, Micro: 2, Schedule: "1f1b", Mesh: "pipe = 2"}
	text := strings.Replace(good.Text(), "  %one", "  %more = dm.constant dense<true> : tensor<i1>\n  %one", 1)
	with := func(s stagestest.Step) string { return s.Text() }
	for _, c := range []struct {
		name, text, code, line, want string
	}{
		{
			"fewer stages than devices", with(stagestest.Step{Stages: 2, Micro: 2, Schedule: "1f1b", Mesh: "pipe = 4"}), "DM835", "@f",
			"@f has 2 stages, which the 4 devices along pipe do not divide evenly",
		},
		{
			"more stages than the schedule has", with(stagestest.Step{Stages: 4, Micro: 2, Schedule: "1f1b", Mesh: "pipe = 2"}), "DM835", "@f",
			"1f1b has 1 stage on each device, not 2",
		},
		{
			"too few stages of a V", with(stagestest.Step{Stages: 2, Micro: 2, Schedule: "zb-v", Mesh: "pipe = 2"}), "DM835", "@f",
			"zb-v has 2 stages on each device, not 1",
		},
		{"a stage without ops", strings.ReplaceAll(text, "dm.stage = 1", "dm.stage = 3"), "DM835", "@f", "stage 1 of @f has no ops, and stage 3 has"},
		{"a stage with a large number", strings.ReplaceAll(text, "dm.stage = 1", "dm.stage = 99999999"), "DM835", "%z1_0", "dm.stage = 99999999 : i64 is no number"},
		{
			"control flow with several stages", strings.Replace(text, "  %h1_1 = dm.tanh %z1_1 {dm.stage = 1 : i64, dm.micro = 1 : i64} : tensor<8x4xf64>", branch, 1), "DM836", "%a",
			"dm.tanh is of stage 0 and stands in dm.if of stage 1",
		},
		{"a micro-batch too many", strings.Replace(text, "dm.micro = 1", "dm.micro = 2", 1), "DM835", "%x1", "dm.slice is of micro-batch 2, and dm.microbatches of @f is 2"},
		{
			"divided along the pipeline", strings.ReplaceAll(stagestest.Step{Stages: 2, Micro: 2, Schedule: "1f1b", Mesh: "pipe = 2, data = 2", Data: true}.Text(), "[{}, {data}, {}]", "[{}, {pipe}, {}]"), "DM835", "@f",
			"%x is divided along pipe, and along this axis lie the stages of the pipeline",
		},
		{
			"a value of a later stage", strings.Replace(text, "%h1_1 = dm.tanh %z1_1 {dm.stage = 1", "%h1_1 = dm.tanh %z1_1 {dm.stage = 0", 1), "DM836", "%h1_1",
			"dm.tanh of stage 0 needs a value of stage 1, which runs after it",
		},
		{"a sum over micro-batches between them", strings.NewReplacer(
			"dm.matmul %h0_0, %w1", "dm.matmul %all, %w1",
			"  %z1_0", "  %all = dm.add %h0_0, %h0_3 {dm.stage = 1 : i64} : tensor<8x4xf64>\n  %z1_0",
		).Replace(moved(with(stagestest.Step{Stages: 2, Micro: 4, Schedule: "1f1b", Mesh: "pipe = 2"}))), "DM836", "%h0_", "which in the schedule 1f1b comes before what computes it here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := passtest.Unit(t, c.text, "f", nil)
			u.Options.Devices = pass.AllDevices
			err := pass.Run(u, pipeline.Divide(), nil)
			e, ok := err.(*pass.Error)
			if !ok || e.Code != c.code || !strings.Contains(e.Msg, c.want) {
				t.Fatalf("%v, want %s %s\n%s", err, c.code, c.want, c.text)
			}
			if got := c.text[e.Span.Start:e.Span.End]; !strings.Contains(got, c.line) && c.line != "@f" || c.line == "@f" && !strings.HasPrefix(got, "func.func") {
				t.Errorf("the error is at %q, not at %s", got, c.line)
			}
		})
	}
}

// moved has the forward passes of the first stage in front.
func moved(text string) string {
	var first, rest []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  %x") || strings.HasPrefix(line, "  %z0_") || strings.HasPrefix(line, "  %h0_") {
			first = append(first, line)
		} else {
			rest = append(rest, line)
		}
	}
	return strings.Replace(strings.Join(rest, ""), "  %z1_0 =", strings.Join(first, "")+"  %z1_0 =", 1)
}
