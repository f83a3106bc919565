package gpu_test

import (
	"strings"
	"testing"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/suite"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/gpu/ptx/ptxtest"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// smoke are the programs that scripts/gpu.sh runs first, each in a process of its own and on top of the one before:
// moves alone, products of warps, the copy engine alone, products of a warpgroup that the copy engine feeds, and several
// kernels that are captured as a graph. Their PTX has one instruction, and lacks those of later programs.
var smoke = []struct{ name, text, has, lacks string }{
	{"copy", `func.func @main(%x: tensor<96x4096xf32>) -> tensor<96x4096xf32> {
  %y = dm.neg %x : tensor<96x4096xf32>
  return %y : tensor<96x4096xf32>
}`, "ld.global", "mma cp.async"},
	{"mma", `func.func @main(%x: tensor<200x100xf16>, %w: tensor<100x72xf16>) -> tensor<200x72xf16> {
  %y = dm.matmul %x, %w : (tensor<200x100xf16>, tensor<100x72xf16>) -> tensor<200x72xf16>
  return %y : tensor<200x72xf16>
}`, "mma.sync", "cp.async.bulk wgmma"},
	{"tma", "", "cp.async.bulk.tensor", "mma"},
	{"wgmma", `func.func @main(%x: tensor<512x64xf16>, %w: tensor<64x512xf16>) -> tensor<512x512xf16> {
  %y = dm.matmul %x, %w : (tensor<512x64xf16>, tensor<64x512xf16>) -> tensor<512x512xf16>
  return %y : tensor<512x512xf16>
}`, "wgmma.mma_async", ""},
	{"graph", `func.func @main(%x: tensor<64x256xf16>, %w: tensor<256x128xf16>) -> (tensor<64x128xf16>, tensor<128xf16>) {
  %h = dm.matmul %x, %w : (tensor<64x256xf16>, tensor<256x128xf16>) -> tensor<64x128xf16>
  %y = dm.softmax %h, dim = 1 : (tensor<64x128xf16>) -> tensor<64x128xf16>
  %s = dm.reduce add %y, dims = [0] : (tensor<64x128xf16>) -> tensor<128xf16>
  return %y, %s : tensor<64x128xf16>, tensor<128xf16>
}`, "ex2", ""},
}

const tileSource = `#include "dm.cuh"
#include "hopper.cuh"

#line 1 "tma"
DM_KERNEL(k0_tiles, 128)(dm::Out<dm::f16> y, DM_MAP(x_map)) {
  DM_ARENA(arena);
  const dm::Shared<dm::f16> tile = arena.take_aligned<dm::f16>(64 * 64, 1024);
  const dm::Shared<dm::u64> full = arena.take<dm::u64>(1);
  const dm::i32 m = dm::block() / 3 * 64, n = dm::block() % 3 * 64;
  if (dm::thread() == 0) {
    dm::barrier_make(full, 0, 1);
    dm::barriers_ready();
  }
  dm::sync();
  if (dm::thread() == 0) {
    dm::barrier_expect(full, 0, 64 * 64 * 2);
    dm::tile_load(tile, 0, x_map, full, 0, n, m);
  }
  dm::barrier_wait(full, 0, 0);
  for (dm::i32 i = dm::thread(); i < 64 * 64; i += 128) {
    const dm::i32 r = i / 64, c = i % 64;
    if (m + r < 200 && n + c < 136) y.store((m + r) * 136 + n + c, tile[r * 64 + ((c / 8) ^ (r % 8)) * 8 + c % 8]);
  }
}
`

// tiles is a program that copies a matrix of 200 by 136 by tiles of the copy engine, with its swizzle, over the edges: no
// compiled kernel uses it without products.
func tiles() *artifact.Program {
	const size = 200 * 136 * 2
	first := strings.Count(strings.Split(tileSource, "DM_KERNEL")[0], "\n") + 1
	return &artifact.Program{
		Name: "tma", Target: "cuda", File: "tma", Source: tileSource, Workspace: 2 * (size + 256) &^ 255,
		Kernels: []artifact.Kernel{{
			Name: "k0_tiles", Class: "pointwise", Block: artifact.Block{Threads: 128, Shared: 64*64*2 + 1024 + 8}, Lines: []int{1}, Arch: "sm_90a",
			First: first, Last: strings.Count(tileSource, "\n"),
			Params: []artifact.Param{{Name: "y", Elem: "f16", Mode: artifact.Out}, {Name: "x_map", Elem: "f16", Mode: artifact.Map}},
		}},
		Buffers: []artifact.Buffer{
			{Name: "x", Elem: "f16", Shape: []int64{200, 136}, Kind: artifact.Input, Bytes: size, First: -1, Last: 1},
			{Name: "y", Elem: "f16", Shape: []int64{200, 136}, Kind: artifact.Output, Offset: (size + 255) &^ 255, Bytes: size, First: 0, Last: 1},
		},
		Steps: []artifact.Step{{
			Name: "tiles", Kind: artifact.StepLaunch, ReadBytes: size, WrittenBytes: size, TimeNs: 2000,
			Launch: artifact.Launch{Grid: artifact.Grid{12, 1, 1}, Args: []artifact.Arg{
				{Buffer: 1}, {Buffer: 0, Map: &artifact.TensorMap{Elem: "f16", Dims: []uint64{136, 200}, Strides: []uint64{272}, Box: []uint32{64, 64}, Swizzle: 128}},
			}},
		}},
		Inputs: []int{0}, Outputs: []int{1},
	}
}

// Every smoke program computes what the reference does, and has the instructions that it is there for.
func TestSmoke(t *testing.T) {
	need.Long(t)
	h200, _ := machine.Lookup("h200")
	_, _, recording := suite.Recording()
	for _, s := range smoke {
		t.Run(s.name, func(t *testing.T) {
			of := suite.Source{Name: s.name, Class: "smoke", Within: func(int) suite.Within { return suite.Within{Most: 0x1p-8, Scaled: true} }}
			if s.text == "" {
				x := tensor.Random(types.F16, []int{200, 136}, 7, 0)
				of.Args, of.Want = []*tensor.Tensor{x}, []*tensor.Tensor{x}
				of.Within = func(int) suite.Within { return suite.Within{} }
				of.Build = func(string) (*artifact.Program, error) { return tiles(), nil }
			} else {
				p := program.Load(source.New(s.name+".dmir", s.text), program.Options{})
				m, fn, err := driver.Pick(p, "")
				if err != nil {
					t.Fatal(err)
				}
				if of.Args, of.Want, err = suite.Reference(t.Context(), m, fn, nil, nil)(7); err != nil {
					t.Fatal(err)
				}
				of.Build = func(arch string) (*artifact.Program, error) {
					return driver.Build(t.Context(), m, fn, driver.BuildOptions{Machine: h200, Arch: arch})
				}
			}
			if recording {
				suite.Record(t, 7, of)
				return
			}
			made, err := suite.Make(of, 7, h200.Arch)
			if err != nil {
				t.Fatal(err)
			}
			d, _, err := device.Find("emulator")
			need.OK(t, err)
			if r := made.Run(t.Context(), d, 10*time.Minute); r.Outcome != suite.Passed {
				t.Errorf("%s, %s", r.Outcome, r.Why)
			}
			nvrtctest.Compiler(t)
			built, err := of.Build(h200.Arch)
			if err != nil {
				t.Fatal(err)
			}
			compiled, err := nvrtc.CompileProgram(t.Context(), built, h200.Arch, nvrtc.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ptxtest.Check(t, built, compiled)
			if !strings.Contains(compiled.PTX, s.has) {
				t.Errorf("the kernel has no %s", s.has)
			}
			for _, other := range strings.Fields(s.lacks) {
				if strings.Contains(compiled.PTX, other) {
					t.Errorf("the kernel has %s, which a later program is for", other)
				}
			}
			if s.name == "graph" && len(built.Steps) < 2 {
				t.Error("one kernel shows no graph")
			}
		})
	}
}
