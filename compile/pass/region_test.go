package pass_test

import (
	"errors"
	"strings"
	"testing"

	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/dialect/ir"
	"dmir/internal/randprog"
)

// A region that a pass is given captures nothing: all that it uses is defined in it
// or is its argument. Afterwards the program is what it was.
func TestRegions(t *testing.T) {
	regions := 0
	for seed := range uint64(60) {
		u := passtest.Unit(t, randprog.Messy(seed, 20), "f", nil)
		before := passtest.Text(t, u)
		err := pass.InRegions(pass.Pass{Run: func(u *pass.Unit) error {
			if !pass.IsRegion(u.Func) {
				return nil
			}
			regions++
			last := u.Func.Body.Terminator()
			if n := len(last.Operands); n != len(u.Func.Results) || last.Name != "dm.yield" {
				t.Errorf("%d results of %d values that %s hands on", len(u.Func.Results), n, last.Name)
			}
			if vs := ir.CapturedValues(u.Func.Op.Regions...); len(vs) > 0 {
				t.Errorf("%s is no argument", vs[0].Name)
			}
			return nil
		}}).Run(u)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := pass.Check(u); err != nil {
			t.Fatalf("seed %d, afterwards: %v", seed, err)
		}
		if after := passtest.Text(t, u); after != before {
			t.Fatalf("seed %d became\n%s", seed, after)
		}
	}
	if regions < 20 {
		t.Errorf("%d regions in the programs", regions)
	}
}

// An error in a region comes out, and the program is whole all the same.
func TestRegionsFail(t *testing.T) {
	u := passtest.Unit(t, `func.func @f(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = dm.if %p : (tensor<i1>) -> tensor<4xf32> {
    %a = dm.exp %x : tensor<4xf32>
    dm.yield %a : tensor<4xf32>
  } else {
    dm.yield %x : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
`, "f", nil)
	before := passtest.Text(t, u)
	wrong := errors.New("wrong")
	warned := func(u *pass.Unit) error { u.Warn(pass.Errorf(nil, "DM806", "look")); return wrong }
	if err := pass.Regions(u, warned); err != wrong || len(u.Warnings) != 1 {
		t.Errorf("%v, %d warnings", err, len(u.Warnings))
	}
	if after := passtest.Text(t, u); after != before || pass.Check(u) != nil {
		t.Errorf("it became\n%s", after)
	}
	o := u.Func.Body.Ops[0]
	o.Body(0).Ops = o.Body(0).Ops[:1] // no terminator
	err := pass.Outlined(u.Func, o, 0, func(*ir.Func, []*ir.Value) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "dm.yield") {
		t.Errorf("a region without an end: %v", err)
	}
}
