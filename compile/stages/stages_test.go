package stages_test

import (
	"fmt"
	"math"
	"testing"

	"dmir/compile/devices"
	"dmir/compile/distribute"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/compile/stages/stagestest"
	"dmir/compile/tensor"
	"dmir/dialect/op"
)

// one runs steps of @f on one device, on which shardings and stages mean nothing.
func one(t *testing.T, text string, steps int) (losses []float64, last []*tensor.Tensor) {
	t.Helper()
	u := passtest.Unit(t, text, "f", nil)
	devices.Strip(u.Func)
	args, err := interp.Inputs(t.Context(), u.Func, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range steps {
		res, err := interp.Run(t.Context(), u.Module, u.Func, args, interp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		last = res.Outputs
		losses = append(losses, last[0].Float(0))
		for i, n := range op.State(u.Func.Op) {
			if n >= 0 {
				args[n] = last[i]
			}
		}
	}
	return losses, last
}

// split is the program of @f for the devices of its mesh.
func split(t *testing.T, text string) (*distribute.Program, *pass.Unit) {
	t.Helper()
	u := passtest.Unit(t, text, "f", nil)
	u.Options.Devices = pass.AllDevices
	if err := pass.Run(u, pipeline.Divide(), nil); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p, err := distribute.Split(u.Module, u.Func, u.Parts)
	if err != nil {
		t.Fatal(err)
	}
	return p, u
}

// together runs steps of @f on the devices of its mesh.
func together(t *testing.T, text string, steps int) (losses []float64, last []*tensor.Tensor) {
	t.Helper()
	p, u := split(t, text)
	args, err := interp.Inputs(t.Context(), passtest.Unit(t, text, "f", nil).Func, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	team := p.Local()
	if err := team.Set(args); err != nil {
		t.Fatal(err)
	}
	for range steps {
		res, err := team.Run(t.Context(), interp.Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, passtest.Text(t, u))
		}
		last = nil
		for i := range p.Results {
			whole, err := team.Whole(t.Context(), res, i)
			if err != nil {
				t.Fatal(err)
			}
			last = append(last, whole)
		}
		losses = append(losses, last[0].Float(0))
		team.Carry(res, op.State(u.Func.Op))
	}
	if err := team.Close(); err != nil {
		t.Fatal(err)
	}
	return losses, last
}

func far(a, b, tolerance float64) bool {
	return math.Abs(a-b) > tolerance*(1+math.Abs(a)) || math.IsNaN(a) != math.IsNaN(b)
}

// Steps of a pipeline are those of one device: to the bit, where no axis divides tensors.
func TestPipelineComputesTheSame(t *testing.T) {
	for _, schedule := range []string{"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"} {
		for _, p := range []int{2, 4} {
			for _, micro := range []int{1, 2, 4, 8} {
				if testing.Short() && p*micro != 8 {
					continue
				}
				s := stagestest.Step{Stages: p, Micro: micro, Schedule: schedule, Mesh: fmt.Sprintf("pipe = %d", p)}
				if schedule == "interleaved" || schedule == "zb-v" {
					s.Stages = 2 * p
				}
				for _, variant := range []struct {
					name string
					set  func(s *stagestest.Step)
				}{
					{"plain", func(*stagestest.Step) {}},
					{"tied", func(s *stagestest.Step) { s.Tied = true }},
					{"skip, clipped", func(s *stagestest.Step) { s.Skip, s.Clip = true, true }},
					{"tied, clipped, over data", func(s *stagestest.Step) {
						s.Tied, s.Clip, s.Data, s.Mesh = true, true, true, s.Mesh+", data = 2"
					}},
					{"over data and tensor", func(s *stagestest.Step) {
						s.Data, s.Tensor, s.Mesh = true, true, "data = 2, "+s.Mesh+", tensor = 2"
					}},
				} {
					t.Run(fmt.Sprintf("%s/%d devices/%d micro-batches/%s", schedule, p, micro, variant.name), func(t *testing.T) {
						s := s
						variant.set(&s)
						tolerance := 0.0
						if s.Data || s.Tensor {
							tolerance = 1e-9
						}
						text := s.Text()
						want, state := one(t, text, 3)
						got, gotState := together(t, text, 3)
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
		}
	}
}
