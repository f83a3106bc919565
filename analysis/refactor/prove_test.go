package refactor_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/analysis/refactor"
	"dmir/compile/driver"
	"dmir/compile/kernel"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/print"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

var (
	update   = flag.Bool("update", false, "rewrite the golden files")
	programs = flag.Int("programs", 60, "how many random programs TestRandomPrograms changes")
)

func load(t testing.TB, text string, bind map[string]int64) *program.Program {
	t.Helper()
	m, ok := machine.Lookup(machine.Default)
	if !ok {
		t.Fatalf("no machine %s", machine.Default)
	}
	return program.Load(source.New("in.dmir", text), program.Options{Target: m, Bind: bind, OneKernel: kernel.Unfit})
}

// apply is the text after the edits, which must be in order and apart.
func apply(t testing.TB, text string, edits []diag.Edit) string {
	t.Helper()
	var b strings.Builder
	at := 0
	for _, e := range edits {
		if e.Span.Start < at || e.Span.End < e.Span.Start || e.Span.End > len(text) {
			t.Fatalf("edits overlap, are out of order or outside of the text: %+v", edits)
		}
		b.WriteString(text[at:e.Span.Start])
		b.WriteString(e.Text)
		at = e.Span.End
	}
	b.WriteString(text[at:])
	return b.String()
}

func errorsIn(p *program.Program) []diag.Diagnostic {
	var out []diag.Diagnostic
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			out = append(out, d)
		}
	}
	return out
}

// prove applies one action and holds it to its promises: no new errors, every
// comment still there, formatted where the text was, the saving exact, and, where
// the program is to run, the same results.
func prove(t *testing.T, p *program.Program, span source.Span, a refactor.Action, run bool) *program.Program {
	t.Helper()
	name := fmt.Sprintf("%s at %q", a.ID, clip(p.Src.Slice(span)))
	c, err := refactor.Apply(p, span, a.ID)
	switch {
	case a.Disabled != "" && err == nil:
		t.Fatalf("%s: is disabled, %s, and yet it is done", name, a.Disabled)
	case a.Disabled != "":
		return nil
	case err != nil:
		t.Fatalf("%s: is offered and then refused: %v", name, err)
	}
	before := p.Src.Text()
	text := apply(t, before, c.Edits)
	q := load(t, text, p.Bind)
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: %s\n%s", name, fmt.Sprintf(format, args...), format1(before, text))
	}
	if was, is := errorsIn(p), errorsIn(q); len(is) > len(was) {
		fail("%d errors before and %d after it, the first: %s", len(was), len(is), is[0].Message)
		return nil
	}
	if was, is := strings.Count(before, "//"), strings.Count(text, "//"); is < was {
		fail("%d comments before and %d after it", was, is)
	}
	if was := format.File(parse.File(source.New("", before))); was == before {
		if now := format.File(parse.File(source.New("", text))); now != text {
			fail("it is not formatted:\n%s", format.Diff("", text, now))
		}
	}
	if strings.HasPrefix(a.ID, "form:") || strings.HasPrefix(a.ID, "lines:") {
		for i, m := range p.Modules {
			if d := print.Diff(m, q.Modules[i]); d != "" {
				fail("it is another program: %s", d)
			}
		}
	}
	promises(p, q, a, fail)
	if run && len(errorsIn(p)) == 0 {
		sameResults(p, q, a, fail)
	}
	return q
}

func format1(before, after string) string { return format.Diff("program", before, after) }

func clip(s string) string {
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}

// promises compares the change of bytes and time of the functions with what the
// action states: its own function changes by that, others not at all.
func promises(p, q *program.Program, a refactor.Action, fail func(string, ...any)) {
	var saved int64
	var ns float64
	more := false // others may copy less, too
	// What is differentiated comes first: its gradient loses or gains something else.
	funcs := slices.Clone(p.Funcs)
	slices.SortStableFunc(funcs, func(a, b *cost.Func) int {
		return cmp.Compare(gradients(a.Func), gradients(b.Func))
	})
	for _, f := range funcs {
		g := q.Func(f.Func.Name)
		if g == nil {
			fail("@%s is gone", f.Func.Name)
			return
		}
		if saved != 0 && gradients(f.Func) > 0 {
			break
		}
		was, ok := f.Moved().Int()
		is, ok2 := g.Moved().Int()
		if !ok || !ok2 {
			return
		}
		d := was - is
		before, after := f.Time(p.Target), g.Time(q.Target)
		if d == 0 || saved != 0 && absolute(d) >= absolute(saved) { // callers lose it several times
			continue
		}
		more = f.Follows()
		if saved, ns = d, before.Ns-after.Ns; !before.Known || !after.Known {
			ns = a.SavesNs
		}
	}
	kind, _, _ := strings.Cut(a.ID, ":")
	if kind == "extract" && more { // an argument of a function is not its own to write over
		return
	}
	if (kind == "extract" || kind == "form" || kind == "budget") && saved != 0 {
		fail("the cost is another: %d bytes less", saved)
	}
	if a.SavesBytes == 0 && a.SavesNs == 0 && !strings.Contains(a.Title, ": ") {
		return // nothing was promised
	}
	if more = more && saved > a.SavesBytes; more {
		return
	}
	if saved != a.SavesBytes {
		fail("promises %d bytes, saves %d", a.SavesBytes, saved)
	}
	if saved != 0 && math.Abs(ns-a.SavesNs) > 1e-6*(1+math.Abs(ns)) {
		fail("promises %g ns, saves %g", a.SavesNs, ns)
	}
}

