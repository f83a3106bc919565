package driver

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"dmir/analysis/machine"
	"dmir/compile/cuda/audit"
	"dmir/gpu/artifact"
	"dmir/gpu/nvrtc"
)

// withinBudget checks that the kernels of an example that are bound by memory issue
// no more instructions than their time allows; small kernels are skipped.
func withinBudget(t *testing.T, p *artifact.Program, cubin []byte, m *machine.Machine) {
	t.Helper()
	if _, err := nvrtc.Disassembler(); err != nil {
		if os.Getenv("CI") != "" {
			t.Error(err)
		}
		t.Log(err)
		return
	}
	// Only of these, since most of the text is of products, and takes long to print.
	judged := *p
	judged.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s artifact.Step) bool {
		k := p.KernelOf(&s)
		return k == nil || s.ReadBytes+s.WrittenBytes < 1<<20 || !slices.Contains([]string{"pointwise", "row", "columns", "loop"}, k.Class)
	})
	parts, _ := artifact.Parts(cubin)
	parts = slices.DeleteFunc(parts, func(part []byte) bool {
		return !slices.ContainsFunc(judged.Steps, func(s artifact.Step) bool { return bytes.Contains(part, []byte(p.KernelOf(&s).Name)) })
	})
	text, err := nvrtc.Disassemble(t.Context(), artifact.Join(parts))
	if err != nil {
		t.Fatal(err)
	}
	audits, err := audit.Steps(&judged, text, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range audits {
		if !a.Memory || a.Share <= 1 {
			continue
		}
		t.Errorf("%s issues %.2f slots for each byte, %.0f %% of what there are: it cannot reach %g of the bandwidth", a.Name, a.PerByte, 100*a.Share, audit.Target)
	}
}
