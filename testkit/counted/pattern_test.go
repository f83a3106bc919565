package counted

import (
	"testing"

	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/sparse"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/emulator"
	"dmir/testkit/need"
)

// Where the pattern of a matrix is counted, a kernel with it is predicted to read the rows that its columns name, each once: what the emulator
// counts.
func TestPattern(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles C++")
	}
	need.OK(t, emulator.Check())
	for _, c := range []struct {
		name, text string
		lines      bool // the lines are predicted to read what the kernel does
	}{
		{"product", `!a = tensor<48x200xf32, #dm.csr<nnz = 96>>
func.func @main(%a: !a, %x: tensor<200x8xf32>) -> tensor<48x8xf32> {
  %y = dm.matmul %a, %x : (!a, tensor<200x8xf32>) -> tensor<48x8xf32>
  return %y : tensor<48x8xf32>
}`, true},
		{"weighted sums", `!a = tensor<48x200xf32, #dm.csr<nnz = 96>>
!pairs = tensor<48x200x12xf32>
func.func @main(%a: !a, %q: tensor<48x1x12xf32>, %k: tensor<200x12xf32>, %w: tensor<12xf32>, %v: tensor<200x8xf32>) -> tensor<48x8xf32> {
  %sum = dm.add %q, %k : (tensor<48x1x12xf32>, tensor<200x12xf32>) -> !pairs
  %slope = dm.constant dense<0.2> : tensor<f32>
  %low = dm.mul %sum, %slope : (!pairs, tensor<f32>) -> !pairs
  %leaky = dm.max %sum, %low : !pairs
  %e = dm.sample "ijc,c->ij" %a, %leaky, %w : (!a, !pairs, tensor<12xf32>) -> !a
  %p = dm.softmax %e, dim = 1 : !a
  %y = dm.matmul %p, %v : (!a, tensor<200x8xf32>) -> tensor<48x8xf32>
  return %y : tensor<48x8xf32>
}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Load(Program{Name: "pattern", Text: c.text})
			if err != nil {
				t.Fatal(err)
			}
			whole, _ := p.Funcs[0].Read.Int()
			const seed = 7
			err = p.Change(func(m *ir.Module) error {
				flat, _ := flatten.Func(m.Funcs[0])
				args, err := interp.Inputs(t.Context(), flat, nil, seed, nil)
				if err != nil {
					return err
				}
				given := interp.SparseArgs(flat)[0]
				x := &sparse.Tensor{Type: given.Type, Parts: args[given.First : given.First+3]}
				op.SetArgAttr(m.Funcs[0], 0, op.CountedAttr, x.Count("drawn").Attr())
				return nil
			})
			if err != nil || p.HasErrors() {
				t.Fatal(err, p.Diags)
			}
			read, _ := p.Funcs[0].Read.Int()
			if read >= whole {
				t.Fatalf("%d bytes are read of the counted matrix, %d of any", read, whole)
			}
			m := p.Modules[0]
			res, err := driver.Run(t.Context(), driver.Job{Program: p, Module: m, Fn: m.Funcs[0], Seed: seed, Device: "emulator"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Kernels) != 1 {
				t.Fatalf("%d kernels", len(res.Kernels))
			}
			if k := res.Kernels[0]; !k.Counted || k.CountedReadBytes != k.ReadBytes || c.lines && k.ReadBytes != read || k.CountedWrittenBytes != k.WrittenBytes {
				t.Errorf("predicted %d read and %d written (%d as written), counted %d and %d", k.ReadBytes, k.WrittenBytes, read, k.CountedReadBytes, k.CountedWrittenBytes)
			}
		})
	}
}
