package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/analysis/cost"
	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/syntax/diag"
	"dmir/syntax/source"
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

// TestLevels compiles the rules' cases with and without what each finding asks for.
// Where it is a hint, the compiled program moves no fewer bytes then. A rule about
// movement that is a warning has a case in which it moves fewer or takes less time.
func TestLevels(t *testing.T) {
	l := levels{t: t, warnings: map[string]bool{}}
	archives, _ := filepath.Glob("testdata/DM*.txtar")
	for _, path := range archives {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range ar.Files {
			if strings.HasSuffix(f.Name, ".dmir") {
				l.check(path+"/"+f.Name, string(f.Data), strings.TrimSuffix(filepath.Base(path), ".txtar"))
			}
		}
	}
	for _, r := range lint.Rules() {
		if r.Code == "DM209" {
			continue // the cost of a fused copy does not count the link to the host
		}
		moves := strings.HasPrefix(r.Code, "DM20") || strings.HasPrefix(r.Code, "DM21")
		if leaves := r.Compiler == "" || r.Kept != ""; moves && leaves && !l.warnings[r.Code] {
			t.Errorf("%s %s: no case in which a person can save what the compiler does not", r.Code, r.Name)
		}
	}
	if l.hints == 0 {
		t.Error("no hint")
	}
}

// The same for the examples and for random programs.
func TestLevelsOfPrograms(t *testing.T) {
	need.Long(t)
	l := levels{t: t, warnings: map[string]bool{}}
	paths, _ := filepath.Glob("../../examples/*.dmir")
	for i, path := range paths {
		if !need.Turn(t, i, 2) {
			continue
		}
		if strings.HasSuffix(path, "_train.dmir") {
			continue // compiling each twice takes long
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		l.check(path, string(text), "ALL")
	}
	for seed := range uint64(*programs) {
		l.check(fmt.Sprintf("seed %d", seed), randprog.Messy(seed, 4+int(seed%12)), "ALL")
	}
	t.Logf("%d hints, and warnings of %v", l.hints, l.warnings)
	if l.hints == 0 || len(l.warnings) == 0 {
		t.Error("no hint or no warning")
	}
}

// levels compares compiled programs.
type levels struct {
	t        *testing.T
	hints    int
	warnings map[string]bool // codes of warnings without which the plan is better
}

func (l *levels) check(where, text, code string) {
	bind := map[string]int64{}
	load := func(text string) *program.Program {
		return program.Load(source.New("in.dmir", text), program.Options{Target: target(l.t), Bind: bind, OneKernel: kernel.Unfit})
	}
	for _, f := range load(text).Funcs {
		for _, s := range f.Unbound() {
			bind[s] = 64
		}
	}
	p := load(text)
	type moves struct {
		bytes int64
		ns    float64
		err   error
	}
	before := map[string]moves{} // by function, compiled once for all of its findings
	for _, d := range lint.Run(l.t.Context(), p, lint.Options{Select: []string{code}}) {
		changed, ok := withoutFinding(p, d)
		if !ok {
			continue
		}
		var fn string
		for _, f := range p.Funcs {
			if f.Func.Op.Span.Start <= d.Span.Start && d.Span.Start < f.Func.Op.Span.End {
				fn = f.Func.Name
			}
		}
		if _, done := before[fn]; !done {
			var m moves
			m.bytes, m.ns, m.err = compiledMoves(l.t, p, fn, bind)
			before[fn] = m
		}
		was, slow := before[fn].bytes, before[fn].ns
		if before[fn].err != nil {
			continue // a case that no compiler takes
		}
		is, fast, err := compiledMoves(l.t, load(changed), fn, bind)
		if err != nil {
			l.t.Logf("%s: %s: not compiled without the finding: %v", where, d.Code, err)
			continue
		}
		switch {
		case d.Severity == diag.Hint:
			l.hints++
			if was > is && slow > 1.001*fast { // kernels are chosen by time, of which a few bytes of a small program are no part
				l.t.Errorf("%s: %s at line %d is a hint, but compiled without it the program moves %d bytes instead of %d:\n%s",
					where, d.Code, p.Src.Pos(d.Span.Start).Line+1, is, was, text)
			}
		case was > is || slow > fast:
			l.warnings[d.Code] = true
		}
	}
}

// withoutFinding is the text with the fix of d; of a computation that a loop repeats,
// with its line moved above the loop. ok is false where neither is possible.
func withoutFinding(p *program.Program, d diag.Diagnostic) (text string, ok bool) {
	if len(d.Fixes) > 0 {
		end := 0
		for _, e := range d.Fixes[0].Edits {
			text += p.Src.Text()[end:e.Span.Start] + e.Text
			end = e.Span.End
		}
		return text + p.Src.Text()[end:], true
	}
	if d.Code != "DM209" && d.Code != "DM212" {
		return "", false
	}
	lines := strings.SplitAfter(p.Src.Text(), "\n")
	at, loop := p.Src.Pos(d.Span.Start).Line, p.Src.Pos(d.Related[0].Span.Start).Line
	if strings.Count(lines[at], " = dm.") != 1 {
		return "", false
	}
	lines[loop] = lines[at] + lines[loop]
	lines[at] = ""
	return strings.Join(lines, ""), true
}

// compiledMoves is the number of bytes that a function moves once it is fused, or each of the devices
// that run it together once it is divided, and the time that it takes.
func compiledMoves(t *testing.T, p *program.Program, fn string, bind map[string]int64) (bytes int64, ns float64, err error) {
	m := p.Modules[0].Clone()
	u := &pass.Unit{Ctx: t.Context(), Module: m, Func: m.Func(fn), Machine: p.Target, Options: pass.Options{Bind: bind}}
	last := "fuse"
	if f := p.Func(fn); f != nil && f.Mesh() != nil {
		u.Options.Devices, last = pass.AllDevices, "partition" // what devices exchange is the same from there on
	}
	if u.Func == nil {
		return 0, 0, fmt.Errorf("@%s is in another module", fn)
	}
	if err := pass.Run(u, pipeline.Until(nil, last), nil); err != nil {
		return 0, 0, err
	}
	f := cost.Function(u.Func, u.Module, bind)
	n, ok := f.Moved().Int()
	if !ok {
		return 0, 0, fmt.Errorf("@%s moves a formula", fn)
	}
	return n, f.Time(u.Machine).Ns, nil
}
