// Package passtest holds what the tests of passes share: golden archives of
// programs before and after, and the proof that both compute the same.
package passtest

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/tensor"
	"dmir/dialect/mesh"
	"dmir/dialect/print"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/source"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Unit is the function called fn of a text without errors, "" for the first
// one with a body, on the default machine.
func Unit(t testing.TB, text, fn string, bind map[string]int64) *pass.Unit {
	t.Helper()
	m, ok := machine.Lookup(machine.Default)
	if !ok {
		t.Fatalf("no machine %s", machine.Default)
	}
	p := program.Load(source.New("in.dmir", text), program.Options{Target: m, Bind: bind})
	for _, d := range p.Diags {
		if d.Severity == diag.Error && d.Code != "DM811" { // which the gradient pass reports too
			line, _ := p.Src.Human(d.Span.Start)
			t.Fatalf("line %d: %s (%s)\n%s", line, d.Message, d.Code, text)
		}
	}
	for _, mod := range p.Modules {
		for _, f := range mod.Funcs {
			if f.Body != nil && (fn == "" || f.Name == fn) {
				return &pass.Unit{Ctx: t.Context(), Module: mod, Func: f, Machine: m, Options: pass.Options{Bind: bind}}
			}
		}
	}
	t.Fatalf("no function @%s with a body", fn)
	return nil
}

// Text is the function of u, and those that it calls, as people write them.
func Text(t testing.TB, u *pass.Unit) string {
	t.Helper()
	one := *u.Module
	one.Ops, one.Resources = mesh.Ops(u.Module), nil
	for _, f := range pass.Reached(u.Module, u.Func) {
		one.Ops = append(one.Ops, f.Op)
	}
	text, err := print.Pretty(&one)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Apply runs the passes over the function called fn of text and is its text
// afterwards, which is read again and must print the same.
func Apply(t testing.TB, text, fn string, bind map[string]int64, ps ...pass.Pass) (string, error) {
	t.Helper()
	u := Unit(t, text, fn, bind)
	if err := pass.Run(u, ps, nil); err != nil {
		return "", err
	}
	after := Text(t, u)
	if again := Text(t, Unit(t, after, u.Func.Name, bind)); again != after {
		t.Fatalf("the text does not hold everything:\n%s", format.Diff("after", after, again))
	}
	return after, nil
}

// Tolerance is how far results may differ, by the element type they have: an
// element's rounding error times slack, which stands for the number of
// roundings that may come out otherwise.
func Tolerance(e types.Elem, slack float64) float64 {
	switch e {
	case types.F64:
		return slack * 0x1p-52
	case types.F32:
		return slack * 0x1p-23
	case types.F16:
		return slack * 0x1p-10
	case types.BF16:
		return slack * 0x1p-7
	case types.F8E4M3FN:
		return slack * 0x1p-3
	case types.F8E5M2:
		return slack * 0x1p-2
	}
	return 0
}

// Same runs the function called fn of both texts in the reference executor on
// the same random inputs and compares the results; a slack of 0 asks for the
// same bits. Where the first cannot run, nothing is compared.
func Same(t testing.TB, before, after, fn string, bind map[string]int64, slack float64) {
	t.Helper()
	want, err := run(t, before, fn, bind)
	if err != nil {
		t.Logf("the program does not run: %v", err)
		return
	}
	got, err := run(t, after, fn, bind)
	if err != nil {
		t.Fatalf("the program does not run any more: %v\n%s", err, after)
	}
	if len(got) < len(want) { // what checks compare may follow
		t.Fatalf("%d results where there were %d", len(got), len(want))
	}
	for i := range want {
		diff := tensor.MaxDiff(got[i], want[i])
		if most := Tolerance(want[i].Elem, slack); diff > most || math.IsNaN(diff) || got[i].Elem != want[i].Elem {
			t.Errorf("result %d, %s, differs by %g, more than %g\n%s\nbecame\n%s", i, want[i].Type(), diff, most, before, after)
			return
		}
	}
}

func run(t testing.TB, text, fn string, bind map[string]int64) ([]*tensor.Tensor, error) {
	t.Helper()
	u := Unit(t, text, fn, bind)
	args, err := interp.Inputs(t.Context(), u.Func, bind, 7, nil)
	if err != nil {
		return nil, err
	}
	res, err := interp.Run(t.Context(), u.Module, u.Func, args, interp.Options{Bind: bind})
	if err != nil {
		return nil, err
	}
	return res.Outputs, nil
}

// Golden runs each archive dir/*.txtar: the passes over every file NAME.dmir,
// whose outcome is NAME.after or, where they refuse, NAME.error; -update writes
// them. What comes out must be read again, be a fixed point, and compute the
// same. A comment of the archive may hold "bind: n=4 m=3" and "slack: 16" for
// Same.
func Golden(t *testing.T, dir string, ps func(archive string) []pass.Pass) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no archives in", dir, err)
	}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		archive := strings.TrimSuffix(filepath.Base(file), ".txtar")
		bind, slack := settings(t, string(ar.Comment))
		out := &txtar.Archive{Comment: ar.Comment}
		for _, f := range ar.Files {
			name, isInput := strings.CutSuffix(f.Name, ".dmir")
			if !isInput {
				continue
			}
			out.Files = append(out.Files, f)
			t.Run(archive+"/"+name, func(t *testing.T) {
				before := string(f.Data)
				after, err := Apply(t, before, "", bind, ps(archive)...)
				if err != nil {
					out.Files = append(out.Files, txtar.File{Name: name + ".error", Data: fmt.Appendln(nil, err)})
					return
				}
				out.Files = append(out.Files, txtar.File{Name: name + ".after", Data: []byte(after)})
				Same(t, before, after, "", bind, slack)
				again, err := Apply(t, after, "", bind, ps(archive)...)
				if err != nil {
					t.Fatal(err)
				}
				if again != after {
					t.Errorf("a second run changes it again:\n%s", format.Diff(name, after, again))
				}
			})
		}
		want, got := string(txtar.Format(ar)), string(txtar.Format(out))
		switch {
		case want == got:
		case *update:
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("the outcome differs (-update writes it):\n%s", format.Diff(file, want, got))
		}
	}
}

// settings reads the comment of an archive.
func settings(t *testing.T, comment string) (bind map[string]int64, slack float64) {
	t.Helper()
	for line := range strings.Lines(comment) {
		if list, ok := strings.CutPrefix(line, "bind: "); ok {
			bind = map[string]int64{}
			for _, f := range strings.Fields(list) {
				name, n, _ := strings.Cut(f, "=")
				size, err := strconv.ParseInt(n, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				bind[name] = size
			}
		}
		if text, ok := strings.CutPrefix(line, "slack: "); ok {
			var err error
			if slack, err = strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return bind, slack
}
