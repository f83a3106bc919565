package source

import "testing"

// Comments belong to a statement above it, without a blank line between, and behind it.
func TestWithComments(t *testing.T) {
	const statement = "%a = dm.exp"
	for _, c := range []struct{ name, before, own, after string }{
		{"none", "x\n  ", statement, "\n"},
		{"both", "x\n  ", "// one\n  // two\n  " + statement + " // behind", "\n  // of the next\n"},
		{"at both ends of a text", "", "// one\n" + statement + "\t// behind", ""},
		{"line ends of two characters", "x\r\n\t", "// one\r\n\t" + statement + " // behind", " \r\ny"},
		{"a blank line", "// one\n\n  ", statement, "\n// two"},
		{"a comment behind the statement before", "x // one\n", statement, ""},
		{"not first on its line", "// one\n{ ", statement + " // behind", "\n"},
		{"not last on its line", "\n", statement, " } // behind"},
		{"where modules part", "// one\n// -----\n", statement, ""},
		{"dashes and blanks", "// one\n// ---------- --  \r\n", statement, ""},
		{"a heading in dashes", "\n", "// ----- one -----\n" + statement, ""},
		{"a shorter line", "\n", "// ----\n" + statement, ""},
		{"indented dashes", "\n  ", "// -----\n  " + statement, ""},
	} {
		text := c.before + c.own + c.after
		at := 0
		for text[at:at+len(statement)] != statement {
			at++
		}
		got := WithComments(text, Span{at, at + len(statement)})
		if want := (Span{len(c.before), len(c.before) + len(c.own)}); got != want {
			t.Errorf("%s: %q, want %q", c.name, text[got.Start:got.End], c.own)
		}
	}
}
