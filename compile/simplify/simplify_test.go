package simplify_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/analysis/lint"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/bind"
	"dmir/compile/inline"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/simplify"
	"dmir/syntax/diag"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

var programs = flag.Int("programs", 120, "how many random programs are simplified")

func passes(string) []pass.Pass {
	return []pass.Pass{inline.Pass(), bind.Pass(), simplify.Pass()}
}

func TestGolden(t *testing.T) { passtest.Golden(t, "testdata", passes) }

// Random programs compute the same afterwards, and a second run finds nothing.
// Only contractions, sums and half precision may round otherwise.
func TestRandomPrograms(t *testing.T) {
	before, after := 0, 0
	for seed := range uint64(*programs) {
		text := randprog.Messy(seed, 40)
		simpler, err := passtest.Apply(t, text, "f", nil, passes("")...)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		passtest.Same(t, text, simpler, "f", nil, 64)
		again, err := passtest.Apply(t, simpler, "f", nil, passes("")...)
		if err != nil || again != simpler {
			t.Fatalf("seed %d: a second run finds more (%v)\n%s\nbecame\n%s", seed, err, simpler, again)
		}
		before, after = before+strings.Count(text, "dm."), after+strings.Count(simpler, "dm.")
	}
	t.Logf("%d programs: %d ops became %d", *programs, before, after)
}

// Each rule has an effect in one of the archives: without it, the result of at
// least one differs.
func TestEveryRuleIsShown(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no archives", err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, r := range simplify.Rules() {
		if r.Doc == "" || !strings.Contains(all.String(), "-- "+r.Name) {
			t.Errorf("rule %s has no doc or no case called after it", r.Name)
		}
	}
}

// Where lint finds a value computed twice or movement that an op need not do,
// simplify agrees: it leaves nothing of that kind in the rules' own cases.
func TestAgreesWithLint(t *testing.T) {
	machine, _ := machine.Lookup(machine.Default)
	for _, code := range []string{"DM203", "DM204", "DM205", "DM206", "DM208"} {
		archive, err := txtar.ParseFile("../../analysis/lint/testdata/" + code + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		cases := 0
		found := func(name, text string) []diag.Diagnostic {
			p := program.Load(source.New(name, text), program.Options{Target: machine})
			return lint.Run(t.Context(), p, lint.Options{Select: []string{code}})
		}
		for _, f := range archive.Files {
			text := string(f.Data)
			if !strings.HasSuffix(f.Name, ".dmir") || strings.Contains(text, "dm.kernel") || len(found(f.Name, text)) == 0 {
				continue
			}
			cases++
			for _, fn := range program.Load(source.New(f.Name, text), program.Options{Target: machine}).Modules[0].Funcs {
				simpler, err := passtest.Apply(t, text, fn.Name, nil, simplify.Pass())
				if err != nil {
					t.Fatalf("%s: %v", f.Name, err)
				}
				for _, d := range found(f.Name, simpler) {
					t.Errorf("%s/%s: simplify leaves what lint reports: %s\n%s", code, f.Name, d.Message, simpler)
				}
			}
		}
		if cases == 0 {
			t.Errorf("%s: no case", code)
		}
	}
}
