package emulator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dmir/gpu/artifact"
	"dmir/testkit/need"
)

func wantError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want %q", name, err, want)
	}
}

// planted is a kernel with one bug, of parameters x (in), y (out) and z (inout),
// 256 numbers each, run as 2 blocks of 64 threads. BUG in the body is replaced
// by wrong or right code; the fault is on the line that ends with "// here".
type planted struct {
	name      string
	kind      Kind
	param     string
	body      string
	bad, good string
}

var plantedBugs = []planted{
	{"off by one", Bounds, "x", `
  int i = dm::block() * 64 + dm::thread();
  y.store(i, x[BUG]); // here`, "i + 129", "i + 128"},
	{"negative index", Bounds, "y", `
  int i = dm::block() * 64 + dm::thread();
  y.store(BUG, x[i]); // here`, "i - 1", "i"},
	{"misaligned vector", Misaligned, "x", `
  int i = dm::block() * 64 + dm::thread();
  auto v = x.load<2>(BUG); // here
  y.store(i, v[0]);`, "i + 1", "2 * i"},
	{"in place, with a neighbour that another thread writes", Race, "z", `
  int i = dm::block() * 64 + dm::thread();
  float v = z[BUG]; // here
  z.store(i, v + x[i]);`, "i ^ 1", "i"},
	{"shared memory read before it is written", Uninitialised, "", `
  DM_SHARED(float, s, 65);
  s[dm::thread()] = x[dm::thread()];
  dm::sync();
  float v = s[dm::thread() BUG]; // here
  y.store(dm::block() * 64 + dm::thread(), v);`, "+ 1", ""},
	{"metadata of mma.sp that do not rise", Plan, "", `
  int i = dm::block() * 64 + dm::thread();
  dm::u32 a[4] = {}, b[4] = {};
  float d[4] = {};
  dm::mma_sp_m16n8k32<dm::f16, 0>(d, a, b, BUG); // here
  y.store(i, x[i] + d[0]);`, "0x44444144", "0x44444444"},
	{"index outside of a shared array", Bounds, "", `
  DM_SHARED(float, s, 64);
  DM_SHARED(float, other, 64);
  other[dm::thread()] = 1;
  s[dm::thread() BUG] = x[dm::thread()]; // here
  y.store(dm::block() * 64 + dm::thread(), other[dm::thread()]);`, "+ 1", ""},
	{"missing barrier", Race, "", `
  DM_SHARED(float, s, 64);
  s[dm::thread()] = x[dm::thread()];
  BUG
  float v = s[dm::lane()]; // here
  y.store(dm::block() * 64 + dm::thread(), v);`, "dm::sync_warp();", "dm::sync();"},
	{"missing barrier before what a later thread writes", Uninitialised, "", `
  DM_SHARED(float, s, 64);
  s[dm::thread()] = x[dm::thread()];
  BUG
  float v = s[63 - dm::thread()]; // here
  y.store(dm::block() * 64 + dm::thread(), v);`, "dm::sync_warp();", "dm::sync();"},
	{"missing barrier before shared memory is written again", Race, "", `
  DM_SHARED(float, s, 64);
  float v = 0;
  for (int k = 0; k < 2; k++) {
    s[dm::thread()] = x[dm::thread() + k];
    dm::sync();
    v += s[63 - dm::thread()]; // here
    BUG
  }
  y.store(dm::block() * 64 + dm::thread(), v);`, "", "dm::sync();"},
	{"missing barrier of the warp", Race, "", `
  DM_SHARED(float, s, 64);
  s[dm::thread()] = x[dm::thread()];
  BUG
  float v = s[dm::thread() & ~1]; // here
  y.store(dm::block() * 64 + dm::thread(), v);`, "", "dm::sync_warp();"},
	{"two threads write one element", Race, "", `
  DM_SHARED(float, s, 64);
  s[dm::thread() BUG] = x[dm::thread()]; // here
  dm::sync();
  y.store(dm::block() * 64 + dm::thread(), s[0]);`, "/ 2", ""},
	{"two blocks write one element", Race, "y", `
  int i = BUG dm::thread();
  y.store(i, x[i]); // here`, "", "dm::block() * 64 +"},
	{"a block reads what another writes", Race, "z", `
  int i = dm::block() * 64 + dm::thread();
  float v = z[BUG]; // here
  z.store(i, v + 1);
  y.store(i, v);`, "dm::thread()", "i"},
	{"a plain write beside atomic ones", Race, "z", `
  BUG // here
  y.store(dm::block() * 64 + dm::thread(), x[0]);`, "z.add(0, 1.0f); z.store(0, 1.0f);", "z.add(0, 1.0f);"},
	{"a thread reads what another one of its block writes", Race, "z", `
  int i = dm::block() * 64 + dm::thread();
  z.store(i, x[i]);
  BUG
  float v = z[i & ~7]; // here
  y.store(i, v);`, "", "dm::sync();"},
	{"a thread writes what another one of its block reads", Race, "z", `
  int i = dm::block() * 64 + dm::thread();
  float v = z[i | 7];
  BUG
  z.store(i, v); // here
  y.store(i, v);`, "", "dm::sync();"},
	{"two threads of a block write one element", Race, "y", `
  int i = dm::block() * 64 + dm::thread();
  y.store(BUG, x[i]); // here`, "i & ~1", "i"},
	{"divergent barrier", Divergence, "", `
  DM_SHARED(float, s, 64);
  s[dm::thread()] = x[dm::thread()];
  BUG dm::sync(); // here
  y.store(dm::block() * 64 + dm::thread(), 1);`, "if (dm::thread() < 40)", ""},
	{"two barriers", Divergence, "", `
  if (dm::thread() < BUG) {
    dm::sync();
  } else {
    dm::sync(); // here
  }
  y.store(dm::block() * 64 + dm::thread(), 1);`, "32", "64"},
	{"divergent shuffle", Divergence, "", `
  float v = x[dm::thread()];
  if (dm::lane() < BUG) v += dm::shuffle_xor(v, 1); // here
  y.store(dm::block() * 64 + dm::thread(), v);`, "16", "32"},
	{"a return before a reduction", Divergence, "", `
  DM_SHARED(float, s, 32);
  BUG
  float v = dm::block_sum(x[dm::thread()], s); // here
  y.store(dm::block() * 64 + dm::thread(), v);`, "if (dm::thread() == 63) return;", ""},
	{"missing wait for a copy", Async, "", `
  DM_SHARED(float, s, 64);
  dm::cp_async<4>(s, dm::thread(), x, dm::thread());
  dm::cp_async_commit();
  BUG
  dm::sync();
  float v = s[63 - dm::thread()]; // here
  y.store(dm::block() * 64 + dm::thread(), v);`, "dm::cp_async_wait<1>();", "dm::cp_async_wait<0>();"},
	{"missing barrier after the wait", Race, "", `
  DM_SHARED(float, s, 64);
  dm::cp_async<4>(s, dm::thread(), x, dm::thread());
  dm::cp_async_commit();
  dm::cp_async_wait<0>();
  BUG
  float v = s[dm::thread() & ~1]; // here
  y.store(dm::block() * 64 + dm::thread(), v);`, "", "dm::sync();"},
	{"a copy into what is still read", Race, "", `
  DM_SHARED(float, s, 64);
  s[dm::thread()] = 1;
  dm::sync();
  float v = s[63 - dm::thread()]; // here
  BUG
  dm::cp_async<4>(s, dm::thread(), x, dm::thread());
  dm::cp_async_commit();
  dm::cp_async_wait<0>();
  y.store(dm::block() * 64 + dm::thread(), v);`, "", "dm::sync();"},
	{"too much dynamic shared memory", Bounds, "", `
  DM_ARENA(arena);
  auto a = arena.take<float>(128);
  auto b = arena.take<float>(BUG); // here
  a[dm::thread()] = b[dm::thread()] = x[dm::thread()];
  y.store(dm::block() * 64 + dm::thread(), 1);`, "129", "128"},
	{"segmentation fault", Crash, "", `
  float v = x[dm::thread()]; // here
  volatile float* p = BUG;
  *p = v;
  y.store(dm::block() * 64 + dm::thread(), v);`, "(float*)8", "&v"},
	{"stack overflow", Crash, "", `
  struct Down { static int to(volatile int n) { volatile char room[1000] = {}; return n == 0 ? room[0] : to(n - 1) + room[n % 1000]; } };
  float v = x[dm::thread()]; // here
  y.store(dm::block() * 64 + dm::thread(), v + Down::to(BUG));`, "1000000", "10"},
	{"endless loop", Timeout, "", `
  float v = x[dm::thread()]; // here
  volatile int n = BUG;
  while (n) {}
  y.store(dm::block() * 64 + dm::thread(), v);`, "1", "0"},
	{"warps of a named barrier that no warp completes", Divergence, "", `
  if (dm::warp() == 0) {
    dm::sync_named(1, BUG); // here
  }
  y.store(dm::block() * 64 + dm::thread(), 1);`, "64", "32"},
	{"counter of blocks that another block resets", Race, "z", `
  int i = dm::block() * 64 + dm::thread();
  y.store(i, x[i]);
  BUG // here`, "if (dm::thread() == 0) z.store(0, 1.0f);", "z.store(i, 1.0f);"},
}

