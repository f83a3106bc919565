package format_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// A text of which nothing is read stays as it is, and a span that is turned round or lies behind the text is none to fall over.
func TestNothingToLayOut(t *testing.T) {
	for _, text := range []string{"// \x00\n  %y   =  dm.exp %x : t\n", "  %a\xff =  b\n"} {
		f := parse.File(source.New("f.dmir", text))
		if got := format.File(f); got != text {
			t.Errorf("%q became %q", text, got)
		}
		if edits := format.Range(f, source.Span{End: len(text)}); len(edits) > 0 {
			t.Errorf("%q: %v", text, edits)
		}
	}
	f := parse.File(source.New("f.dmir", "func.func @f() {\n  return\n}\nfunc.func @g() {\n    return\n}\n"))
	for start := -1; start <= f.Src.Len()+1; start++ {
		for end := -1; end <= f.Src.Len()+1; end++ {
			format.Range(f, source.Span{Start: start, End: end})
		}
	}
}

// Laying out a stretch gives the lines that laying out the file gives there.
// Blank lines at the ends of regions are the one exception: they belong to the
// region.
func TestRangeAgreesWithFile(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	asked, answered := 0, 0
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(a.Files[0].Data)
		if strings.ContainsAny(text, "␍⇥␠¤") {
			continue
		}
		f := parse.File(source.New(path, text))
		whole := format.Edits(text, format.File(f))
		for range 200 {
			start := random.IntN(len(text) + 1)
			span := source.Span{Start: start, End: min(len(text), start+random.IntN(80))}
			part := within(f, format.Range(f, span), span)
			asked++
			if len(part) > 0 {
				answered++
			}
			for _, e := range part {
				if !slices.Contains(whole, e) {
					t.Fatalf("%s: for %v, %q: the edit %q at %v is none of the file's\n%v", path, span, f.Src.Slice(span), e.Text, e.Span, whole)
				}
			}
			for _, e := range within(f, whole, span) {
				if !slices.Contains(part, e) && !strings.Contains(f.Src.Slice(e.Span)+e.Text, "\n") && !besideTop(f, e) {
					t.Fatalf("%s: for %v, %q: the edit %q at %v is missing", path, span, f.Src.Slice(span), e.Text, e.Span)
				}
			}
		}
	}
	if answered < asked/20 {
		t.Errorf("%d of %d stretches have edits", answered, asked)
	}
}

// besideTop reports whether an edit lies outside all ops of the file, or in
// front of a region's closing brace: nothing there is laid out by itself.
func besideTop(f *ast.File, e diag.Edit) bool {
	next := strings.TrimLeft(f.Src.Text()[e.Span.End:], " \t\r\n")
	return strings.HasPrefix(next, "}") || strings.HasPrefix(next, "//") || next == "" ||
		!slices.ContainsFunc(f.Items, func(o *ast.Op) bool { return o.Off < e.Span.Start && e.Span.End < o.Span().End })
}

// within are the edits in the lines that span touches.
func within(f *ast.File, edits []diag.Edit, span source.Span) (out []diag.Edit) {
	start := f.Src.LineStart(f.Src.Pos(span.Start).Line)
	line := f.Src.Pos(span.End).Line
	end := f.Src.LineStart(line) + len(f.Src.Line(line))
	for _, e := range edits {
		if e.Span.Start >= start && e.Span.End <= end {
			out = append(out, e)
		}
	}
	return out
}

func FuzzRange(f *testing.F) {
	f.Add("func.func   @f() {\n^bb0(%a:i32):\n\n  %b= dm.exp  %a:i32 // é\n^bb1:\n// c\n}\n", 20, 60)
	f.Add("module{func.func @f(){\nreturn}}", 10, 12)
	f.Add("^a:\n%x =\n\r\n d.e {\r}", 0, 9)
	f.Fuzz(func(t *testing.T, text string, start, end int) {
		file := parse.File(source.New("fuzz.mlir", text))
		start = min(max(start, 0), len(text))
		end = min(max(end, start), len(text))
		at := 0
		for _, e := range format.Range(file, source.Span{Start: start, End: end}) {
			if e.Span.Start < at || e.Span.End > len(text) || strings.Trim(text[e.Span.Start:e.Span.End]+e.Text, " \t\r\n") != "" {
				t.Fatalf("the edit %q of %q at %v", e.Text, text[e.Span.Start:min(e.Span.End, len(text))], e.Span)
			}
			at = e.Span.End
		}
	})
}
