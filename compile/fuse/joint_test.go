package fuse_test

import (
	"testing"

	"dmir/compile/grad"
	"dmir/compile/pass"
	"dmir/compile/prepare"
	"dmir/dialect/ir"
)

// joint is the layer of examples/bert_encoder.dmir as it is trained: forward and
// backward in one function, which is given the gradient of the layer's output.
func joint(t testing.TB) *pass.Unit {
	t.Helper()
	const path = "../../examples/bert_encoder.dmir"
	u := unit(t, path, read(t, path), nil)
	end := u.Func.Body.Terminator()
	end.SetOperands(end.Operands[0]) // what the backward pass needs is the gradient's business
	u.Func.Retype()
	if err := pass.Run(u, []pass.Pass{prepare.Inline(), prepare.Bind()}, nil); err != nil {
		t.Fatal(err)
	}
	f, err := grad.Function(u.Module, u.Func, grad.Options{Joint: true, Seeded: true})
	if err != nil {
		t.Fatal(err)
	}
	u.Module.AddFunc(f)
	u.Module.Ops = append(u.Module.Ops, f.Op)
	u.Func = f
	return u
}

var _ *ir.Op
