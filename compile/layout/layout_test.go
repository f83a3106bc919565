package layout

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/compile/bind"
	"dmir/compile/gradient"
	"dmir/compile/inline"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/simplify"
	"dmir/testkit/randprog"
)

var programs = flag.Int("programs", 80, "how many random programs get layouts")

const transposes = `func.func @f(%x: tensor<4x8x16xf32>, %w: tensor<8x4x16xf32>) -> tensor<16x8x4xf32> {
  %a = dm.transpose %x, dims = [1, 0, 2] : (tensor<4x8x16xf32>) -> tensor<8x4x16xf32>
  %b = dm.add %a, %w : tensor<8x4x16xf32>
  %c = dm.transpose %b, dims = [2, 0, 1] : (tensor<8x4x16xf32>) -> tensor<16x8x4xf32>
  return %c : tensor<16x8x4xf32>
}`

func unit(t testing.TB, text string) *pass.Unit {
	t.Helper()
	return passtest.Unit(t, text, "", nil)
}

func TestGolden(t *testing.T) {
	passtest.Golden(t, "testdata", func(string) []pass.Pass { return []pass.Pass{Pass()} })
}

// before is what runs before layouts are chosen.
func before() []pass.Pass {
	return []pass.Pass{inline.Pass(), bind.Pass(), gradient.Pass(), simplify.Pass()}
}

// chosen runs the pass and verifies its report: the function's predicted time
// changes by the reported saving, a second run finds nothing, the results stay.
func chosen(t *testing.T, text, fn string) *Figures {
	t.Helper()
	u := passtest.Unit(t, text, fn, nil)
	was := cost.Function(u.Func, u.Module, nil).Time(u.Machine)
	f, err := Run(u)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := pass.Check(u); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	after := passtest.Text(t, u)
	is := cost.Function(u.Func, u.Module, nil).Time(u.Machine)
	if f.After > f.Before || is.Known && was.Known && is.Ns > was.Ns*(1+1e-9) && f.After == f.Before {
		t.Errorf("%v ns became %v, the function's %v became %v\n%s\nbecame\n%s", f.Before, f.After, was.Ns, is.Ns, text, after)
	}
	if f.Before == f.After && after != passtest.Text(t, passtest.Unit(t, text, fn, nil)) {
		t.Errorf("nothing is gained, and yet this changed:\n%s\nbecame\n%s", text, after)
	}
	passtest.Same(t, text, after, u.Func.Name, nil, 0)
	again, err := Run(passtest.Unit(t, after, u.Func.Name, nil))
	if err != nil || again.After < again.Before {
		t.Errorf("a second run finds %v ns less (%v)\n%s", again.Before-again.After, err, after)
	}
	return f
}

func TestRandomPrograms(t *testing.T) {
	gained, exact := 0, 0
	for seed := range uint64(*programs) {
		text, err := passtest.Apply(t, randprog.Messy(seed, 40), "f", nil, before()...)
		if err != nil {
			t.Fatal(err)
		}
		f := chosen(t, text, "f")
		if f.After < f.Before {
			gained++
		}
		if f.Exact {
			exact++
		}
	}
	t.Logf("%d of %d programs move less, %d proven", gained, *programs, exact)
}

func TestPrograms(t *testing.T) {
	files, err := filepath.Glob("../../testdata/programs/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no programs", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".dmir"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			simple, err := passtest.Apply(t, string(text), "", nil, before()...)
			var unfit *pass.Error
			if errors.As(err, &unfit) && (unfit.Code == "DM801" || unfit.Code == "DM804") {
				return // open sizes, or control flow
			}
			if err != nil {
				t.Fatal(err)
			}
			f := chosen(t, simple, "")
			t.Logf("%d values with a choice, %.3g ns became %.3g", f.Values, f.Before, f.After)
		})
	}
}
