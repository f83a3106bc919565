package print_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/print"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

// sound lowers a text and reports whether each of its modules has no errors.
func sound(text string) (ms []*ir.Module, ok []bool) {
	f := parse.File(source.New("fuzz.dmir", text))
	ms = lower.File(f)
	for _, m := range ms {
		good := true
		for _, list := range [][]diag.Diagnostic{f.Diags, m.Diags, verify.Module(m)} {
			for _, d := range list {
				good = good && d.Severity != diag.Error
			}
		}
		ok = append(ok, good)
	}
	return ms, ok
}

// FuzzRoundTrip holds that nothing panics on any text, and that a module
// without errors is the same after it was printed in either form.
func FuzzRoundTrip(f *testing.F) {
	for _, p := range programs(f) {
		f.Add(p.text)
	}
	f.Add("%a:2, %b = \"x.y\"(%a#1, %c) ({^bb0(%c: i1):}) : (i1, i1) -> (i1, i1, i1)")
	f.Add("func.func @f(%x: !t) { return %x : !t }\n!t = tuple<!t>")
	f.Add("%x = \"t.x\"() : () -> f32\nt.loop (%a using %a = %x) {\n  %y = dm.exp %a : f32\n}")
	f.Fuzz(throughText)
}

// TestBroken does the same with programs that are broken here and there, the same
// ones in every run. Set DMIR_ROUNDS for more than a few of each.
func TestBroken(t *testing.T) {
	rounds := 10
	if n, err := strconv.Atoi(os.Getenv("DMIR_ROUNDS")); err == nil {
		rounds = n
	}
	for _, p := range programs(t) {
		for seed := range uint64(rounds) {
			text := randprog.Broken(seed, p.text)
			if !t.Run(fmt.Sprintf("%s/%d", p.name, seed), func(t *testing.T) { throughText(t, text) }) {
				t.Logf("the text was %q", text)
			}
		}
	}
}

func throughText(t *testing.T, text string) {
	ms, ok := sound(text)
	for i, m := range ms {
		c := m.Clone()
		if d := print.Diff(m, c); d != "" {
			t.Fatalf("clone: %s", d)
		}
		for _, printed := range []func(*ir.Module, ...print.Option) (string, error){print.Generic, print.Pretty, print.Source} {
			out, err := printed(m, print.Locations)
			if err != nil || !ok[i] {
				continue
			}
			back, sane := sound(out)
			if len(back) != 1 || !sane[0] {
				t.Fatalf("what was printed has errors: %v %v\n%s", back[0].Diags, verify.Module(back[0]), out)
			}
			if d := print.Diff(m, back[0]); d != "" {
				t.Fatalf("%s\n%s", d, out)
			}
		}
	}
}
