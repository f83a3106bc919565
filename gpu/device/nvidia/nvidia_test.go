package nvidia

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/device"
	"dmir/gpu/emulator"
	"dmir/testkit/need"
)

// Every device of this machine computes the program of the tests.
func TestRun(t *testing.T) {
	found := device.Devices()
	if len(found) == 0 {
		_, _, missing := device.Find("")
		need.OK(t, missing)
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
			r, err := d.Run(t.Context(), p, [][]byte{x}, device.Options{Runs: 3})
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
			if _, err := d.Run(t.Context(), p, nil, device.Options{}); err == nil {
				t.Error("it ran without inputs")
			}
			p.Steps[1].Launch.Args = nil
			if _, err := d.Run(t.Context(), p, [][]byte{x}, device.Options{}); err == nil || !strings.Contains(err.Error(), "0 arguments for the 3 parameters") {
				t.Errorf("a broken program: %v", err)
			}
		})
	}
}

// Errors in a program are returned as the device reports them.
func TestFaultIsKept(t *testing.T) {
	need.OK(t, emulator.Check())
	p := artifacttest.Program()
	p.Source = strings.Replace(p.Source, "if (i < 1000) y.store", "y.store", 1)
	_, err := emulated{}.Run(t.Context(), p, [][]byte{make([]byte, 4*artifacttest.N)}, device.Options{})
	var fault *emulator.Fault
	if !errors.As(err, &fault) || fault.Kernel != "scaled" || fault.Kind != emulator.Bounds {
		t.Errorf("error %v", err)
	}
}

// A file of an older version runs as before, with the headers in it. Code for another
// target does not.
func TestOldFile(t *testing.T) {
	need.OK(t, emulator.Check())
	file, key := artifacttest.Version2()
	p, err := artifact.ReadSigned(bytes.NewReader(file), key)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]byte, 32)
	r, err := emulated{}.Run(t.Context(), p, [][]byte{x, {3, 0, 0, 0, 0, 0, 0, 0}}, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		step := float32(i + 1)
		y, v := math.Float32frombits(binary.LittleEndian.Uint32(r.Outputs[0][4*i:])), math.Float32frombits(binary.LittleEndian.Uint32(r.Outputs[1][4*i:]))
		if v != 3*step || y != v*step {
			t.Errorf("element %d: %g and %g", i, y, v)
		}
	}
	for i, s := range r.Steps {
		if want := []int64{1, 1, 3, 4, 3, 3, 3, 3, 1}[i]; s.Runs != want && p.Steps[i].Kind != artifact.StepLoop {
			t.Errorf("step %s ran %d times, want %d", s.Name, s.Runs, want)
		}
	}
	p.Target = "cpu"
	if _, err := (emulated{}).Run(t.Context(), p, [][]byte{x, make([]byte, 8)}, device.Options{}); err == nil || !strings.Contains(err.Error(), `for the target "cpu"`) {
		t.Errorf("code for another target: %v", err)
	}
}
