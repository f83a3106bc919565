package driver

import (
	"errors"
	"os"
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/pass"
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
		"another constant": {strings.Replace(constant, "[1.0, 4.0]", "[1.0, 5.0]", 1), "element [1] is 4, expected 5"},
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

// Checks that may or may not be reached are never left out.
func TestChecksInRegions(t *testing.T) {
	p := loaded(t, "reached.dmir", `func.func @main(%x: tensor<4xf32>, %c: tensor<i1>) {
  %y = dm.exp %x : tensor<4xf32>
  dm.if %c : (tensor<i1>) -> () {
    check.expect_eq %x, %y : tensor<4xf32>
    dm.yield
  }
  return
}`)
	_, err := Build(t.Context(), p.Modules[0], p.Modules[0].Funcs[0], BuildOptions{Machine: machineFor("sm_90a")})
	var unfit *pass.Error
	if !errors.As(err, &unfit) || unfit.Code != "DM804" || !strings.HasPrefix(unfit.Msg, "check.expect_eq ") {
		t.Errorf("%v; expected DM804 at the check", err)
	}
}
