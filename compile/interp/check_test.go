package interp_test

import (
	"errors"
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/dialect/lower"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// TestChecks runs programs that state what they expect of themselves.
func TestChecks(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"equal", `%0 = dm.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = dm.add %0, %0 : tensor<2xf32>
  check.expect_eq_const %1, dense<[2.0, 4.0]> : tensor<2xf32>`, ""},
		{"another element", `%0 = dm.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  check.expect_eq_const %0, dense<[[1, 2], [3, 5]]> : tensor<2x2xi32>`, "element [1 1] is 4, expected 5"},
		{"another type", `%0 = dm.constant dense<1> : tensor<2xi32>
  check.expect_eq_const %0, dense<1> : tensor<3xi32>`, "the value is a tensor<2xi32>, expected a tensor<3xi32>"},
		{"two values", `%0 = dm.constant dense<0.5> : tensor<2xf32>
  %1 = dm.constant dense<0.5000001> : tensor<2xf32>
  check.expect_almost_eq %0, %1 : tensor<2xf32>
  check.expect_eq %0, %1 : tensor<2xf32>`, "element [0] is 0.5, expected 0.5000001"},
		{"not almost", `%0 = dm.constant dense<1000.0> : tensor<f64>
  check.expect_almost_eq_const %0, dense<1000.5> : tensor<f64>
  check.expect_almost_eq_const %0, dense<1002.0> : tensor<f64>`, "element [] is 1000, expected 1002"},
		{"NaN is NaN", `%0 = dm.constant dense<0.0> : tensor<f32>
  %1 = dm.div %0, %0 : tensor<f32>
  check.expect_eq_const %1, dense<0x7FC00000> : tensor<f32>`, ""},
		{"in a function that is called", `func.call @g() : () -> ()
  return
}
func.func private @g() {
  %0 = dm.constant dense<true> : tensor<i1>
  check.expect_eq_const %0, dense<false> : tensor<i1>`, "element [] is 1, expected 0, in @g, called in line 2"},
		{"generic form", `%0 = dm.constant dense<true> : tensor<2xi1>
  "check.expect_eq_const"(%0) <{value = dense<[true, false]> : tensor<2xi1>}> : (tensor<2xi1>) -> ()`, "element [1] is 1, expected 0"},
		{"nothing to compare with", `%0 = dm.constant dense<true> : tensor<2xi1>
  check.expect_eq_const %0 : tensor<2xi1>`, "check.expect_eq_const has no dense<…> value to compare with"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := source.New("check.dmir", "func.func @main() {\n  "+c.body+"\n  return\n}\n")
			m := lower.File(parse.File(src))[0]
			_, err := interp.Run(t.Context(), m, m.Func("main"), nil, interp.Options{})
			var e *interp.Error
			switch {
			case c.want == "":
				if err != nil {
					t.Errorf("%v", err)
				}
			case !errors.As(err, &e) || !strings.Contains(e.Msg, c.want):
				t.Errorf("error %v, want %q", err, c.want)
			case e.Span.Len() == 0:
				t.Error("the error has no place")
			}
		})
	}
}
