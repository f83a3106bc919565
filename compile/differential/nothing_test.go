package differential

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"dmir/dialect/op"
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

// withoutElements are the valid programs of the registry's examples with a dimension of
// size 0, by the op.
func withoutElements(t *testing.T) map[string][]string {
	t.Helper()
	programs := map[string][]string{}
	for _, d := range op.All() {
		if d.Family == op.Distribution || d.Family == op.Groups || d.Example == "" || d.Is(op.Terminator) || d.Name == "grad" {
			continue
		}
		for _, text := range randprog.WithoutElements(d) {
			if _, _, _, err := load(d.Name, text, "", nil); err == nil {
				programs[d.Name] = append(programs[d.Name], text)
			}
		}
		if len(programs[d.Name]) == 0 {
			t.Errorf("no form of the example of %s has no elements:\n%s", d.FullName(), strings.Join(randprog.WithoutElements(d), "\n"))
		}
	}
	return programs
}

// Every op takes tensors with a dimension of size 0, on every device, and so does its
// gradient.
func TestNothing(t *testing.T) {
	need.Long(t)
	programs := withoutElements(t)
	for _, device := range []string{"", "cpu"} {
		t.Run(cmp.Or(device, "emulator"), func(t *testing.T) {
			if device == "" {
				needEmulator(t)
			} else {
				needCPU(t)
			}
			var cases []Case
			for _, d := range op.All() {
				_, underivable := Derive(d.Example)
				for i, text := range programs[d.Name] {
					cases = append(cases, Case{Name: fmt.Sprintf("%s %d", d.Name, i), Text: text, Seed: 3, Device: device})
					if underivable != nil || device != "" { // gradients are of the same ops
						continue
					}
					derived, err := Derive(text)
					if err != nil {
						t.Errorf("%s: %v\n%s", d.Name, err, text)
						continue
					}
					cases = append(cases, Case{Name: fmt.Sprintf("gradient of %s %d", d.Name, i), Text: derived, Seed: 3, Device: device})
				}
			}
			for _, f := range found(t, sampled(cases, len(device))) {
				t.Errorf("%v\n%s", f, f.Case.Text)
			}
			t.Logf("%d programs", len(cases))
		})
	}
}
