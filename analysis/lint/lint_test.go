package lint_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"dmir/analysis/cost"
	"dmir/analysis/lint"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/compile/planned"
	"dmir/compile/tensor"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func target(t *testing.T) *machine.Machine {
	t.Helper()
	m, ok := machine.Lookup(machine.Default)
	if !ok {
		t.Fatalf("no machine %s", machine.Default)
	}
	return m
}

func load(t *testing.T, src *source.File) *program.Program {
	t.Helper()
	return program.Load(src, program.Options{Target: target(t), OneKernel: kernel.Unfit, Compiled: planned.Figures})
}

func loadFor(t *testing.T, src *source.File, m *machine.Machine) *program.Program {
	t.Helper()
	return program.Load(src, program.Options{Target: m, OneKernel: kernel.Unfit, Compiled: planned.Figures})
}

// machineOf is the machine in the comment of an archive, "target NAME".
func machineOf(t *testing.T, ar *txtar.Archive) *machine.Machine {
	t.Helper()
	for line := range strings.Lines(string(ar.Comment)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "target "); ok {
			m, found := machine.Lookup(name)
			if !found {
				t.Fatalf("no machine %s", name)
			}
			return m
		}
	}
	return target(t)
}

// TestRules runs each archive testdata/CODE.txtar: the files NAME.dmir in it
// are checked by that rule alone, NAME.want holds its findings, NAME.fixed what
// is left when every fix has been applied. Every single fix is applied by
// itself as well and must keep its promise.
func TestRules(t *testing.T) {
	archives, _ := filepath.Glob("testdata/DM*.txtar")
	proven, fires, silent := map[string]int{}, map[string]int{}, map[string]int{}
	left := 0 // not run, as -run says
	for _, path := range archives {
		code := strings.TrimSuffix(filepath.Base(path), ".txtar")
		rule := lint.Lookup(code)
		if rule == nil {
			t.Errorf("%s: there is no rule %s", path, code)
			continue
		}
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for _, f := range ar.Files {
			want[f.Name] = string(f.Data)
		}
		out := &txtar.Archive{Comment: ar.Comment}
		for _, f := range ar.Files {
			name, isInput := strings.CutSuffix(f.Name, ".dmir")
			if !isInput {
				continue
			}
			left++
			t.Run(code+"/"+name, func(t *testing.T) {
				left--
				opts := lint.Options{Select: []string{code}}
				p := loadFor(t, source.New(f.Name, string(f.Data)), machineOf(t, ar))
				mustBeCorrect(t, p)
				found := lint.Run(t.Context(), p, opts)
				got := rendered(p.Src, found)
				fixed := lint.FixAll(t.Context(), p, opts, true, func(s *source.File) *program.Program { return loadFor(t, s, p.Target) })
				for _, d := range found {
					if prove(t, p, d, rule) {
						proven[code]++
					}
				}
				if len(found) > 0 {
					fires[code]++
				} else {
					silent[code]++
				}
				out.Files = append(out.Files, f, txtar.File{Name: name + ".want", Data: []byte(got)})
				check := func(name, got string) {
					if diff := cmp.Diff(want[name], got); diff != "" && !*update {
						t.Errorf("%s (-want +got):\n%s", name, diff)
					}
				}
				check(name+".want", got)
				if text := fixed.Src.Text(); text != p.Src.Text() {
					out.Files = append(out.Files, txtar.File{Name: name + ".fixed", Data: []byte(text)})
					check(name+".fixed", text)
					if diff := cmp.Diff(text, format.File(parse.File(fixed.Src))); diff != "" {
						t.Errorf("the fixed text is not formatted (-fixed +formatted):\n%s", diff)
					}
				}
			})
		}
		if *update && !t.Failed() && left == 0 {
			if err := os.WriteFile(path, txtar.Format(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left > 0 {
		return
	}
	for _, r := range lint.Rules() {
		if fires[r.Code] == 0 || silent[r.Code] == 0 {
			t.Errorf("%s %s: %d cases in which it speaks and %d in which it is silent; it needs both", r.Code, r.Name, fires[r.Code], silent[r.Code])
		}
		if r.Fix != lint.NoFix && proven[r.Code] == 0 {
			t.Errorf("%s %s: no case proves its fix", r.Code, r.Name)
		}
	}
	t.Logf("%d rules, %d with fixes, fixes proven: %v", len(lint.Rules()), len(proven), proven)
}

func mustBeCorrect(t *testing.T, p *program.Program) {
	t.Helper()
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			t.Fatalf("%s: %s", diag.Place(p.Src, d.Span), d.Message)
		}
	}
}

func rendered(src *source.File, found []diag.Diagnostic) string {
	var b bytes.Buffer
	for _, d := range found {
		diag.Text(&b, src, d, diag.Style{})
	}
	return b.String()
}

// prove applies the fix of d alone. The program must still be correct, must
// move exactly the promised bytes less and take the promised time less, and
// must not be reported the same again. A safe fix must not change one bit of what
// the program computes; an unsafe one, little.
func prove(t *testing.T, p *program.Program, d diag.Diagnostic, rule *lint.Rule) bool {
	t.Helper()
	if len(d.Fixes) == 0 {
		return false
	}
	fix := d.Fixes[0]
	if fix.Safe != (rule.Fix == lint.Safe) {
		t.Errorf("%s: the fix has safe = %v, the rule %q", d.Code, fix.Safe, rule.Fix)
	}
	q := applied(t, p, fix)
	text := q.Src.Text()
	for _, comment := range []string{"// keep", "// inside"} {
		if before, after := strings.Count(p.Src.Text(), comment), strings.Count(text, comment); before != after {
			t.Errorf("%s: %d comments before the fix, %d after it:\n%s", fix.Title, before, after, text)
		}
	}
	if whole := keepsPromise(t, p, q, d); whole != nil {
		sameResults(t, p, q, whole, fix)
	}
	for _, again := range lint.Run(t.Context(), q, lint.Options{Select: []string{d.Code}}) {
		if again.Message == d.Message && again.Label == d.Label && again.Span == d.Span && lineOf(p.Src, d) == lineOf(q.Src, again) {
			t.Errorf("%s: the finding is still there:\n%s", fix.Title, text)
		}
	}
	return true
}

// applied is p with a fix applied, which must be correct.
func applied(t *testing.T, p *program.Program, fix diag.Fix) *program.Program {
	t.Helper()
	text, end := "", 0
	for _, e := range fix.Edits {
		if e.Span.Start < end {
			t.Fatalf("%s: edits overlap or are out of order: %+v", fix.Title, fix.Edits)
		}
		text += p.Src.Text()[end:e.Span.Start] + e.Text
		end = e.Span.End
	}
	q := loadFor(t, source.New(p.Src.Path, text+p.Src.Text()[end:]), p.Target)
	mustBeCorrect(t, q)
	return q
}

// keepsPromise compares what the fix of d promises with what q, in which it is applied, saves in the function that d is in. It returns
// that function, nil where sizes are open.
func keepsPromise(t *testing.T, p, q *program.Program, d diag.Diagnostic) *cost.Func {
	t.Helper()
	fix, text := d.Fixes[0], q.Src.Text()
	for i, whole := range p.Funcs {
		if whole.Func.Op.Span.End < d.Span.Start || whole.Func.Op.Span.Start > d.Span.Start {
			continue
		}
		before, after := whole.PerDevice(), q.Funcs[i].PerDevice()
		saved, ok := before.Moved().Sub(after.Moved()).Int()
		if !ok {
			return nil
		}
		more := saved > fix.SavesBytes && before.Follows() // others that copy less, too
		if saved != fix.SavesBytes && !more {
			t.Errorf("%s: promises %d bytes, saves %d:\n%s", fix.Title, fix.SavesBytes, saved, text)
		}
		ns := before.Time(p.Target).Ns - after.Time(p.Target).Ns
		if math.Abs(ns-fix.SavesNs) > 1e-6*(1+math.Abs(ns)) && !(more && ns > fix.SavesNs) {
			t.Errorf("%s: promises %g ns, saves %g ns:\n%s", fix.Title, fix.SavesNs, ns, text)
		}
		sent, _ := before.Sent()
		less, _ := after.Sent()
		if n := cost.TotalSent(sent) - cost.TotalSent(less); n != fix.SavesSent {
			t.Errorf("%s: promises %d bytes sent less, sends %d less:\n%s", fix.Title, fix.SavesSent, n, text)
		}
		return whole
	}
	t.Errorf("%s is in no function", d.Message)
	return nil
}

func lineOf(src *source.File, d diag.Diagnostic) string { return src.Line(src.Pos(d.Span.Start).Line) }

// sameResults runs a function before and after a fix, on the devices of its mesh where it has one.
func sameResults(t *testing.T, p, q *program.Program, f *cost.Func, fix diag.Fix) {
	t.Helper()
	fn := f.Func.Name
	var on driver.Distribution
	if f.Mesh() != nil {
		on.Devices = pass.AllDevices
	}
	run := func(p *program.Program) []driver.Output {
		m, f, err := driver.Pick(p, fn)
		if err != nil {
			t.Fatal(err)
		}
		res, err := driver.Run(context.Background(), driver.Job{Program: p, Module: m, Fn: f, Seed: 7, Device: "reference", On: on}, nil)
		if err != nil {
			t.Fatalf("@%s: %v\n%s", fn, err, p.Src.Text())
		}
		return res.Outputs
	}
	before, after := run(p), run(q)
	limit := 0.0
	if !fix.Safe {
		limit = 0.1
	}
	for i := range before {
		if d := tensor.MaxDiff(before[i].Tensor, after[i].Tensor); !(d <= limit) {
			t.Errorf("%s: result %d of @%s differs by %g, at most %g is allowed", fix.Title, i, fn, d, limit)
		}
	}
}

func TestRulesAreDocumented(t *testing.T) {
	codes := map[string]bool{}
	for _, r := range lint.Rules() {
		if codes[r.Code] || r.Name == "" || r.Summary == "" || strings.HasSuffix(r.Summary, ".") {
			t.Errorf("%s %q: codes are unique, names and summaries are there and end without a stop", r.Code, r.Name)
		}
		codes[r.Code] = true
		file := "rule_" + strings.ReplaceAll(r.Name, "-", "_") + ".go"
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), strconv.Quote(r.Code)) {
			t.Errorf("%s %s does not stand in %s", r.Code, r.Name, file)
		}
		for _, part := range []string{"## What it does", "## Why it matters", "## Example", "## Fix"} {
			if !strings.Contains(r.Doc, part) {
				t.Errorf("%s: no %q in its documentation", r.Code, part)
			}
		}
	}
}

