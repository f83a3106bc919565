package scope_test

import (
	"strings"
	"testing"

	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// FuzzBuild holds that the index of any text is consistent: each span of a name
// finds the name again, and renaming, where it is not refused, keeps all spans
// apart.
func FuzzBuild(f *testing.F) {
	for _, seed := range []string{
		"func.func @f(%a: i32) -> i32 {\n  return %a : i32\n}\n",
		"%a:2 = \"t.op\"(%b#1)[^bb0] ({\n^bb0(%c: i32):\n}) {sym_name = \"x\", f = @x::@y} : () -> ()",
		"#a = 1\n!t = i32\n// -----\nscf.for %i = %a to %b { x.y %i }",
		"\"func.func\"() <{sym_name = \"\\\"\"}> : () -> ()",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := parse.File(source.New("fuzz.mlir", text))
		x := scope.Build(file, calls)
		scope.Outline(file)
		for _, n := range x.Names() {
			for i, span := range append(n.Defs(), n.Uses()...) {
				found, at, ok := x.At(span.Start)
				if !ok || at != span && at.End != span.Start || at == span && found != n {
					t.Fatalf("%s: span %d, %v, finds %v", n.Text, i, span, at)
				}
			}
			edits, err := scope.Rename(x, n, "renamed_by_the_fuzzer")
			if err != nil {
				continue
			}
			if got := strings.Count(apply(text, edits), "renamed_by_the_fuzzer"); got < len(edits) {
				t.Fatalf("renaming %s makes %d of %d edits", n.Text, got, len(edits))
			}
		}
	})
}
