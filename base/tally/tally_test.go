package tally

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
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
	took(NVRTC, 2600*time.Millisecond)
	took(NVRTC, 3*time.Second)
	Took(Emulated, nil)
	took(Emulated, time.Second)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []string{
		"C++ compiler: 0 texts compiled, 1 found compiled, 0s of processor time",
		"CUDA compiler: 2 texts compiled, 1 found compiled, 6s of processor time",
		"emulated programs: 1s of processor time",
	}
	if got := Summary(f); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What a goroutine computes between the two calls is counted, and what it computed before is not.
func TestWithin(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("threads have a clock only under Linux")
	}
	work := func(n int) (sum int) {
		for i := range n {
			sum += i * i % 7
		}
		return sum
	}
	path := filepath.Join(t.TempDir(), "tally")
	t.Setenv(Variable, path)
	work(1 << 26)
	stop := Within(NVRTC)
	stop()
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != "0\t"+NVRTC+"\n" && string(first) != "1\t"+NVRTC+"\n" {
		t.Errorf("nothing takes %q", first)
	}
	stop = Within(NVRTC)
	work(1 << 26)
	stop()
	if text, err := os.ReadFile(path); err != nil || strings.HasPrefix(string(text[len(first):]), "0\t") {
		t.Errorf("2^26 rounds take %q (%v)", text, err)
	}
}
