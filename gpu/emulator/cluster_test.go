package emulator

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/testkit/need"
)

// clusterSource adds up x over the two warps of each of three blocks: each block gives its sum
// to the others, and is told by an mbarrier that its own first slot may be read.
const clusterSource = `#include "dm.cuh"
#include "hopper.cuh"
DM_KERNEL_CLUSTER(sums, 64, 1, 3)(dm::In<float> x, dm::Out<float> y) {
  DM_SHARED(float, slots, 3);
  DM_SHARED(float, scratch, 32);
  DM_SHARED(float, turned, 3);
  DM_SHARED(dm::u64, signal, 1);
  if (dm::thread() == 0) dm::barrier_make(signal, 0, 2), dm::barriers_ready();
  BEGIN
  const float sum = dm::block_sum(x[dm::block() * 64 + dm::thread()], scratch);
  WAIT
  if (dm::thread() < 3) dm::peer(slots, PEER).store(dm::cluster_rank(), sum); // gives
  MEET
  float all = 0;
  for (int k = 0; k < 3; k++) all += slots[k]; // adds
  if (dm::thread() == 32) turned[dm::cluster_rank()] = all * float(1 + dm::cluster_rank());
  ORDER
  if (dm::thread() == 32) // tells
    for (int k = 0; k < 3; k++) if (k != dm::cluster_rank()) dm::barrier_arrive(signal, 0, k); // arrives
  AWAIT // waits
  if (dm::thread() == 0) {
    const int next = (dm::cluster_rank() + 1) % 3;
    all += dm::peer(turned, next).load(next); // takes
  }
  END
  if (dm::thread() == 0) y.store(dm::block(), all);
}
`

var clusterRight = map[string]string{
	"BEGIN": "dm::cluster_begin(); dm::sync();",
	"WAIT":  "dm::cluster_wait();",
	"PEER":  "dm::thread()",
	"MEET":  "dm::cluster_sync();",
	"ORDER": "",
	"AWAIT": "dm::barrier_wait(signal, 0, 0);",
	"END":   "dm::cluster_sync();",
}

func clusterProgram(change map[string]string) *artifact.Program {
	var pairs []string
	for name, text := range clusterRight {
		if other, ok := change[name]; ok {
			text = other
		}
		pairs = append(pairs, name, text)
	}
	return &artifact.Program{
		Name: "sums", File: "sums.dmir", Source: strings.NewReplacer(pairs...).Replace(clusterSource), Workspace: 2048, Inputs: []int{0}, Outputs: []int{1},
		Kernels: []artifact.Kernel{{Name: "sums", Block: artifact.Block{Threads: 64, Cluster: 3}, Arch: "sm_90a", Params: []artifact.Param{{Name: "x", Elem: "f32", Mode: artifact.In}, {Name: "y", Elem: "f32", Mode: artifact.Out}}}},
		Buffers: []artifact.Buffer{{Name: "x", Elem: "f32", Shape: []int64{384}, Kind: artifact.Input, Bytes: 1536}, {Name: "y", Elem: "f32", Shape: []int64{6}, Kind: artifact.Output, Offset: 1536, Bytes: 24}},
		Steps:   []artifact.Step{{Name: "sums", Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{6, 1, 1}, Args: []artifact.Arg{{Buffer: 0}, {Buffer: 1}}}}},
	}
}

// Blocks of a cluster exchange sums through each other's shared memory: the program is right, and the emulator
// detects every omission.
func TestClusters(t *testing.T) {
	need.Long(t)
	needCompiler(t)
	var x, want []float32
	for i := range 384 {
		x = append(x, float32(i%13))
	}
	for c := range 2 {
		all := float32(0)
		for _, v := range x[192*c : 192*(c+1)] {
			all += v
		}
		for k := range 3 {
			want = append(want, all+all*float32(1+(k+1)%3))
		}
	}
	input := [][]byte{floats(x...)}
	rows := []struct {
		name   string
		change map[string]string
		kind   Kind
		line   string // the comment at its end; "": any
	}{
		{"the other blocks may not have begun", map[string]string{"BEGIN": "dm::sync();", "WAIT": ""}, Race, "// gives"},
		{"no barrier behind what others write", map[string]string{"MEET": "dm::sync();"}, Uninitialised, "// adds"},
		{"no wait behind the arrival", map[string]string{"MEET": "dm::cluster_arrive();", "END": "dm::cluster_wait();"}, Uninitialised, "// adds"},
		{"an arrival that orders nothing", map[string]string{"MEET": "dm::cluster_begin(); dm::cluster_wait();"}, Race, "// adds"},
		{"two arrivals without a wait", map[string]string{"WAIT": "dm::cluster_arrive();"}, Divergence, ""},
		{"a wait without an arrival", map[string]string{"BEGIN": "dm::sync();"}, Divergence, ""},
		{"one warp does not come", map[string]string{"END": "if (dm::warp() == 0) dm::cluster_sync();"}, Divergence, ""},
		{"half a warp does not come", map[string]string{"END": "if (dm::lane() < 16) dm::cluster_sync();"}, Divergence, ""},
		{"one block does not come", map[string]string{"END": "if (dm::cluster_rank() > 0) dm::cluster_sync();"}, Race, "// takes"},
		{"a block that is not there", map[string]string{"PEER": "dm::thread() + 1"}, Bounds, "// gives"},
		{"two blocks write one slot", map[string]string{"PEER": "1 + 0 * dm::thread()"}, Race, "// gives"},
		{"a block ends before its memory is read", map[string]string{"END": ""}, Race, "// takes"},
		{"a block does not wait", map[string]string{"AWAIT": "dm::sync();"}, Uninitialised, "// takes"},
		{"too few are awaited", map[string]string{"AWAIT": "if (dm::cluster_rank() == 0) dm::barrier_wait(signal, 0, 0); else dm::sync();"}, Uninitialised, "// takes"},
		{"no arrival follows", map[string]string{"AWAIT": "dm::barrier_wait(signal, 0, 0); dm::barrier_wait(signal, 0, 1);"}, Deadlock, "// waits"},
		{"another warp arrives than wrote", map[string]string{"ORDER": "if (dm::thread() == 0) turned[dm::cluster_rank()] = all;"}, Race, ""},
	}
	jobs := []Job{{clusterProgram(nil), input}}
	for _, c := range rows {
		jobs = append(jobs, Job{clusterProgram(c.change), input})
	}
	out := together(t, jobs)
	if out[0].Err != nil {
		t.Fatal(out[0].Err)
	}
	r := out[0].Result
	if got := toFloats(r.Outputs[0]); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the sums are %v, not %v", got, want)
	}
	if s := r.Steps[0]; s.Read != 1536 || s.Written != 24 {
		t.Errorf("it reads %d and writes %d bytes", s.Read, s.Written)
	}
	for i, c := range rows {
		p, err := jobs[i+1].Program, out[i+1].Err
		var f *Fault
		if !errors.As(err, &f) || f.Kind != c.kind || f.Line == 0 || !strings.HasSuffix(strings.Split(p.Source, "\n")[f.Line-1], c.line) {
			t.Errorf("%s: got %v; want %s on the line of %s", c.name, err, c.kind, c.line)
		}
	}
}
