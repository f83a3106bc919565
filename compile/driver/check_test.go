package driver

import (
	"errors"
	"os"
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/dialect/ir"
)

// A program that states what it expects of itself does so on devices too: the
// host compares what they computed.
func TestChecksOnDevices(t *testing.T) {
	needEmulator(t)
	example, err := os.ReadFile("../../examples/power_iteration.dmir")
	if err != nil {
		t.Fatal(err)
	}
	constant := `func.func @main() -> tensor<2xf32> {
  %x = dm.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = dm.mul %x, %x : tensor<2xf32>
  check.expect_eq_const %y, dense<[1.0, 4.0]> : tensor<2xf32>
  "check.expect_eq"(%y, %y) : (tensor<2xf32>, tensor<2xf32>) -> ()
  return %y : tensor<2xf32>
}`
	for name, c := range map[string]struct{ text, fails string }{
		"holds":            {string(example), ""},
		"does not hold":    {strings.Replace(string(example), "3.618033988749895", "3.5", 1), "element [] is 3.61803398874989"},
		"a constant":       {constant, ""},
		"another constant": {strings.Replace(constant, "[1.0, 4.0]", "[1.0, 5.0]", 1), "element [1] is 4, expected is 5"},
	} {
		t.Run(name, func(t *testing.T) {
			p := loaded(t, name+".dmir", c.text)
			m, fn, err := Pick(p, "")
			if err != nil {
				t.Fatal(err)
			}
			res, err := Run(t.Context(), Job{Program: p, Module: m, Fn: fn, Device: "emulator"}, func(int, int, *ir.Op) {})
			var failed *interp.Error
			switch {
			case c.fails == "" && err != nil:
				t.Fatal(err)
			case c.fails == "" && (len(res.Outputs) != len(fn.Results) || len(res.Warnings) > 0):
				t.Errorf("%d results of %d, warnings %v", len(res.Outputs), len(fn.Results), res.Warnings)
			case c.fails != "" && (!errors.As(err, &failed) || failed.Code != interp.CheckFailed || !strings.Contains(failed.Msg, c.fails) || failed.Span.Len() == 0):
				t.Errorf("%v; expected %q", err, c.fails)
			}
		})
	}
}
