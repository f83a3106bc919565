package fuse_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/base/work"
	"dmir/compile/fuse"
	"dmir/testkit/need"
)

// chain is n element-wise ops, each of which reads the one before it.
func chain(n int) string {
	var b strings.Builder
	b.WriteString("func.func @f(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {\n")
	last := "%x"
	for i := range n {
		fmt.Fprintf(&b, "  %%v%d = dm.add %s, %%y : tensor<64xf32>\n", i, last)
		last = fmt.Sprintf("%%v%d", i)
	}
	return b.String() + "  return " + last + " : tensor<64xf32>\n}\n"
}

// unrolled is a recurrence of n steps as RWKV's: numerator, denominator and maximum of a
// running softmax, from a slice of a product each, whose quotients another product reads.
func unrolled(n int) string {
	var b strings.Builder
	x, r := fmt.Sprintf("tensor<%dx16xf32>", n), "tensor<1x16xf32>"
	fmt.Fprintf(&b, "func.func @f(%%x: %s, %%w: tensor<16x16xf32>, %%u: %s, %%d: %s) -> %s {\n", x, r, r, x)
	fmt.Fprintf(&b, "  %%k = dm.einsum \"tc,cd->td\" %%x, %%w : (%s, tensor<16x16xf32>) -> %s\n", x, x)
	fmt.Fprintf(&b, "  %%n0 = dm.constant dense<0.0> : %s\n  %%m0 = dm.constant dense<-1.0e38> : %s\n", r, r)
	var rows, types []string
	for t := range n {
		line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+" : "+r+"\n", args...) }
		fmt.Fprintf(&b, "  %%k%d = dm.slice %%k, start_indices = [%d, 0], limit_indices = [%d, 16] : (%s) -> %s\n", t, t, t+1, x, r)
		line("%%a%d = dm.add %%k%d, %%u", t, t)
		line("%%b%d = dm.max %%m%d, %%a%d", t, t, t)
		line("%%c%d = dm.sub %%m%d, %%b%d", t, t, t)
		line("%%e%d = dm.exp %%c%d", t, t)
		line("%%g%d = dm.mul %%e%d, %%n%d", t, t, t)
		line("%%h%d = dm.add %%g%d, %%k%d", t, t, t)
		line("%%o%d = dm.add %%m%d, %%d", t, t)
		line("%%m%d = dm.max %%o%d, %%k%d", t+1, t, t)
		line("%%p%d = dm.sub %%o%d, %%m%d", t, t, t+1)
		line("%%q%d = dm.exp %%p%d", t, t)
		line("%%s%d = dm.mul %%q%d, %%n%d", t, t, t)
		line("%%n%d = dm.add %%s%d, %%k%d", t+1, t, t)
		rows, types = append(rows, fmt.Sprintf("%%h%d", t)), append(types, r)
	}
	fmt.Fprintf(&b, "  %%y = dm.concatenate %s, dim = 0 : (%s) -> %s\n", strings.Join(rows, ", "), strings.Join(types, ", "), x)
	fmt.Fprintf(&b, "  %%z = dm.einsum \"tc,cd->td\" %%y, %%w : (%s, tensor<16x16xf32>) -> %s\n", x, x)
	return b.String() + "  return %z : " + x + "\n}\n"
}

// What the search looks at for each op does not grow with the number of ops.
func TestLinearChain(t *testing.T) {
	linear(t, chain, []int{600, 1200, 2400}, map[string]int{"fuse": 1000, "legal": 60, "conflict": 600})
}

func TestLinearRecurrence(t *testing.T) {
	need.Long(t)
	linear(t, unrolled, []int{24, 72}, map[string]int{"fuse": 110_000, "legal": 4000, "conflict": 40_000, "order": 2500})
}

// linear fuses programs of so many steps each and holds what is looked at to most for each step.
func linear(t *testing.T, text func(n int) string, sizes []int, most map[string]int) {
	for _, n := range sizes {
		u := unit(t, "f.dmir", text(n), nil)
		var counts work.Counts
		u.Ctx = work.With(t.Context(), &counts)
		if _, err := fuse.Run(u, fuse.Options{}); err != nil {
			t.Fatal(err)
		}
		sums := counts.Take()
		t.Logf("%d steps: %s", n, work.String(sums))
		for name, each := range most {
			if got := sums[name]; got == 0 || got > each*n {
				t.Errorf("%d steps: %s %d, want 1 to %d for each", n, name, got, each)
			}
		}
	}
}
