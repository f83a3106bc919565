package target_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/pass"
	"dmir/compile/target"
	_ "dmir/compile/target/all"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/syntax/source"
)

// second is a target beside that of the build. Its generator is another's, and
// records what the pipeline and the driver ask of it.
type second struct {
	target.Target
	asked []string
}

func (s *second) Name() string           { return "second" }
func (s *second) Makes(arch string) bool { return arch == "second_1" }
func (s *second) TilesFile() (string, error) {
	return "", errors.New("it measures no tiles")
}

func (s *second) Devices() []device.Kind {
	return []device.Kind{{Name: "second", Find: func() ([]device.Device, error) { return []device.Device{chip{}}, nil }}}
}

func (s *second) Generator(o target.Options) target.Generator {
	s.asked = append(s.asked, "generator for "+o.Arch)
	return &generator{s.Target.Generator(target.Options{}), s}
}

type generator struct {
	target.Generator
	of *second
}

func (g *generator) Plan(u *pass.Unit) error {
	g.of.asked = append(g.of.asked, "plan")
	return g.Generator.Plan(u)
}

func (g *generator) Program(u *pass.Unit) (*artifact.Program, error) {
	g.of.asked = append(g.of.asked, "program")
	p, err := g.Generator.Program(u)
	if err == nil {
		p.Target = "second"
	}
	return p, err
}

// chip is the second target's device.
type chip struct{}

func (chip) Name() string  { return "second" }
func (chip) Title() string { return "a second chip" }
func (chip) Arch() string  { return "second_1" }

func (chip) Run(_ context.Context, p *artifact.Program, inputs [][]byte, _ device.Options) (*device.Result, error) {
	if p.Target != "second" {
		return nil, errors.New("for " + p.Target)
	}
	return &device.Result{Outputs: [][]byte{slices.Clone(inputs[0])}}, nil
}

// The driver takes the target that makes code for an architecture or a device;
// nothing but its registration is needed.
func TestSecondTarget(t *testing.T) {
	first := target.For("")
	s := &second{Target: first}
	target.Register(s)
	for arch, want := range map[string]target.Target{"": first, "sm_90a": first, "second_1": s, "third": first} {
		if got := target.For(arch); got != want {
			t.Errorf("%q: the target %s", arch, got.Name())
		}
	}
	p := program.Load(source.New("f.dmir", "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = dm.neg %x : tensor<4xf32>\n  return %y : tensor<4xf32>\n}\n"), program.Options{})
	m, fn, err := driver.Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	if built, err := driver.Build(t.Context(), m, fn, driver.BuildOptions{Machine: p.Target, Arch: "sm_80"}); err != nil || built.Target != first.Name() || s.asked != nil {
		t.Errorf("for sm_80: %v, %v", err, s.asked)
	}
	r, err := driver.Run(t.Context(), driver.Job{Program: p, Module: m, Fn: fn, Device: "second"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"generator for second_1", "plan", "program"}; r.Title != "a second chip" || !slices.Equal(s.asked, want) {
		t.Errorf("on %s, which was asked for %q, want %q", r.Title, s.asked, want)
	}
	if _, why, err := device.Find("third"); err == nil {
		t.Errorf("a third device: %s", why)
	}
}
