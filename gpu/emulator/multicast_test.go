package emulator

import (
	"errors"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/testkit/need"
)

// halvesSource sums the columns of a 64×64 matrix in both blocks of a cluster: each loads half of 16 rows at a time into a slot of
// both blocks, of which there are two.
const halvesSource = `#include "dm.cuh"
#include "hopper.cuh"
DM_KERNEL_CLUSTER(halves, 64, 1, 2)(DM_MAP(x), dm::Out<float> y) {
  DM_ARENA(arena);
  auto tiles = arena.take_aligned<dm::f16>(2 * 1024, 1024);
  auto full = arena.take<dm::u64>(2), empty = arena.take<dm::u64>(2);
  const int rank = dm::cluster_rank();
  if (dm::thread() == 0) {
    for (int k = 0; k < 2; k++) dm::barrier_make(full, k, 1), dm::barrier_make(empty, k, READERS);
    dm::barriers_ready();
  }
  BEGIN
  if (dm::warp() == 1) {
    if (dm::lane() == 0) {
      for (int t = 0; t < 4; t++) {
        WAIT_EMPTY // waits
        dm::barrier_expect(full, t % 2, BYTES);
        dm::tile_multicast(tiles, t % 2 * 1024 + PLACE, x, full, t % 2, MASK, 0, t * 16 + rank * 8); // load
      }
      DRAIN // drains
    }
  } else {
    float sum[2] = {};
    for (int t = 0; t < 4; t++) {
      WAIT_FULL // awaits
      for (int r = 0; r < 16; r++) {
        for (int h = 0; h < 2; h++) sum[h] += dm::narrow<float>(tiles[t % 2 * 1024 + r * 64 + h * 32 + dm::lane()]); // read
      }
      dm::sync_warp();
      if (dm::lane() < 2) dm::barrier_leave(empty, t % 2, TO); // arrives
    }
    for (int h = 0; h < 2; h++) y.store(rank * 64 + h * 32 + dm::lane(), sum[h]);
  }
}
`

var halvesRight = map[string]string{
	"READERS":    "2",
	"BEGIN":      "dm::cluster_sync();",
	"WAIT_EMPTY": "dm::barrier_wait(empty, t % 2, t / 2 & 1 ^ 1);",
	"BYTES":      "2048",
	"PLACE":      "rank * 512",
	"MASK":       "3",
	"DRAIN":      "for (int t = 4; t < 6; t++) dm::barrier_wait(empty, t % 2, t / 2 & 1 ^ 1);",
	"WAIT_FULL":  "dm::barrier_wait(full, t % 2, t / 2 & 1);",
	"TO":         "dm::lane()",
}

// Blocks of a cluster load halves for each other: the program is right, and the emulator detects every omission.
func TestMulticast(t *testing.T) {
	need.Long(t)
	needCompiler(t)
	program := func(change map[string]string) *artifact.Program {
		p := ringProgram(nil)
		var pairs []string
		for name, text := range halvesRight {
			if other, ok := change[name]; ok {
				text = other
			}
			pairs = append(pairs, name, text)
		}
		p.Source, p.Workspace = strings.NewReplacer(pairs...).Replace(halvesSource), 8192+512
		p.Kernels[0].Name, p.Kernels[0].Block.Cluster = "halves", 2
		p.Buffers[1].Shape, p.Buffers[1].Bytes = []int64{128}, 512
		p.Steps[0].Launch.Grid = artifact.Grid{2, 1, 1}
		p.Steps[0].Launch.Args[0].Map.Box = []uint32{64, 8}
		return p
	}
	x, want := make([]uint16, 64*64), make([]float32, 64)
	for i := range x {
		v := i*7%31 - 15
		x[i] = half(v)
		want[i%64] += float32(v)
	}
	input := [][]byte{halves(x...)}
	r, err := Run(t.Context(), program(nil), input, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range toFloats(r.Outputs[0]) {
		if v != want[i%64] {
			t.Errorf("column %d: %v, want %v", i, v, want[i%64])
		}
	}
	if s := r.Steps[0]; s.Read != 8192 || s.Written != 512 {
		t.Errorf("it reads %d and writes %d bytes", s.Read, s.Written)
	}
	for _, c := range []struct {
		name   string
		change map[string]string
		kind   Kind
		line   string // the comment at its end; "": any
	}{
		{"the other block may not have begun", map[string]string{"BEGIN": "dm::sync();"}, Race, "// load"},
		{"a block that is not there", map[string]string{"MASK": "5"}, Bounds, "// load"},
		{"the own block alone", map[string]string{"MASK": "1"}, Deadlock, "// awaits"},
		{"the bytes of one half are expected", map[string]string{"BYTES": "1024"}, Uninitialised, "// read"},
		{"both load the same half", map[string]string{"PLACE": "0"}, Race, "// load"},
		{"a block tells itself twice", map[string]string{"TO": "rank"}, Async, "// load"},
		{"no thread waits for the tile", map[string]string{"WAIT_FULL": ""}, Uninitialised, "// read"},
		{"a block does not wait for the arrivals of the other", map[string]string{"DRAIN": ""}, Race, "// arrives"},
	} {
		p := program(c.change)
		_, err := Run(t.Context(), p, input, Options{})
		var f *Fault
		if !errors.As(err, &f) || f.Kind != c.kind || f.Line == 0 || !strings.HasSuffix(strings.Split(p.Source, "\n")[f.Line-1], c.line) {
			t.Errorf("%s: got %v; want %s on the line of %s", c.name, err, c.kind, c.line)
		}
	}
}
