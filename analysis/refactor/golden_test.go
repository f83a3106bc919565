package refactor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/analysis/refactor"
	"dmir/syntax/format"
	"dmir/syntax/source"
)

// TestActions runs each archive testdata/ACTION.txtar. A file NAME.dmir is a
// program in which "⟦" and "⟧" mark a selection, "⟦⟧" a cursor; NAME.actions
// lists what is offered there, with the reason of what cannot be done, and
// NAME.after is the program after the action of the archive's name. Whatever is
// offered is proven as well.
func TestActions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".txtar")
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out := &txtar.Archive{Comment: ar.Comment}
		applied := 0
		for _, f := range ar.Files {
			name, isInput := strings.CutSuffix(f.Name, ".dmir")
			if !isInput {
				continue
			}
			out.Files = append(out.Files, f)
			t.Run(id+"/"+name, func(t *testing.T) {
				text, span := selected(t, string(f.Data))
				p := load(t, text, bound(t, string(ar.Comment)))
				var list strings.Builder
				for _, a := range refactor.Actions(p, span) {
					fmt.Fprintf(&list, "%s %s: %s\n", a.Kind, a.ID, strings.TrimSpace(a.Title+"  "+a.Disabled))
					q := prove(t, p, span, a, true)
					if kind, _, _ := strings.Cut(a.ID, ":"); kind == id && a.Disabled == "" && out.Files[len(out.Files)-1].Name != name+".after" {
						applied++
						out.Files = append(out.Files, txtar.File{Name: name + ".after", Data: []byte(q.Src.Text())})
					}
				}
				out.Files = append(out.Files, txtar.File{Name: name + ".actions", Data: []byte(list.String())})
			})
		}
		if applied == 0 {
			t.Errorf("%s: no case applies the action", file)
		}
		want, got := string(txtar.Format(ar)), string(txtar.Format(out))
		switch {
		case want == got:
		case *update:
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("the answers differ (-update writes them):\n%s", format.Diff(file, want, got))
		}
	}
}

func selected(t *testing.T, text string) (string, source.Span) {
	t.Helper()
	before, rest, found := strings.Cut(text, "⟦")
	inside, after, closed := strings.Cut(rest, "⟧")
	if !found || !closed {
		t.Fatal("nothing is selected")
	}
	return before + inside + after, source.Span{Start: len(before), End: len(before) + len(inside)}
}

// bound are the sizes that a comment of an archive gives: "bind: n=4 m=3".
func bound(t *testing.T, comment string) map[string]int64 {
	t.Helper()
	_, list, found := strings.Cut(comment, "bind: ")
	if !found {
		return nil
	}
	out := map[string]int64{}
	for _, f := range strings.Fields(list) {
		name, n, _ := strings.Cut(f, "=")
		size, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = size
	}
	return out
}
