package nvrtc_test

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/testkit/need"
)

const twice = `#include "twice.cuh"
extern "C" __global__ void __launch_bounds__(64) exchange(float *x) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = twice(s[threadIdx.x ^ 1]);
}
`

var headers = []nvrtc.Header{{Name: "twice.cuh", Text: "__device__ float twice(float x) { return x * 2; }\n"}}

// crowded keeps 200 values in registers where 1024 threads leave each 64.
const crowded = `extern "C" __global__ void __launch_bounds__(1024) crowded(float *x, int n) {
  float a[200];
  for (int i = 0; i < 200; i++) a[i] = x[i * n];
  for (int j = 0; j < n; j++)
    for (int i = 0; i < 200; i++) a[i] = a[i] * a[(i + 7) % 200] + 1;
  for (int i = 0; i < 200; i++) x[i] = a[i];
}
`

func TestArchitectures(t *testing.T) {
	c := nvrtctest.Compiler(t)
	for _, arch := range []string{"sm_80", "sm_90a", "sm_100"} {
		t.Run(arch, func(t *testing.T) {
			r, err := c.Compile(t.Context(), twice, headers, arch, nvrtc.Options{NoCache: true, LineInfo: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := elf.NewFile(bytes.NewReader(r.Cubin)); err != nil {
				t.Errorf("the machine code is not an ELF file: %v", err)
			}
			if want := ".target " + arch; !strings.Contains(r.PTX, want) {
				t.Errorf("the PTX does not contain %q:\n%.400s", want, r.PTX)
			}
			k, ok := r.Kernel("exchange")
			if !ok || k.Registers == 0 || k.Shared != 256 || k.SpillStores != 0 || k.Constant == 0 {
				t.Errorf("usage %+v, want 256 bytes of shared memory, registers, parameters and no spill", k)
			}
			if spilled := r.Spilled(); len(spilled) != 0 {
				t.Errorf("spilled: %+v", spilled)
			}
			half, err := c.Compile(t.Context(), twice, headers, arch, nvrtc.Options{NoCache: true, LineInfo: true, PTX: true})
			if err != nil {
				t.Fatal(err)
			}
			if half.PTX != r.PTX || half.Cubin != nil || half.Kernels != nil {
				t.Errorf("of PTX alone: the same PTX %t, %d bytes of machine code, usage %v", half.PTX == r.PTX, len(half.Cubin), half.Kernels)
			}
		})
	}
}

// Compiling with several threads gives equally good code.
func TestJobs(t *testing.T) {
	need.Long(t)
	c := nvrtctest.Compiler(t)
	one, err := c.Compile(t.Context(), twice+crowded, headers, "sm_80", nvrtc.Options{NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	many, err := c.Compile(t.Context(), twice+crowded, headers, "sm_80", nvrtc.Options{NoCache: true, Jobs: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(many.Kernels) != 2 || !slices.Equal(one.Kernels, many.Kernels) {
		t.Errorf("with one thread %+v, with three %+v", one.Kernels, many.Kernels)
	}
}

func TestSpillIsReported(t *testing.T) {
	c := nvrtctest.Compiler(t)
	r, err := c.Compile(t.Context(), crowded, nil, "sm_90a", nvrtc.Options{NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	spilled := r.Spilled()
	if len(spilled) != 1 || spilled[0].Name != "crowded" || spilled[0].SpillStores == 0 || spilled[0].SpillLoads == 0 || spilled[0].Stack == 0 {
		t.Errorf("spilled %+v; the compiler printed\n%s", spilled, r.Log)
	}
}

func TestErrorsHaveTheirPlaces(t *testing.T) {
	c := nvrtctest.Compiler(t)
	source := "// generated\n#include \"twice.cuh\"\n#line 12 \"dir/ffn.dmir\"\nextern \"C\" __global__ void k(float *x) {\n  x[0] = nowhere;\n#line 20 \"dir/ffn.dmir\"\n  int q = \"text\";\n}\n"
	_, err := c.Compile(t.Context(), source, headers, "sm_80", nvrtc.Options{})
	var failed *nvrtc.CompileError
	if !errors.As(err, &failed) {
		t.Fatalf("error %v, want a *CompileError", err)
	}
	var errs []nvrtc.Message
	for _, m := range failed.Messages {
		if m.Severity == "error" {
			errs = append(errs, m)
		}
	}
	if len(errs) != 2 {
		t.Fatalf("errors %+v", errs)
	}
	for i, want := range []struct {
		line, generated int
		text            string
	}{{13, 5, "nowhere"}, {20, 7, "cannot be used to initialize"}} {
		m := errs[i]
		if m.File != "dir/ffn.dmir" || m.Line != want.line || m.Generated != want.generated || !strings.Contains(m.Text, want.text) {
			t.Errorf("message %+v, want %+v", m, want)
		}
	}
	if got := err.Error(); !strings.HasPrefix(got, "dir/ffn.dmir:13: line 5 of the CUDA text: ") || !strings.Contains(got, "and 1 more") {
		t.Errorf("error %q", got)
	}
	t.Run("in a header", func(t *testing.T) {
		_, err := c.Compile(t.Context(), twice, []nvrtc.Header{{Name: "twice.cuh", Text: "\n__device__ int twice(int x) { return nowhere; }\n"}}, "sm_80", nvrtc.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "twice.cuh:2: identifier") {
			t.Errorf("error %v, want one in twice.cuh", err)
		}
	})
	t.Run("a header that is missing", func(t *testing.T) {
		_, err := c.Compile(t.Context(), twice, nil, "sm_80", nvrtc.Options{})
		if !errors.As(err, &failed) || failed.Messages[0].Line != 1 {
			t.Errorf("error %v, want one on line 1", err)
		}
	})
}

func TestWhatIsNoArchitecture(t *testing.T) {
	c := nvrtctest.Compiler(t)
	for _, arch := range []string{"", "sm_", "sm_9", "sm_90b", "compute_90", "sm_90a --std=c++20", "sm_10", "sm_999"} {
		if _, err := c.Compile(t.Context(), twice, headers, arch, nvrtc.Options{}); err == nil {
			t.Errorf("%q was compiled for", arch)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the error has several lines: %q", arch, err)
		}
	}
}

// asked is a context that ends at the nth poll.
type asked struct {
	context.Context
	mu   sync.Mutex
	left int
}

func (c *asked) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestCancel(t *testing.T) {
	c := nvrtctest.Compiler(t)
	for _, after := range []int{0, 2} { // before the start; at the compiler's second poll
		ctx := &asked{Context: context.Background(), left: after}
		if r, err := c.Compile(ctx, twice, headers, "sm_80", nvrtc.Options{NoCache: true}); !errors.Is(err, context.Canceled) {
			t.Errorf("after %d questions: %v, %v; want cancellation", after, r, err)
		}
	}
}

func TestSeveralAtOnce(t *testing.T) {
	c := nvrtctest.Compiler(t)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			define := "SHIFT=" + string(rune('1'+i))
			source := `extern "C" __global__ void k(int *x) { x[0] = 0x100 << SHIFT; }`
			r, err := c.Compile(t.Context(), source, nil, "sm_80", nvrtc.Options{NoCache: true, Defines: []string{define}})
			if err != nil || len(r.Kernels) != 1 {
				t.Errorf("%s: %+v, %v", define, r, err)
			}
		})
	}
	wg.Wait()
}

func TestCache(t *testing.T) {
	c := nvrtctest.Compiler(t)
	t.Setenv("DMIR_CACHE", t.TempDir())
	compile := func(source string, opts nvrtc.Options) *nvrtc.Result {
		t.Helper()
		r, err := c.Compile(t.Context(), source, headers, "sm_80", opts)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := compile(twice, nvrtc.Options{})
	second := compile(twice, nvrtc.Options{})
	if first.Cached || !second.Cached {
		t.Fatalf("cached %v, then %v", first.Cached, second.Cached)
	}
	if !bytes.Equal(first.Cubin, second.Cubin) || first.PTX != second.PTX || len(second.Kernels) != 1 || first.Kernels[0] != second.Kernels[0] {
		t.Errorf("the cache gives something else: %+v and %+v", first.Kernels, second.Kernels)
	}
	for what, r := range map[string]*nvrtc.Result{
		"another source": compile(twice+"\n", nvrtc.Options{}),
		"other options":  compile(twice, nvrtc.Options{LineInfo: true}),
		"no cache":       compile(twice, nvrtc.Options{NoCache: true}),
	} {
		if r.Cached {
			t.Errorf("%s came from the cache", what)
		}
	}
	for range 2 { // an error is not kept
		var failed *nvrtc.CompileError
		if _, err := c.Compile(t.Context(), "nonsense", headers, "sm_80", nvrtc.Options{}); !errors.As(err, &failed) {
			t.Fatalf("nonsense compiles with %v", err)
		}
	}
	dir, err := nvrtc.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	files, _ := os.ReadDir(dir)
	if len(files) != 3 {
		t.Fatalf("the cache holds %v", files)
	}
	for _, f := range files { // as after a full disk or a power failure
		if err := os.Truncate(filepath.Join(dir, f.Name()), 1000); err != nil {
			t.Fatal(err)
		}
	}
	if r := compile(twice, nvrtc.Options{}); r.Cached || len(r.Cubin) != len(first.Cubin) {
		t.Error("a damaged entry was taken")
	}
}
