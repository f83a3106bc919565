package pass_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/dialect/ir"
	"dmir/testkit/randprog"
)

// A region that a pass is given lists as its inputs what it captures, as it is: all
// else that its ops use is defined in it. The program stays as it is.
func TestRegions(t *testing.T) {
	regions := 0
	for seed := range uint64(60) {
		u := passtest.Unit(t, randprog.Messy(seed, 20), "f", nil)
		before := passtest.Text(t, u)
		err := pass.InRegions(pass.Pass{Run: func(u *pass.Unit) error {
			b := u.Body()
			if !b.IsRegion() {
				return nil
			}
			regions++
			if last := b.Terminator(); last.Name != "dm.yield" {
				t.Errorf("a region ends in %s", last.Name)
			}
			ins := b.Inputs()
			ir.Walk(b.Ops, func(o *ir.Op) bool {
				for _, v := range o.Operands {
					if !slices.Contains(ins, v) && !v.Inside(b.Region.Op) {
						t.Errorf("%s, which %s uses, is no input", v.Name, o.Name)
					}
				}
				return true
			})
			for i, v := range ins {
				if own := i < len(b.Args); own != v.Inside(b.Region.Op) {
					t.Errorf("input %d, %s: an argument: %v", i, v.Name, own)
				}
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
	if _, err := pass.RegionOf(u.Func, o, 0); err == nil || !strings.Contains(err.Error(), "dm.yield") {
		t.Errorf("a region without an end: %v", err)
	}
}
