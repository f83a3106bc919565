package feature_test

import (
	"strings"
	"testing"

	"dmir/lsp/feature"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// What follows the last character typed, which stands in front of the "‸".
func TestFormatTyped(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"into a region", "func.func @f() {\n‸\n}\n", "func.func @f() {\n  \n}\n"},
		{"an editor that has indented already", "func.func @f() {\n  ‸\n}\n", "func.func @f() {\n  \n}\n"},
		{"too far", "func.func @f() {\n        ‸\n}\n", "func.func @f() {\n  \n}\n"},
		{"no brace yet", "func.func @f() {\n‸", "func.func @f() {\n  "},
		{"no brace yet, two deep", "module {\n  func.func @f() {\n    return\n‸", "module {\n  func.func @f() {\n    return\n    "},
		{"the line before", "func.func @f(%x: i32) {\n%y=dm.exp  %x:i32\n‸\n}\n", "func.func @f(%x: i32) {\n  %y = dm.exp %x : i32\n  \n}\n"},
		{"the line before has a comment", "func.func @f(%x: i32) {\n%y=dm.exp  %x:i32//c\n‸\n}\n", "func.func @f(%x: i32) {\n  %y = dm.exp %x : i32 //c\n  \n}\n"},
		{"the line before is wrong", "func.func @f(%x: i32) {\n%y=dm.exp  %x:(\n‸\n}\n", "func.func @f(%x: i32) {\n%y=dm.exp  %x:(\n  \n}\n"},
		{"the line before is empty", "func.func @f() {\n    \n‸\n}\n", "func.func @f() {\n\n  \n}\n"},
		{"a line further up is left alone", "func.func   @f() {\n return\n\n‸}\n", "func.func   @f() {\n return\n\n}\n"},
		{"in the middle of an op", "func.func @f(%x: i32) {\n  %y = dm.add %x,\n         ‸%x : i32\n}\n", ""},
		{"a closing brace that is pushed down", "func.func @f() {\n  return\n  ‸}\n", "func.func @f() {\n  return\n}\n"},
		{"after a function", "func.func @f() {\n  return\n}\n  ‸\n", "func.func @f() {\n  return\n}\n\n"},
		{"a comment", "func.func @f() {\n  // one\n‸", "func.func @f() {\n  // one\n  "},
		{"CRLF", "func.func @f() {\r\nreturn  \r\n‸\r\n}\r\n", "func.func @f() {\r\n  return\r\n  \r\n}\r\n"},
		{"a brace under its op", "func.func @f() {\n  return\n  }‸\n", "func.func @f() {\n  return\n}\n"},
		{"a brace in a module", "module {\nfunc.func @f() {\n    return\n}‸\n}\n", "module {\nfunc.func @f() {\n    return\n  }\n}\n"},
		{"a brace behind something", "func.func @f() {\n  return }‸\n", ""},
		{"the brace of a dictionary", "\"a.b\"() {\n    x = 1\n    }‸ : () -> ()\n", ""},
		{"a brace too many", "  }‸\n", "}\n"},
		{"a label", "func.func @f() {\n  cf.br ^bb1\n  ^bb1:‸\n  return\n}\n", "func.func @f() {\n  cf.br ^bb1\n^bb1:\n  return\n}\n"},
		{"another colon", "func.func @f(%x: i32) {\n      %y = dm.exp %x :‸\n}\n", ""},
		{"another letter", "func.func @f() {\nreturn‸\n}\n", ""},
		{"the first line", "‸", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			off := strings.Index(c.text, "‸")
			text := strings.Replace(c.text, "‸", "", 1)
			typed := "\n"
			if s := strings.TrimRight(text[:off], " "); s != "" {
				typed = s[len(s)-1:]
			}
			f := parse.File(source.New("in.dmir", text))
			edits := feature.FormatTyped(f, off, typed)
			got := text
			for i := len(edits) - 1; i >= 0; i-- {
				e := edits[i]
				if strings.Trim(text[e.Span.Start:e.Span.End]+e.Text, " \t") != "" {
					t.Errorf("the edit of %q to %q is not only of blanks", text[e.Span.Start:e.Span.End], e.Text)
				}
				got = got[:e.Span.Start] + e.Text + got[e.Span.End:]
			}
			if c.want == "" {
				c.want = text
			}
			if got != c.want {
				t.Errorf("got\n%q, want\n%q", got, c.want)
			}
		})
	}
}
