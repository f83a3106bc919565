package cost_test

import (
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/base/work"
	"dmir/syntax/source"
)

// Costs write an op on sparse tensors out once, whatever they ask of it.
func TestSparseOpsAreWrittenOutOnce(t *testing.T) {
	const text = `!a = tensor<64x64xf32, #dm.csr<nnz = 300>>
!b = tensor<64x64xf16, #dm.bsr<16x16, nnz = 8>>
func.func @f(%a: !a, %b: !b, %x: tensor<64x32xf32>, %y: tensor<64x32xf16>) -> (tensor<64x32xf32>, tensor<64x32xf16>, tensor<64x64xf32>) {
  %r = dm.relu %a : !a
  %p = dm.softmax %r, dim = 1 : !a
  %0 = dm.matmul %p, %x : (!a, tensor<64x32xf32>) -> tensor<64x32xf32>
  %1 = dm.matmul %b, %y : (!b, tensor<64x32xf16>) -> tensor<64x32xf16>
  %2 = dm.matmul %a, %p, products = 2000 : (!a, !a) -> tensor<64x64xf32>
  return %0, %1, %2 : tensor<64x32xf32>, tensor<64x32xf16>, tensor<64x64xf32>
}`
	counts := &work.Counts{}
	p := program.Load(source.New("f.dmir", text), program.Options{Work: counts})
	if p.HasErrors() {
		t.Fatal(p.Diags[0].Message)
	}
	m, ok := machine.Lookup("h200")
	if !ok {
		t.Fatal("no machine")
	}
	for _, e := range p.Funcs[0].Entries {
		e.Time(m)
	}
	if n := counts.Take()["written out"]; n != 5 {
		t.Errorf("5 ops on sparse tensors are written out %d times", n)
	}
}
