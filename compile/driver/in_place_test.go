package driver

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// inPlace is a function whose kernels write over what they are the last to read:
// alone, two results of one kernel over the operands of each other, and through
// a view; sizes that are taken one by one, and as vectors.
const inPlace = `func.func @f(%x: !x, %y: !x) -> (!x, !x, !flat) attributes {dm.in_place} {
  %w = dm.matmul %x, %x : !x
  %v = dm.matmul %x, %y : !x
  %a, %b = dm.kernel -> (!x, !x) {
    %0 = dm.exp %v : !x
    %1 = dm.add %w, %v : !x
    %2 = dm.mul %1, %w : !x
    dm.yield %0, %2 : !x, !x
  }
  %m = dm.matmul %a, %b : !x
  %c = dm.kernel -> !x {
    %0 = dm.tanh %b : !x
    %1 = dm.sub %0, %a : !x
    dm.yield %1 : !x
  }
  %n = dm.reshape %m : (!x) -> !flat
  %d = dm.kernel -> !flat {
    %0 = dm.relu %n : !flat
    dm.yield %0 : !flat
  }
  %e = dm.matmul %c, %y : !x
  return %c, %e, %d : !x, !x, !flat
}
`

// overwriting is how many parameters of element-wise kernels are written in place.
func overwriting(p *artifact.Program) (n int) {
	for _, k := range p.Kernels {
		for _, q := range k.Params {
			if k.Class == "pointwise" && q.Mode == artifact.InOut {
				n++
			}
		}
	}
	return n
}

// What is computed in place is what is computed beside it, in less memory.
func TestInPlace(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	for _, c := range []struct{ size, elem string }{{"63", "f32"}, {"64", "f32"}, {"64", "f16"}, {"24", "f64"}} {
		t.Run(c.size+c.elem, func(t *testing.T) {
			var n int
			fmt.Sscan(c.size, &n)
			text := strings.NewReplacer("!x", fmt.Sprintf("tensor<%dx%dx%s>", n, n, c.elem), "!flat", fmt.Sprintf("tensor<%dx%s>", n*n, c.elem)).Replace(inPlace)
			built, _ := agree(t, loaded(t, "in_place.dmir", text), "f")
			beside, _ := agree(t, loaded(t, "beside.dmir", strings.Replace(text, " attributes {dm.in_place}", "", 1)), "f")
			if got := overwriting(built); got < 3 || overwriting(beside) > 0 || built.Workspace >= beside.Workspace {
				t.Errorf("%d results in place, %d bytes; without the attribute %d and %d", got, built.Workspace, overwriting(beside), beside.Workspace)
			}
			for _, p := range []*artifact.Program{built, beside} {
				if err := p.Check(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// The small programs compute the same with dm.in_place, and need no more memory.
func TestProgramsInPlace(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	d, _, err := Choose("emulator")
	if err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]int{"llama_train": 1, "encoder_train": 0} {
		t.Run(name, func(t *testing.T) {
			p := read(t, filepath.Join(programs, name+".dmir"))
			before, err := caseOf(t, p, name).Build("")
			if err != nil {
				t.Fatal(err)
			}
			_, fn, err := Pick(p, "")
			if err != nil {
				t.Fatal(err)
			}
			fn.Op.SetAttr("dm.in_place", types.Bool(true))
			c := caseOf(t, p, name)
			after, err := c.Build("")
			if err != nil {
				t.Fatal(err)
			}
			if overwriting(after) < least || after.Workspace > before.Workspace {
				t.Errorf("%d results in place, in %d bytes; %d before", overwriting(after), after.Workspace, before.Workspace)
			}
			got, err := d.Run(t.Context(), after, c.Inputs, device.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Check(got.Outputs); err != nil {
				t.Error(err)
			}
		})
	}
}
