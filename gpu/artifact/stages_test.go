package artifact_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
)

// A program in stages is one file, of which each device runs its part.
func TestStages(t *testing.T) {
	p := artifacttest.InStages()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	file := encoded(t, p)
	got, err := artifact.Read(bytes.NewReader(file))
	if err != nil || file[8] != 5 {
		t.Fatalf("version %d: %v", file[8], err)
	}
	if d := cmp.Diff(p, got, fromFile); d != "" {
		t.Error(d)
	}
	if got.Trust(); got.Foreign || got.Stages[0].Program.Foreign {
		t.Error("stages of a trusted program are foreign")
	}
	for device, want := range []string{"scale.pipe0", "scale.pipe1", "scale.pipe0", "scale.pipe1"} {
		if s := got.Of(device); s.Program.Name != want {
			t.Errorf("device %d runs %s, not %s", device, s.Program.Name, want)
		}
	}
	if ns := p.Predicted(); ns != 2000+500 { // what is sent arrives after the kernel and the way
		t.Errorf("%v ns", ns)
	}
	type program = artifact.Program
	for _, c := range []struct {
		name  string
		spoil func(p *program, first, second *program)
		want  string
	}{
		{"no axis", func(p, _, _ *program) { p.Divided.Pipeline = "" }, `a pipeline along "" of 2 stages`},
		{"another axis", func(p, _, _ *program) { p.Divided.Pipeline = "model" }, "2 stages along an axis of 0 devices"},
		{"a stage too many", func(p, _, _ *program) { p.Stages = append(p.Stages, p.Stages[0]) }, "3 stages along an axis of 2 devices"},
		{"steps besides", func(p, first, _ *program) { p.Steps = first.Steps }, "has no steps"},
		{"stages in stages", func(_, first, second *program) { first.Stages = []artifact.Stage{{Program: second}} }, "stage 0: is in stages itself"},
		{"for one device", func(_, first, _ *program) { first.Divided = nil }, "stage 0: is for other devices"},
		{"for other devices", func(_, _, second *program) { second.Divided.Axes[0].Size = 3 }, "stage 1: is for other devices"},
		{"for another target", func(_, _, second *program) { second.Target = "llvm" }, `is for the target "llvm"`},
		{"a stage that is wrong", func(_, first, _ *program) { first.Buffers[2].Bytes = 3 }, "stage 0: buffer y: 3 bytes"},
		{"a number too few", func(p, _, _ *program) { p.Stages[0].Inputs = nil }, "numbers of 0 inputs and 1 outputs"},
		{"a number of none", func(p, _, _ *program) { p.Stages[0].Inputs[0] = 2 }, "input 0 has the number 2 of 2"},
		{"another argument", func(p, _, _ *program) { p.Stages[0].Inputs[0] = 0 }, "input x has another type"},
		{"a result of no stage", func(p, _, _ *program) { p.Stages[1].Outputs[0] = 0 }, "no stage has output 1"},
		{"state of another argument", func(p, _, _ *program) { p.State = []int{1, -1} }, "stage 0: output 0 is the state of another input"},
		{"a send to itself", func(_, first, _ *program) { first.Steps[1].Collective.Pairs = [][2]int{{1, 1}} }, "send between"},
		{"no partner", func(_, first, _ *program) { first.Steps[1].Collective.Pairs = nil }, "send between"},
		{"two buffers", func(_, first, _ *program) { first.Steps[1].Collective.To = 0 }, "does not fill"},
		{"a receive into a constant", func(_, _, second *program) {
			b := &second.Buffers[0]
			b.Kind, b.Data, b.First = artifact.Constant, make([]byte, b.Size()), -1
		}, "writes the constant"},
		{"sent before it is made", func(_, first, _ *program) { first.Steps[0], first.Steps[1] = first.Steps[1], first.Steps[0] }, "reads it before anything is written"},
	} {
		p := artifacttest.InStages()
		c.spoil(p, p.Stages[0].Program, p.Stages[1].Program)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := artifact.Read(bytes.NewReader(bytes.Replace(file, []byte(`"Stages":[{"Program":{`), []byte(`"Stages":[{"Brogram":{`), 1))); err == nil {
		t.Error("a stage without a program is read")
	}
}
