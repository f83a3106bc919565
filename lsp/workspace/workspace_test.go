package workspace

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Settings are read field by field; a mistyped one is reported and the rest holds.
func TestDecodeSettings(t *testing.T) {
	d := Defaults()
	for name, c := range map[string]struct {
		raw  string
		want Settings
		errs []string
	}{
		"nothing": {`{}`, d, nil},
		"all": {
			`{"target":"a100-80","bind":{"n":512,"b":8.0},"hints":{"enabled":false},"lint":{"enabled":false,"workspace":true},"heat":"waste","run":{"device":"reference","seed":7}}`,
			Settings{Target: "a100-80", LintHints: true, LintWorkspace: true, Bind: map[string]int64{"n": 512, "b": 8}, Heat: "waste", Device: "reference", Seed: 7},
			nil,
		},
		"flat":  {`{"hints.enabled":false,"run.seed":3}`, Settings{Lint: true, LintHints: true, Heat: HeatOff, Device: "auto", Seed: 3}, nil},
		"null":  {`{"target":null,"bind":null,"run":null}`, d, nil},
		"other": {`{"path":"/bin/dmir","trusted":true}`, d, nil},
		"mistyped": {
			`{"target":7,"bind":{"n":"x","m":-1,"k":1.5,"b":4},"hints":{"enabled":"yes"},"lint":[]}`,
			Settings{Bind: map[string]int64{"b": 4}, Hints: true, Lint: true, LintHints: true, Heat: HeatOff, Device: "auto"},
			[]string{"dmir.target", "dmir.bind.n", "dmir.bind.m", "dmir.bind.k", "dmir.hints.enabled", "dmir.lint"},
		},
		"no object": {`[1]`, d, []string{"dmir is not an object"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, errs := d.Decode([]byte(c.raw))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if len(errs) != len(c.errs) {
				t.Errorf("errors %v, want %v", errs, c.errs)
			}
			for _, want := range c.errs {
				if !strings.Contains(fmt.Sprint(errs), want) {
					t.Errorf("no error about %s in %v", want, errs)
				}
			}
		})
	}
}

// Findings move with the text they are about, and go when it is touched.
func TestShift(t *testing.T) {
	const text = "012\n45 x\n789"
	find := func(start, end int) []diag.Diagnostic {
		return []diag.Diagnostic{{Code: "X", Span: source.Span{Start: start, End: end}, Fixes: []diag.Fix{{}}}}
	}
	at := source.New("f", text).Pos
	for name, c := range map[string]struct {
		edits      []Edit
		start, end int // -1: gone
	}{
		"behind":            {[]Edit{{Start: at(9), End: at(10), Text: "abc"}}, 4, 6},
		"before":            {[]Edit{{Start: at(0), End: at(1), Text: "abc"}}, 6, 8},
		"removed before":    {[]Edit{{Start: at(0), End: at(3)}}, 1, 3},
		"inserted in front": {[]Edit{{Start: at(4), End: at(4), Text: "x"}}, -1, -1},
		"inside":            {[]Edit{{Start: at(5), End: at(5), Text: "x"}}, -1, -1},
		"typed at its end":  {[]Edit{{Start: at(6), End: at(6), Text: "x"}}, -1, -1},
		"over it":           {[]Edit{{Start: at(2), End: at(9)}}, -1, -1},
		"two":               {[]Edit{{Start: at(0), End: at(0), Text: "ab"}, {Start: at(9), End: at(9), Text: "c"}}, 6, 8},
		"on its line":       {[]Edit{{Start: at(7), End: at(8), Text: "y"}}, -1, -1},
		"a line after it":   {[]Edit{{Start: at(8), End: at(8), Text: "\nab"}}, 4, 6},
		"a line before it":  {[]Edit{{Start: at(3), End: at(3), Text: "\nab"}}, 7, 9},
		"whole":             {[]Edit{{Whole: true, Text: text}}, -1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			old := source.New("f", text)
			_, changes := apply(old, c.edits, source.UTF8)
			got := shift(find(4, 6), old, changes)
			if c.start < 0 {
				if len(got) != 0 {
					t.Errorf("still at %v", got[0].Span)
				}
				return
			}
			if len(got) != 1 || got[0].Span != (source.Span{Start: c.start, End: c.end}) || got[0].Fixes != nil {
				t.Errorf("got %+v, want [%d, %d)", got, c.start, c.end)
			}
		})
	}
}

