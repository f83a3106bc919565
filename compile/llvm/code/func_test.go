package code_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"dmir/compile/llvm/code"
	"dmir/testkit/need"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// TestVerified verifies a function with each construct.
func TestVerified(t *testing.T) {
	m := code.NewModule()
	x, n := ir.NewParam("x", types.NewPointer(types.Float)), ir.NewParam("n", code.Index)
	f := m.NewFuncBody(m.NewFunc("sum", types.Float, x, n))
	sum := f.Fold(code.Int(0), n, code.Loop{Vectorize: true}, []value.Value{constant.NewFloat(types.Float, 0)}, func(i value.Value, acc []value.Value) []value.Value {
		v := f.NewLoad(types.Float, f.Element(types.Float, x, i))
		pos := f.NewFCmp(enum.FPredOGT, v, constant.NewFloat(types.Float, 0))
		w := f.Choose(pos, func() []value.Value { return []value.Value{v} }, func() []value.Value { return []value.Value{f.NewFNeg(v)} })
		add := f.NewFAdd(acc[0], w[0])
		add.FastMathFlags = []enum.FastMathFlag{enum.FastMathFlagReassoc}
		return []value.Value{add}
	})
	f.If(f.NewICmp(enum.IPredSGT, n, code.Int(4)), func() { f.NewStore(sum[0], x) })
	last := f.While([]value.Value{n}, func(acc []value.Value) value.Value {
		return f.NewICmp(enum.IPredSGT, acc[0], code.Int(1))
	}, func(acc []value.Value) []value.Value {
		return []value.Value{f.NewAShr(acc[0], code.Int(1))}
	})
	f.NewRet(f.NewFAdd(sum[0], f.NewSIToFP(last[0], types.Float)))
	opt := need.Tool(t, "opt", "apt-get install llvm")
	file := filepath.Join(t.TempDir(), "a.ll")
	if err := os.WriteFile(file, []byte(m.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(opt, "-passes=verify", "-disable-output", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, m)
	}
}
