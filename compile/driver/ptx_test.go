package driver

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/nvrtc"
	"dmir/gpu/ptx"
	"dmir/gpu/ptx/ptxtest"
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

// builtFor compiles the only function of a text for an architecture.
func builtFor(t *testing.T, name, text, arch string) *artifact.Program {
	t.Helper()
	m, fn, err := Pick(loaded(t, name, text), "")
	if err != nil {
		t.Fatal(err)
	}
	built, err := Build(t.Context(), m, fn, BuildOptions{Machine: machineFor(arch), Arch: arch})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// The kernels of random programs hold the rules of package ptx: of 16, or of as many as $DMIR_PTX_PROGRAMS says.
func TestRandomKernels(t *testing.T) {
	need.Long(t)
	needNVRTC(t)
	programs := uint64(16)
	if n, err := strconv.ParseUint(os.Getenv("DMIR_PTX_PROGRAMS"), 10, 32); err == nil {
		programs = n
	}
	kernels := 0
	for seed := range programs {
		built := builtFor(t, fmt.Sprintf("random%d.dmir", seed), randprog.Messy(seed, 8), "sm_90a")
		if len(built.Kernels) == 0 {
			continue
		}
		compiled, err := nvrtc.CompileProgram(t.Context(), built, "sm_90a", nvrtc.Options{})
		if err != nil {
			t.Fatalf("random%d: %v", seed, err)
		}
		kernels += ptxtest.Check(t, built, compiled).Kernels
	}
	t.Logf("%d kernels of %d programs", kernels, programs)
	if kernels < int(programs) {
		t.Errorf("only %d kernels of %d programs", kernels, programs)
	}
}

// The programs whose kernels mistakes are planted in.
var wrongBases = map[string]struct{ arch, text string }{
	"product": {"sm_90a", `func.func @f(%x: tensor<512x1024xf16>, %w: tensor<1024x1024xf16>) -> tensor<512x1024xf16> {
  %y = dm.matmul %x, %w : (tensor<512x1024xf16>, tensor<1024x1024xf16>) -> tensor<512x1024xf16>
  return %y : tensor<512x1024xf16>
}
`},
	"one step": {"sm_90a", `func.func @f(%x: tensor<4096x64xf16>, %w: tensor<64x4096xf16>) -> tensor<4096x4096xf16> {
  %y = dm.matmul %x, %w : (tensor<4096x64xf16>, tensor<64x4096xf16>) -> tensor<4096x4096xf16>
  return %y : tensor<4096x4096xf16>
}
`},
	"turns": {"sm_90a", `func.func @f(%x: tensor<2560x512xf16>, %w: tensor<512x2560xf16>) -> tensor<2560x2560xf16> {
  %0 = dm.matmul %x, %w : (tensor<2560x512xf16>, tensor<512x2560xf16>) -> tensor<2560x2560xf16>
  %y = dm.gelu %0 : (tensor<2560x2560xf16>) -> tensor<2560x2560xf16>
  return %y : tensor<2560x2560xf16>
}
`},
	"pair": {"sm_90a", `func.func @f(%x: tensor<2048x1024xf16>, %w: tensor<1024x4096xf16>) -> tensor<2048x4096xf16> {
  %y = dm.matmul %x, %w : (tensor<2048x1024xf16>, tensor<1024x4096xf16>) -> tensor<2048x4096xf16>
  return %y : tensor<2048x4096xf16>
}
`},
	"bytes": {"sm_90a", `func.func @f(%x: tensor<2048x2048xf8E4M3FN>, %w: tensor<4096x2048xf8E5M2>) -> tensor<2048x4096xbf16> {
  %y = dm.einsum "mk,nk->mn" %x, %w : (tensor<2048x2048xf8E4M3FN>, tensor<4096x2048xf8E5M2>) -> tensor<2048x4096xbf16>
  return %y : tensor<2048x4096xbf16>
}
`},
	"tf32": {"sm_90a", `func.func @f(%x: tensor<2048x1024xf32>, %w: tensor<1920x1024xf32>) -> tensor<2048x1920xf32> {
  %y = dm.einsum "mk,nk->mn" %x, %w, precision = tf32 : (tensor<2048x1024xf32>, tensor<1920x1024xf32>) -> tensor<2048x1920xf32>
  return %y : tensor<2048x1920xf32>
}
`},
	"tf32 of warps": {"sm_80", `func.func @f(%x: tensor<512x544xf32>, %w: tensor<544x512xf32>) -> tensor<512x512xf32> {
  %y = dm.matmul %x, %w, precision = tf32 : (tensor<512x544xf32>, tensor<544x512xf32>) -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}
`},
	"warps": {"sm_80", `func.func @f(%x: tensor<512x544xf16>, %w: tensor<544x512xf16>) -> tensor<512x512xf16> {
  %y = dm.matmul %x, %w : (tensor<512x544xf16>, tensor<544x512xf16>) -> tensor<512x512xf16>
  return %y : tensor<512x512xf16>
}
`},
	"warps on Hopper": {"sm_90a", `func.func @f(%x: tensor<64x544xf16>, %w: tensor<544x60xf16>) -> tensor<64x60xf16> {
  %y = dm.matmul %x, %w : (tensor<64x544xf16>, tensor<544x60xf16>) -> tensor<64x60xf16>
  return %y : tensor<64x60xf16>
}
`},
	"gather": {"sm_90a", `func.func @f(%x: tensor<32x128x28x28xf16, #dm.at<order = [0, 2, 3, 1]>>, %w: tensor<128x128x3x3xf16, #dm.at<order = [0, 2, 3, 1]>>) -> tensor<32x128x28x28xf16, #dm.at<order = [0, 2, 3, 1]>> {
  %y = dm.convolution %x, %w, window_strides = [1, 1], padding = [[1, 1], [1, 1]] : (tensor<32x128x28x28xf16, #dm.at<order = [0, 2, 3, 1]>>, tensor<128x128x3x3xf16, #dm.at<order = [0, 2, 3, 1]>>) -> tensor<32x128x28x28xf16, #dm.at<order = [0, 2, 3, 1]>>
  return %y : tensor<32x128x28x28xf16, #dm.at<order = [0, 2, 3, 1]>>
}
`},
	"attention": {"sm_90a", `func.func @f(%q: tensor<1x80x128x128xf16>, %k: tensor<1x80x640x128xf16>, %v: tensor<1x80x640x128xf16>) -> tensor<1x80x128x128xf16> {
  %y, %lse = dm.attention %q, %k, %v : (tensor<1x80x128x128xf16>, tensor<1x80x640x128xf16>, tensor<1x80x640x128xf16>) -> (tensor<1x80x128x128xf16>, tensor<1x80x128xf32>)
  return %y : tensor<1x80x128x128xf16>
}
`},
	"gradient": {"sm_90a", `func.func @f(%q: tensor<4x384x64xf16>, %k: tensor<4x384x64xf16>, %v: tensor<4x384x64xf16>, %y: tensor<4x384x64xf16>, %lse: tensor<4x384xf32>, %dy: tensor<4x384x64xf16>) -> (tensor<4x384x64xf16>, tensor<4x384x64xf16>, tensor<4x384x64xf16>) {
  %dq, %dk, %dv = dm.attention_grad %q, %k, %v, %y, %lse, %dy : (tensor<4x384x64xf16>, tensor<4x384x64xf16>, tensor<4x384x64xf16>, tensor<4x384x64xf16>, tensor<4x384xf32>, tensor<4x384x64xf16>) -> (tensor<4x384x64xf16>, tensor<4x384x64xf16>, tensor<4x384x64xf16>)
  return %dq, %dk, %dv : tensor<4x384x64xf16>, tensor<4x384x64xf16>, tensor<4x384x64xf16>
}
`},
	"fused": {"sm_90a", `func.func @f(%q: tensor<1024x256x64xf16>, %k: tensor<1024x256x64xf16>, %v: tensor<1024x256x64xf16>, %y: tensor<1024x256x64xf16>, %lse: tensor<1024x256xf32>, %dy: tensor<1024x256x64xf16>) -> (tensor<1024x256x64xf16>, tensor<1024x256x64xf16>, tensor<1024x256x64xf16>) {
  %dq, %dk, %dv = dm.attention_grad %q, %k, %v, %y, %lse, %dy : (tensor<1024x256x64xf16>, tensor<1024x256x64xf16>, tensor<1024x256x64xf16>, tensor<1024x256x64xf16>, tensor<1024x256xf32>, tensor<1024x256x64xf16>) -> (tensor<1024x256x64xf16>, tensor<1024x256x64xf16>, tensor<1024x256x64xf16>)
  return %dq, %dk, %dv : tensor<1024x256x64xf16>, tensor<1024x256x64xf16>, tensor<1024x256x64xf16>
}
`},
	"elements": {"sm_90a", `func.func @f(%x: tensor<4096x128xf16>) -> tensor<4096x128xf16> {
  %y = dm.exp %x : tensor<4096x128xf16>
  return %y : tensor<4096x128xf16>
}
`},
	"clusters": {"sm_90a", `func.func @f(%x: tensor<64x98304xf32>) -> tensor<64x98304xf32> {
  %y = dm.softmax %x, dim = 1 : tensor<64x98304xf32>
  return %y : tensor<64x98304xf32>
}
`},
	"shared sums": {"sm_90a", `func.func @f(%x: tensor<4096x256xf16>, %w: tensor<4096x384xf16>) -> tensor<256x384xf16> {
  %y = dm.einsum "km,kn->mn" %x, %w : (tensor<4096x256xf16>, tensor<4096x384xf16>) -> tensor<256x384xf16>
  return %y : tensor<256x384xf16>
}
`},
	"sums of warps": {"sm_100", `func.func @f(%x: tensor<248x1024xf16>, %w: tensor<1024x256xf16>) -> tensor<248x256xf16> {
  %y = dm.einsum "mk,kn->mn" %x, %w : (tensor<248x1024xf16>, tensor<1024x256xf16>) -> tensor<248x256xf16>
  return %y : tensor<248x256xf16>
}
`},
	"stream-k": {"sm_90a", `func.func @f(%x: tensor<3072x3072xf16>, %w: tensor<768x3072xf16>) -> tensor<3072x768xf16> {
  %y = dm.einsum "mk,nk->mn" %x, %w : (tensor<3072x3072xf16>, tensor<768x3072xf16>) -> tensor<3072x768xf16>
  return %y : tensor<3072x768xf16>
}
`},
	"stream-k of warps": {"sm_80", `func.func @f(%x: tensor<6144x3072xf16>, %w: tensor<768x3072xf16>) -> tensor<6144x768xf16> {
  %y = dm.einsum "mk,nk->mn" %x, %w : (tensor<6144x3072xf16>, tensor<768x3072xf16>) -> tensor<6144x768xf16>
  return %y : tensor<6144x768xf16>
}
`},
	"rows": {"sm_90a", `func.func @f(%x: tensor<256x16384xf32>) -> tensor<256x16384xf32> {
  %y = dm.softmax %x, dim = 1 : tensor<256x16384xf32>
  return %y : tensor<256x16384xf32>
}
`},
}

// wrongKernel is a mistake in the text of a main loop or of the prelude.
type wrongKernel struct {
	base, header, old, new string
	rule                   ptx.Rule
}

var wrongKernels = []wrongKernel{
	{"elements", "async.cuh", `asm volatile("griddepcontrol.wait;" ::: "memory");`, "", ptx.Dependency},
	{"elements", "async.cuh", `asm volatile("griddepcontrol.wait;" ::: "memory");`, `if (threadIdx.x & 32) asm volatile("griddepcontrol.wait;" ::: "memory");`, ptx.Dependency},
	{"elements", "async.cuh", `griddepcontrol.wait`, "griddepcontrol.launch_dependents", ptx.Dependency},
	{"elements", "memory.cuh", `ld.global.v4.u32`, "ld.global.nc.v4.u32", ptx.Dependency},
	{"rows", "async.cuh", `asm volatile("griddepcontrol.wait;" ::: "memory");`, "", ptx.Dependency},
	{"clusters", "async.cuh", `asm volatile("griddepcontrol.wait;" ::: "memory");`, `if (threadIdx.x < 32) asm volatile("griddepcontrol.wait;" ::: "memory");`, ptx.Dependency},
	{"warps on Hopper", "gemm_mma.cuh", "grid_dependency_wait(); // what stands", "// what stands", ptx.Dependency},
	{"warps on Hopper", "gemm_mma.cuh", "grid_dependency_wait(); // what stands", "if (warp() < 2) grid_dependency_wait(); // what stands", ptx.Dependency},
	{"warps on Hopper", "gemm_mma.cuh", "grid_dependency_wait(); // what stands before is computed from the block's number\n  DM_UNROLL\n  for (int s = 0; s < Tile::stages - 1; s++) {", "DM_UNROLL\n  for (int s = 0; s < Tile::stages - 1; s++) {\n    if (s == 1) grid_dependency_wait();", ptx.Dependency},
	{"product", "hopper.cuh", `"prefetch.tensormap [%0];" ::"l"(&map)`, `"prefetch.tensormap [%0];" ::"l"(&map.words[8])`, ptx.Prefetch},
	{"product", "gemm_wgmma.cuh", "grid_dependency_wait(); // of all", "if (warp() < 4) grid_dependency_wait(); // of all", ptx.Dependency},
	{"product", "gemm_wgmma.cuh", "grid_dependency_wait(); // of all", "if (warp() >= 4) grid_dependency_wait(); // of all", ptx.Dependency},
	{"product", "gemm_wgmma.cuh", "grid_dependency_wait(); // of all", "if (thread() == 0) grid_dependency_wait(); // of all", ptx.Dependency},
	{"turns", "gemm_wgmma.cuh", "grid_dependency_wait(); // of all", "if (block() > 0) grid_dependency_wait(); // of all", ptx.Dependency},
	{"gather", "gemm_wgmma.cuh", "grid_dependency_wait(); // of all", "if (warp() != 1) grid_dependency_wait(); // of all", ptx.Dependency},
	{"attention", "attention_wgmma.cuh", "grid_dependency_wait(); // of all", "if (warp() < 4) grid_dependency_wait(); // of all", ptx.Dependency},
	{"attention", "attention_wgmma.cuh", "grid_dependency_wait(); // of all", "if (thread() != 0) grid_dependency_wait(); // of all", ptx.Dependency},

	{"product", "gemm_wgmma.cuh", "barriers_ready();", "", ptx.BarrierInit},
	{"tf32", "gemm_wgmma.cuh", "barrier_wait(empty, slot, phase ^ 1);", "", ptx.Reused},
	{"tf32", "gemm_wgmma.cuh", "(size_a + size_b) * int", "size_a * int", ptx.Transactions},
	{"tf32", "gemm_wgmma.cuh", "products_begin();", "", ptx.ProductFence},
	{"tf32", "gemm_wgmma.cuh", "r * line + k, 16, 1024)", "r * line + k, 16, 512)", ptx.Descriptor},
	{"tf32", "gemm_wgmma.cuh", "Bulk<B>::at(bs + slot * size_b, 0, k)", "Bulk<B>::at(bs + slot * size_b, 0, k / 2)", ptx.Descriptor},
	{"tf32 of warps", "gemm_mma.cuh", "cp_async_wait<Tile::stages - 2>();", "cp_async_wait<Tile::stages - 1>();", ptx.CopyGroup},
	{"tf32 of warps", "gemm_mma.cuh", "    sync();\n    // The slot", "    // The slot", ptx.CopyGroup},
	{"product", "gemm_wgmma.cuh", "Pair::none) sync();", "Pair::none) ;", ptx.BarrierInit},
	{"product", "gemm_wgmma.cuh", "Pair::none ? Tile::warps", "Pair::none ? Tile::warps + 1", ptx.Arrivals},
	{"product", "gemm_wgmma.cuh", "Pair::none ? Tile::warps", "Pair::none ? Tile::warps - 1", ptx.Reused},
	{"product", "gemm_wgmma.cuh", "barrier_make(full, i, Feed<A, B>::arrivals)", "barrier_make(full, i, 2)", ptx.Arrivals},
	{"product", "gemm_wgmma.cuh", "phase ^ 1", "phase", ptx.Phase},
	{"product", "gemm_wgmma.cuh", "barrier_wait(empty, slot, phase ^ 1);", "", ptx.Reused},
	{"product", "gemm_wgmma.cuh", "barrier_wait(full, slot, phase);", "", ptx.Landed},
	{"product", "gemm_wgmma.cuh", "(size_a + size_b) * int", "size_a * int", ptx.Transactions},
	{"product", "gemm_wgmma.cuh", "products_begin();", "", ptx.ProductFence},
	{"product", "gemm_wgmma.cuh", "products_wait<1>();", "products_wait<2>();", ptx.Reused},
	{"product", "gemm_wgmma.cuh", "products_wait<0>();\n      DM_UNROLL", "DM_UNROLL", ptx.InFlight},
	{"product", "gemm_wgmma.cuh", "products_wait<0>();\n      DM_UNROLL", "products_wait<1>();\n      DM_UNROLL", ptx.InFlight},
	{"product", "gemm_wgmma.cuh", "products_commit();", "", ptx.InFlight},
	{"product", "gemm_wgmma.cuh", "if (at >= 0 && lane() == 0)", "if (at >= 0)", ptx.Arrivals},
	{"product", "gemm_wgmma.cuh", "release(before);", "release(slot);", ptx.Reused},
	{"product", "gemm_wgmma.cuh", "before = slot;", "", ptx.Phase},
	{"product", "gemm_wgmma.cuh", "gathers ? 200 : 232", "gathers ? 200 : 240", ptx.Registers},
	{"product", "gemm_wgmma.cuh", "gathers ? 104 : 40", "gathers ? 104 : 48", ptx.Registers},
	{"product", "gemm_wgmma.cuh", "as + slot * size_a, full", "as + (slot ^ 1) * size_a, full", ptx.Landed},
	{"product", "gemm_wgmma.cuh", "r * line + k, 16, 1024", "r * line + k, 16, 512", ptx.Descriptor},
	{"product", "gemm_wgmma.cuh", "r * 64 + k * 64, 8192, 1024", "r * 64 + k * 64, 8192, 2048", ptx.Descriptor},
	{"product", "gemm_wgmma.cuh", "r * 64 + k * 64, 8192, 1024", "r * 64 + k * 32, 8192, 1024", ptx.Descriptor},
	{"product", "gemm_wgmma.cuh", "p.m, step * Tile::BK", "p.m, step * 32", ptx.Descriptor},
	{"product", "hopper.cuh", "u64(1) << 62", "u64(2) << 62", ptx.Descriptor},
	{"product", "hopper.cuh", "u64(1) << 62", "u64(0) << 62", ptx.Descriptor},
	{"product", "gemm_wgmma.cuh", "Tile::BM * Tile::BK, 1024)", "Tile::BM * Tile::BK, 1024) + 64", ptx.Bounds},
	{"one step", "gemm_wgmma.cuh", "for (int i = 0; i < FM; i++) products_settle(acc[i]);\n\n      // The other", "for (int i = 0; i < FM; i++) ;\n\n      // The other", ptx.ProductFence},
	{"product", "gemm_wgmma.cuh", "writes_publish();", "", ptx.ProxyFence},
	{"one step", "gemm_wgmma.cuh", "stores_wait<1>();", "stores_wait<2>();", ptx.Reused},
	{"product", "gemm_wgmma.cuh", "if (lane() == 0) stores_wait<0>();", "", ptx.BulkGroup},
	{"product", "gemm_wgmma.cuh", "stores_commit();", "", ptx.BulkGroup},
	{"product", "gemm_wgmma.cuh", "2 * 16 * Tile::width", "16 * Tile::width", ptx.Reused},
	{"product", "gemm_wgmma.cuh", "(8 * slab_size, 1024)", "(8 * slab_size, 1024) + 64", ptx.Bounds},
	{"pair", "gemm_wgmma.cuh", "else cluster_sync();", "else sync();", ptx.ClusterLife},
	{"pair", "gemm_wgmma.cuh", "barriers_ready();", "", ptx.BarrierInit},
	{"pair", "gemm_wgmma.cuh", "2 * Tile::warps", "Tile::warps", ptx.Reused},
	{"pair", "gemm_wgmma.cuh", "2 * Tile::warps", "2 * Tile::warps + 1", ptx.Arrivals},
	{"pair", "gemm_wgmma.cuh", "barrier_leave(empty, at, lane())", "barrier_leave(empty, at, cluster_rank())", ptx.Reused},
	{"pair", "gemm_wgmma.cuh", "lane() < 2) barrier", "lane() < 1) barrier", ptx.Phase},
	{"pair", "gemm_wgmma.cuh", "ring.drain();", ";", ptx.ClusterLife},
	{"pair", "gemm_wgmma.cuh", "i < Tile::stages; i++) {\n      barrier_wait", "i < Tile::stages - 1; i++) {\n      barrier_wait", ptx.ClusterLife},
	{"pair", "gemm_wgmma.cuh", "barrier_wait(empty, slot, phase ^ 1);", "", ptx.Reused},
	{"pair", "gemm_wgmma.cuh", "cluster_rank() * (Rows / 2)", "0", ptx.Reused},
	{"pair", "gemm_wgmma.cuh", "(first + i) * line, full", "i * line, full", ptx.Reused},
	{"pair", "gemm_wgmma.cuh", "(size_a + size_b) * int", "(size_a + size_b / 2) * int", ptx.Transactions},
	{"pair", "hopper.cuh", `"r"(detail::shared_address(b.p + i)), "h"(mask), "r"(c0), "r"(c1) :`, `"r"(detail::shared_address(b.p + i)), "h"(u16(mask << 1)), "r"(c0), "r"(c1) :`, ptx.Multicast},
	{"pair", "hopper.cuh", `"r"(detail::shared_address(b.p + i)), "h"(mask), "r"(c0), "r"(c1) :`, `"r"(detail::shared_address(b.p + i)), "h"(u16(1)), "r"(c0), "r"(c1) :`, ptx.Transactions},
	{"pair", "cluster.cuh", `mapa.shared::cluster.u32 %0, %1, %2;`, `mapa.shared::cluster.u32 %0, %1, 0;`, ptx.Reused},
	{"bytes", "gemm_wgmma.cuh", "int(sizeof(T)));", "2);", ptx.Transactions},
	{"bytes", "gemm_wgmma.cuh", "r * line + k, 16, 1024", "r * line + k, 16, 512", ptx.Descriptor},
	{"bytes", "gemm_wgmma.cuh", "Bulk<B>::at(right, 0, k)", "Bulk<B>::at(right, 0, k / 2)", ptx.Descriptor},
	{"bytes", "gemm_wgmma.cuh", "(first + i) * line, full", "(first + i) * 64, full", ptx.Reused},
	{"bytes", "gemm_wgmma.cuh", "p.z, p.n, step * Tile::BK", "p.z, p.n, step * 64", ptx.Descriptor},
	{"bytes", "gemm_wgmma.cuh", "products_begin();\n        product_of_bytes", "product_of_bytes", ptx.ProductFence},
	{"bytes", "gemm_wgmma.cuh", "products_wait<0>();\n        products_settle(part);", "products_settle(part);", ptx.InFlight},
	{"bytes", "gemm_wgmma.cuh", "products_commit();\n        products_wait<0>();", "products_wait<0>();", ptx.InFlight},
	{"bytes", "gemm_wgmma.cuh", "if (i == FM - 1) release(slot);", "if (i == 0) release(slot);", ptx.Reused},
	{"bytes", "gemm_wgmma.cuh", "if (i == FM - 1) release(slot);", "release(slot);", ptx.Reused},
	{"bytes", "gemm_wgmma.cuh", "if (i == FM - 1) release(slot);", "", ptx.Phase},
	{"turns", "gemm_wgmma.cuh", "barrier_make(turns, i, 4)", "barrier_make(turns, i, 5)", ptx.Arrivals},
	{"turns", "gemm_wgmma.cuh", "barrier_make(turns, i, 4)", "barrier_make(turns, i, 3)", ptx.Arrivals},
	{"turns", "gemm_wgmma.cuh", "(group ? round : round + 1) & 1", "round & 1", ptx.Phase},
	{"turns", "gemm_wgmma.cuh", "barrier_arrive(turns, group ^ 1)", "barrier_arrive(turns, group)", ptx.Phase},
	{"turns", "gemm_wgmma.cuh", "if (lane() == 0) barrier_arrive(turns", "barrier_arrive(turns", ptx.Arrivals},
	{"turns", "gemm_wgmma.cuh", "if constexpr (Tile::turns) barrier_wait", "if constexpr (false) barrier_wait", ptx.Reused},
	{"turns", "gemm_wgmma.cuh", "skip(tile + blocks());", "", ptx.Phase},
	{"turns", "gemm_wgmma.cuh", "if (Tile::turns && group > 0) skip(block());", "", ptx.Phase},
	{"turns", "gemm_wgmma.cuh", "phase ^= u32(to / Tile::stages) & 1;", "", ptx.Phase},
	{"turns", "gemm_wgmma.cuh", "warps = 4, rows = BM", "warps = 8, rows = BM", ptx.Phase},
	{"gather", "gemm_gather.cuh", "cp_async_wait<behind>();\n      writes_publish();", "cp_async_wait<behind>();", ptx.ProxyFence},
	{"gather", "gemm_gather.cuh", "cp_async_wait<behind>();\n      writes_publish();", "writes_publish();\n      cp_async_wait<behind>();", ptx.ProxyFence},
	{"gather", "gemm_gather.cuh", "cp_async_wait<behind>()", "cp_async_wait<behind + 1>()", ptx.CopyGroup},
	{"gather", "gemm_gather.cuh", "cp_async_commit();", "", ptx.CopyGroup},
	{"gather", "gemm_gather.cuh", "cp_async_wait<0>();", "", ptx.CopyGroup},
	{"gather", "gemm_gather.cuh", "barrier_wait(empty, slot, phase ^ 1);", "", ptx.Reused},
	{"gather", "gemm_gather.cuh", "if (lane() == 0) barrier_arrive(full, ready);", "barrier_arrive(full, ready);", ptx.Arrivals},
	{"gather", "gemm_gather.cuh", "if (bytes > 0 && thread() == 0) barrier_expect(full, slot, bytes);", "if (thread() == 0) barrier_arrive(full, slot);", ptx.Transactions},
	{"gather", "gemm_gather.cuh", "bytes = Rows * 64 * 2", "bytes = Rows * 64", ptx.Transactions},
	{"gather", "gemm_gather.cuh", "behind = Tile::stages - 2", "behind = Tile::stages - 1", ptx.Phase},
	{"gather", "gemm_gather.cuh", "(line() + i * 16) * 64 + (c", "(line() + i * 16) * 64 + 4 + (c", ptx.Bounds},
	{"gather", "gemm_wgmma.cuh", "gathers ? 4 + ", "gathers ? 5 + ", ptx.Arrivals},
	{"gather", "gemm_wgmma.cuh", "gathers ? 104 : 40", "gathers ? 112 : 40", ptx.Registers},
	{"attention", "attention_wgmma.cuh", "barrier_make(k_empty, i, 4 * consumers)", "barrier_make(k_empty, i, 4 * consumers + 1)", ptx.Arrivals},
	{"attention", "attention_wgmma.cuh", "barrier_make(turns, i, 4)", "barrier_make(turns, i, 5)", ptx.Arrivals},
	{"attention", "attention_wgmma.cuh", "barrier_wait(q_full, 0, round & 1);", "", ptx.Landed},
	{"attention", "attention_wgmma.cuh", "barrier_wait(v_full, at.slot, at.phase);\n        const", "const", ptx.Landed},
	{"attention", "attention_wgmma.cuh", "barrier_wait(v_empty, at.slot, at.phase ^ 1);", "", ptx.Reused},
	{"attention", "attention_wgmma.cuh", "(group ? n : n + 1) & 1);\n        const", "n & 1);\n        const", ptx.Phase},
	{"attention", "attention_wgmma.cuh", "products_begin();\n        product<", "product<", ptx.ProductFence},
	{"attention", "attention_wgmma.cuh", "products_begin();\nDM_UNROLL", "DM_UNROLL", ptx.ProductFence},
	{"attention", "attention_wgmma.cuh", "products_wait<1>();", "products_wait<2>();", ptx.InFlight},
	{"attention", "attention_wgmma.cuh", "softmax(step);\n          products_wait<0>();", "softmax(step);\n          products_wait<1>();", ptx.InFlight},
	{"attention", "attention_wgmma.cuh", "softmax(step);\n          products_wait<0>();\n          products_settle(sums);\n          detail::release(v_empty, Stage(n - 1).slot);", "detail::release(v_empty, Stage(n - 1).slot);\n          softmax(step);\n          products_wait<0>();\n          products_settle(sums);", ptx.Reused},
	{"attention", "attention_wgmma.cuh", "row * 64, 16, 1024)", "row * 64, 16, 2048)", ptx.Descriptor},
	{"attention", "attention_wgmma.cuh", "0, Rows * 128, 1024)", "0, 1024, Rows * 128)", ptx.Descriptor},
	{"gradient", "attention_grad_wgmma.cuh", "barrier_make(full, i, ByKeys ? 2 : 1)", "barrier_make(full, i, 1)", ptx.Phase},
	{"gradient", "attention_grad_wgmma.cuh", "barrier_wait(own, 0, 0);", "", ptx.Landed},
	{"gradient", "attention_grad_wgmma.cuh", "products_wait<given<DX>>();", "products_wait<given<DX> + 1>();", ptx.InFlight},
	{"gradient", "attention_grad_wgmma.cuh", "products_wait<given<DV>>();", "products_wait<given<DV> + 1>();", ptx.InFlight},
	{"gradient", "attention_grad_wgmma.cuh", "products_begin();\nDM_UNROLL\n        for (int i = 0; i < BN / 16; i++) product_held<T, Own::", "DM_UNROLL\n        for (int i = 0; i < BN / 16; i++) product_held<T, Own::", ptx.ProductFence},
	{"fused", "attention_grad_fused.cuh", "barrier_wait_peers(turn", "barrier_wait(turn", ptx.ClusterScope},
	{"fused", "hopper.cuh", "mbarrier.arrive.release.cluster", "mbarrier.arrive.relaxed.cluster", ptx.ClusterScope},
	{"fused", "attention_grad_fused.cuh", "if (l < cluster) barrier_arrive(turn, 0, l)", "if (l < 1) barrier_arrive(turn, 0, l)", ptx.Phase},
	{"fused", "attention_grad_fused.cuh", "barrier_make(turn, 0, 4 * consumers * cluster)", "barrier_make(turn, 0, 4 * consumers)", ptx.Arrivals},
	{"fused", "attention_grad_fused.cuh", "if constexpr (cluster > 1) cluster_sync();", "", ptx.ClusterLife},
	{"fused", "attention_grad_fused.cuh", "writes_publish();", "", ptx.ProxyFence},
	{"fused", "attention_grad_fused.cuh", "sync_named(1, 128 * consumers);", "", ptx.SharedRace},
	{"fused", "attention_grad_fused.cuh", "i32(n & 1) * Scored::size", "0 * Scored::size", ptx.Reused},
	{"fused", "attention_grad_fused.cuh", "products_wait<1>();\n        products_settle(part);", "products_wait<2>();\n        products_settle(part);", ptx.InFlight},
	{"warps", "gemm_mma.cuh", "cp_async_wait<Tile::stages - 2>();", "cp_async_wait<Tile::stages - 1>();", ptx.CopyGroup},
	{"warps", "gemm_mma.cuh", "cp_async_wait<Tile::stages - 2>();\n    sync();", "cp_async_wait<Tile::stages - 2>();", ptx.CopyGroup},
	{"warps", "gemm_mma.cuh", "cp_async_commit();\n    DM_UNROLL", "DM_UNROLL", ptx.CopyGroup},
	{"warps", "gemm_mma.cuh", "ahead = step + Tile::stages - 1,", "ahead = step + Tile::stages,", ptx.Reused},
	{"warps", "gemm_mma.cuh", "cp_async_wait<0>();\n  sync();", "cp_async_wait<0>();", ptx.SharedRace},
	{"clusters", "cluster.cuh", `asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");`, "", ptx.ClusterBarrier},
	{"clusters", "cluster.cuh", `asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");`, "", ptx.ClusterBarrier},
	{"clusters", "cluster.cuh", "arrive.release.aligned", "arrive.relaxed.aligned", ptx.SharedRace},
	{"clusters", "cluster.cuh", "  cluster_arrive();\n  cluster_wait();", "", ptx.SharedRace},
	{"clusters", "cluster.cuh", "  cluster_arrive();\n  cluster_wait();", "  __syncthreads();", ptx.ClusterLife},
	{"clusters", "cluster.cuh", "  cluster_arrive();\n  cluster_wait();", "  if (lane() < 16) cluster_arrive();\n  cluster_wait();", ptx.Aligned},
	{"clusters", "cluster.cuh", `"r"(at), "r"(rank));`, `"r"(at), "r"(rank + 1));`, ptx.Bounds},
	{"clusters", "cluster.cuh", `st.shared::cluster.u32 [%0], %1;`, `st.shared.u32 [%0], %1;`, ptx.Bounds},
	{"clusters", "dm.cuh", "__cluster_dims__(cluster, 1, 1)", "__cluster_dims__(cluster / 2, 1, 1)", ptx.ClusterSize},
	{"shared sums", "gemm_wgmma.cuh", "sync_named(1, Tile::warps * 32);", "", ptx.Reused},
	{"shared sums", "gemm_wgmma.cuh", "sync_named(1, Tile::warps * 32);", "sync_named(1 + warp() / 8, Tile::warps * 16);", ptx.Reused},
	{"shared sums", "gemm_wgmma.cuh", "sync_warp();\n      cluster_sync();", "cluster_arrive();", ptx.ClusterBarrier},
	{"shared sums", "gemm_cluster.cuh", "cluster_sync(); // the parts are whole", "sync_named(2, 256);", ptx.ClusterLife},
	{"shared sums", "gemm_cluster.cuh", "cluster_sync(); // no block ends", "// no block ends", ptx.ClusterLife},
	{"shared sums", "gemm_cluster.cuh", "cluster_sync(); // no block ends", "cluster_begin(), cluster_wait(); // no block ends", ptx.ClusterLife},
	{"shared sums", "gemm_cluster.cuh", "peer(part.sums, s)", "peer(part.sums, s + 1)", ptx.Bounds},
	{"sums of warps", "gemm_cluster.cuh", "cluster_sync(); // the parts are whole", "sync();", ptx.ClusterLife},
	{"sums of warps", "gemm_cluster.cuh", "cluster_sync(); // the parts are whole", "cluster_begin(), cluster_wait();", ptx.SharedRace},
	{"sums of warps", "gemm_cluster.cuh", "cluster_sync(); // no block ends", "sync(); // no block ends", ptx.ClusterLife},
	{"sums of warps", "gemm_mma.cuh", "cp_async_wait<0>();\n  sync();", "cp_async_wait<0>();", ptx.SharedRace},
	{"stream-k", "warp.cuh", "st.release.gpu.global", "st.relaxed.gpu.global", ptx.Flag},
	{"stream-k", "warp.cuh", "st.release.gpu.global", "st.release.cta.global", ptx.Flag},
	{"stream-k", "warp.cuh", "ld.acquire.gpu.global", "ld.relaxed.gpu.global", ptx.Flag},
	{"stream-k", "warp.cuh", "while (posted == 0);", "while (false);", ptx.Flag},
	{"stream-k", "warp.cuh", "  __syncwarp();\n  if (lane() == 0) asm volatile(\"st.release", "  if (lane() == 0) asm volatile(\"st.release", ptx.Flag},
	{"stream-k", "warp.cuh", "while (posted == 0);\n  }\n  __syncwarp();", "while (posted == 0);\n  }", ptx.Flag},
	{"stream-k", "gemm_stream_k.cuh", "post(shares.flags, block() * Warps + warp);", "", ptx.Flag},
	{"stream-k", "gemm_stream_k.cuh", "await(shares.flags, other * Warps + warp);", "", ptx.Flag},
	{"stream-k of warps", "gemm_stream_k.cuh", "await(shares.flags, other * Warps + warp);", "if (n > part() + 1) await(shares.flags, other * Warps + warp);", ptx.Flag},
	{"stream-k of warps", "gemm_mma.cuh", "sync(); // the slabs are memory of the stages", "", ptx.Reused},
	{"rows", "warp.cuh", "scratch[DM_IDX(warp())] = v;\n  sync(DM_HERE_ONLY);", "scratch[DM_IDX(warp())] = v;", ptx.SharedRace},
	{"rows", "warp.cuh", "sync(DM_HERE_ONLY);  // the scratch may be used again", "", ptx.SharedRace},
	{"rows", "warp.cuh", "scratch[DM_IDX(warp())] = v;\n  sync(DM_HERE_ONLY);", "scratch[DM_IDX(warp())] = v;\n  if (thread() != 5) sync(DM_HERE_ONLY);", ptx.Aligned},
}

// Each mistake is found by the rule that it violates, a sixth of them in turn; without it nothing is.
// They cannot share a compilation: a kernel's own text takes most of its time.
func TestWrongKernels(t *testing.T) {
	need.Long(t)
	needNVRTC(t)
	built, right := map[string]*artifact.Program{}, map[string]*nvrtc.Result{}
	const parts = 6
	part := func(i int) int { return i * parts / len(wrongKernels) } // those side by side have the same kernels
	for i, w := range wrongKernels {
		name, b := w.base, wrongBases[w.base]
		if built[name] != nil || !need.Turn(t, part(i), parts) {
			continue
		}
		p := builtFor(t, name+".dmir", b.text, b.arch)
		compiled, err := nvrtc.CompileProgram(t.Context(), p, b.arch, nvrtc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		built[name], right[name] = p, compiled
		if r := ptxtest.Check(t, p, compiled); len(r.Undecided) > 0 {
			t.Errorf("%s: not decided: %v", name, r.Undecided)
		}
	}
	for i, w := range wrongKernels {
		if !need.Turn(t, part(i), parts) {
			continue
		}
		t.Run(w.base+"/"+w.old+"/"+w.new, func(t *testing.T) {
			t.Parallel()
			p := *built[w.base]
			p.Headers = slices.Clone(nvrtc.DeviceHeaders())
			changed := false
			for i, h := range p.Headers {
				if h.Name == w.header {
					p.Headers[i].Text = strings.Replace(h.Text, w.old, w.new, 1)
					changed = p.Headers[i].Text != h.Text
				}
			}
			if !changed {
				t.Fatalf("%s has no %q", w.header, w.old)
			}
			compiled, err := nvrtc.CompileProgram(t.Context(), &p, wrongBases[w.base].arch, nvrtc.Options{PTX: true})
			if err != nil {
				t.Fatal(err)
			}
			r, err := ptx.Program(&p, compiled.PTX, right[w.base].Kernels)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range r.Findings {
				if f.Rule == w.rule {
					if f.Source != 2 {
						t.Errorf("the finding is not of the product's line: %s", f)
					}
					return
				}
				found = append(found, f.String())
			}
			t.Errorf("%s has no finding, but: %s; not decided: %v", w.rule, strings.Join(found, "\n"), r.Undecided)
		})
	}
}
