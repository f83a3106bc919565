package cuda

import (
	"slices"
	"testing"

	"dmir/gpu/artifact"
)

// Rows that the blocks of clusters share and hold in registers, in every form but sums of columns and rows whose elements lie apart: parts
// that end with the row and that do not, vectors and single elements, a last block with little; loads in batches, and rows that
// nothing reads twice. The results are close to the reference's, and the elements are read once.
func TestClusterRows(t *testing.T) {
	t.Parallel()
	target := targetOf(t, "sm_90a")
	c := newCollection(target)
	sizes := []struct{ rows, cols int }{{2, 16384}, {3, 20001}, {5, 24584}, {2, 16900}}
	elems := []string{"f32", "f16", "bf16"}
	n := 0
	for _, r := range longRows {
		for k := range elems {
			if every := r.name == "softmax" || r.name == "layer_norm" || r.name == "softmax_gradient"; k > 0 && !every {
				break
			}
			size, elem := sizes[n%len(sizes)], elems[n/len(sizes)%len(elems)]
			p := r.of(elem, size.rows, size.cols)
			plan := target.rows(formed(t, p))
			if none := len(plan.f.Nest.Columns) > 0 || r.name == "softmax_of_columns"; none != (plan.cluster == 0) {
				t.Errorf("%s: clusters of %d blocks", p.name, plan.cluster)
			}
			if plan.cluster > 0 {
				n++
				c.launches(t, p, plan.count())
			}
		}
	}
	for _, s := range []struct {
		name, elem string
		rows, cols int
	}{{"softmax", "f64", 2, 9002}, {"greatest_and_sum", "i32", 2, 17000}} {
		c.launches(t, rowForm(t, s.name).of(s.elem, s.rows, s.cols), 1)
	}
	if !slices.ContainsFunc(c.out.Kernels, func(k artifact.Kernel) bool { return k.Block.Cluster == 8 }) {
		t.Error("no cluster has eight blocks")
	}
	c.emulate(t)
}
