package emulator

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"dmir/gpu/artifact/artifacttest"
)

// A run reports what it will take before it is compiled, and its steps after that.
func TestProgress(t *testing.T) {
	needCompiler(t)
	p := artifacttest.Program()
	p.Steps[0].FLOP = 3 * FLOPPerSecond
	var all []Progress
	_, err := Run(t.Context(), p, [][]byte{make([]byte, 4*artifacttest.N)}, Options{Progress: func(at Progress) { all = append(all, at) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2 || all[0].Step != -1 || all[0].Expected < 3*time.Second {
		t.Fatalf("%+v", all)
	}
	if !slices.IsSortedFunc(all[1:], func(a, b Progress) int { return cmp.Compare(a.Done, b.Done) }) {
		t.Errorf("the share of the work falls: %+v", all)
	}
	if last := all[len(all)-1]; last.Step < 0 || last.Step >= len(p.Steps) || last.Done > 1 {
		t.Errorf("%+v", last)
	}
}

// Lines with progress are taken out of what the process writes, however it is split.
func TestStream(t *testing.T) {
	const text = "@0 5\n{\"a\"\n@12 7.5\n:1}\n@"
	for size := 1; size < len(text); size++ {
		var steps []int
		s := stream{progress: func(step int, _ float64) { steps = append(steps, step) }}
		for part := range slices.Chunk([]byte(text), size) {
			if n, err := s.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if !slices.Equal(steps, []int{0, 12}) || string(s.text) != "{\"a\"\n:1}\n@" {
			t.Errorf("in parts of %d: steps %v, text %q", size, steps, s.text)
		}
	}
}