func TestSuppressionAndSelection(t *testing.T) {
	text := func(above, behind string) string {
		return "func.func @f(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {\n" + above +
			"  %a = dm.exp %x : tensor<64x64xf32>" + behind + "\n  return %x : tensor<64x64xf32>\n}\n"
	}
	for _, c := range []struct {
		name, text string
		opts       lint.Options
		want       int
	}{
		{"no comment", text("", ""), lint.Options{}, 1},
		{"behind the op", text("", " // dmir: ignore[DM207] kept for the demo"), lint.Options{}, 0},
		{"by name", text("", " // dmir: ignore[unused-value]"), lint.Options{}, 0},
		{"above the op", text("  // dmir: ignore[DM101, DM207] why\n  // more words\n", ""), lint.Options{}, 0},
		{"above, a line between", text("  // dmir: ignore[DM207] why\n  %b = dm.add %x, %x : tensor<64x64xf32>\n", ""), lint.Options{Select: []string{"DM207"}}, 1},
		{"another code", text("", " // dmir: ignore[DM201]"), lint.Options{}, 1},
		{"not closed", text("", " // dmir: ignore[DM207"), lint.Options{}, 1},
		{"ignored prefix", text("", ""), lint.Options{Ignore: []string{"DM2"}}, 0},
		{"ignored name", text("", ""), lint.Options{Ignore: []string{"unused-value"}}, 0},
		{"selected", text("", ""), lint.Options{Select: []string{"dm207"}}, 1},
		{"another selected", text("", ""), lint.Options{Select: []string{"DM3"}}, 0},
		{"ignore wins", text("", ""), lint.Options{Select: []string{"ALL"}, Ignore: []string{"DM207"}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := lint.Run(t.Context(), load(t, source.New("a.dmir", c.text)), c.opts)
			if len(found) != c.want {
				t.Errorf("%d findings, want %d: %v", len(found), c.want, found)
			}
		})
	}
	if got := (lint.Options{Select: []string{"DM2", "nonsense"}, Ignore: []string{"DM999"}}).Unmatched(); fmt.Sprint(got) != "[nonsense DM999]" {
		t.Errorf("unmatched: %v", got)
	}
}

