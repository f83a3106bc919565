package memory_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/memory"
	"dmir/analysis/program"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

func lay(t *testing.T, p *program.Program, f *cost.Func) (*memory.Plan, error) {
	t.Helper()
	plan, _, err := cost.NewFlow(f.Func, p.Modules[0], p.Bind).Lay()
	return plan, err
}

// sound requires that no two buffers that live at one step share an address,
// that each step's live bytes are those of its buffers, and that the peak is
// no less than the bound from liveness, which is the peak in the cost of f.
func sound(t *testing.T, f *cost.Func, p *memory.Plan) {
	t.Helper()
	live := make([]int64, max(len(p.Steps), 1)+1) // differences
	byFirst := make([][]memory.Buffer, len(p.Steps)+1)
	var top int64
	for _, b := range p.Buffers {
		if b.Bytes <= 0 || b.Offset < 0 || b.First > b.Last || b.Last > max(len(p.Steps)-1, 0) {
			t.Fatalf("@%s: an odd buffer %+v", f.Func.Name, b)
		}
		live[b.First] += b.Bytes
		live[b.Last+1] -= b.Bytes
		byFirst[b.First] = append(byFirst[b.First], b)
		top = max(top, b.Offset+b.Bytes)
	}
	var sum, most int64
	var held []memory.Buffer // by offset
	for i := range p.Steps {
		sum += live[i]
		most = max(most, sum)
		held = slices.DeleteFunc(held, func(b memory.Buffer) bool { return b.Last < i })
		held = append(held, byFirst[i]...)
		slices.SortFunc(held, func(a, b memory.Buffer) int { return cmp.Compare(a.Offset, b.Offset) })
		for j := 1; j < len(held); j++ {
			if a, b := held[j-1], held[j]; a.Offset+a.Bytes > b.Offset {
				t.Fatalf("@%s: step %d: %+v and %+v overlap", f.Func.Name, i, a, b)
			}
		}
		if p.Steps[i].Live > sum {
			t.Fatalf("@%s: step %d has %d bytes live, its buffers %d", f.Func.Name, i, p.Steps[i].Live, sum)
		}
	}
	if n, ok := f.Peak().Int(); !ok || n != p.Bound || p.Peak < p.Bound || top != p.Peak {
		t.Fatalf("@%s: the cost has a peak of %s, liveness %d, the plan %d, the highest buffer ends at %d", f.Func.Name, f.Peak(), p.Bound, p.Peak, top)
	}
	if len(p.Steps) > 0 && p.Steps[p.PeakStep].Live != p.Bound && most > 0 && p.PeakStep != 0 {
		t.Fatalf("@%s: %d bytes at the peak's step, not %d", f.Func.Name, p.Steps[p.PeakStep].Live, p.Bound)
	}
}

// Plans of random programs are sound; most come within 1 % of what any plan needs.
func TestPlanOfRandomPrograms(t *testing.T) {
	close := 0
	const programs = 150
	for seed := range uint64(programs) {
		p := program.Load(source.New("r.dmir", randprog.Structure(seed, 10+int(seed), false)), program.Options{})
		for _, f := range p.Funcs {
			plan, err := lay(t, p, f)
			if err != nil {
				t.Fatal(err)
			}
			sound(t, f, plan)
			if f.Func.Name == "f" && plan.Peak-plan.Bound <= plan.Bound/100 {
				close++
			}
		}
	}
	if close < programs*9/10 {
		t.Errorf("only %d of %d plans are within 1 %% of their bound", close, programs)
	}
}

// Plans of the examples take at most 1 % more than any plan needs.
func TestPlanOfExamples(t *testing.T) {
	paths, _ := filepath.Glob("../../examples/*.dmir")
	if len(paths) == 0 {
		t.Fatal("no examples")
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p := program.Load(source.New(path, string(text)), program.Options{Bind: map[string]int64{"b": 4, "n": 512, "l": 128, "m": 64}})
		for _, f := range p.Funcs {
			plan, err := lay(t, p, f)
			if err != nil {
				t.Errorf("%s: @%s: %v", path, f.Func.Name, err)
				continue
			}
			sound(t, f, plan)
			if plan.Peak-plan.Bound > plan.Bound/100 {
				t.Errorf("%s: @%s takes %d bytes, %d live", path, f.Func.Name, plan.Peak, plan.Bound)
			}
		}
	}
}

