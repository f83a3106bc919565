package linalg_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

// MLIR's sparsifier makes of what sparse programs are exported to code that computes the
// numbers of the reference executor, in all formats that it has as well. The operands are
// dense, with zeros, and the programs store them.
func TestSparse(t *testing.T) {
	need.Long(t)
	need.Tool(t, mlirOpt, install)
	need.Tool(t, mlirRunner, install)
	text, err := os.ReadFile("testdata/sparse.dmir")
	if err != nil {
		t.Fatal(err)
	}
	matrices, tensors, _ := strings.Cut(string(text), "// -----\n")
	var ps []program
	for _, c := range []struct{ name, format, transposed, text string }{
		{"csr", "#dm.csr<nnz = 24>", "#dm.csc<nnz = 24>", matrices},
		{"csc", "#dm.csc<nnz = 24>", "#dm.csr<nnz = 24>", matrices},
		{"dcsr", "#dm.dcsr<nnz = [4, 24]>", "#dm.dcsc<nnz = [4, 24]>", matrices},
		{"coo", "#dm.coo<nnz = 24>", "#dm.sparse<map = (d0, d1) -> (d1 : compressed(nonunique), d0 : singleton), nnz = 24>", matrices},
		{
			"bsr", "#dm.bsr<2x3, nnz = 4>",
			"#dm.sparse<map = (d0, d1) -> (d1 floordiv 2 : dense, d0 floordiv 3 : compressed, d1 mod 2 : dense, d0 mod 3 : dense), nnz = 4>", matrices,
		},
		{"csf", "#dm.csf<nnz = [2, 6, 24]>", "", tensors},
	} {
		m, err := read(strings.NewReplacer("#FORMAT", c.format, "#TRANSPOSED", c.transposed).Replace(c.text))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for _, f := range m.Funcs {
			p := program{name: c.name + "_" + f.Name}
			if p.args, err = interp.Inputs(t.Context(), f, nil, 3, nil); err != nil {
				t.Fatal(err)
			}
			for k, a := range p.args {
				thin(a, f.Args[k].Name)
			}
			res, err := interp.Run(t.Context(), m, f, p.args, interp.Options{})
			if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			p.want = res.Outputs
			if p.text, err = exportedFunc(t, m, f.Name, p.name); err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			if !strings.Contains(p.text, "#sparse_tensor.encoding") && p.name != "bsr_attention" { // for which there is no form
				t.Fatalf("%s is exported without sparse tensors", p.name)
			}
			ps = append(ps, p)
		}
	}
	for i, got := range execute(t, ps, "--sparsifier") {
		compare(t, ps[i], got)
	}
	t.Logf("%d programs", len(ps))
}

// Random programs on sparse tensors compute the numbers of the reference executor as MLIR's sparsifier compiles them, as far as
// all of their ops have a form for it: a sixth of them in turn.
func TestRandomSparse(t *testing.T) {
	need.Long(t)
	need.Tool(t, mlirOpt, install)
	need.Tool(t, mlirRunner, install)
	var ps []program
	for seed := range uint64(80) {
		if !need.Turn(t, int(seed), 6) {
			continue
		}
		m, err := read(randprog.Sparse(seed))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p := program{name: fmt.Sprint("random_", seed)}
		if p.text, err = exportedFunc(t, m, m.Funcs[0].Name, p.name); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		within := strings.Contains(p.text, "mod 2 : compressed") // of blocks, which makes mlir-opt 22 end with a signal
		if !strings.Contains(p.text, "#sparse_tensor.encoding") || within {
			continue
		}
		if p.args, err = interp.Inputs(t.Context(), m.Funcs[0], nil, 3, nil); err != nil {
			t.Fatal(err)
		}
		res, err := interp.Run(t.Context(), m, m.Funcs[0], p.args, interp.Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p.want = res.Outputs
		ps = append(ps, p)
	}
	for i, got := range execute(t, ps, "--sparsifier") {
		compare(t, ps[i], got)
	}
	t.Logf("%d programs", len(ps))
}

// thin sets most elements of an argument called %a… to 0, a whole row of them.
func thin(x *tensor.Tensor, name string) {
	if !strings.HasPrefix(name, "%a") {
		return
	}
	n := x.Shape[len(x.Shape)-1]
	for i := range x.Len() {
		if i*7%5 > 1 || i/n == len(name)%2+1 {
			x.SetFloat(i, 0)
		}
	}
}
