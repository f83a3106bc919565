package pipeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/compile/schedule"
)

// After every pass the text of a program can be read again and computes what
// the program computed. An attention that was written out rounds half precision
// otherwise from then on; in f32 it is the same.
func TestStages(t *testing.T) {
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
			want := string(text)
			u := passtest.Unit(t, want, "", nil)
			err = pass.Run(u, pipeline.Until(nil, "fuse"), func(s pass.Stage) error {
				after := passtest.Text(t, u)
				if s.Pass.Name == "attention" {
					want = after
					wide := strings.ReplaceAll(string(text), "f16", "f32")
					found, err := passtest.Apply(t, wide, u.Func.Name, nil, pipeline.Until(nil, "attention")...)
					if err != nil {
						return err
					}
					passtest.Same(t, wide, found, u.Func.Name, nil, 256)
				}
				if again := passtest.Text(t, passtest.Unit(t, after, u.Func.Name, nil)); again != after {
					t.Errorf("after %s the text does not hold everything", s.Pass.Name)
				}
				passtest.Same(t, want, after, u.Func.Name, nil, 256)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The same of loops and branches in one another, with a value that both branches
// capture, through all passes; and what comes out is a schedule that is proven
// again from its text.
func TestControlStages(t *testing.T) {
	const text = `func.func @f(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = dm.constant dense<0> : tensor<i64>
  %table = dm.constant dense<[0.5, -0.25, 0.125, 1.0]> : tensor<4xf32>
  %before = dm.mul %x, %w : tensor<4x4xf32>
  %n, %y, %z = dm.while %zero, %before, %x, trip_count = 4 : (tensor<i64>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<i64>, tensor<4x4xf32>, tensor<4x4xf32>) {
  ^bb0(%i: tensor<i64>, %v: tensor<4x4xf32>, %u: tensor<4x4xf32>):
    %four = dm.constant dense<4> : tensor<i64>
    %more = dm.compare lt %i, %four : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %v: tensor<4x4xf32>, %u: tensor<4x4xf32>):
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    %early = dm.compare lt %i, %one : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %r = dm.if %early : (tensor<i1>) -> tensor<4x4xf32> {
      %p = dm.einsum "ij,jk->ik" %v, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %q = dm.add %p, %table : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
      dm.yield %q : tensor<4x4xf32>
    } else {
      %e = dm.softmax %u, dim = 1 : tensor<4x4xf32>
      %g = dm.mul %e, %before : tensor<4x4xf32>
      %h = dm.add %g, %v : tensor<4x4xf32>
      dm.yield %h : tensor<4x4xf32>
    }
    dm.yield %next, %r, %v : tensor<i64>, tensor<4x4xf32>, tensor<4x4xf32>
  }
  %s = dm.add %y, %z : tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}
`
	u := passtest.Unit(t, text, "f", nil)
	var after string
	err := pass.Run(u, pipeline.For(nil), func(s pass.Stage) error {
		after = passtest.Text(t, u)
		if again := passtest.Text(t, passtest.Unit(t, after, "f", nil)); again != after {
			t.Errorf("after %s the text does not hold everything", s.Pass.Name)
		}
		passtest.Same(t, text, after, "f", nil, 64)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	fn := passtest.Unit(t, after, "f", nil).Func
	if err := schedule.Check(fn); err != nil {
		t.Error(err)
	}
	// A plan that gives a body less than it takes is refuted.
	spoiled := strings.Replace(after, "dm.yield %next, %r, %v {dm.workspace = ", "dm.yield %next, %r, %v {dm.workspace = 1", 1)
	if spoiled == after {
		t.Fatal("the body has no workspace in the text")
	}
	if err := schedule.Check(passtest.Unit(t, spoiled, "f", nil).Func); err == nil {
		t.Error("a body that needs more than its loop has is not noticed")
	}
}

func TestUntil(t *testing.T) {
	names := pipeline.Names()
	for i, name := range names {
		if got := pipeline.Until(nil, name); len(got) != i+1 || got[i].Name != name {
			t.Errorf("Until(%s) gives %d passes", name, len(got))
		}
	}
	if got := pipeline.Until(nil, "nothing"); len(got) != len(names) {
		t.Errorf("a name that there is not gives %d of %d passes", len(got), len(names))
	}
	page, err := os.ReadFile("../../docs/ARCHITECTURE.md")
	if want := "`pipeline.For(target)`: " + strings.Join(names, ", ") + "\n"; err != nil || !strings.Contains(string(page), want) {
		t.Errorf("docs/ARCHITECTURE.md lists other passes (%v), want %s", err, want)
	}
}
