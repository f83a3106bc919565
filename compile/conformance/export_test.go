package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/compile/distribute"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/stablehlo"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// again is function f of m after an export to StableHLO and an import.
func again(t *testing.T, m *ir.Module, f *ir.Func) (*ir.Module, error) {
	t.Helper()
	u := &pass.Unit{Ctx: t.Context(), Module: m.Clone()}
	u.Func = u.Module.Func(f.Name)
	if err := pass.Run(u, pipeline.Export(), nil); err != nil {
		return nil, err
	}
	for _, g := range slices.Clone(u.Module.Funcs) {
		if g != u.Func {
			u.Module.RemoveFunc(g.Name)
		}
	}
	out, d := stablehlo.Export(u.Module)
	if d != nil {
		return nil, errors.New(d.Message)
	}
	text, err := print.Generic(out)
	if err != nil {
		return nil, err
	}
	tree := parse.File(source.New("exported.mlir", text))
	back := stablehlo.Import(tree)[0]
	for _, d := range back.Diags {
		if d.Severity == diag.Error {
			return nil, fmt.Errorf("the exported program: %w\n%s", located(tree.Src, d.Span, d.Message), text)
		}
	}
	return back, nil
}

// same runs f of m and its like in back and compares their results, bit by bit or as
// far as the sums of floats go.
func same(t *testing.T, name string, m, back *ir.Module, f *ir.Func) bool {
	t.Helper()
	args, err := interp.Inputs(t.Context(), f, nil, 1, nil)
	if err != nil {
		return false
	}
	want, err := interp.Run(t.Context(), m, f, args, interp.Options{Threads: 1})
	if err != nil {
		return false // it fails as it stands
	}
	got, err := interp.Run(t.Context(), back, back.Func(f.Name), args, interp.Options{Threads: 1})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return true
	}
	for i, w := range want.Outputs {
		if g := got.Outputs[i]; g.Elem != w.Elem || g.Len() != w.Len() || tensor.MaxDiff(g, w) > 1e-6 {
			t.Errorf("%s: result %d is %v, want %v", name, i, g, w)
		}
	}
	return true
}

// together is same for a function that one device of a mesh runs.
func together(t *testing.T, name string, m, back *ir.Module, f *ir.Func) {
	t.Helper()
	args, err := interp.Inputs(t.Context(), f, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var results [2][]*tensor.Tensor
	for i, m := range []*ir.Module{m, back} {
		p, err := distribute.Of(m, m.Func(f.Name))
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := p.Run(t.Context(), args, interp.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		results[i] = r
	}
	for i, w := range results[0] {
		if g := results[1][i]; g.Elem != w.Elem || g.Len() != w.Len() || tensor.MaxDiff(g, w) > 1e-6 {
			t.Errorf("%s: result %d is %v, want %v", name, i, g, w)
		}
	}
}

// Every example of the registry computes the same after an export to StableHLO and an
// import.
func TestExportExamples(t *testing.T) {
	ran := 0
	for _, d := range op.All() {
		tree := parse.File(source.New(d.Name+".dmir", d.Example+"\n"))
		m := lower.File(tree)[0]
		f := m.Funcs[0]
		back, err := again(t, m, f)
		switch {
		case d.Name == "send" || d.Name == "recv":
			if err == nil || !strings.Contains(err.Error(), "dm.collective_permute") {
				t.Errorf("%s is exported: %v", d.Name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", d.Name, err)
		case op.PerDevice(f.Op):
			together(t, d.Name, m, back, f)
			ran++
		case same(t, d.Name, m, back, m.Funcs[0]):
			ran++
		default:
			t.Errorf("%s does not run", d.Name)
		}
	}
	t.Logf("%d examples", ran)
}

// Forms that the examples have not, and those that StableHLO has not.
func TestExportForms(t *testing.T) {
	text, err := os.ReadFile("../linalg/testdata/forms.dmir")
	if err != nil {
		t.Fatal(err)
	}
	// Refused are diagonals, and a NaN in a sort and an argmax is where dmir has it.
	m := lower.File(parse.File(source.New("forms.dmir", string(text))))[0]
	for _, f := range m.Funcs {
		back, err := again(t, m, f)
		switch {
		case f.Name == "diagonal":
			if err == nil || !strings.Contains(err.Error(), "diagonal") {
				t.Errorf("a diagonal is exported: %v", err)
			}
		case err != nil:
			t.Errorf("%s: %v", f.Name, err)
		case !same(t, f.Name, m, back, f):
			t.Errorf("%s does not run", f.Name)
		}
	}
}

// Sparse tensors are exported as their components.
func TestExportSparse(t *testing.T) {
	text, err := os.ReadFile("../linalg/testdata/sparse.dmir")
	if err != nil {
		t.Fatal(err)
	}
	matrices, _, _ := strings.Cut(string(text), "// -----\n")
	for _, formats := range [][2]string{{"csr", "csc"}, {"dcsc", "dcsr"}} {
		of := strings.NewReplacer("#FORMAT", "#dm."+formats[0]+"<nnz = 24>", "#TRANSPOSED", "#dm."+formats[1]+"<nnz = 24>")
		m := lower.File(parse.File(source.New("sparse.dmir", of.Replace(matrices))))[0]
		for _, f := range m.Funcs {
			back, err := again(t, m, f)
			if err != nil {
				t.Errorf("%s: %s: %v", formats[0], f.Name, err)
			} else if !same(t, f.Name, m, back, f) {
				t.Errorf("%s: %s does not run", formats[0], f.Name)
			}
		}
	}
}

// The programs of StableHLO's suites that are imported compute the same after an export
// and another import, and their checks hold.
func TestExportSuite(t *testing.T) {
	need.Long(t)
	ran := 0
	err := filepath.WalkDir(folder(t, "stablehlo"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".mlir" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range stablehlo.Import(parse.File(source.New(path, string(text)))) {
			if len(m.Diags) > 0 {
				continue
			}
			for _, f := range m.Funcs {
				if f.Body == nil || f.Private {
					continue
				}
				back, err := again(t, m, f)
				if err != nil {
					t.Errorf("%s: @%s: %v", path, f.Name, err)
				} else if same(t, path, m, back, f) {
					ran++
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d functions", ran)
}
