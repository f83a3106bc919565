package driver

import (
	"fmt"
	"strings"
	"testing"
)

// Every reduction in every element type: along rows of a warp and of a block, of
// columns, of everything, and over rows so long that blocks share them.
func TestReductions(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	shapes := []struct{ shape, dims, result string }{
		{"5x24", "[1]", "5"}, {"3x900", "[1]", "3"}, {"70x33", "[0]", "33"}, {"9001", "[0]", ""}, {"4x6x10", "[0, 2]", "6"},
	}
	elems := []string{"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "ui64", "ui32", "ui16", "ui8", "i1"}
	for _, kind := range []string{"add", "mul", "max", "min", "xor"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var args, body, results, values []string
			for i, e := range elems {
				isFloat := strings.Contains(e, "f")
				if kind == "xor" && isFloat || kind != "xor" && e == "i1" {
					continue
				}
				zero := "0"
				if e == "i1" {
					zero = "false"
				}
				for j, s := range shapes {
					n := fmt.Sprintf("%d_%d", i, j)
					x, y := "tensor<"+s.shape+"x"+e+">", "tensor<"+strings.TrimPrefix(s.result+"x", "x")+e+">"
					args = append(args, "%x"+n+": "+x)
					from := "%x" + n
					if isFloat && kind == "mul" { // powers of two: a product of many that is exact
						body = append(body, strings.NewReplacer("@", n, "!e", "tensor<"+e+">", "!p", "tensor<"+s.shape+"xi1>", "!x", x).Replace(
							"%one@ = dm.constant dense<-1.0> : !e\n%two@ = dm.constant dense<2.0> : !e\n%half@ = dm.constant dense<0.5> : !e\n"+
								"%far@ = dm.constant dense<2.5> : !e\n%low@ = dm.neg %far@ : !e\n%p@ = dm.compare gt %x@, %far@ : (!x, !e) -> !p\n"+
								"%q@ = dm.compare lt %x@, %low@ : (!x, !e) -> !p\n%r@ = dm.select %q@, %half@, %one@ : (!p, !e, !e) -> !x\n"+
								"%s@ = dm.select %p@, %two@, %r@ : (!p, !e, !x) -> !x"))
						from = "%s" + n
					}
					if kind == "xor" {
						body = append(body, fmt.Sprintf("%%z%s = dm.constant dense<%s> : tensor<%s>", n, zero, e), fmt.Sprintf(`%%y%s = dm.reduce %s, %%z%s, dims = %s : (%s, tensor<%s>) -> %s {
^bb0(%%a: %s, %%b: %s):
%%c = dm.xor %%a, %%b : %s
dm.yield %%c : %s
}`, n, from, n, s.dims, x, e, y, e, e, e, e))
					} else {
						body = append(body, fmt.Sprintf("%%y%s = dm.reduce %s %s, dims = %s : (%s) -> %s", n, kind, from, s.dims, x, y))
					}
					values, results = append(values, "%y"+n), append(results, y)
				}
			}
			text := fmt.Sprintf("func.func @all(%s) -> (%s) {\n%s\nreturn %s : %s\n}\n", strings.Join(args, ", "), strings.Join(results, ", "),
				strings.Join(body, "\n"), strings.Join(values, ", "), strings.Join(results, ", "))
			agree(t, loaded(t, kind+".dmir", text), "all")
		})
	}
}
