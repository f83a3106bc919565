package workspace

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// While an op is typed or the text is broken in another way, no publication, of
// errors or of lint, lacks a finding of a line that did not change.
func TestFindingsWhileBroken(t *testing.T) {
	other := strings.NewReplacer("@f", "@g", "%r", "%t").Replace(text)
	const typed = "  %u = dm.neg %a {n = \"x\"} : tensor<1024x1024xf16>\n"
	end := strings.Index(text, "\n}")
	for name, c := range map[string]struct {
		at, remove int
		keys       []string
	}{
		"an op":                     {strings.Index(text, "  %s"), 0, strings.Split(typed, "")},
		"a closing bracket":         {strings.Index(text, ">, %b"), 1, []string{""}},
		"a closing brace":           {end + 1, 1, []string{""}},
		"a string":                  {strings.Index(text, "  return"), 0, strings.Split("\"ab\n", "")},
		"a value's name, half-way":  {strings.Index(text, "r : tensor<1024x1024xf16>\n}"), 1, []string{"ro", "w"}},
		"the signature's last type": {strings.Index(text, "xf16> {"), 4, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			type publication struct {
				snap *Snapshot
				ds   []diag.Diagnostic
			}
			published := make(chan publication, 16)
			ctx, cancel := context.WithCancel(context.Background())
			w := New(ctx, Options{
				Pause:   time.Millisecond,
				Publish: func(s *Snapshot, ds []diag.Diagnostic) { published <- publication{s, ds} },
				Failed:  func(uri string, p any) { t.Errorf("%s: %v", uri, p) },
			})
			defer w.Wait()
			defer cancel()
			lines := func(p publication) (out []string) {
				for _, d := range p.ds {
					if d.Code == "DM201" {
						out = append(out, p.snap.Src.Line(p.snap.Src.Pos(d.Span.Start).Line))
					}
				}
				return out
			}
			w.Open(Address{Key: "f", Path: "f.dmir"}, 1, text+other)
			<-published
			want := lines(<-published)
			if len(want) != 2 {
				t.Fatalf("findings at %q, want one for each function", want)
			}
			at, remove, broken := c.at, c.remove, false
			for i, key := range c.keys {
				src := w.Snapshot("f").Src
				e := Edit{Start: src.Pos(at), End: src.Pos(at + remove), Text: key}
				if err := w.Change("f", int32(i+2), []Edit{e}); err != nil {
					t.Fatal(err)
				}
				at, remove = at+len(key), 0
				for _, what := range []string{"errors", "lint"} {
					p := <-published
					broken = broken || slices.ContainsFunc(p.ds, func(d diag.Diagnostic) bool { return d.Severity == diag.Error })
					got := lines(p)
					if !slices.Equal(got, want) {
						t.Errorf("after %q, with %s: findings at %q, want %q", strings.Join(c.keys[:i+1], ""), what, got, want)
					}
				}
			}
			if !broken {
				t.Error("the text was never broken")
			}
		})
	}
}

// A finding of a line that changes goes, and none is kept of a function that lint
// checks again.
func TestKeep(t *testing.T) {
	s := newSnapshot(Address{Key: "f", Path: "f.dmir"}, 1, source.New("f.dmir", text+strings.Replace(text, "dm.relu", "dm.rel", 1)), source.UTF8, Defaults(), &configs{})
	at := func(off int) diag.Diagnostic {
		return diag.Diagnostic{Code: "DM201", Span: source.Span{Start: off, End: off + 2}}
	}
	checked, broken := at(strings.Index(text, "dm.add")), at(len(text)+strings.Index(text, "dm.add"))
	s.With(func(v *View) {
		got := keep(v.Program(), nil, []diag.Diagnostic{checked, broken})
		if len(got) != 1 || got[0].Span != broken.Span {
			t.Errorf("kept %+v, want the one of the broken function", got)
		}
		if again := keep(v.Program(), got, got); len(again) != 1 {
			t.Errorf("one finding was kept %d times", len(again))
		}
	})
}
