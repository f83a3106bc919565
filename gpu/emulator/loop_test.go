package emulator

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
)

func power(k int32, negate byte) [][]byte {
	x := make([]float32, artifacttest.N)
	for i := range x {
		x[i] = float32(i)
	}
	return [][]byte{floats(x...), binary.LittleEndian.AppendUint32(nil, uint32(k)), {negate}}
}

// Loops run as often as their predicate holds, and not at all if it never does; a
// branch takes the side of its predicate; and each step is counted as often.
func TestDecisions(t *testing.T) {
	needCompiler(t)
	p := artifacttest.Loop()
	for _, k := range []int32{-1, 0, 1, 5} {
		for negate := range byte(2) {
			r, err := Run(t.Context(), p, power(k, negate), Options{})
			if err != nil {
				t.Fatal(err)
			}
			rounds := int64(max(k, 0))
			factor := float32(math.Exp2(float64(rounds))) * (1 - 2*float32(negate))
			for i, v := range toFloats(r.Outputs[0]) {
				if v != float32(i)*factor {
					t.Fatalf("k = %d: element %d is %v, want %v", k, i, v, float32(i)*factor)
				}
			}
			runs := []int64{1, 1, rounds + 1, rounds + 1, rounds, rounds, rounds, 1, int64(negate), int64(negate)}
			for i, s := range p.Steps {
				got := r.Steps[i]
				if got.Runs != runs[i] || got.Read != s.ReadBytes*runs[i] || got.Written != s.WrittenBytes*runs[i] {
					t.Errorf("k = %d: %s ran %d times, read %d, wrote %d; want %d runs", k, s.Name, got.Runs, got.Read, got.Written, runs[i])
				}
			}
		}
	}
}

// A repetition runs its steps as often as it says.
func TestRepeat(t *testing.T) {
	needCompiler(t)
	for _, n := range []int64{0, 1, 5} {
		p := artifacttest.Repeat(n)
		r, err := Run(t.Context(), p, power(0, 1), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range toFloats(r.Outputs[0]) {
			if want := -float32(i) * float32(math.Exp2(float64(n))); v != want {
				t.Fatalf("%d times: element %d is %v, want %v", n, i, v, want)
			}
		}
		if got := r.Steps[2].Runs; got != n {
			t.Errorf("the repetition ran %d times, want %d", got, n)
		}
		if got := r.Steps[4].Runs; got != n {
			t.Errorf("%d times: the body ran %d times", n, got)
		}
	}
}

// An endless loop ends with its context or its time limit; reading a predicate that
// nothing wrote is a fault.
func TestEndless(t *testing.T) {
	needCompiler(t)
	p := artifacttest.Loop()
	p.Source = strings.Replace(p.Source, "n[0] + 1", "n[0]", 1)
	if _, err := Run(t.Context(), p, power(0, 0), Options{}); err != nil { // it is in the cache now
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, p, power(1, 0), Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled: %v", err)
	}
	var f *Fault
	if _, err := Run(t.Context(), p, power(1, 0), Options{Timeout: 200 * time.Millisecond}); !errors.As(err, &f) || f.Kind != Timeout {
		t.Errorf("out of time: %v", err)
	}
	p = artifacttest.Loop()
	p.Steps[2].Decision.On = 7 // no program that Check accepts has it
	p.Buffers[7] = artifact.Buffer{Name: "v", Elem: "i1", Kind: artifact.Temp, Offset: 4096 * 3, Bytes: 1}
	if _, err := Run(t.Context(), p, power(1, 0), Options{}); !errors.As(err, &f) || f.Kind != Overlap || f.Step != "while" {
		t.Errorf("a predicate in another's place: %v", err)
	}
}
