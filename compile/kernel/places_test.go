package kernel

import (
	"fmt"
	"strings"
	"testing"
)

// Sums of neighbours read what is before them at one place more each: many are no kernel. Any number of
// element-wise ops is one.
func TestPlaces(t *testing.T) {
	neighbours := func(n int) string {
		var b strings.Builder
		size := 200
		fmt.Fprintf(&b, "func.func @f(%%y0: tensor<%dxf32>) -> tensor<%dxf32> {\n", size, size-n)
		for i := range n {
			fmt.Fprintf(&b, "  %%l%[1]d = dm.slice %%y%[1]d, start_indices = [0], limit_indices = [%[2]d] : (tensor<%[3]dxf32>) -> tensor<%[2]dxf32>\n", i, size-1, size)
			fmt.Fprintf(&b, "  %%r%[1]d = dm.slice %%y%[1]d, start_indices = [1], limit_indices = [%[2]d] : (tensor<%[2]dxf32>) -> tensor<%[3]dxf32>\n", i, size, size-1)
			size--
			fmt.Fprintf(&b, "  %%y%[1]d = dm.add %%l%[2]d, %%r%[2]d : tensor<%[3]dxf32>\n", i+1, i, size)
		}
		return b.String() + fmt.Sprintf("  return %%y%d : tensor<%dxf32>\n}\n", n, size)
	}
	chain := func(n int) string {
		var b strings.Builder
		b.WriteString("func.func @f(%y0: tensor<8xf32>) -> tensor<8xf32> {\n")
		for i := range n {
			fmt.Fprintf(&b, "  %%y%d = dm.tanh %%y%d : tensor<8xf32>\n", i+1, i)
		}
		return b.String() + fmt.Sprintf("  return %%y%d : tensor<8xf32>\n}\n", n)
	}
	for _, c := range []struct {
		name, text string
		fits       bool
	}{
		{"neighbours, few", neighbours(16), true},
		{"neighbours, many", neighbours(100), false},
		{"a chain", chain(3000), true},
	} {
		fn := load(t, c.text)
		err := Unfit(fn.Body.Ops[:len(fn.Body.Ops)-1], fn.Body.Terminator().Operands)
		if (err == nil) != c.fits {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "too many places") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