// plantedProgram has all kernels, each with its bug and without.
func plantedProgram() (p *artifact.Program, lines []int) {
	p = &artifact.Program{Name: "planted", File: "planted.dmir", Workspace: 3 * 1024, Inputs: []int{0, 2}, Outputs: []int{2}}
	for i, b := range []artifact.Buffer{{Name: "x", Kind: artifact.Input}, {Name: "y", Kind: artifact.Temp}, {Name: "z", Kind: artifact.Input}} {
		b.Elem, b.Shape, b.Bytes, b.Offset = "f32", []int64{256}, 1024, int64(i)*1024
		p.Buffers = append(p.Buffers, b)
	}
	p.Source = "#include \"dm.cuh\"\n"
	for i, c := range plantedBugs {
		for v, text := range []string{c.bad, c.good} {
			name := fmt.Sprintf("%s_%d", []string{"bad", "good"}[v], i)
			first := strings.Count(p.Source, "\n") + 1
			p.Source += fmt.Sprintf("#line %d \"planted.dmir\"\nDM_KERNEL(%s, 64)(dm::In<float> x, dm::Out<float> y, dm::InOut<float> z) {%s\n}\n",
				100*i+1, name, strings.Replace(c.body, "BUG", text, 1))
			p.Kernels = append(p.Kernels, artifact.Kernel{
				Name: name, Block: artifact.Block{Threads: 64, Shared: 1024}, First: first, Last: strings.Count(p.Source, "\n"),
				Params: []artifact.Param{{Name: "x", Elem: "f32", Mode: artifact.In}, {Name: "y", Elem: "f32", Mode: artifact.Out}, {Name: "z", Elem: "f32", Mode: artifact.InOut}},
			})
		}
	}
	for i, line := range strings.Split(p.Source, "\n") {
		if strings.HasSuffix(line, "// here") {
			lines = append(lines, i+1)
		}
	}
	return p, lines
}

