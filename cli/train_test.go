package cli_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/cli"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// TestTrainedAsPyTorch trains models that PyTorch has exported, with the data that it had, and compares with the losses
// and the state that it had (scripts/models/train_fixture.py).
func TestTrainedAsPyTorch(t *testing.T) {
	inputs := map[string]string{"images": "input", "words": "ids"}
	tied := map[string]string{"embed.weight": "head.weight"} // the names of one tensor of which the last is in the file
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			var want struct {
				Torch, Train string
				Losses       []float64
				State        map[string][]int
			}
			from := filepath.Join("testdata", "train", name)
			text, err := os.ReadFile(from + ".json")
			if err == nil {
				err = json.Unmarshal(text, &want)
			}
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			run(t, "import", "--train", want.Train, "-o", filepath.Join(dir, "step.dmir"), from+".onnx")
			report := run(t, "run", "--steps", "6", "--device", "reference", "--output-format", "json", "--output", dir,
				"--input", input+"="+from+".x.npy", "--input", "labels="+from+".y.npy", filepath.Join(dir, "step.dmir"))
			var got struct {
				History []struct{ Values map[string]float64 }
			}
			if err := json.Unmarshal(report, &got); err != nil || len(got.History) != len(want.Losses) {
				t.Fatalf("%v\n%s", err, report)
			}
			for i, loss := range want.Losses {
				if have := got.History[i].Values["loss"]; !(math.Abs(have/loss-1) < 2e-6) {
					t.Errorf("the loss of step %d is %g, in PyTorch %s %g", i+1, have, want.Torch, loss)
				}
			}
			z, err := tensor.OpenNPZ(from + ".npz")
			if err != nil {
				t.Fatal(err)
			}
			defer z.Close()
			for key, shape := range want.State {
				after, err := z.Read(key, types.F32, shape)
				if err != nil {
					t.Fatal(err)
				}
				if as := tied[key]; as != "" {
					key = as
				}
				have, err := tensor.LoadNPY(filepath.Join(dir, key+".npy"), types.F32, shape)
				if err != nil {
					t.Fatal(err)
				}
				for i := range after.Len() {
					if !(math.Abs(have.Float(i)-after.Float(i)) <= 2e-6*math.Max(1, math.Abs(after.Float(i)))) {
						t.Fatalf("element %d of %s is %g, in PyTorch %s %g", i, key, have.Float(i), want.Torch, after.Float(i))
					}
				}
			}
		})
	}
}

// run is what a command prints.
func run(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	if status := cli.Main(args, strings.NewReader(""), &out, &errs); status != 0 {
		t.Fatalf("dmir %s: exit status %d\n%s", strings.Join(args, " "), status, &errs)
	}
	return out.Bytes()
}
