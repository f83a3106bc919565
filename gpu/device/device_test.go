package device

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/emulator"
)

// named is a device that only has a name.
type named string

func (n named) Name() string  { return string(n) }
func (n named) Title() string { return "a " + string(n) }
func (n named) Arch() string  { return "" }
func (n named) Run(context.Context, *artifact.Program, [][]byte, Options) (*Result, error) {
	return nil, errors.New("it only has a name")
}

func TestChoose(t *testing.T) {
	const noDriver, noCompiler = "no NVIDIA driver is installed here", "no C++20 compiler found: install g++"
	all := []Device{named("cuda"), named("cuda:1"), named("emulator")}
	for _, c := range []struct {
		name    string
		found   []Device
		missing []string
		want    string // the device
		why     string // or the error
	}{
		{"auto", all, nil, "cuda", "the first of this machine's GPUs"},
		{"", all[:1], []string{noCompiler}, "cuda", "this machine's GPU"},
		{"auto", slices.Concat(all[:1], all[2:]), nil, "cuda", "this machine's GPU"},
		{"auto", all[2:], []string{noDriver}, "emulator", noDriver},
		{"auto", nil, []string{noDriver, noCompiler}, "", noDriver + "; " + noCompiler},
		{"cuda", all, nil, "cuda", "asked for"},
		{"cuda:0", all, nil, "cuda", "asked for"},
		{"cuda:1", all, nil, "cuda:1", "asked for"},
		{"cuda:2", all, nil, "", "there is no cuda:2; this machine has cuda (a cuda), cuda:1 (a cuda:1)"},
		{"emulator", all, nil, "emulator", "asked for"},
		{"cuda", all[2:], []string{noDriver}, "", noDriver},
		{"emulator", all[:1], []string{noCompiler}, "", noCompiler},
		{"tpu", all, nil, "", `"tpu" is no device: there are cuda, cuda:1 and so on, emulator and reference`},
		{"cuda:-1", all, nil, "", "is no device"},
		{"cuda:x", all, nil, "", "is no device"},
		{"emulator:1", all, nil, "", "is no device"},
	} {
		d, why, err := choose(c.name, c.found, c.missing)
		switch {
		case err != nil:
			if c.want != "" || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%q of %v: error %v, want %q", c.name, c.found, err, c.why)
			}
		case d.Name() != c.want || why != c.why:
			t.Errorf("%q of %v: %s because %q, want %s because %q", c.name, c.found, d.Name(), why, c.want, c.why)
		}
	}
}

// Every device of this machine computes the program of the tests.
func TestRun(t *testing.T) {
	found := Devices()
	if len(found) == 0 {
		_, missing := devices()
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	var x []byte
	var sum float64
	for i := range artifacttest.N {
		v := float64(i%13)/2 - 3
		x = binary.LittleEndian.AppendUint32(x, math.Float32bits(float32(v)))
		sum += 3 * v
	}
	for _, d := range found {
		t.Run(d.Name(), func(t *testing.T) {
			p := artifacttest.Program()
			r, err := d.Run(t.Context(), p, [][]byte{x}, Options{Runs: 3})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Outputs) != 2 || len(r.Outputs[0]) != 4*artifacttest.N || len(r.Outputs[1]) != 4 || len(r.Steps) != len(p.Steps) {
				t.Fatalf("%d outputs, %d steps", len(r.Outputs), len(r.Steps))
			}
			value := func(b []byte, i int) float64 {
				return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
			}
			if got := value(r.Outputs[1], 0); math.Abs(got-sum) > 1e-2 {
				t.Errorf("the sum is %g, want %g", got, sum)
			}
			for i := range artifacttest.N {
				if got, want := value(r.Outputs[0], i), 2*value(x, i)+sum; math.Abs(got-want) > 1e-2 {
					t.Fatalf("element %d is %g, want %g", i, got, want)
				}
			}
			for i, s := range r.Steps {
				want := p.Steps[i]
				if s.Name != want.Name || s.Counted && (s.ReadBytes != want.ReadBytes || s.WrittenBytes != want.WrittenBytes) {
					t.Errorf("step %+v; predicted %+v", s, want)
				}
				if d.Name() != "emulator" && s.MeasuredNs <= 0 {
					t.Errorf("step %s was not measured", s.Name)
				}
			}
			if _, err := d.Run(t.Context(), p, nil, Options{}); err == nil {
				t.Error("it ran without inputs")
			}
			p.Steps[1].Args = nil
			if _, err := d.Run(t.Context(), p, [][]byte{x}, Options{}); err == nil || !strings.Contains(err.Error(), "0 arguments for the 3 parameters") {
				t.Errorf("a broken program: %v", err)
			}
		})
	}
}

// What is wrong with a program comes as the device says it.
func TestFaultIsKept(t *testing.T) {
	if err := emulator.Check(); err != nil {
		t.Skip(err)
	}
	p := artifacttest.Program()
	p.Source = strings.Replace(p.Source, "if (i < 1000) y.store", "y.store", 1)
	_, err := emulated{}.Run(t.Context(), p, [][]byte{make([]byte, 4*artifacttest.N)}, Options{})
	var fault *emulator.Fault
	if !errors.As(err, &fault) || fault.Kernel != "scaled" || fault.Kind != emulator.Bounds {
		t.Errorf("error %v", err)
	}
}
