package emulator

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/testkit/need"
)

// ringSource sums the columns of a 64×64 matrix: one warp loads 16 rows at a time
// into a ring of two slots, the other adds them up.
const ringSource = `#include "dm.cuh"
#include "hopper.cuh"
DM_KERNEL(ring, 64)(DM_MAP(x), dm::Out<float> y) {
  DM_ARENA(arena);
  auto tiles = arena.take_aligned<dm::f16>(2 * 1024, 1024);
  auto full = arena.take<dm::u64>(2), empty = arena.take<dm::u64>(2);
  if (dm::thread() == 0) {
    for (int k = 0; k < 2; k++) dm::barrier_make(full, k, 1), dm::barrier_make(empty, k, 1);
    READY
  }
  SYNC
  if (dm::warp() == 1) {
    if (dm::lane() == 0) {
      for (int t = 0; t < 4; t++) {
        WAIT_EMPTY // waits
        dm::barrier_expect(full, t % 2, BYTES); // expects
        dm::tile_load(tiles, t % 2 * 1024, x, full, t % 2, 0, t * 16 ROW); // load
      }
    }
  } else {
    float sum[2] = {};
    for (int t = 0; t < 4; t++) {
      WAIT_FULL // awaits
      for (int r = 0; r < 16; r++) {
        for (int h = 0; h < 2; h++) sum[h] += dm::narrow<float>(tiles[t % 2 * 1024 + r * 64 + h * 32 + dm::lane()]); // read
      }
      dm::sync_warp();
      ARRIVE
    }
    for (int h = 0; h < 2; h++) y.store(h * 32 + dm::lane(), sum[h]);
  }
}
`

// ringRight are the correct replacements of ringSource's names.
var ringRight = map[string]string{
	"READY":      "dm::barriers_ready();",
	"SYNC":       "dm::sync();",
	"WAIT_EMPTY": "dm::barrier_wait(empty, t % 2, t / 2 & 1 ^ 1);",
	"BYTES":      "2048",
	"ROW":        "",
	"WAIT_FULL":  "dm::barrier_wait(full, t % 2, t / 2 & 1);",
	"ARRIVE":     "if (dm::lane() == 0) dm::barrier_arrive(empty, t % 2);",
}

func ringProgram(change map[string]string) *artifact.Program {
	var pairs []string
	for name, text := range ringRight {
		if other, ok := change[name]; ok {
			text = other
		}
		pairs = append(pairs, name, text)
	}
	return &artifact.Program{
		Name: "ring", File: "ring.dmir", Source: strings.NewReplacer(pairs...).Replace(ringSource), Workspace: 8192 + 256, Inputs: []int{0}, Outputs: []int{1},
		Kernels: []artifact.Kernel{{Name: "ring", Block: artifact.Block{Threads: 64, Shared: 8192}, Arch: "sm_90a", Params: []artifact.Param{{Name: "x", Elem: "f16", Mode: artifact.Map}, {Name: "y", Elem: "f32", Mode: artifact.Out}}}},
		Buffers: []artifact.Buffer{{Name: "x", Elem: "f16", Shape: []int64{64, 64}, Kind: artifact.Input, Bytes: 8192}, {Name: "y", Elem: "f32", Shape: []int64{64}, Kind: artifact.Output, Offset: 8192, Bytes: 256}},
		Steps: []artifact.Step{{Name: "ring", Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{1, 1, 1}, Args: []artifact.Arg{
			{Buffer: 0, Map: &artifact.TensorMap{Elem: "f16", Dims: []uint64{64, 64}, Strides: []uint64{128}, Box: []uint32{64, 16}}}, {Buffer: 1},
		}}}},
	}
}

