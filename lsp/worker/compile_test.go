package worker

import (
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/pipeline"
	"dmir/gpu/emulator"
	"dmir/gpu/nvrtc"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// Every stage of a compiled function is text that parses, its kernels lie in the
// CUDA text and came from lines of the program.
func TestCompile(t *testing.T) {
	notes, res := answer(t, Request{Kind: KindCompile, Path: "f.dmir", Text: text, Func: "f"})
	if !res.OK || res.Build == nil || len(res.Results) != 0 {
		t.Fatalf("result %+v", res)
	}
	var passes []string
	for _, s := range res.Build.Stages {
		passes = append(passes, s.Pass)
		if f := parse.File(source.New("stage.dmir", s.Text)); len(f.Diags) > 0 {
			t.Errorf("after %s:\n%s\n%v", s.Pass, s.Text, f.Diags)
		}
	}
	if got, want := strings.Join(passes, " "), strings.Join(pipeline.Names(), " "); got != want {
		t.Errorf("passes %s, want %s", got, want)
	}
	if got := strings.Join(notes, ", "); !strings.Contains(got, "after fuse") {
		t.Errorf("notes %s", got)
	}
	lines := strings.Split(res.Build.CUDA, "\n")
	if len(res.Kernels) == 0 {
		t.Fatal("no kernels")
	}
	for _, k := range res.Kernels {
		if k.First < 1 || k.Last < k.First || k.Last > len(lines) || !strings.Contains(strings.Join(lines[k.First-1:k.Last], "\n"), "DM_KERNEL") {
			t.Errorf("kernel %+v of %d lines", k, len(lines))
		}
		if len(k.Lines) == 0 || k.Lines[0] < 2 || k.Lines[0] > 3 {
			t.Errorf("kernel %s is from lines %v", k.Name, k.Lines)
		}
	}
	if b := res.Build; b.AsWrittenBytes != 4*64*64*4 || b.MinimumBytes != 2*64*64*4 || b.MovedBytes != b.AsWrittenBytes {
		t.Errorf("as written %d bytes, at least %d, by kernels %d: a kernel of the text stays one", b.AsWrittenBytes, b.MinimumBytes, b.MovedBytes)
	}
}

// Where a CUDA compiler is, the registers of each kernel come with its code.
func TestMachineCode(t *testing.T) {
	_, err := nvrtc.Find()
	need.OK(t, err)
	_, res := answer(t, Request{Kind: KindCompile, Path: "f.dmir", Text: text, Func: "f", Code: true})
	if !res.OK || res.Build.Compiler == "" || !strings.Contains(res.Build.PTX, ".entry") {
		t.Fatalf("result %+v", res)
	}
	for _, k := range res.Kernels {
		if k.Registers == 0 || k.SpillBytes != 0 {
			t.Errorf("kernel %+v", k)
		}
	}
}

// Without a GPU a profile is of the emulator, which counts what kernels move.
func TestProfile(t *testing.T) {
	need.OK(t, emulator.Check())
	_, res := answer(t, Request{Kind: KindProfile, Path: "f.dmir", Text: text, Func: "f", Device: "emulator"})
	if !res.OK || res.Device != "emulator" || len(res.Results) != 1 || len(res.Kernels) == 0 {
		t.Fatalf("result %+v", res)
	}
	for _, k := range res.Kernels {
		if !k.Counted || k.CountedBytes != k.ReadBytes+k.WrittenBytes || k.PredictedNs <= 0 || k.RoofNs <= 0 {
			t.Errorf("kernel %+v", k)
		}
	}
	_, plain := answer(t, Request{Kind: KindRun, Path: "f.dmir", Text: text, Func: "f", Device: "reference"})
	if plain.Results[0].Summary != res.Results[0].Summary {
		t.Errorf("the emulator gave %s, the reference %s", res.Results[0].Summary, plain.Results[0].Summary)
	}
}

// The kernels of loop bodies come with their lines and with how often they run;
// each stage's text can be read.
func TestCompileLoop(t *testing.T) {
	loop := `func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = dm.constant dense<0> : tensor<i64>
  %n, %y = dm.while %zero, %x, trip_count = 5 : (tensor<i64>, tensor<8xf32>) -> (tensor<i64>, tensor<8xf32>) {
  ^bb0(%i: tensor<i64>, %v: tensor<8xf32>):
    %five = dm.constant dense<5> : tensor<i64>
    %more = dm.compare lt %i, %five : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %v: tensor<8xf32>):
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    %w = dm.exp %v : tensor<8xf32>
    dm.yield %next, %w : tensor<i64>, tensor<8xf32>
  }
  return %y : tensor<8xf32>
}
`
	_, res := answer(t, Request{Kind: KindCompile, Path: "f.dmir", Text: loop, Func: "f"})
	if !res.OK {
		t.Fatalf("result %+v", res)
	}
	runs := map[int]int64{} // by line
	for _, k := range res.Kernels {
		if len(k.Lines) > 0 {
			runs[k.Lines[0]] = k.Runs
		} else if k.Class != "copy" {
			t.Errorf("kernel %+v", k)
		}
	}
	if runs[5] != 0 || runs[12] != 5 || runs[10] != 5 { // the trip count is known: nothing computes the condition
		t.Errorf("the condition's and the body's kernels run so often, by line: %v", runs)
	}
	for _, s := range res.Build.Stages {
		if again := parsed(s.Text); again != "" {
			t.Errorf("after %s: %s", s.Pass, again)
		}
	}
}

// parsed is the first error in a text, empty for none.
func parsed(text string) string {
	for _, d := range program.Load(source.New("stage.dmir", text), program.Options{}).Diags {
		if d.Severity == diag.Error {
			return d.Message
		}
	}
	return ""
}

// What cannot be compiled explains why, at its place.
func TestCompileFailures(t *testing.T) {
	other := `func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = "other.twist"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
`
	for name, c := range map[string]struct {
		req  Request
		want string
		code string
	}{
		"another dialect": {Request{Kind: KindCompile, Text: other, Func: "f"}, "another dialect", "DM804"},
		"symbols":         {Request{Kind: KindCompile, Text: strings.ReplaceAll(text, "64x64xf32>", "?xf32, #dm.at<dims = [n]>>"), Func: "f"}, "n", "DM801"},
		"kind":            {Request{Kind: "bake", Text: text, Func: "f"}, "bake", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, res := answer(t, c.req)
			if res.OK || !strings.Contains(res.Message, c.want) || res.Code != c.code || c.code == "DM804" && res.End == 0 {
				t.Errorf("result %+v", res)
			}
		})
	}
}
