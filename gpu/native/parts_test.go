package native

import (
	"fmt"
	"strings"
	"testing"
)

// Parts have each function once, what only one function calls beside it, and declarations of what others have.
func TestSplit(t *testing.T) {
	long := strings.Repeat("\t%x = add i64 0, 0\n", partBytes/19)
	var text strings.Builder
	text.WriteString("source_filename = \"x\"\n\n")
	for i := range 6 {
		fmt.Fprintf(&text, "define internal void @body%d(i8* noalias %%p) nounwind !dbg !%d {\n%s\tcall void @\"lib.a b\"(i8* %%p)\n\tcall void @plain()\n\tret void\n}\n\n", i, i, long)
		fmt.Fprintf(&text, "define void @dmir.kernel.k%d(i8* %%p) nounwind {\n\tcall void @body%d(i8* %%p)\n\tret void\n}\n\n", i, i)
	}
	text.WriteString("define internal void @\"lib.a b\"(i8* noalias %p) noinline nounwind {\n\tret void\n}\n\n")
	text.WriteString("declare void @outside()\n!0 = !{}\n")

	whole := text.String()
	parts := split(whole, 4)
	if len(parts) != 4 {
		t.Fatalf("%d parts", len(parts))
	}
	with := func(text string) (n int) {
		for _, p := range parts {
			n += strings.Count(p, text)
		}
		return n
	}
	for i := range 6 {
		for _, p := range parts {
			if body, kernel := strings.Contains(p, fmt.Sprintf("@body%d(", i)), strings.Contains(p, fmt.Sprintf("@dmir.kernel.k%d(", i)); body != kernel {
				t.Errorf("kernel %d and its body are apart", i)
			}
		}
		if n := with(fmt.Sprintf("define internal void @body%d(", i)); n != 1 {
			t.Errorf("body %d is defined %d times", i, n)
		}
	}
	if n := with("define hidden void @\"lib.a b\"("); n != 1 {
		t.Errorf("what all call is defined %d times", n)
	}
	if n := with("declare hidden void @\"lib.a b\"(i8* noalias %p) noinline nounwind\n"); n != 3 {
		t.Errorf("what all call is declared %d times", n)
	}
	if n := with("declare void @outside()"); n != 4 {
		t.Errorf("the rest of the text is there %d times", n)
	}

	if got := split(whole+"@data = global i64 0\n", 4); len(got) != 1 {
		t.Errorf("%d parts of a program with data", len(got))
	}
	shared := whole + "define internal void @plain() {\n\tret void\n}\n" // C may have a function called so
	parts = split(shared, 4)
	for _, p := range parts {
		if strings.Contains(p, "@plain") && !strings.Contains(p, "define internal void @plain()") {
			t.Error("a function whose name has no dot is called from another part")
		}
	}
}