// gradients is how many a function takes of others.
func gradients(f *ir.Func) (n int) {
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		if o.Name == "dm.grad" {
			n++
		}
		return true
	})
	return n
}

func absolute(n int64) int64 { return max(n, -n) }

// sameResults runs every function that can be run before and after.
func sameResults(p, q *program.Program, a refactor.Action, fail func(string, ...any)) {
	limit := 0.0
	if a.ID == "expand" {
		limit = 0.1
	}
	for _, f := range p.Funcs {
		if f.Func.Private {
			continue
		}
		was, err := ran(p, f.Func.Name)
		if err != nil {
			continue
		}
		is, err := results(q, f.Func.Name)
		if err != nil {
			fail("@%s does not run any more: %v", f.Func.Name, err)
			return
		}
		for i := range was {
			if d := tensor.MaxDiff(was[i].Tensor, is[i].Tensor); !(d <= limit) {
				fail("result %d of @%s differs by %g", i, f.Func.Name, d)
			}
		}
	}
}

// before are the results of the programs that are being changed.
var before sync.Map

type outcome struct {
	out []driver.Output
	err error
}

func ran(p *program.Program, fn string) ([]driver.Output, error) {
	key := [2]any{p, fn}
	o, done := before.Load(key)
	if !done {
		out, err := results(p, fn)
		o, _ = before.LoadOrStore(key, outcome{out, err})
	}
	return o.(outcome).out, o.(outcome).err
}

func results(p *program.Program, fn string) ([]driver.Output, error) {
	m, f, err := driver.Pick(p, fn)
	if err != nil {
		return nil, err
	}
	res, err := driver.Run(context.Background(), driver.Job{Program: p, Module: m, Fn: f, Seed: 7, Device: "reference"}, nil)
	if err != nil {
		return nil, err
	}
	return res.Outputs, nil
}

// selections are the cursors and stretches of ops of p that are worth trying.
func selections(p *program.Program, r *rand.Rand, n int) []source.Span {
	var blocks [][]*ir.Op
	var heads []source.Span
	for _, m := range p.Modules {
		ir.Walk(m.Ops, func(o *ir.Op) bool {
			heads = append(heads, source.Span{Start: o.Head.Start, End: o.Head.Start})
			for _, reg := range o.Regions {
				for _, b := range reg.Blocks {
					blocks = append(blocks, b.Ops)
				}
			}
			return true
		})
	}
	out := heads
	if len(heads) > 3*n {
		out = nil
		for range 3 * n {
			out = append(out, heads[r.IntN(len(heads))])
		}
	}
	for range min(n, n*len(blocks)) {
		ops := blocks[r.IntN(len(blocks))]
		if len(ops) == 0 {
			continue
		}
		i := r.IntN(len(ops))
		j := min(len(ops)-1, i+r.IntN(5))
		out = append(out, source.Span{Start: ops[i].Span.Start, End: ops[j].Span.End})
	}
	return out
}

// TestRandomPrograms applies whatever is offered for selections of programs
// that were generated.
func TestRandomPrograms(t *testing.T) {
	done, refused := map[string]int{}, map[string]int{}
	for seed := range uint64(*programs) {
		text := randprog.Messy(seed, 4+int(seed%12))
		if seed%2 == 0 {
			text = format.File(parse.File(source.New("", text)))
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { all(t, text, nil, rand.New(rand.NewPCG(seed, 1)), 12, done, refused, true) })
	}
	t.Logf("applied: %v\nrefused: %v", done, refused)
}

func all(t *testing.T, text string, bind map[string]int64, r *rand.Rand, n int, done, refused map[string]int, run bool) {
	p := load(t, text, bind)
	for _, span := range selections(p, r, n) {
		for _, a := range refactor.Actions(p, span) {
			if strings.HasPrefix(a.ID, "form:") && r.IntN(6) > 0 {
				continue // there is one of them for every op
			}
			prove(t, p, span, a, run)
			kind, _, _ := strings.Cut(a.ID, ":")
			if a.Disabled == "" {
				done[kind]++
			} else {
				refused[kind]++
			}
			if t.Failed() {
				return
			}
		}
	}
}

// TestExamples applies whatever is offered in the examples, a third of them in turn, at small sizes.
func TestExamples(t *testing.T) {
	need.Long(t)
	files, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	done, refused := map[string]int{}, map[string]int{}
	for i, file := range files {
		if !need.Turn(t, i, 3) {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			bind := map[string]int64{"b": 2, "n": 6, "m": 4}
			all(t, small(t, string(text)), bind, rand.New(rand.NewPCG(1, 1)), 10, done, refused, true)
		})
	}
	t.Logf("applied: %v\nrefused: %v", done, refused)
}
