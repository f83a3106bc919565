package schedule_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/compile/schedule"
	"dmir/dialect/types"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// Plans of the examples are valid, need at most 1 % more memory than any plan, and
// no less than the live bytes in the cost of the text.
func TestExamples(t *testing.T) {
	need.Long(t)
	paths, _ := filepath.Glob("../../examples/*.dmir")
	small, _ := filepath.Glob("../../testdata/programs/*.dmir")
	if len(paths) == 0 {
		t.Fatal("no examples")
	}
	bind := map[string]int64{"b": 4, "n": 512, "l": 128, "m": 64}
	done := 0
	for _, path := range append(paths, small...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p := program.Load(source.New(path, string(text)), program.Options{Bind: bind})
		for _, m := range p.Modules {
			for _, fn := range m.Funcs {
				if fn.Body == nil {
					continue
				}
				u := &pass.Unit{Ctx: t.Context(), Module: m, Func: fn, Machine: p.Target, Options: pass.Options{Bind: bind}}
				err := pass.Run(u, pipeline.Until(nil, "fuse"), nil)
				var e *pass.Error
				if errors.As(err, &e) && e.Code == "DM804" { // control flow
					continue
				}
				if err != nil {
					t.Fatalf("%s: @%s: %v", path, fn.Name, err)
				}
				fn = u.Func
				given := live(t, u)
				if err := pass.Run(u, both(""), nil); err != nil {
					t.Fatalf("%s: @%s: %v", path, fn.Name, err)
				}
				if err := schedule.Check(fn); err != nil {
					t.Errorf("%s: @%s: %v", path, fn.Name, err)
				}
				s, err := schedule.Read(pass.BodyOf(fn))
				if err != nil {
					t.Fatalf("%s: @%s: %v", path, fn.Name, err)
				}
				now := live(t, u)
				t.Logf("%s @%s: %d steps on %d streams, workspace %d, bound %d (+%.2f %%), live %d, in the order of the text %d",
					filepath.Base(path), fn.Name, len(s.Steps), s.Streams, s.Workspace, s.Bound, 100*float64(s.Workspace-s.Bound)/float64(max(s.Bound, 1)), now, given)
				if s.Workspace-s.Bound > s.Bound/100 {
					t.Errorf("%s: @%s takes %d bytes, %d are needed at once", path, fn.Name, s.Workspace, s.Bound)
				}
				if s.Workspace < now {
					t.Errorf("%s: @%s takes %d bytes, less than the %d that are live", path, fn.Name, s.Workspace, now)
				}
				if now > given {
					t.Errorf("%s: @%s holds %d bytes, more than the %d of the order of the text", path, fn.Name, now, given)
				}
				done++
			}
		}
	}
	if done < 5 {
		t.Errorf("only %d functions were planned", done)
	}
}

// Training steps keep a budget below what they take without one, by order, on
// fewer streams and by recomputing, or the error names what holds more; what
// they compute stays the same bit for bit.
func TestBudgetsOfTrainingSteps(t *testing.T) {
	need.Long(t)
	paths, _ := filepath.Glob("../../testdata/programs/*_train.dmir")
	if len(paths) == 0 {
		t.Fatal("no programs")
	}
	kept := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		u := passtest.Unit(t, string(text), "", nil)
		if err := pass.Run(u, pipeline.Until(nil, "fuse"), nil); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		before := passtest.Text(t, u)
		plain := passtest.Unit(t, before, "", nil)
		if err := pass.Run(plain, both(""), nil); err != nil {
			t.Fatal(err)
		}
		s, err := schedule.Read(plain.Body())
		if err != nil {
			t.Fatal(err)
		}
		// How little can go depends on how much of a step is arguments and results.
		for _, part := range []int64{8, 25, 80} {
			u := passtest.Unit(t, before, "", nil)
			budget := s.Bound - s.Bound/part
			u.Func.Op.SetAttr(cost.MaxPeak, types.Str(fmt.Sprintf("%d B", budget)))
			err = pass.Run(u, both(""), nil)
			var e *pass.Error
			if errors.As(err, &e) && e.Code == "DM841" {
				t.Logf("%s: %v", filepath.Base(path), err)
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			after := passtest.Text(t, u)
			again, err := schedule.Read(u.Body())
			if err != nil || again.Workspace > budget {
				t.Fatalf("%s: a workspace of %d for a budget of %d, %v", path, again.Workspace, budget, err)
			}
			if err := schedule.Check(u.Func); err != nil {
				t.Fatal(err)
			}
			kept++
			t.Logf("%s: %d steps hold %d bytes, %d steps %d", filepath.Base(path), len(s.Steps), s.Workspace, len(again.Steps), again.Workspace)
			passtest.Same(t, before, after, "", nil, 0)
		}
	}
	if kept == 0 {
		t.Error("no budget was kept")
	}
}