// TestBrokenFunctionIsSilent holds that a function with an error in it is not
// linted: what its lines cost is not known.
func TestBrokenFunctionIsSilent(t *testing.T) {
	p := load(t, source.New("a.dmir", `func.func @broken(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = dm.exp %x : tensor<64xf32>
  %b = dm.add %x, %missing : tensor<64xf32>
  return %x : tensor<64xf32>
}
func.func @whole(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = dm.exp %x : tensor<64xf32>
  return %x : tensor<64xf32>
}
`))
	found := lint.Run(t.Context(), p, lint.Options{})
	if len(found) != 1 || p.Src.Pos(found[0].Span.Start).Line != 6 {
		t.Errorf("want one finding, in @whole: %+v", found)
	}
}

// Places outside of functions, and in those with errors, are not checked.
func TestChecked(t *testing.T) {
	text := `func.func @a(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = dm.exp %x : tensor<4xf32>
  return %a : tensor<4xf32>
}
#alias = 1
func.func @b(%x: tensor<4xf32>) -> tensor<5xf32> {
  %b = dm.exp %x : tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func @c(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = dm.exp %x : tensor<4xf32>
  return %c : tensor<4xf32>
}
`
	checked := lint.Checked(program.Load(source.New("f.dmir", text), program.Options{}))
	for at, want := range map[string]bool{"func.func @a": true, "%a = ": true, "#alias": false, "%b = ": false, "%c = ": true} {
		i := strings.Index(text, at)
		if got := checked(source.Span{Start: i, End: i + len(at)}); got != want {
			t.Errorf("%s is checked: %t, want %t", at, got, want)
		}
	}
}
