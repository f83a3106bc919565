package program_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// One missing bracket is one error, on the line where it is missing or where its
// opening bracket stands. Each closing bracket of each example is left out in turn.
func TestOneMistakeOneError(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		for at, open := range brackets(text) {
			src := source.New("f.dmir", text[:at]+text[at+1:])
			var errs []diag.Diagnostic
			for _, d := range program.Load(src, program.Options{}).Diags {
				if d.Severity == diag.Error {
					errs = append(errs, d)
				}
			}
			line := func(off int) int { return strings.Count(text[:off], "\n") + 1 }
			if len(errs) != 1 {
				t.Errorf("%s:%d: without this `%c`: %d errors", file, line(at), text[at], len(errs))
				for _, d := range errs {
					t.Logf("  %d: %s %s", src.Pos(d.Span.Start).Line+1, d.Code, d.Message)
				}
			} else if got := src.Pos(errs[0].Span.Start).Line + 1; got != line(at) && got != line(open) {
				t.Errorf("%s:%d: without this `%c`, which closes line %d: the error is on line %d: %s", file, line(at), text[at], line(open), got, errs[0].Message)
			}
		}
	}
}

// brackets are the offsets of the closing brackets of a text, with those of the
// opening ones. The "->" of a type, comments and strings have none.
func brackets(text string) map[int]int {
	pairs := map[int]int{}
	var open []int
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '/':
			if strings.HasPrefix(text[i:], "//") {
				i += strings.IndexByte(text[i:], '\n')
			}
		case '"':
			i += 1 + strings.IndexByte(text[i+1:], '"')
		case '(', '[', '{', '<':
			open = append(open, i)
		case ')', ']', '}', '>':
			if text[i-1] != '-' {
				pairs[i] = open[len(open)-1]
				open = open[:len(open)-1]
			}
		}
	}
	return pairs
}