// Each bug is reported with its kind, kernel and line, and the same kernel without it
// passes.
func TestPlantedBugs(t *testing.T) {
	need.Long(t)
	needCompiler(t)
	p, lines := plantedProgram()
	if len(lines) != len(p.Kernels) {
		t.Fatalf("%d marked lines of %d kernels", len(lines), len(p.Kernels))
	}
	inputs := [][]byte{make([]byte, 1024), make([]byte, 1024)}
	for k, kernel := range p.Kernels {
		c := plantedBugs[k/2]
		t.Run(c.name+"/"+kernel.Name, func(t *testing.T) {
			q := *p
			q.Steps = []artifact.Step{{Name: "the step", Kind: artifact.StepLaunch, Launch: artifact.Launch{Kernel: k, Grid: artifact.Grid{2, 1, 1}, Args: []artifact.Arg{{Buffer: 0}, {Buffer: 1}, {Buffer: 2}}}}}
			opt := Options{}
			if c.kind == Timeout && k%2 == 0 {
				opt.Timeout = 300 * time.Millisecond
			}
			_, err := Run(t.Context(), &q, inputs, opt)
			if k%2 == 1 {
				if err != nil {
					t.Errorf("without the bug: %v", err)
				}
				return
			}
			var f *Fault
			if !errors.As(err, &f) {
				t.Fatalf("got %v", err)
			}
			if f.Kind != c.kind || f.Kernel != kernel.Name || f.Step != "the step" || f.Param != c.param || f.Line != lines[k] {
				t.Errorf("got %s in %s of %s, line %d, parameter %q; want %s in %s, line %d, parameter %q\n%v",
					f.Kind, f.Kernel, f.Step, f.Line, f.Param, c.kind, kernel.Name, lines[k], c.param, err)
			}
			if want := 100*(k/2) + 1; f.File != "planted.dmir" || f.SourceLine != want {
				t.Errorf("it stands for %s:%d, want line %d", f.File, f.SourceLine, want)
			}
		})
	}
}

