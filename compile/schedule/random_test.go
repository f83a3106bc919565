package schedule_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/memory"
	"dmir/analysis/program"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/schedule"
	"dmir/dialect/ir"
	"dmir/syntax/source"
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

// randomText is a random function of about n kernels, bare ops, views, constants
// and updates in place, with some of its values returned.
func randomText(seed uint64, n int, attrs string) string {
	r := rand.New(rand.NewPCG(seed, 21))
	types := []string{"tensor<16x32xf32>", "tensor<512xf32>", "tensor<32xf32>", "tensor<64x64xf32>"}
	var b strings.Builder
	type value struct {
		name string
		typ  int
	}
	values := []value{{"%x", 0}, {"%y", 2}, {"%z", 3}}
	pick := func(typ int) string {
		for range 30 {
			v := values[len(values)-1-r.IntN(min(len(values), 9))]
			if r.IntN(5) == 0 {
				v = values[r.IntN(len(values))]
			}
			if v.typ == typ {
				return v.name
			}
		}
		return []string{"%x", "%flat", "%y", "%z"}[typ]
	}
	for i := range n {
		name := fmt.Sprintf("%%v%d", i)
		give := func(typ int) { values = append(values, value{name, typ}) }
		square := []int{0, 0, 3}[r.IntN(3)]
		t := types[square]
		switch r.IntN(9) {
		case 0:
			fmt.Fprintf(&b, "  %s = dm.reshape %s : (%s) -> %s\n", name, pick(0), types[0], types[1])
			give(1)
		case 1:
			fmt.Fprintf(&b, "  %s = dm.reshape %s : (%s) -> %s\n", name, pick(1), types[1], types[0])
			give(0)
		case 2:
			fmt.Fprintf(&b, "  %s = dm.dynamic_update_slice %s, %%row, %%at, %%at : (%s, tensor<1x16xf32>, tensor<i64>, tensor<i64>) -> %s\n", name, pick(square), t, t)
			give(square)
		case 3:
			fmt.Fprintf(&b, "  %s = dm.kernel {dm.scratch = %d} -> %s {\n    %%0 = dm.reduce add %s, dims = [0] : (%s) -> %s\n    dm.yield %%0 : %s\n  }\n", name, r.IntN(3000), types[2], pick(0), types[0], types[2], types[2])
			give(2)
		case 4:
			fmt.Fprintf(&b, "  %s = dm.kernel -> %s {\n    %%0 = dm.add %s, %s : (%s, %s) -> %s\n    dm.yield %%0 : %s\n  }\n", name, types[0], pick(0), pick(2), types[0], types[2], types[0], types[0])
			give(0)
		case 5:
			fmt.Fprintf(&b, "  %s:2 = dm.kernel {dm.name = \"two\"} -> (%s, %s) {\n    %%0 = dm.exp %s : %s\n    %%1 = dm.sub %%0, %s : %s\n    dm.yield %%0, %%1 : %s, %s\n  }\n", name, t, t, pick(square), t, pick(square), t, t, t)
			values = append(values, value{name + "#0", square}, value{name + "#1", square})
		case 6:
			fmt.Fprintf(&b, "  %s = dm.constant dense<0.5> : %s\n", name, types[2])
			give(2)
		case 7:
			fmt.Fprintf(&b, "  %s = dm.matmul %s, %s : %s\n", name, pick(3), pick(3), types[3])
			give(3)
		default:
			fmt.Fprintf(&b, "  %s = dm.kernel -> %s {\n    %%0 = dm.tanh %s : %s\n    %%1 = dm.max %%0, %s : %s\n    dm.yield %%1 : %s\n  }\n", name, t, pick(square), t, pick(square), t, t)
			give(square)
		}
	}
	var names, outs []string
	for i := range 3 {
		v := values[len(values)-1-i*min(2, (len(values)-1)/3)]
		names, outs = append(names, v.name), append(outs, types[v.typ])
	}
	return fmt.Sprintf("func.func @f(%%x: %s, %%y: %s, %%z: %s, %%flat: %s, %%row: tensor<1x16xf32>, %%at: tensor<i64>) -> (%s)%s {\n%s  return %s : %s\n}\n",
		types[0], types[2], types[3], types[1], strings.Join(outs, ", "), attrs, b.String(), strings.Join(names, ", "), strings.Join(outs, ", "))
}

