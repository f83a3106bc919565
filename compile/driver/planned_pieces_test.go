package driver_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/compile/pass"
	"dmir/compile/tensor"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// plannedByRows are the texts of the plans of @f, in text, that divide sparse tensors by rows.
func plannedByRows(t *testing.T, text string, devices int) []string {
	t.Helper()
	on, _ := machine.Lookup("dgx-h100")
	p := program.Load(source.New("pieces.dmir", text), program.Options{Target: on})
	q, err := request.New(p, request.Asked{Func: "f", Devices: devices})
	if err != nil {
		t.Fatal(err)
	}
	found, err := plan.Search(t.Context(), q.Module, q.Func, q.Options)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var out []string
	for _, row := range found.Plans {
		if strings.Contains(strings.Join(row.Names, " "), "divided by ") {
			written, err := found.Write(row)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, written)
		}
	}
	return out
}

// TestPlannedPieces: what a plan divides by rows computes what one device does: of the graph network's step on 2 to 8 devices, and of
// random programs.
func TestPlannedPieces(t *testing.T) {
	type row struct {
		name, text string
		devices    int
	}
	gcn, err := os.ReadFile("../../examples/gcn_train.dmir")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for _, devices := range []int{2, 4, 8} {
		rows = append(rows, row{"gcn_train", strings.ReplaceAll(string(gcn), "@train", "@f"), devices})
	}
	for seed := range uint64(60) {
		devices := 2 + int(seed%4)
		rows = append(rows, row{fmt.Sprint(seed), dividedProgram(rand.New(rand.NewPCG(seed, 5)), false, devices), devices})
	}
	for i, c := range rows {
		if i >= 3 && !need.Turn(t, i, 6) {
			continue
		}
		t.Run(fmt.Sprintf("%s on %d", c.name, c.devices), func(t *testing.T) {
			planned := plannedByRows(t, c.text, c.devices)
			if len(planned) == 0 {
				t.Fatalf("no plan divides rows\n%s", c.text)
			}
			want := ran(t, c.text, 0, "reference")
			for _, text := range planned {
				for k, got := range ran(t, text, pass.AllDevices, "reference") {
					if diff := tensor.MaxDiff(got.Tensor, want[k].Tensor); !(diff <= 1e-4) {
						t.Errorf("%s differs by %g\n%s", got.Name, diff, text)
					}
				}
			}
		})
	}
}
