package pass_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

const program = `func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = dm.exp %x : tensor<4xf32>
  %b = dm.add %a, %y : tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
`

// An invalid function after a pass is reported as a fault of the compiler that
// names the pass and the op.
func TestRunCatchesBrokenPasses(t *testing.T) {
	ops := func(u *pass.Unit) []*ir.Op { return u.Func.Body.Ops }
	for name, c := range map[string]struct {
		run  func(u *pass.Unit) error
		want string
	}{
		"type":   {func(u *pass.Unit) error { ops(u)[0].Results[0].Type = &types.Tensor{Elem: types.F16}; return nil }, "after the pass type: "},
		"order":  {func(u *pass.Unit) error { slices.Reverse(ops(u)[:2]); return nil }, "dm.add uses a value that is not defined before it"},
		"uses":   {func(u *pass.Unit) error { ops(u)[1].Operands[0] = u.Func.Args[0]; return nil }, "wrongly listed among the users of %a"},
		"hidden": {func(u *pass.Unit) error { u.Func.Args[1].Uses = nil; return nil }, "missing among the users of %y"},
		"end":    {func(u *pass.Unit) error { ir.Erase(ops(u)[2]); return nil }, "does not end in return"},
		"owner":  {func(u *pass.Unit) error { ops(u)[0].Parent = &ir.Block{}; return nil }, "after the pass owner: "},
		"panic":  {func(*pass.Unit) error { var none *ir.Op; none.SetAttr("x", nil); return nil }, "the pass panic failed"},
		"refuse": {func(u *pass.Unit) error { return pass.Errorf(ops(u)[0], "DM804", "not this one") }, "not this one"},
	} {
		t.Run(name, func(t *testing.T) {
			u := passtest.Unit(t, program, "f", nil)
			err := pass.Run(u, []pass.Pass{{Name: name, Run: c.run}}, nil)
			var e *pass.Error
			if !errors.As(err, &e) || !strings.Contains(e.Msg, c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if d := e.Diagnostic(); d.Name == "" || d.Help == "" {
				t.Errorf("the diagnostic %s has no name or no help", d.Code)
			}
		})
	}
}

// Stages are told in order, with the ops that are left; an observer ends the
// run, and so does the context.
func TestRunTellsAndEnds(t *testing.T) {
	u := passtest.Unit(t, program, "f", nil)
	dead := pass.Pass{Name: "dead", Run: func(u *pass.Unit) error {
		b := pass.Before(u.Func.Body.Ops[0])
		b.Unary("neg", u.Func.Args[0])
		op.RemoveDead(u.Func.Body)
		return b.Err()
	}}
	var told []string
	stop := errors.New("enough")
	err := pass.Run(u, []pass.Pass{dead, dead, dead}, func(s pass.Stage) error {
		told = append(told, s.Pass.Name)
		if s.Ops != 3 {
			t.Errorf("%d ops, want 3", s.Ops)
		}
		if len(told) == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || len(told) != 2 {
		t.Errorf("ended with %v after %v", err, told)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	u.Ctx = ctx
	if err := pass.Run(u, []pass.Pass{dead}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run ended with %v", err)
	}
}

func TestBuilder(t *testing.T) {
	u := passtest.Unit(t, program, "f", nil)
	add := u.Func.Body.Ops[1]
	b := pass.Before(add)
	v := b.Binary("mul", add.Operands[0], add.Operands[1])
	if v.Op.Span != add.Span || v.Op.Name != "dm.mul" || v.Type.String() != "tensor<4xf32>" {
		t.Errorf("made %s of %s at %v", v.Op.Name, v.Type, v.Op.Span)
	}
	b.Value("matmul", add.Operands, nil)
	if b.Err() == nil || len(u.Func.Body.Ops) != 4 {
		t.Errorf("a product of vectors was built (%d ops, %v)", len(u.Func.Body.Ops), b.Err())
	}
	b.Undo()
	if len(u.Func.Body.Ops) != 3 || len(add.Operands[0].Uses) != 1 {
		t.Errorf("undone, %d ops and %d uses are left", len(u.Func.Body.Ops), len(add.Operands[0].Uses))
	}
	b = pass.Before(add)
	pass.Replace(add, b.Binary("sub", add.Operands[1], add.Operands[0]))
	if err := pass.Check(u); err != nil {
		t.Fatal(err)
	}
	if text := passtest.Text(t, u); !strings.Contains(text, "%b = dm.sub %y, %a") {
		t.Errorf("the new op did not take the name:\n%s", text)
	}
}

func TestReached(t *testing.T) {
	u := passtest.Unit(t, program, "f", nil)
	if got := pass.Reached(u.Module, u.Func); len(got) != 1 {
		t.Errorf("@f reaches %d functions", len(got))
	}
	u.Func.Body.Ops[0].SetAttr("callee", types.SymbolOf("g"))
	if got := pass.Reached(u.Module, u.Func); len(got) != 2 || got[1].Name != "g" {
		t.Errorf("@f, which names @g, reaches %d functions", len(got))
	}
}
