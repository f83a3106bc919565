package tally

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSummary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tally")
	t.Setenv(Variable, "")
	Made(NVRTC)
	t.Setenv(Variable, path)
	Made(NVRTC)
	Kept(Emulator)
	Made(NVRTC)
	Kept(NVRTC)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []string{"C++ compiler: 0 texts compiled, 1 found compiled", "CUDA compiler: 2 texts compiled, 1 found compiled"}
	if got := Summary(f); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
