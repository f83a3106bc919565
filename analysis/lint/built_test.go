package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/source"
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

// TestFixesAreBuilt compiles what all fixes leave of the examples and of random
// programs: no kernel that a fix made is taken apart again, and what the compiler
// generates moves no more bytes than predicted for the fixed text, and takes no more time but for a kernel's start.
func TestFixesAreBuilt(t *testing.T) {
	need.Long(t)
	paths, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(paths) == 0 {
		t.Fatal("no examples:", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			// Fusing a whole training step takes long; that its kernels are built does not.
			until := "fuse"
			if strings.HasSuffix(path, "_train.dmir") {
				until = "unfuse"
			}
			fixedIsBuilt(t, string(text), until)
		})
	}
	for seed := range uint64(*programs) {
		text := randprog.Messy(seed, 4+int(seed%12))
		t.Run(fmt.Sprint(seed), func(t *testing.T) { fixedIsBuilt(t, text, "fuse") })
	}
}

func fixedIsBuilt(t *testing.T, text, until string) {
	t.Helper()
	bind := map[string]int64{}
	load := func(s *source.File) *program.Program {
		return program.Load(s, program.Options{Target: target(t), Bind: bind, OneKernel: kernel.Unfit})
	}
	for _, f := range load(source.New("in.dmir", text)).Funcs {
		for _, s := range f.Unbound() {
			bind[s] = 64
		}
	}
	before := load(source.New("in.dmir", text))
	fixed := lint.FixAll(t.Context(), before, lint.Options{}, true, load)
	for _, f := range fixed.Funcs {
		if f.Func.Op.Str("sym_visibility") == "private" {
			continue
		}
		compile := func(p *program.Program, until string) (*pass.Unit, error) {
			m := p.Modules[0].Clone()
			u := &pass.Unit{Ctx: t.Context(), Module: m, Func: m.Func(f.Func.Name), Machine: p.Target, Options: pass.Options{Bind: bind}}
			return u, pass.Run(u, pipeline.Until(nil, until), nil)
		}
		was, err := compile(before, "unfuse")
		if err != nil {
			t.Logf("@%s is not compiled: %v", f.Func.Name, err)
			continue
		}
		u, err := compile(fixed.Program, until)
		if err != nil {
			t.Errorf("@%s is not compiled once it is fixed: %v\n%s", f.Func.Name, err, fixed.Src.Text())
			continue
		}
		if n, have := apart(t, fixed.Src, u), apart(nil, nil, was); n > have {
			t.Errorf("%d kernels are taken apart, %d before the fixes:\n%s", n, have, fixed.Src.Text())
		}
		sparse := false // one kernel for cost, and as many in the plan as its dense ops need
		ir.Walk(f.Func.Body.Ops, func(o *ir.Op) bool { sparse = sparse || op.IsSparse(o); return !sparse })
		if until != "fuse" || sparse {
			continue
		}
		promised, ok := f.Moved().Int()
		got := cost.Function(u.Func, u.Module, bind)
		if moved, _ := got.Moved().Int(); ok && moved > promised {
			t.Errorf("@%s was to move %d bytes, as compiled it moves %d:\n%s", f.Func.Name, promised, moved, fixed.Src.Text())
		}
		// The passes before fusion weigh products by their FLOP and not by their tiles, which may cost what a kernel takes to start.
		if want, have := f.Time(u.Machine), got.Time(u.Machine); want.Known && have.Ns > want.Ns*(1+1e-9)+u.Machine.Start()*1e9 {
			t.Errorf("@%s was to take %.4g ns, as compiled it takes %.4g:\n%s", f.Func.Name, want.Ns, have.Ns, fixed.Src.Text())
		}
	}
}

// apart counts the kernels that the compiler took apart again.
func apart(t *testing.T, src *source.File, u *pass.Unit) int {
	n := 0
	for _, w := range u.Warnings {
		if w.Code == "DM806" {
			n++
			if t != nil {
				t.Logf("%s: %s", src.Line(src.Pos(w.Span.Start).Line), w.Msg)
			}
		}
	}
	return n
}
