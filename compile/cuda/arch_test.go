package cuda

import (
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/compile/assemble"
)

// large are forms with the largest tiles.
var large = []struct{ name, args, body, results string }{
	{"attention of depth 256", "%q: tensor<2x8x1024x256xf16>", "%1 = dm.attention %q, %q, %q : (tensor<2x8x1024x256xf16>, tensor<2x8x1024x256xf16>, tensor<2x8x1024x256xf16>) -> tensor<2x8x1024x256xf16>", "%1 : tensor<2x8x1024x256xf16>"},
	{"attention in f32", "%q: tensor<8x1024x128xf32>", "%1 = dm.attention %q, %q, %q : (tensor<8x1024x128xf32>, tensor<8x1024x128xf32>, tensor<8x1024x128xf32>) -> tensor<8x1024x128xf32>", "%1 : tensor<8x1024x128xf32>"},
	{"a large product", "%x: tensor<8192x8192xbf16>", "%1 = dm.matmul %x, %x : (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>", "%1 : tensor<8192x8192xbf16>"},
	{"a large product in tf32", "%x: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>", "%1 = dm.matmul %x, %w, precision = tf32 : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>", "%1 : tensor<4096x4096xf32>"},
	{"a product along k in tf32", "%x: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>, %b: tensor<4096xf32>", "%0 = dm.matmul %x, %w, transpose_b = true, precision = tf32 : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>\n%1 = dm.add %0, %b : (tensor<4096x4096xf32>, tensor<4096xf32>) -> tensor<4096x4096xf32>", "%1 : tensor<4096x4096xf32>"},
	{"a large product in f64", "%x: tensor<4096x4096xf64>", "%1 = dm.matmul %x, %x : (tensor<4096x4096xf64>, tensor<4096x4096xf64>) -> tensor<4096x4096xf64>", "%1 : tensor<4096x4096xf64>"},
	{"groups of halves", "%x: tensor<4096x1024xf16>, %w: tensor<16x1024x2048xf16>, %p: tensor<17xi32>", "%1 = dm.grouped_matmul %x, %w, %p : (tensor<4096x1024xf16>, tensor<16x1024x2048xf16>, tensor<17xi32>) -> tensor<4096x2048xf16>", "%1 : tensor<4096x2048xf16>"},
	{"products of groups", "%x: tensor<4096x1024xf16>, %g: tensor<4096x2048xf16>, %p: tensor<17xi32>", "%1 = dm.grouped_matmul %x, %g, %p : (tensor<4096x1024xf16>, tensor<4096x2048xf16>, tensor<17xi32>) -> tensor<16x1024x2048xf16>", "%1 : tensor<16x1024x2048xf16>"},
	{"rows of clusters", "%x: tensor<64x131072xf32>", "%1 = dm.softmax %x : tensor<64x131072xf32>", "%1 : tensor<64x131072xf32>"},
	{"long rows", "%x: tensor<4x1048576xf32>", "%1 = dm.softmax %x : tensor<4x1048576xf32>", "%1 : tensor<4x1048576xf32>"},
	{"a rank of long rows", "%x: tensor<64x8192xf32>", "%1, %2 = dm.sort %x, dim = 1 : (tensor<64x8192xf32>) -> (tensor<64x8192xf32>, tensor<64x8192xi64>)", "%1, %2 : tensor<64x8192xf32>, tensor<64x8192xi64>"},
	{"the first of long lines in f64", "%x: tensor<1000000xf64>", "%1, %2 = dm.top_k %x, k = 1024 : (tensor<1000000xf64>) -> (tensor<1024xf64>, tensor<1024xi64>)", "%1, %2 : tensor<1024xf64>, tensor<1024xi64>"},
	{"a convolution", "%x: tensor<8x64x56x56xf16>, %w: tensor<64x64x3x3xf16>", "%1 = dm.convolution %x, %w, window_strides = [1, 1], padding = [[1, 1], [1, 1]] : (tensor<8x64x56x56xf16>, tensor<64x64x3x3xf16>) -> tensor<8x64x56x56xf16>", "%1 : tensor<8x64x56x56xf16>"},
}

// What a block asks for is what a multiprocessor of the architecture has, whatever machine the times are predicted for: of the kernels
// of all forms, and of those with the largest tiles.
func TestBlocksFitArchitectures(t *testing.T) {
	h200, _ := machine.Lookup("h200")
	archs := []string{"sm_90a"}
	for capability := range blockShared {
		archs = append(archs, "sm_"+capability)
	}
	slices.Sort(archs)
	for _, c := range slices.Concat(planned, large) {
		for _, arch := range archs {
			f := formed(t, productCase{name: c.name, args: c.args, body: c.body, out: c.results})
			target := Target{Arch: arch, Machine: on(h200, arch)}
			p, err := target.plan(f, assemble.Options{})
			if err != nil {
				t.Fatalf("%s on %s: %v", c.name, arch, err)
			}
			ls, err := p.launches()
			if err != nil {
				t.Fatalf("%s on %s: %v", c.name, arch, err)
			}
			for _, l := range ls {
				if most := blockShared[strings.TrimRight(strings.TrimPrefix(arch, "sm_"), "a")]; int64(l.Block.Shared) > most {
					t.Errorf("%s on %s: a block of %s has %d bytes of shared memory, %d is the most", c.name, arch, l.Class, l.Block.Shared, most)
				}
				if l.Block.Threads < 32 || l.Block.Threads > 1024 {
					t.Errorf("%s on %s: %d threads", c.name, arch, l.Block.Threads)
				}
				if l.Grid[0] < 1 || l.Grid[0] > 1<<31-1 || l.Grid[1] < 1 || l.Grid[1] > 65535 || l.Grid[2] < 1 || l.Grid[2] > 65535 {
					t.Errorf("%s on %s: a grid of %v", c.name, arch, l.Grid)
				}
				if n := l.Block.Cluster; n > 1 && (l.Arch != "sm_90a" || arch != l.Arch || n > 8 || l.Grid[0]%n != 0) { // 8 blocks are portable
					t.Errorf("%s on %s: clusters of %d in a grid of %v", c.name, arch, n, l.Grid)
				}
			}
		}
	}
}
