package lex

import (
	"strings"
	"testing"
)

// words are the tokens of text in a mode, with bars between them.
func words(text string, mode Mode) string {
	c := New(text, 0, len(text))
	c.Mode = mode
	var out []string
	for t := c.Next(); t.Kind != EOF; t = c.Next() {
		out = append(out, text[t.Start:t.End])
	}
	return strings.Join(out, "|")
}

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		name, text string
		mode       Mode
		want       string
	}{
		{"an op", `%a:2 = "d.op"(%b#1) : (i32) -> !t`, 0, `%a|:|2|=|"d.op"|(|%b#1|)|:|(|i32|)|->|!t`},
		{"a shape stays in pieces", `tensor<4x?xf32, #e>`, 0, `tensor|<|4x|?|xf32|,|#e|>`},
		{"a name ends before an arrow", `%x->%y-1`, 0, `%x|->|%y-1`},
		{"numbers", `1.0e-5 0xFF -3 2e+`, 0, `1.0e-5|0xFF|-|3|2e|+`},
		{"operators", `a >= b == c <= d < e`, 0, `a|>=|b|==|c|<=|d|<|e`},
		{"a string ends with its line", "\"a\\\"b\" \"open\n@\"f\"", 0, "\"a\\\"b\"|\"open|@\"f\""},
		{"a rune is one token", `é ∀x`, 0, `é|∀|x`},
		{"a byte order mark is none", "\ufeffmodule", 0, `module`},
		{"comments are between tokens", "a // b\nc", 0, `a|c`},
		{"or tokens", "a // b\rc//d", Comments, `a|// b|c|//d`},
		{"a split line is a comment", "a\n// -----\nb", Comments, `a|// -----|b`},
		{"or a token, at the start of a line", "a // -----\n// -----\nb", Splits, `a|// -----|b`},
		{"a section is one token", `{-# a: "#-}" #-} b`, 0, `{-# a: "#-}" #-}|b`},
		{"or what is in it", `{-# a: "#-}" #-} b`, Sections, `{-#|a|:|"#-}"|#-}|b`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := words(c.text, c.mode); got != c.want {
				t.Errorf("tokens of %q\n got %s\nwant %s", c.text, got, c.want)
			}
		})
	}
}

// With comments and sections among the tokens, only white space is between them,
// in any text.
func FuzzNothingIsLost(f *testing.F) {
	for _, text := range []string{"", "%a = \"d.op\"() : () -> () // c\n", "{-# x #-}", "\"\\\n", "#a<\xff> <= <", "\ufeff// -----\r\n{-#"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := New(text, 0, len(text))
		c.Mode = Comments | Sections
		end := c.Pos
		for {
			k := c.Next()
			if gap := text[end:k.Start]; strings.Trim(gap, " \t\r\n") != "" {
				t.Fatalf("%q is between two tokens", gap)
			}
			if k.Kind == EOF {
				if k.Start != len(text) {
					t.Fatalf("the end is at %d of %d", k.Start, len(text))
				}
				return
			}
			if k.End <= k.Start {
				t.Fatalf("an empty token at %d", k.Start)
			}
			end = k.End
		}
	})
}
