package parse

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"dmir/syntax/ast"
	"dmir/syntax/source"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }

func startsRune(text string, i int) bool { return i >= len(text) || utf8.RuneStart(text[i]) }

// compare returns how two trees of a text differ, positions included.
func compare(want, got *ast.File) string {
	if reflect.DeepEqual(want.Items, got.Items) && reflect.DeepEqual(want.Diags, got.Diags) {
		return ""
	}
	if d := cmp.Diff(dump(want), dump(got)); d != "" {
		return d
	}
	return "positions only"
}

func addGolden(f *testing.F) {
	paths, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(paths) == 0 {
		f.Fatal("no golden files", err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(txtar.Parse(b).Files[0].Data))
	}
}

// forget empties the tables of what was read before. The fuzzer tries again what
// has reached new code, and gives it up if the answer then comes from a table.
func forget() {
	typeTable.young, typeTable.old = nil, nil
	attrTable.young, attrTable.old = nil, nil
	sigTable.young, sigTable.old = nil, nil
	clear(shapes.m)
}

// FuzzFile: no panic, all text belongs to an op, all ranges lie inside of their
// ops.
func FuzzFile(f *testing.F) {
	addGolden(f)
	f.Add("x.pick %a : i32\n  left = {\n  ^bb0(%b: i32):\n    x.put %b : i32\n  }\n  right={}\n")
	f.Add("%h, %ys = dm.scan %h0, %xs, carries = 1, reverse = true : (f32, f32) -> (f32, f32) {\n^bb0(%a: f32, %x: f32):\n  dm.yield %a, %x : f32, f32\n}\n")
	f.Add("%h:2 = \"dm.scan\"(%h0, %xs) <{carries = 1 : i64}> ({\n^bb0(%a: f32, %x: f32):\n  \"dm.yield\"(%a, %x) : (f32, f32) -> ()\n}) : (f32, f32) -> (f32, f32)\n")
	f.Add("x.match %a { case one(%v) { when %v\n  x.put %v : i32 } }")
	f.Add("x.func @f {\n  do {\n    stop\n  } while {\n    test %a {b}\n  }\n  else %a : i32\n  x.put {\"c\", %a, [\n  x.put %a\n")
	f.Fuzz(func(t *testing.T, text string) {
		forget()
		src := source.New("fuzz", text)
		file := File(src)
		if msg := check(file); msg != "" {
			t.Fatal(msg)
		}
	})
}

// FuzzSplice: a tree that follows a change is the tree of the text after it.
func FuzzSplice(f *testing.F) {
	f.Add("func.func @f(%a: f32) -> f32 {\n  %0 = dm.exp %a : f32\n  %1 = dm.exp %0 : f32\n  %2 = dm.exp %1 : f32\n  return %2 : f32\n}\n", 60, 3, "%b")
	f.Add(spliceGeneric, 120, 0, "\n  %9 = \"x\"() : () -> f32")
	f.Add(spliceWrapped, 100, 5, "(")
	f.Add("func.func @f(%a: f64) {\n  %0 = dm.exp %a : f64\n  x.match %0 { case one(%v) {\n    x.put %v : i32\n  } }\n  %1 = dm.exp %0 : f64\n  return\n}\n", 50, 1, "{")
	f.Fuzz(func(t *testing.T, text string, at, n int, in string) {
		forget()
		at = min(max(at, 0), len(text))
		end := at + min(max(n, 0), len(text)-at)
		tree := File(source.New("fuzz", text))
		next := source.New("fuzz", text).Edit(at, end, in)
		p, ok := Replan(tree, next, Change{Start: at, End: end, Length: len(in)})
		if !ok {
			return
		}
		p.Apply(tree)
		if diff := compare(File(next), tree); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzType: no panic, and a type's text reads back to an equal tree.
func FuzzType(f *testing.F) {
	for _, c := range typeCases {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		forget()
		e, err := Type(text)
		if err != nil {
			errorInside(t, err, text)
			return
		}
		if again, err := Type(strings.TrimSpace(e.Text)); err != nil || !cmp.Equal(e, again) {
			t.Fatalf("%q reads as %+v, then as %+v, %v", text, e, again, err)
		}
	})
}

// FuzzAttr: no panic; entries, symbols and strings lie inside of the text.
func FuzzAttr(f *testing.F) {
	for _, c := range attrCases {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		forget()
		comparePlain(t, text)
		a, err := Attr(text)
		if err != nil {
			errorInside(t, err, text)
			return
		}
		for _, e := range a.Entries {
			if e.Span.Empty() || int(e.VSpan.End) > len(text) || e.VSpan.Start > e.VSpan.End {
				t.Fatalf("entry %+v of %q", e, text)
			}
		}
		if a.Kind == ast.AString && Unquote(Quote(a.Str)) != a.Str {
			t.Fatalf("%q is quoted as %s", a.Str, Quote(a.Str))
		}
	})
}

func errorInside(t *testing.T, err error, text string) {
	t.Helper()
	e, ok := err.(*Error)
	if !ok || e.Msg == "" || e.Help == "" || e.Code == "" {
		t.Fatalf("%q: incomplete error %#v", text, err)
	}
	if e.Span.Start < 0 || e.Span.Start > e.Span.End || int(e.Span.End) > len(text) {
		t.Fatalf("%q: the error is at %v: %s", text, e.Span, e.Msg)
	}
}