// Warps exchange tiles through barriers that count bytes: the program is right, and
// the emulator detects every omission.
func TestBulkCopies(t *testing.T) {
	need.Long(t)
	needCompiler(t)
	x := make([]uint16, 64*64)
	want := make([]float32, 64)
	for i := range x {
		v := i*7%31 - 15
		x[i] = half(v)
		want[i%64] += float32(v)
	}
	input := [][]byte{halves(x...)}
	rows := []struct {
		name   string
		change map[string]string
		kind   Kind
		line   string // the comment at its end
	}{
		{"no thread waits for the tile", map[string]string{"WAIT_FULL": ""}, Async, "// read"},
		{"no thread waits for an empty slot", map[string]string{"WAIT_EMPTY": ""}, Async, "// expects"},
		{"the slot is handed back too early", map[string]string{"WAIT_FULL": "dm::barrier_wait(full, t % 2, t / 2 & 1); if (dm::lane() == 0) dm::barrier_arrive(empty, t % 2);", "ARRIVE": ""}, Race, "// load"},
		{"no thread releases the slot", map[string]string{"ARRIVE": ""}, Deadlock, "// awaits"},
		{"fewer bytes come than were announced", map[string]string{"BYTES": "4096"}, Deadlock, "// awaits"},
		{"the barriers are not published", map[string]string{"READY": ""}, Async, "// waits"},
		{"no barrier of the block before the first use", map[string]string{"SYNC": ""}, Race, "// awaits"},
		{"a place that is not there", map[string]string{"ROW": "+ 1"}, "", ""},
	}
	jobs := []Job{{ringProgram(nil), input}}
	for _, c := range rows {
		jobs = append(jobs, Job{ringProgram(c.change), input})
	}
	out := together(t, jobs)
	if out[0].Err != nil {
		t.Fatal(out[0].Err)
	}
	r := out[0].Result
	for i, v := range toFloats(r.Outputs[0]) {
		if v != want[i] {
			t.Errorf("column %d: %v, want %v", i, v, want[i])
		}
	}
	if s := r.Steps[0]; s.Read != 8192 || s.Written != 256 {
		t.Errorf("it reads %d and writes %d bytes", s.Read, s.Written)
	}
	for i, c := range rows {
		p, err := jobs[i+1].Program, out[i+1].Err
		if c.kind == "" { // beyond the tensor there are zeros
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var f *Fault
		if !errors.As(err, &f) || f.Kind != c.kind || f.Line == 0 || !strings.HasSuffix(strings.Split(p.Source, "\n")[f.Line-1], c.line) {
			t.Errorf("%s: got %v; want %s on the line of %s", c.name, err, c.kind, c.line)
		}
	}
}

// half is a small integer as f16.
func half(v int) uint16 {
	for p := range 1 << 16 {
		if smalls[0].value(p) == float64(v) {
			return uint16(p)
		}
	}
	return 0
}

// productSource is D = A·Bᵀ of 64×64 matrices by a warpgroup, operands along k as
// they come, or transposed.
const productSource = `#include "dm.cuh"
#include "hopper.cuh"
DM_KERNEL(products, 128)(DM_MAP(a), DM_MAP(b), dm::Out<float> y) {
  DM_ARENA(arena);
  auto as = arena.take_aligned<TYPE>(4096, 1024), bs = arena.take_aligned<TYPE>(4096, 1024);
  auto full = arena.take<dm::u64>(1);
  if (dm::thread() == 0) {
    dm::barrier_make(full, 0, 1);
    dm::barriers_ready();
  }
  dm::sync();
  if (dm::thread() == 0) {
    dm::barrier_expect(full, 0, 16384);
    dm::tile_load(as, 0, a, full, 0, 0, 0);
    dm::tile_load(bs, 0, b, full, 0, 0, 0);
  }
  dm::barrier_wait(full, 0, 0);
  float d[32] = {};
  dm::products_begin();
  for (int k = 0; k < 64; k += 16) {
    dm::product<TYPE, 64, TRANS_A, TRANS_B>(d, dm::operand_at(as, TRANS_A ? k * 64 : k, 8192, 1024), dm::operand_at(bs, TRANS_B ? k * 64 : k, 8192, 1024));
  }
  dm::products_commit();
  dm::products_wait<0>();
  dm::products_settle(d);
  int w = dm::warp(), l = dm::lane();
  for (int j = 0; j < 8; j++)
    for (int e = 0; e < 4; e++) y.store((16 * w + l / 4 + e / 2 * 8) * 64 + 8 * j + l % 4 * 2 + e % 2, d[4 * j + e]);
}
`

func TestWarpgroupProducts(t *testing.T) {
	need.Long(t)
	needCompiler(t)
	r := rand.New(rand.NewPCG(8, 8))
	var jobs []Job
	var checks []func(d []float32)
	for _, s := range smalls[:2] {
		for v := range 4 {
			transA, transB := v&1 == 1, v&2 == 2
			source := strings.NewReplacer("TYPE", s.cpp, "TRANS_A", map[bool]string{true: "true", false: "false"}[transA], "TRANS_B", map[bool]string{true: "true", false: "false"}[transB]).Replace(productSource)
			var a, b [64][64]int
			ab, bb := make([]uint16, 4096), make([]uint16, 4096)
			fill := func(x *[64][64]int, bits []uint16, trans bool) {
				for i := range 64 {
					for k := range 64 {
						p := r.IntN(1 << 16)
						for v := math.Abs(s.value(p)); v != v || v > 4; v = math.Abs(s.value(p)) {
							p = r.IntN(1 << 16)
						}
						x[i][k] = p
						if trans {
							bits[k*64+i] = uint16(p)
						} else {
							bits[i*64+k] = uint16(p)
						}
					}
				}
			}
			fill(&a, ab, transA)
			fill(&b, bb, transB)
			m := &artifact.TensorMap{Elem: s.name, Dims: []uint64{64, 64}, Strides: []uint64{128}, Box: []uint32{64, 64}, Swizzle: 128}
			p := &artifact.Program{
				Name: "products", Source: source, Workspace: 3 * 16384, Inputs: []int{0, 1}, Outputs: []int{2},
				Kernels: []artifact.Kernel{{
					Name: "products", Block: artifact.Block{Threads: 128, Shared: 20 << 10}, Arch: "sm_90a",
					Params: []artifact.Param{{Name: "a", Elem: s.name, Mode: artifact.Map}, {Name: "b", Elem: s.name, Mode: artifact.Map}, {Name: "y", Elem: "f32", Mode: artifact.Out}},
				}},
				Buffers: []artifact.Buffer{
					{Name: "a", Elem: s.name, Shape: []int64{64, 64}, Kind: artifact.Input, Bytes: 8192},
					{Name: "b", Elem: s.name, Shape: []int64{64, 64}, Kind: artifact.Input, Offset: 8192, Bytes: 8192},
					{Name: "y", Elem: "f32", Shape: []int64{64, 64}, Kind: artifact.Output, Offset: 16384, Bytes: 16384},
				},
				Steps: []artifact.Step{{Name: "products", Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{1, 1, 1}, Args: []artifact.Arg{{Buffer: 0, Map: m}, {Buffer: 1, Map: m}, {Buffer: 2}}}}},
			}
			jobs = append(jobs, Job{p, [][]byte{halves(ab...), halves(bb...)}})
			checks = append(checks, func(d []float32) {
				for i := range 64 {
					for j := range 64 {
						var sum, size float64
						for k := range 64 {
							x := s.value(a[i][k]) * s.value(b[j][k])
							sum, size = sum+x, size+math.Abs(x)
						}
						if got := float64(d[64*i+j]); math.Abs(got-sum) > size*0x1p-19 {
							t.Fatalf("%s, transposed %v %v: element %d,%d is %v, want %v", s.name, transA, transB, i, j, got, sum)
						}
					}
				}
			})
		}
	}
	for i, o := range together(t, jobs) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		checks[i](toFloats(o.Result.Outputs[0]))
	}
}
