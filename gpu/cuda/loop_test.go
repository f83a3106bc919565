package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"dmir/gpu/artifact/artifacttest"
)

func power(k int32, negate byte) [][]byte {
	var x []byte
	for i := range artifacttest.N {
		x = binary.LittleEndian.AppendUint32(x, math.Float32bits(float32(i)))
	}
	return [][]byte{x, binary.LittleEndian.AppendUint32(nil, uint32(k)), {negate}}
}

// launched is how many graphs a run launches.
func (f *fake) launched(run func()) (n int) {
	f.calls = nil
	run()
	for _, c := range f.calls {
		if c == "graph launch" {
			n++
		}
	}
	return n
}

// What runs between two predicates that the host reads is one graph, captured once: a loop's
// body with the condition behind it.
func TestDecisions(t *testing.T) {
	f := newFake(t)
	s := load(t, f, artifacttest.Loop())
	for _, k := range []int32{-1, 0, 1, 5} {
		for negate := range byte(2) {
			var outputs [][]byte
			rounds := int64(max(k, 0))
			graphs := f.launched(func() {
				var err error
				if outputs, err = s.Run(t.Context(), power(k, negate)); err != nil {
					t.Fatal(err)
				}
			})
			if want := 1 + int(rounds) + int(negate); graphs != want {
				t.Errorf("k = %d: %d graphs were launched, want %d", k, graphs, want)
			}
			factor := float32(math.Exp2(float64(rounds))) * (1 - 2*float32(negate))
			for i, v := range floats(outputs[0]) {
				if v != float32(i)*factor {
					t.Fatalf("k = %d: element %d is %v, want %v", k, i, v, float32(i)*factor)
				}
			}
			if want := []int64{1, 1, rounds + 1, rounds + 1, rounds, rounds, rounds, 1, int64(negate), int64(negate)}; !slices.Equal(s.Runs(), want) {
				t.Errorf("k = %d: the steps ran %v times, want %v", k, s.Runs(), want)
			}
		}
	}
	if n := len(f.launches); n != 5 {
		t.Errorf("%d launches were enqueued; the graphs have 5: the condition is in two", n)
	}
	got, err := s.Time(t.Context(), power(3, 1), 2, true)
	if err != nil {
		t.Fatal(err)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 10 }
	if want := []float64{0, 0, 0, 8000, 6000, 0, 6000, 0, 2000, 0}; !near(got.TotalNs, 22000) || !slices.EqualFunc(got.StepNs, want, near) {
		t.Errorf("%+v; on the fake each kernel takes 2000 ns", got)
	}
	if err := s.Close(); err != nil || f.left() != "" {
		t.Errorf("closed: %v; left %s", err, f.left())
	}
}

// A repetition is written out in the graph with what surrounds it, in which a kernel that waits by itself may start while the
// iteration before still runs. A long one is several graphs; the host reads nothing back between them, and can end the run there.
func TestRepeat(t *testing.T) {
	for _, c := range []struct{ rounds, graphs, captured int }{
		{0, 1, 0},
		{1, 1, 1},
		{5, 1, 5},
		{64, 2, 64},     // the two steps before do not fit into the graph of 256
		{1000, 17, 104}, // one of 64 iterations 15 times, one of 40
	} {
		f := newFake(t)
		p := artifacttest.Repeat(int64(c.rounds))
		for i := range p.Kernels {
			p.Kernels[i].Block.Waits = true
		}
		s := load(t, f, p)
		var outputs [][]byte
		graphs := f.launched(func() {
			var err error
			if outputs, err = s.Run(t.Context(), power(0, 0)); err != nil {
				t.Fatal(err)
			}
		})
		for i, v := range floats(outputs[0]) {
			if want := float32(math.Ldexp(float64(i), c.rounds)); v != want {
				t.Fatalf("%d rounds: element %d is %v, want %v", c.rounds, i, v, want)
			}
		}
		dependent := 0
		for i, l := range f.launches[:3*c.captured] {
			if l.dependent {
				dependent++
			}
			if first := l.name == "below" && i%(3*64) == 0; l.dependent != (l.name == "twice" || l.name == "below" && !first) {
				t.Errorf("%d rounds: launch %d, of %s, may start early: %t", c.rounds, i, l.name, l.dependent)
			}
		}
		// The first kernel behind a fill, or of a graph, waits for what is before, and so does the one behind a copy.
		starts := (c.captured + 63) / 64
		if want := 2*c.captured - starts; c.captured > 0 && dependent != want {
			t.Errorf("%d rounds: %d launches may start early, want %d", c.rounds, dependent, want)
		}
		if graphs != c.graphs {
			t.Errorf("%d rounds: %d graphs were launched, want %d", c.rounds, graphs, c.graphs)
		}
		n := int64(c.rounds)
		if want := []int64{1, 1, n, n, n, n, n, 1, 0, 0}; !slices.Equal(s.Runs(), want) {
			t.Errorf("the steps ran %v times, want %v", s.Runs(), want)
		}
		if c.graphs > 4 {
			ctx := &rounds{Context: t.Context(), left: 4}
			if _, err := s.Run(ctx, power(0, 0)); !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v", err)
			}
		}
		if err := s.Close(); err != nil || f.left() != "" {
			t.Errorf("closed: %v; left %s", err, f.left())
		}
	}
}

// An endless loop ends with the context, between two iterations; the session can
// then be used again.
func TestEndless(t *testing.T) {
	f := newFake(t)
	f.stuck = true
	s := load(t, f, artifacttest.Loop())
	ctx := &rounds{Context: t.Context(), left: 100}
	if _, err := s.Run(ctx, power(1, 0)); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	f.stuck = false
	if _, err := s.Run(t.Context(), power(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || f.left() != "" {
		t.Errorf("closed: %v; left %s", err, f.left())
	}
}

// rounds is a context that ends after a number of polls.
type rounds struct {
	context.Context
	left int
}

func (c *rounds) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// Running the steps one by one names a faulting kernel in a loop.
func TestFaultInLoop(t *testing.T) {
	f := newFake(t)
	f.faults = "twice"
	s := load(t, f, artifacttest.Loop())
	_, err := s.RunSteps(t.Context(), power(2, 0))
	var fault *Fault
	if !errors.As(err, &fault) || fault.Kernel != "twice" {
		t.Fatalf("error %v", err)
	}
	f = newFake(t)
	s = load(t, f, artifacttest.Loop())
	one, err := s.RunSteps(t.Context(), power(2, 0))
	if err != nil {
		t.Fatal(err)
	}
	runs := s.Runs()
	all, err := s.Run(t.Context(), power(2, 0))
	if err != nil || !slices.EqualFunc(one, all, bytes.Equal) || !slices.Equal(runs, s.Runs()) {
		t.Errorf("steps one by one give %v in %v runs; as graphs %v in %v, %v", one, runs, all, s.Runs(), err)
	}
	if err := s.Close(); err != nil || f.left() != "" {
		t.Errorf("closed: %v; left %s", err, f.left())
	}
}