// live is the peak in the cost of a function's text, in bytes.
func live(t testing.TB, u *pass.Unit) int64 {
	t.Helper()
	p, err := memory.Lay(u.Func, cost.NewFlow(u.Func, u.Module, nil).Sizes())
	if err != nil {
		t.Fatal(err)
	}
	return p.Bound
}

// Schedules of random programs are sound, also as text, compute the same bits,
// and hold no more than the order of the text did, and the workspace is
// no smaller than the peak in the cost of the new text.
func TestRandomPrograms(t *testing.T) {
	need.Long(t)
	lower, spread := 0, 0
	const programs = 75
	for n := range uint64(programs) {
		seed := 2 * n
		attrs := ""
		if seed%3 == 0 {
			attrs = " attributes {dm.in_place}"
		}
		text := randomText(seed, 3+int(seed)/4, attrs)
		before := live(t, passtest.Unit(t, text, "f", nil))
		after, err := passtest.Apply(t, text, "f", nil, both("")...)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		u := passtest.Unit(t, after, "f", nil)
		if err := schedule.Check(u.Func); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, after)
		}
		s, err := schedule.Read(u.Body())
		if err != nil {
			t.Fatal(err)
		}
		now := live(t, u)
		if now > before || s.Workspace < now && attrs == "" || s.Workspace < s.Bound {
			t.Fatalf("seed %d: %d bytes live, %d before; workspace %d, bound %d\n%s", seed, now, before, s.Workspace, s.Bound, after)
		}
		if now < before {
			lower++
		}
		if s.Streams > 1 {
			spread++
		}
		if seed < 60 {
			passtest.Same(t, text, after, "f", nil, 0)
		}
	}
	t.Logf("the peak fell in %d of %d, %d have several streams", lower, programs, spread)
	if lower < programs/5 || spread < programs/5 {
		t.Errorf("the peak fell in %d of %d, %d have several streams", lower, programs, spread)
	}
}

// layers is n element-wise layers forward and backward: the backward ones read
// what the forward ones made, in reverse, which holds all of it at once.
func layers(n int, attrs string) string {
	var b strings.Builder
	t := "tensor<64x64xf32>"
	for i := range n {
		fmt.Fprintf(&b, "  %%a%d = dm.kernel {dm.name = \"forward%d\"} -> %s {\n    %%0 = dm.tanh %%a%d : %s\n    dm.yield %%0 : %s\n  }\n", i+1, i, t, i, t, t)
	}
	last := fmt.Sprintf("%%a%d", n)
	for i := n - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "  %%g%d = dm.kernel {dm.name = \"backward%d\"} -> %s {\n    %%0 = dm.mul %s, %%a%d : %s\n    dm.yield %%0 : %s\n  }\n", i, i, t, last, i+1, t, t)
		last = fmt.Sprintf("%%g%d", i)
	}
	return fmt.Sprintf("func.func @f(%%a0: %s) -> %s%s {\n%s  return %s : %s\n}\n", t, t, attrs, b.String(), last, t)
}

