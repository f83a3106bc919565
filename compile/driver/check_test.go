package driver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
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

// reached are programs with checks in loops, branches, kernels and called functions,
// and how the first one that fails is reported.
const reached = `
-- none fails --
func.func @main(%x: tensor<3x4xf32>) -> tensor<4xf32> {
  %zero = dm.constant dense<0.0> : tensor<4xf32>
  %y = dm.scan %zero, %x, carries = 1 : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<4xf32> {
  ^bb0(%c: tensor<4xf32>, %s: tensor<4xf32>):
    %n = dm.add %c, %s : tensor<4xf32>
    %b = dm.sub %n, %c : tensor<4xf32>
    check.expect_almost_eq %b, %s : tensor<4xf32>
    dm.yield %n : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
-- a call in a scan in reverse -- line 3: element [1 1] is 1, expected 3, in @half, called in line 12, in iteration 0 of the loop in line 10
func.func private @half(%x: tensor<2x2xf16>, %limit: tensor<2x2xf16>) -> tensor<2x2xf16> {
  %y = dm.mul %x, %limit : tensor<2x2xf16>
  check.expect_eq %y, %limit : tensor<2x2xf16>
  return %y : tensor<2x2xf16>
}
func.func @main() -> tensor<2x2xf16> {
  %x = dm.constant dense<1.0> : tensor<2x2xf16>
  %ls = dm.constant dense<[[[1.0, 1.0], [1.0, 3.0]], [[1.0, 1.0], [1.0, 1.0]]]> : tensor<2x2x2xf16>
  %third = dm.constant dense<[[1.0, 1.0], [1.0, 0.33333]]> : tensor<2x2xf16>
  %y = dm.scan %x, %ls, carries = 1, reverse = true : (tensor<2x2xf16>, tensor<2x2x2xf16>) -> tensor<2x2xf16> {
  ^bb0(%c: tensor<2x2xf16>, %l: tensor<2x2xf16>):
    %n = func.call @half(%c, %l) : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
    %m = dm.mul %n, %third : tensor<2x2xf16>
    dm.yield %m : tensor<2x2xf16>
  }
  return %y : tensor<2x2xf16>
}
-- the earlier iteration is reported, not the earlier line -- line 13: element [] is 1, expected 0, in iteration 1 of the loop in line 3
func.func @main() -> tensor<i64> {
  %zero = dm.constant dense<0> : tensor<i64>
  %n = dm.while %zero : (tensor<i64>) -> tensor<i64> {
  ^bb0(%i: tensor<i64>):
    %five = dm.constant dense<5> : tensor<i64>
    %more = dm.compare lt %i, %five : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>):
    %three = dm.constant dense<3> : tensor<i64>
    %a = dm.min %i, %three : tensor<i64>
    check.expect_eq %a, %i : tensor<i64>
    "check.expect_eq_const"(%i) {value = dense<0> : tensor<i64>} : (tensor<i64>) -> ()
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    dm.yield %next : tensor<i64>
  }
  return %n : tensor<i64>
}
-- branches and loops that do not run --
func.func @main(%c: tensor<i1> {dm.init = 0.0}, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = dm.exp %x : tensor<4xf32>
  %n = dm.constant dense<[1, 2]> : tensor<2xi8>
  dm.if %c : (tensor<i1>) -> () {
    check.expect_eq %x, %y : tensor<4xf32>
    "check.expect_eq"(%n, %x) : (tensor<2xi8>, tensor<4xf32>) -> ()
    dm.yield
  }
  %z = dm.while %x, max_trips = 4 : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%v: tensor<4xf32>):
    dm.yield %c : tensor<i1>
  } do {
  ^bb0(%v: tensor<4xf32>):
    check.expect_eq %v, %y : tensor<4xf32>
    dm.yield %v : tensor<4xf32>
  }
  return %z : tensor<4xf32>
}
-- nested loops, a branch and a kernel -- line 19: element [3] is 0, expected 1, in iteration 1 of the loop in line 16, in iteration 2 of the loop in line 4
func.func @main() -> tensor<4xf32> {
  %zero = dm.constant dense<0> : tensor<i64>
  %x = dm.constant dense<0.0> : tensor<4xf32>
  %n, %y = dm.while %zero, %x : (tensor<i64>, tensor<4xf32>) -> (tensor<i64>, tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %v: tensor<4xf32>):
    %three = dm.constant dense<3> : tensor<i64>
    %more = dm.compare lt %i, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    check.expect_eq %i, %i : tensor<i64>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %v: tensor<4xf32>):
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    %two = dm.constant dense<2> : tensor<i64>
    %late = dm.compare ge %i, %two : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %w = dm.scan %v, carries = 1, length = 2, reverse = true : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%u: tensor<4xf32>):
      dm.if %late : (tensor<i1>) -> () {
        check.expect_eq_const %u, dense<[0.0, 0.0, 0.0, 1.0]> : tensor<4xf32>
        dm.yield
      } else {
        check.expect_eq %u, %u : tensor<4xf32>
        dm.yield
      }
      %d = dm.kernel -> tensor<4xf32> {
        %s = dm.reduce add %u, dims = [0], keep_dims = true : (tensor<4xf32>) -> tensor<1xf32>
        "check.expect_eq_const"(%s) {value = dense<0.0> : tensor<1xf32>} : (tensor<1xf32>) -> ()
        %0 = dm.add %u, %s : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
        dm.yield %0 : tensor<4xf32>
      }
      dm.yield %d : tensor<4xf32>
    }
    dm.yield %next, %w : tensor<i64>, tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
-- a condition -- line 6: element [] is 2, expected 1, in iteration 2 of the loop in line 4
func.func @main() -> tensor<i64> {
  %zero = dm.constant dense<0> : tensor<i64>
  %one = dm.constant dense<1> : tensor<i64>
  %n = dm.while %zero : (tensor<i64>) -> tensor<i64> {
  ^bb0(%i: tensor<i64>):
    %a = dm.min %i, %one : tensor<i64> check.expect_eq %i, %a : tensor<i64>
    %three = dm.constant dense<3> : tensor<i64> %more = dm.compare lt %i, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>):
    %next = dm.add %i, %one : tensor<i64>
    dm.yield %next : tensor<i64>
  }
  return %n : tensor<i64>
}
-- a NaN is equal to one, and the zeros to each other --
func.func @main() {
  %x = dm.constant dense<[0.0, -1.0, 1.0]> : tensor<3xbf16>
  %m = dm.neg %x : tensor<3xbf16>
  %l = dm.log %x : tensor<3xbf16>
  %k = dm.add %l, %m : tensor<3xbf16>
  %b = dm.compare lt %x, %m : (tensor<3xbf16>, tensor<3xbf16>) -> tensor<3xi1>
  dm.scan carries = 0, length = 2 : () -> () {
    "check.expect_eq"(%l, %l) : (tensor<3xbf16>, tensor<3xbf16>) -> ()
    "check.expect_almost_eq"(%k, %k) : (tensor<3xbf16>, tensor<3xbf16>) -> ()
    "check.expect_eq_const"(%b) {value = dense<[false, true, false]> : tensor<3xi1>} : (tensor<3xi1>) -> ()
    "check.expect_eq_const"(%m) {value = dense<[0.0, 1.0, -1.0]> : tensor<3xbf16>} : (tensor<3xbf16>) -> ()
    dm.yield
  }
  return
}
-- booleans -- line 4: element [1] is 1, expected 0, in iteration 0 of the loop in line 3
func.func @main() {
  %b = dm.constant dense<[false, true]> : tensor<2xi1>
  dm.scan carries = 0, length = 2 : () -> () {
    "check.expect_eq_const"(%b) {value = dense<[false, false]> : tensor<2xi1>} : (tensor<2xi1>) -> ()
    dm.yield
  }
  return
}
-- unsigned integers beyond 2^63 -- line 5: element [0] is 18446744073709551615, expected 18446744073709551614, in iteration 0 of the loop in line 4
func.func @main() {
  %a = dm.constant dense<18446744073709551615> : tensor<1xui64>
  %b = dm.constant dense<18446744073709551614> : tensor<1xui64>
  dm.scan carries = 0, length = 2 : () -> () {
    check.expect_eq %a, %b : tensor<1xui64>
    dm.yield
  }
  return
}
-- two types -- line 4: the value is a tensor<2xi8>, expected a tensor<4xf32>, in iteration 0 of the loop in line 3
func.func @main(%x: tensor<4xf32>) {
  %n = dm.constant dense<[1, 2]> : tensor<2xi8>
  dm.scan carries = 0, length = 2 : () -> () {
    "check.expect_eq"(%n, %x) : (tensor<2xi8>, tensor<4xf32>) -> ()
    dm.yield
  }
  return
}
-- members of tuples -- line 7: element [1] of member 1.0 is 2, expected 4, in iteration 1 of the loop in line 4
!s = tuple<tensor<2xf32>, tuple<tensor<2xf32>>>
func.func @main() {
  %one = dm.constant dense<1.0> : tensor<2xf32> %z = dm.constant dense<[[1.0, 2.0], [1.0, 4.0]]> : tensor<2x2xf32>
  dm.scan %z, carries = 0 : (tensor<2x2xf32>) -> () { ^bb0(%x: tensor<2xf32>):
    %y = dm.constant dense<[1.0, 2.0]> : tensor<2xf32> %yy = dm.pack %y : (tensor<2xf32>) -> tuple<tensor<2xf32>> %xx = dm.pack %x : (tensor<2xf32>) -> tuple<tensor<2xf32>>
    %a = dm.pack %one, %yy : (tensor<2xf32>, tuple<tensor<2xf32>>) -> !s %b = dm.pack %one, %xx : (tensor<2xf32>, tuple<tensor<2xf32>>) -> !s
    check.expect_eq %a, %b : !s
    dm.yield
  }
  return
}
-- a loss that is differentiated -- line 6: element [] is 3, expected 4, in iteration 1 of the loop in line 3, in @loss, called in line 14
func.func private @loss(%w: tensor<f32>) -> tensor<f32> {
  %four = dm.constant dense<4.0> : tensor<f32>
  %y = dm.scan %w, carries = 1, length = 3 : (tensor<f32>) -> tensor<f32> {
  ^bb0(%c: tensor<f32>):
    %least = dm.max %c, %four : tensor<f32> %most = dm.min %c, %four : tensor<f32> %mid = dm.add %most, %c : tensor<f32> %of = dm.sub %least, %most : tensor<f32>
    check.expect_eq %c, %least : tensor<f32>
    %one = dm.constant dense<-1.0> : tensor<f32>
    %d = dm.add %c, %one : tensor<f32>
    dm.yield %d : tensor<f32>
  }
  return %y : tensor<f32>
}
func.func @main(%w: tensor<f32> {dm.init = 4.0}) -> (tensor<f32>, tensor<f32>) {
  %l, %d = dm.grad @loss %w : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %l, %d : tensor<f32>, tensor<f32>
}
`