// Plans small enough to check by hand. T is 1,000 bytes.
func TestPlan(t *testing.T) {
	cases := []struct{ name, args, results, body, want string }{
		{"arguments alone", "%x: T, %y: T", "", "  return", "%x 0-0 @0, %y 0-0 @1000"},
		{"a chain goes to and fro", "%x: T", "T", `
  %a = dm.exp %x : T
  %b = dm.exp %a : T
  %c = dm.exp %b : T
  return %c : T`, "%x 0-3 @0, %a 0-1 @1000, %b 1-2 @2000, %c 2-3 @1000"},
		{"a view lies in its operand", "%x: T", "T", `
  %a = dm.exp %x : T
  %v = dm.reshape %a : (T) -> tensor<25x10xf32>
  %c = dm.reshape %v : (tensor<25x10xf32>) -> T
  return %c : T`, "%x 0-3 @0, %a %v %c 0-3 @1000"},
		{"an update in place takes over", "%x: T, %i: tensor<i64>, %r: tensor<1xf32>", "T", `
  %a = dm.exp %x : T
  %b = dm.dynamic_update_slice %a, %r, %i : (T, tensor<1xf32>, tensor<i64>) -> T
  %c = dm.exp %b : T
  return %c : T`, "%x 0-3 @0, %i 0-3 @1000, %r 0-3 @1008, %a %b 0-2 @1012, %c 2-3 @2012"},
		{"what a loop makes is gone after it", "%x: T, %p: tensor<i1>", "T", `
  %y = dm.while %x : (T) -> T {
  ^bb0(%u: T):
    dm.yield %p : tensor<i1>
  } do {
  ^bb0(%u: T):
    %a = dm.reverse %u, dims = [0] : T
    dm.yield %a : T
  }
  %z = dm.exp %y : T
  return %z : T`, "%x 0-5 @0, %p 0-5 @1000, %y 0-4 @1001, %a 2-3 @2001, %z 4-5 @2001"},
		{"what a loop carries is computed in its place", "%x: T, %p: tensor<i1>", "T", `
  %y = dm.while %x : (T) -> T {
  ^bb0(%u: T):
    dm.yield %p : tensor<i1>
  } do {
  ^bb0(%u: T):
    %a = dm.exp %u : T
    dm.yield %a : T
  }
  %z = dm.exp %y : T
  return %z : T`, "%x 0-5 @0, %p 0-5 @1000, %y 0-4 @1001, %z 4-5 @2001"},
		{"a call needs room of its own", "%x: T", "T", `
  %y = func.call @deep(%x) : (T) -> T
  return %y : T`, "%x 0-1 @0, %y 0-1 @1000, call 0-0 @2000"},
		{"a symbol has no address", "%x: S", "", "  return", "depends on n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf("func.func @f(%s) -> (%s) {\n%s\n}\n", c.args, c.results, c.body) + `
func.func private @deep(%x: T) -> T {
  %a = dm.exp %x : T
  %b = dm.exp %a : T
  return %b : T
}`
			text = strings.NewReplacer(": T", ": tensor<250xf32>", "(T", "(tensor<250xf32>", "-> T", "-> tensor<250xf32>",
				": S", ": tensor<?xf32, #dm.at<dims = [n]>>").Replace(text)
			p := program.Load(source.New("in.dmir", text), program.Options{})
			if p.HasErrors() {
				t.Fatalf("%+v\n%s", p.Diags, text)
			}
			plan, err := lay(t, p, p.Func("f"))
			if err != nil {
				if err.Error() != c.want {
					t.Errorf("got %v, want %s", err, c.want)
				}
				return
			}
			sound(t, p.Func("f"), plan)
			var got []string
			for _, b := range plan.Buffers {
				name := "call"
				for i, v := range b.Values {
					if name = v.Name; i > 0 {
						got[len(got)-1] += " " + name
						continue
					}
					got = append(got, name)
				}
				if len(b.Values) == 0 {
					got = append(got, name)
				}
				got[len(got)-1] += fmt.Sprintf(" %d-%d @%d", b.First, b.Last, b.Offset)
			}
			if s := strings.Join(got, ", "); s != c.want {
				t.Errorf("got  %s\nwant %s", s, c.want)
			}
		})
	}
}

// Thousands of buffers are laid, each once.
func TestPlanOfManyBuffers(t *testing.T) {
	p := program.Load(source.New("r.dmir", randprog.Structure(1, 10_000, false)), program.Options{})
	plan, err := lay(t, p, p.Func("f"))
	if err != nil {
		t.Fatal(err)
	}
	sound(t, p.Func("f"), plan)
	if len(plan.Buffers) < 3_000 || float64(plan.Peak) > 1.2*float64(plan.Bound) {
		t.Errorf("%d buffers take %d bytes, %d of them live at once", len(plan.Buffers), plan.Peak, plan.Bound)
	}
}

// Whatever the text, a plan that there is is sound.
func FuzzLay(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(randprog.Structure(seed, 3, false))
	}
	f.Add("func.func @f(%x: tensor<4xf32>) {\n  %y = dm.exp %z : tensor<4xf32>\n  %z = \"a.b\"(%y) ({\n    %w = dm.exp %y : tensor<4xf32>\n  }) : (tensor<4xf32>) -> tensor<4xf32>\n  return\n}")
	f.Add("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %w = dm.constant \"w.npy\" : tensor<4xf32>\n  %y = dm.kernel (%x) : tensor<4xf32>\n  return %y : tensor<4xf32>\n}")
	f.Fuzz(func(t *testing.T, text string) {
		p := program.Load(source.New("in.dmir", text), program.Options{})
		for _, fn := range p.Funcs {
			for _, m := range p.Modules {
				if m.Func(fn.Func.Name) != fn.Func {
					continue
				}
				if plan, _, err := cost.NewFlow(fn.Func, m, p.Bind).Lay(); err == nil {
					sound(t, fn, plan)
				}
			}
		}
	})
}