const text = `func.func @f(%a: tensor<1024x1024xf16>, %b: tensor<1024xf16>) -> tensor<1024x1024xf16> {
  %s = dm.add %a, %b : (tensor<1024x1024xf16>, tensor<1024xf16>) -> tensor<1024x1024xf16>
  %r = dm.relu %s : tensor<1024x1024xf16>
  return %r : tensor<1024x1024xf16>
}
`

// What is published is in the order of the versions, the last one is the last
// text's, deep findings stay in view while typing, and nothing comes after Close.
func TestPublishing(t *testing.T) {
	var mu sync.Mutex
	var versions []int32
	var last []diag.Diagnostic
	changed := sync.NewCond(&mu)
	ctx, cancel := context.WithCancel(context.Background())
	w := New(ctx, Options{
		Pause: 10 * time.Millisecond,
		Publish: func(s *Snapshot, ds []diag.Diagnostic) {
			mu.Lock()
			defer mu.Unlock()
			versions, last = append(versions, s.Version), ds
			changed.Broadcast()
		},
		Failed: func(uri string, p any) { t.Errorf("%s: %v", uri, p) },
	})
	until := func(ok func() bool) {
		mu.Lock()
		defer mu.Unlock()
		for !ok() {
			changed.Wait()
		}
	}
	w.Open(Address{Key: "f", Path: "f.dmir"}, 1, text)
	until(func() bool { return len(last) == 1 && strings.HasPrefix(last[0].Code, "DM2") })
	w.SetSettings(Settings{Lint: true, LintHints: true, Hints: true, Target: "v100"}, nil)
	for v := int32(2); v <= 200; v++ {
		if err := w.Change("f", v, []Edit{{Text: "// typing\n"}}); err != nil {
			t.Fatal(err)
		}
	}
	until(func() bool { return versions[len(versions)-1] == 200 && len(last) == 1 && len(last[0].Fixes) > 0 })
	mu.Lock()
	for i := 1; i < len(versions); i++ {
		if versions[i] < versions[i-1] {
			t.Errorf("version %d after %d", versions[i], versions[i-1])
		}
	}
	mu.Unlock()

	if err := w.Change("f", 201, []Edit{{Text: "x"}}); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := w.Close("f", func() { mu.Lock(); n = len(versions); mu.Unlock() }); err != nil {
		t.Fatal(err)
	}
	cancel()
	w.Wait()
	if len(versions) != n {
		t.Errorf("%d publications after Close", len(versions)-n)
	}
	if w.Change("f", 202, nil) == nil || w.Close("f", nil) == nil {
		t.Error("a closed document can be changed")
	}
}

// One keystroke in a file of 10,000 ops, to the end of its cheap diagnostics.
func BenchmarkKeystroke(b *testing.B) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "func.func @f%d(%%x0: tensor<64x64xf32>) -> tensor<64x64xf32> {\n", i)
		for j := range 100 {
			fmt.Fprintf(&text, "  %%x%d = dm.exp %%x%d : tensor<64x64xf32>\n", j+1, j)
		}
		text.WriteString("  return %x100 : tensor<64x64xf32>\n}\n")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := New(ctx, Options{Pause: time.Hour, Publish: func(*Snapshot, []diag.Diagnostic) {}, Failed: func(string, any) {}})
	w.Open(Address{Key: "f", Path: "f.dmir"}, 0, text.String())
	w.Snapshot("f").With(func(*View) {})
	for i := range b.N {
		if err := w.Change("f", int32(i+1), []Edit{{Start: source.Pos{Line: 5000, Col: 2}, End: source.Pos{Line: 5000, Col: 2}, Text: " "}}); err != nil {
			b.Fatal(err)
		}
		w.Snapshot("f").With(func(*View) {})
	}
}
