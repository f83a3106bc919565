package tensor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/dialect/types"
)

// file is a .npy file with the numbers 0, 1, 2, … of a shape.
func file(t *testing.T, elem types.Elem, shape ...int) string {
	t.Helper()
	x := New(elem, shape...)
	for i := range x.Len() {
		x.SetFloat(i, float64(i))
	}
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := SaveNPY(path, x); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSeries(t *testing.T) {
	for _, c := range []struct {
		name    string
		elem    types.Elem
		file    []int
		shape   []int
		samples []int
		steps   int
		want    []float64
	}{
		{"one more dimension", types.F32, []int{3, 2}, []int{2}, []int{2}, 3, []float64{4, 5}},
		{"a scalar for each step", types.F64, []int{4}, []int{}, []int{3}, 4, []float64{3}},
		{"rows, the last left over", types.I32, []int{7, 2}, []int{3, 2}, []int{4, 1, 2}, 2, []float64{8, 9, 2, 3, 4, 5}},
		{"a size that is open", types.BF16, []int{2, 3}, []int{-1}, []int{1}, 2, []float64{3, 4, 5}},
		{"bytes", types.UI8, []int{9}, []int{2}, []int{7, 8}, 4, []float64{7, 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, whole, err := OpenSeries(file(t, c.elem, c.file...), c.elem, c.shape)
			if err != nil || whole {
				t.Fatal(whole, err)
			}
			defer s.Close()
			x, err := s.Read(c.samples)
			if err != nil {
				t.Fatal(err)
			}
			var got []float64
			for i := range x.Len() {
				got = append(got, x.Float(i))
			}
			if s.Steps() != c.steps || !slices.Equal(got, c.want) {
				t.Errorf("%d steps, %v; want %d, %v", s.Steps(), got, c.steps, c.want)
			}
		})
	}
	if _, whole, err := OpenSeries(file(t, types.F32, 3, 2), types.F32, []int{3, 2}); err != nil || !whole {
		t.Error("an array of the type itself", whole, err)
	}
	var mismatch *MismatchError
	for _, shape := range [][]int{{3, 3}, {4, 2}, {}, {2, 3, 2}} {
		if _, _, err := OpenSeries(file(t, types.F32, 3, 2), types.F32, shape); !errors.As(err, &mismatch) {
			t.Errorf("shape %v: %v", shape, err)
		}
	}
	if _, _, err := OpenSeries(file(t, types.F32, 3, 2), types.F64, []int{2}); !errors.As(err, &mismatch) {
		t.Errorf("another element type: %v", err)
	}
	// A file that gets shorter while it is read.
	path := file(t, types.F32, 100, 2)
	s, _, err := OpenSeries(path, types.F32, []int{2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Truncate(path, 200); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read([]int{99}); err == nil || !strings.Contains(err.Error(), "end early") {
		t.Errorf("a shorter file: %v", err)
	}
}

// Each pass takes every sample once, in an order of its own that depends on seed
// and pass alone.
func TestSampler(t *testing.T) {
	plain := &Sampler{Samples: 7, Batch: 3}
	if got := slices.Concat(plain.Step(0), plain.Step(1), plain.Step(2)); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 0, 1, 2}) {
		t.Errorf("in order: %v", got)
	}
	drawn := &Sampler{Samples: 64, Batch: 8, Shuffle: true, Seed: 3}
	var passes [2][]int
	for step := range 16 {
		passes[step/8] = append(passes[step/8], drawn.Step(step)...)
	}
	for i, p := range passes {
		sorted := slices.Sorted(slices.Values(p))
		for k, n := range sorted {
			if k != n {
				t.Fatalf("pass %d takes %v", i, sorted)
			}
		}
		if slices.Equal(p, sorted) {
			t.Errorf("pass %d is in order", i)
		}
	}
	if slices.Equal(passes[0], passes[1]) {
		t.Error("two passes have one order")
	}
	if again := (&Sampler{Samples: 64, Batch: 8, Shuffle: true, Seed: 3}).Step(11); !slices.Equal(again, passes[1][24:32]) {
		t.Errorf("step 11 by itself takes %v, not %v", again, passes[1][24:32])
	}
	if other := (&Sampler{Samples: 64, Batch: 8, Shuffle: true, Seed: 4}).Step(0); slices.Equal(other, passes[0][:8]) {
		t.Error("another seed has the same order")
	}
}
