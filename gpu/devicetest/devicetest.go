// Package devicetest is the conformance test of devices: programs give what the
// reference computed, the same each time; errors in an input, a program
// or a run are reported, and the device can run the next program.
package devicetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// Case is one program with its inputs.
type Case struct {
	Name string
	// Build compiles the program for an architecture.
	Build  func(arch string) (*artifact.Program, error)
	Inputs [][]byte
	// Check compares the results with what is expected.
	Check func(outputs [][]byte) error
}

// Run runs the suite on d.
func Run(t *testing.T, d device.Device, cases []Case) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { results(t, d, c) })
	}
	t.Run("inputs", func(t *testing.T) { inputs(t, d) })
	t.Run("fault", func(t *testing.T) { faults(t, d) })
	t.Run("cancel", func(t *testing.T) { cancelled(t, d) })
}

// results runs the case twice and verifies what the device reports of the steps.
func results(t *testing.T, d device.Device, c Case) {
	p, err := c.Build(d.Arch())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		t.Fatalf("the program does not fit together: %v", err)
	}
	first, err := d.Run(t.Context(), p, c.Inputs, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(first.Outputs); err != nil {
		t.Error(err)
	}
	if len(first.Steps) != len(p.Steps) {
		t.Errorf("%d steps reported of %d", len(first.Steps), len(p.Steps))
	}
	for i, s := range first.Steps {
		if err := counted(p.Steps[i], s); err != nil {
			t.Error(err)
		}
	}
	again, err := d.Run(t.Context(), p, c.Inputs, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range first.Outputs {
		if !bytes.Equal(first.Outputs[i], again.Outputs[i]) {
			t.Errorf("result %d differs from one run to the next", i)
		}
	}
}

// counted compares the bytes that a step moved with those of the cost model, unless
// the program states why they differ.
func counted(s artifact.Step, got device.StepResult) error {
	if !got.Counted || s.Differs != "" || s.ReadBytes+s.WrittenBytes == 0 {
		return nil
	}
	if got.ReadBytes != s.ReadBytes*got.Runs || got.WrittenBytes != s.WrittenBytes*got.Runs {
		return fmt.Errorf("step %s read %d and wrote %d bytes in %d runs; the cost model predicts %d and %d for each", s.Name, got.ReadBytes, got.WrittenBytes, got.Runs, s.ReadBytes, s.WrittenBytes)
	}
	return nil
}

func inputs(t *testing.T, d device.Device) {
	p := doubleOf(d).right()
	for _, c := range []struct {
		name string
		in   [][]byte
	}{
		{"too few", nil},
		{"too many", [][]byte{make([]byte, 400), make([]byte, 400)}},
		{"too short", [][]byte{make([]byte, 396)}},
		{"too long", [][]byte{make([]byte, 404)}},
	} {
		if _, err := d.Run(t.Context(), p, c.in, device.Options{}); err == nil {
			t.Errorf("%s: taken", c.name)
		}
	}
	if _, err := d.Run(t.Context(), p, [][]byte{make([]byte, 400)}, device.Options{}); err != nil {
		t.Errorf("after wrong inputs: %v", err)
	}
}

// faults verifies that faults are detected, name their kernel, and do not affect
// later runs.
func faults(t *testing.T, d device.Device) {
	in := [][]byte{make([]byte, 400)}
	_, err := d.Run(t.Context(), doubleOf(d).wrong(), in, device.Options{})
	if err == nil {
		t.Fatal("a store far outside its buffer is not noticed")
	}
	if !bytes.Contains([]byte(err.Error()), []byte("twice")) {
		t.Errorf("the kernel is not named: %v", err)
	}
	if _, err := d.Run(t.Context(), doubleOf(d).right(), in, device.Options{}); err != nil {
		t.Errorf("after a fault: %v", err)
	}
}

func cancelled(t *testing.T, d device.Device) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Run(ctx, doubleOf(d).right(), [][]byte{make([]byte, 400)}, device.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run ends with %v", err)
	}
	if _, err := d.Run(t.Context(), doubleOf(d).right(), [][]byte{make([]byte, 400)}, device.Options{Timeout: time.Minute}); err != nil {
		t.Errorf("after a cancelled run: %v", err)
	}
}
