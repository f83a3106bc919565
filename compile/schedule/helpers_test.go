package schedule_test

import (
	"context"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/schedule"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/print"
	"dmir/syntax/source"
)

// load is the first function of a text that must be right.
func load(t testing.TB, text string, bind map[string]int64) (*ir.Module, *ir.Func) {
	t.Helper()
	p := program.Load(source.New("in.dmir", text), program.Options{Bind: bind})
	if p.HasErrors() {
		t.Fatalf("%+v\n%s", p.Diags, text)
	}
	return p.Modules[0], p.Modules[0].Funcs[0]
}

// passes runs passes over fn, with the verifier after each.
func passes(t testing.TB, m *ir.Module, fn *ir.Func, bind map[string]int64, ps ...pass.Pass) error {
	t.Helper()
	u := &pass.Unit{Module: m, Func: fn, Options: pass.Options{Bind: bind}}
	return pass.Run(u, ps, nil)
}

// planned schedules and plans fn, which must go well, proves the outcome, and
// proves it again from its text.
func planned(t testing.TB, m *ir.Module, fn *ir.Func) string {
	t.Helper()
	if err := passes(t, m, fn, nil, schedule.Order(), schedule.Plan()); err != nil {
		t.Fatal(err)
	}
	text := pretty(t, m)
	if err := schedule.Check(fn); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	m2, again := load(t, text, nil)
	if err := schedule.Check(again); err != nil {
		t.Fatalf("read back: %v\n%s", err, text)
	}
	if second := pretty(t, m2); second != text {
		t.Fatalf("printed again it is another text:\n%s\n%s", text, second)
	}
	return text
}

func pretty(t testing.TB, m *ir.Module) string {
	t.Helper()
	text, err := print.Pretty(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// results is what fn computes on seeded inputs.
func results(t testing.TB, m *ir.Module, fn *ir.Func) []*tensor.Tensor {
	t.Helper()
	args, err := interp.Inputs(context.Background(), fn, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := interp.Run(context.Background(), m, fn, args, interp.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r.Outputs
}

// same requires that both functions compute the same, bit for bit.
func same(t testing.TB, before, after []*tensor.Tensor, text string) {
	t.Helper()
	if len(before) != len(after) {
		t.Fatalf("%d results became %d\n%s", len(before), len(after), text)
	}
	for i := range before {
		if d := tensor.MaxDiff(after[i], before[i]); d != 0 {
			t.Fatalf("result %d differs by %g\n%s", i, d, text)
		}
	}
}