// A check is reached in a branch that is taken and an iteration that runs, on every
// device and from a compiled file, and reported with the place that it was reached in.
func TestChecksAreReached(t *testing.T) {
	needEmulator(t)
	emulated, _, err := Choose("emulator")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.Split(reached, "\n-- ")[1:] {
		head, text, _ := strings.Cut(c, "\n")
		name, want, _ := strings.Cut(head, " --")
		want = strings.TrimSpace(want)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := loaded(t, name+".dmir", text)
			m, fn, err := Pick(p, "main")
			if err != nil {
				t.Fatal(err)
			}
			report := func(on string, err error) {
				got := ""
				var inText *interp.Error
				var compiled *CheckError
				switch {
				case errors.As(err, &inText) && inText.Code == interp.CheckFailed:
					line, _ := p.Src.Human(inText.Span.Start)
					got = fmt.Sprintf("line %d: %s", line, inText.Msg)
				case errors.As(err, &compiled):
					got = fmt.Sprintf("line %d: %s", compiled.Line, compiled.Msg)
				case err != nil:
					t.Fatalf("%s: %v", on, err)
				}
				if got != want {
					t.Errorf("%s: %q, want %q", on, got, want)
				}
			}
			j := Job{Program: p, Module: m, Fn: fn}
			for _, j.Device = range []string{"reference", "emulator"} {
				_, err := Run(t.Context(), j, nil)
				report(j.Device, err)
			}
			args, err := interp.Inputs(t.Context(), fn, nil, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			all, err := CompileFor(t.Context(), m, fn, nil, false, BuildOptions{Machine: machineFor("sm_90a")}, func(string, int, int) {})
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if err := all[0].Program.Write(&file); err != nil {
				t.Fatal(err)
			}
			read, err := artifact.Read(&file)
			if err != nil {
				t.Fatal(err)
			}
			read.Trust()
			res, err := RunArtifact(t.Context(), emulated, read, args, device.Options{})
			report("a file", err)
			if err == nil && len(res.Outputs) != len(fn.Results) {
				t.Errorf("%d results of %d", len(res.Outputs), len(fn.Results))
			}
			s, err := OpenArtifact(t.Context(), emulated, read, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			outs, err := s.Step(t.Context(), args)
			report("a step", err)
			if err == nil && len(outs) != len(fn.Results) {
				t.Errorf("%d results of a step of %d", len(outs), len(fn.Results))
			}
		})
	}
}

// Checks that devices cannot make are never left out.
func TestChecksOfScalars(t *testing.T) {
	p := loaded(t, "scalars.dmir", `func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = dm.map %x : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32):
    "check.expect_eq"(%a, %a) : (f32, f32) -> ()
    dm.yield %a : f32
  }
  return %y : tensor<4xf32>
}`)
	_, err := Build(t.Context(), p.Modules[0], p.Modules[0].Funcs[0], BuildOptions{Machine: machineFor("sm_90a")})
	var unfit *pass.Error
	if !errors.As(err, &unfit) || unfit.Code != "DM804" || !strings.HasPrefix(unfit.Msg, "check.expect_eq ") {
		t.Errorf("%v; expected DM804 at the check", err)
	}
}