// A cancelled run ends at once with the context's error.
func TestCancel(t *testing.T) {
	needCompiler(t)
	p, _ := plantedProgram()
	for k := range p.Kernels {
		if plantedBugs[k/2].kind == Timeout && k%2 == 0 {
			p.Steps = []artifact.Step{{Name: "endless", Kind: artifact.StepLaunch, Launch: artifact.Launch{Kernel: k, Grid: artifact.Grid{1, 1, 1}, Args: []artifact.Arg{{Buffer: 0}, {Buffer: 1}, {Buffer: 2}}}}}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := Run(ctx, p, [][]byte{make([]byte, 1024), make([]byte, 1024)}, Options{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

const copies = `#include "dm.cuh"
DM_KERNEL(copied, 64)(dm::In<float> from, dm::Out<float> to) {
  int i = dm::thread();
  to.store(i, from[i]);
}
`

// Bytes that two values share are a fault only if one is read after the other was
// written.
func TestPlannedOverlap(t *testing.T) {
	needCompiler(t)
	program := func(offsets ...int64) *artifact.Program {
		p := &artifact.Program{
			Name: "chain", File: "chain.dmir", Source: copies, Workspace: 4096, Inputs: []int{0}, Outputs: []int{3},
			Kernels: []artifact.Kernel{{Name: "copied", Block: artifact.Block{Threads: 64}, Lines: []int{7}, Params: []artifact.Param{{Name: "from", Elem: "f32", Mode: artifact.In}, {Name: "to", Elem: "f32", Mode: artifact.Out}}}},
		}
		for i, name := range []string{"x", "a", "b", "c"} {
			kind := []artifact.Kind{artifact.Input, artifact.Temp, artifact.Temp, artifact.Output}[i]
			p.Buffers = append(p.Buffers, artifact.Buffer{Name: name, Elem: "f32", Shape: []int64{64}, Kind: kind, Bytes: 256, Offset: offsets[i]})
		}
		for _, s := range [][2]int{{0, 1}, {0, 2}, {1, 3}} { // a = x, b = x, c = a
			p.Steps = append(p.Steps, artifact.Step{Name: fmt.Sprint("step ", len(p.Steps)), Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{1, 1, 1}, Args: []artifact.Arg{{Buffer: s[0]}, {Buffer: s[1]}}}})
		}
		return p
	}
	x := [][]byte{floats(make([]float32, 64)...)}
	if _, err := Run(t.Context(), program(0, 256, 512, 768), x, Options{}); err != nil {
		t.Errorf("without overlap: %v", err)
	}
	if _, err := Run(t.Context(), program(0, 256, 512, 512), x, Options{}); err != nil {
		t.Errorf("c in the bytes of b, which is dead: %v", err)
	}
	_, err := Run(t.Context(), program(0, 256, 256, 768), x, Options{})
	var f *Fault
	if !errors.As(err, &f) || f.Kind != Overlap || f.Step != "step 2" || f.Param != "from" || f.SourceLine != 7 || !strings.Contains(f.Msg, "%b") {
		t.Errorf("b in the bytes of a, which is read later: got %v", err)
	}
	p := program(0, 256, 512, 768)
	p.Steps = p.Steps[1:]
	_, err = Run(t.Context(), p, x, Options{})
	if !errors.As(err, &f) || f.Kind != Uninitialised || f.Param != "from" {
		t.Errorf("a is never written: got %v", err)
	}
	p = program(0, 256, 512, 768)
	p.Steps = p.Steps[:2]
	_, err = Run(t.Context(), p, x, Options{})
	if !errors.As(err, &f) || f.Kind != Uninitialised || !strings.Contains(f.Msg, "%c") {
		t.Errorf("the output is never written: got %v", err)
	}
}
