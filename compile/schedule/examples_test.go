package schedule_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/schedule"
	"dmir/syntax/source"
)

// Plans of the examples are sound, take at most 1 % more than any plan needs,
// and no less than what the cost of the text says is live.
func TestExamples(t *testing.T) {
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
				err := pass.Run(u, pipeline.Until("fuse"), nil)
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
				s, err := schedule.Read(fn)
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