// A chain of layers runs in less and less memory for more and more kernels.
func TestBudgetsOfLayers(t *testing.T) {
	const n, size = 12, 64 * 64 * 4
	text := layers(n, "")
	u := passtest.Unit(t, text, "f", nil)
	all := live(t, u)
	steps := count(u.Func.Body) - 1
	if all != (n+2)*size {
		t.Fatalf("%d bytes live, expected an argument, %d activations and a gradient", all, n)
	}
	before := steps
	for tensors := int64(n + 1); ; tensors-- {
		text := layers(n, fmt.Sprintf(" attributes {dm.max_peak = \"%d B\"}", tensors*size))
		after, err := passtest.Apply(t, text, "f", nil, both("")...)
		var e *pass.Error
		if errors.As(err, &e) && e.Code == "DM841" {
			t.Logf("%d tensors: %v", tensors, err)
			if tensors > 6 {
				t.Errorf("%d tensors are not kept", tensors)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		u := passtest.Unit(t, after, "f", nil)
		if err := schedule.Check(u.Func); err != nil {
			t.Fatal(err)
		}
		s, err := schedule.Read(u.Body())
		if err != nil {
			t.Fatal(err)
		}
		if s.Workspace > tensors*size {
			t.Fatalf("a workspace of %d for %d tensors", s.Workspace, tensors)
		}
		if len(s.Steps) < before {
			t.Errorf("%d steps for %d tensors, more for one tensor more", len(s.Steps), tensors)
		}
		before = len(s.Steps)
		t.Logf("%d tensors: %d kernels again", tensors, len(s.Steps)-steps)
		passtest.Same(t, text, after, "f", nil, 0)
	}
}

// Under budgets below what order alone reaches, random programs keep them and
// compute the same bits, or the error is that of a budget that is not met.
func TestRandomBudgets(t *testing.T) {
	kept := 0
	const programs = 24
	for i := range uint64(programs) {
		seed := 5 * i / 2
		n := 8 + int(seed)/3
		plain, err := passtest.Apply(t, randomText(seed, n, ""), "f", nil, both("")...)
		if err != nil {
			t.Fatal(err)
		}
		first, err := schedule.Read(passtest.Unit(t, plain, "f", nil).Body())
		if err != nil {
			t.Fatal(err)
		}
		budget := first.Bound - 256
		text := randomText(seed, n, fmt.Sprintf(" attributes {dm.max_peak = \"%d B\"}", budget))
		after, err := passtest.Apply(t, text, "f", nil, both("")...)
		var e *pass.Error
		switch {
		case errors.As(err, &e) && e.Code == "DM841":
			continue
		case err != nil:
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		kept++
		u := passtest.Unit(t, after, "f", nil)
		if err := schedule.Check(u.Func); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, after)
		}
		s, err := schedule.Read(u.Body())
		if err != nil {
			t.Fatal(err)
		}
		if s.Workspace > budget || live(t, u) > budget {
			t.Fatalf("seed %d: a workspace of %d for a budget of %d\n%s", seed, s.Workspace, budget, after)
		}
		passtest.Same(t, text, after, "f", nil, 0)
	}
	t.Logf("%d of %d budgets kept", kept, programs)
	if kept < 5 {
		t.Errorf("%d of %d budgets kept", kept, programs)
	}
}

func count(b *ir.Block) int { return len(b.Ops) }

// Whatever the program, it is scheduled soundly or refused with a reason.
func FuzzSchedule(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(randomText(seed, 12, ""))
		f.Add(randprog.Messy(seed, 20))
	}
	f.Add(byHand)
	f.Add(layers(4, " attributes {dm.max_peak = \"81920 B\"}"))
	f.Fuzz(func(t *testing.T, text string) {
		p := program.Load(source.New("in.dmir", text), program.Options{})
		for _, m := range p.Modules {
			for _, fn := range m.Funcs {
				if fn.Body == nil || p.HasErrors() {
					continue
				}
				_ = schedule.Check(fn)
				_, _ = schedule.Read(pass.BodyOf(fn))
				u := &pass.Unit{Module: m, Func: fn}
				err := pass.Run(u, both(""), nil)
				var e *pass.Error
				switch {
				case err == nil:
					if err := schedule.Check(fn); err != nil {
						t.Fatal(err)
					}
				case !errors.As(err, &e) || e.Code == "DM820":
					t.Fatal(err)
				}
			}
		}
	})
}
