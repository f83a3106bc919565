package cuda

import (
	"testing"

	"dmir/testkit/need"
)

// columnCases are reductions over rows alone.
var columnCases = []longRow{
	{productCase{name: "sum", args: "%x: TENSOR", body: "%y = dm.reduce %x, kind = add, dims = [0] : (TENSOR) -> tensor<COLSxELEM>", out: "%y : tensor<COLSxELEM>"}, 1},
	{productCase{
		name: "bias_gradient", args: "%x: TENSOR, %g: TENSOR, %b: tensor<COLSxELEM>", out: "%1, %3 : TENSOR, tensor<COLSxELEM>",
		body: `%1 = dm.mul %x, %g : TENSOR
%2 = dm.reduce %1, kind = add, dims = [0] : (TENSOR) -> tensor<COLSxELEM>
%3 = dm.add %2, %b : tensor<COLSxELEM>`,
	}, 1},
	{productCase{
		name: "greatest_and_least", args: "%x: TENSOR", out: "%y, %z : tensor<COLSxELEM>, tensor<COLSxELEM>",
		body: `%y = dm.reduce %x, kind = max, dims = [0] : (TENSOR) -> tensor<COLSxELEM>
%z = dm.reduce %x, kind = min, dims = [0] : (TENSOR) -> tensor<COLSxELEM>`,
	}, 1},
}

// Columns whose rows the blocks of a cluster share: vectors and single elements, fewer columns than a block has and more, a last block
// with few rows, several reductions, results of each element.
func TestClusterColumns(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for n, arch := range []string{"sm_90a", "sm_100"} {
		target := targetOf(t, arch)
		c := newCollection(target)
		for i, s := range []struct {
			elem       string
			rows, cols int
		}{{"f16", 1027, 520}, {"f32", 300, 65}, {"bf16", 517, 2048}, {"i32", 777, 260}, {"f64", 290, 34}, {"f16", 140, 24}, {"i8", 999, 40}} {
			if arch == "sm_100" && i > 2 {
				break
			}
			p := columnCases[i%len(columnCases)].of(s.elem, s.rows, s.cols)
			if got := target.columns(formed(t, p)); !got.cluster {
				t.Errorf("%s: %d blocks share the rows of %d columns, and no cluster", p.name, got.splits, s.cols)
			}
			c.launches(t, p, 1)
		}
		for _, k := range c.out.Kernels {
			if k.Block.Cluster < 2 || k.Arch != arch || k.Block.Shared > 0 {
				t.Errorf("%s: %+v", k.Name, k.Block)
			}
		}
		c.emulate(t)
		if need.Turn(t, n, 2) {
			c.compile(t, arch)
		}
	}
}

// As many rows as fill the machine many times are summed by more blocks than a cluster has only where that is faster, and never on
// architectures without clusters.
func TestColumnPlans(t *testing.T) {
	for _, s := range []struct {
		arch       string
		rows, cols int
		cluster    bool
	}{
		{"sm_90a", 12288, 3072, true}, {"sm_90a", 4096, 1024, true}, {"sm_90a", 1 << 20, 8, false}, {"sm_90a", 1 << 20, 64, false}, {"sm_100", 4096, 1024, true}, {"sm_80", 4096, 1024, false}, {"", 4096, 1024, false},
	} {
		target := targetOf(t, "sm_90a")
		if s.arch != "" {
			target = targetOf(t, s.arch)
		}
		target.Arch = s.arch
		p := target.columns(formed(t, columnCases[0].of("f16", s.rows, s.cols)))
		blocks := p.tiles * p.splits
		if p.cluster != s.cluster || p.cluster != (p.count() == 1) || (p.count() == 1) != (len(p.temps()) == 0) {
			t.Errorf("%s %d x %d: %d blocks in clusters: %t, %d launches", s.arch, s.rows, s.cols, blocks, p.cluster, p.count())
		}
		t.Logf("%s %d x %d: %d blocks of %d x %d threads, cluster %t, %.2f µs", s.arch, s.rows, s.cols, blocks, p.deep, p.wide, p.cluster, p.seconds(target.Machine)*1e6)
	}
}
