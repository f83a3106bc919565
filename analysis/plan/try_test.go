package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/syntax/source"
)

func TestTry(t *testing.T) {
	path := os.Getenv("F")
	if path == "" {
		t.Skip()
	}
	text, _ := os.ReadFile(path)
	p := program.Load(source.New(path, string(text)), program.Options{})
	mod := p.Modules[0]
	var n int
	fmt.Sscan(os.Getenv("N"), &n)
	mach, _ := machine.Lookup(os.Getenv("T"))
	for _, f := range mod.Funcs {
		if f.Private || f.Body == nil {
			continue
		}
		o := Options{Machine: mach, Devices: n}
		json.Unmarshal([]byte(os.Getenv("FIX")), &o.Fix)
		fmt.Sscan(os.Getenv("MEM"), &o.Memory)
		r, err := Search(context.Background(), mod, f, o)
		if err != nil {
			t.Log(err, err.(*Error).Help)
			continue
		}
		t.Logf("%s: %d params %d flop, %d samples %d tokens %d layers; searched %d in %.2fs bound %.4g gap %.3g", f.Name, r.Model.Parameters, r.Model.FLOP, r.Model.Samples, r.Model.Tokens, r.Model.Layers, r.Searched, r.Elapsed, r.Bound, r.Gap)
		for _, p := range r.Plans {
			t.Logf("%v m=%d %s x%d rc=%s time %.4gs comp %.4g exp %.3g bub %.3g MFU %.3f mem %.3gG (p%.3g g%.3g s%.3g a%.3g w%.3g) obj %.4g bound %.4g sent %v\n    %s\n    why %s", p.Axes, p.Microbatches, p.Schedule, p.Chunks, p.Recompute, p.Time, p.Compute, p.Exposed, p.Bubble, p.MFU, float64(p.Memory.Total)/1e9, float64(p.Memory.Parameters)/1e9, float64(p.Memory.Gradients)/1e9, float64(p.Memory.States)/1e9, float64(p.Memory.Activations)/1e9, float64(p.Memory.Working)/1e9, p.Objective, p.Bound, p.Sent, strings.Join(p.Names, "; "), p.Why)
		}
	}
}
