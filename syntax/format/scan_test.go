package format

import (
	"strings"
	"testing"

	"dmir/syntax/lex"
)

// tokensOf is the token sequence that formatting must not change.
func tokensOf(text string) []string {
	s := newScanner(text, 0)
	var out []string
	for {
		t := s.next()
		if t.Kind == lex.EOF {
			return out
		}
		out = append(out, text[t.Start:t.End])
	}
}

func TestScan(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"an op", `%a:2 = "d.op"(%b#1) : (i32) -> !t`, `%a|:|2|=|"d.op"|(|%b#1|)|:|(|i32|)|->|!t`},
		{"a shape stays in pieces", `tensor<4x?xf32, #e>`, `tensor|<|4x|?|xf32|,|#e|>`},
		{"a dialect's body is one token", `#d.a<x < y>> !t<"a>b", {->}>`, `#d.a<x < y>>|!t<"a>b", {->}>`},
		{"its blanks and line ends too", "#d.a<a  //\n b>, c", "#d.a<a  //\n b>|,|c"},
		{"a body needs its bracket at once", `#d.a <b>`, `#d.a|<|b|>`},
		{"an open body is no body", `#d.a<b #c<d>)`, `#d.a|<|b|#c<d>|)`},
		{"a body that the text ends in", `#a<#b<#c<1>`, `#a|<|#b|<|#c<1>`},
		{"names", `@f::@"g h" ^bb0 %x-1 %1-2 #0`, `@f|::|@"g h"|^bb0|%x-1|%1|-|2|#0`},
		{"names of digits and with signs", `#3o4<n> #a-b !t-1 #d-a.b<c> # a !=`, `#3|o4|<|n|>|#a-b|!t-1|#d-a.b<c>|#|a|!|=`},
		{"a comment that hides a bracket from the parser is none of a body", "#d.a<b // >\n>", "#d.a|<|b|// >|>"},
		{"comments lose their trailing blanks", "a // b \t\nc//d", `a|// b|c|//d`},
		{"a carriage return ends a comment", "// a\rb // c\r\nd", `// a|b|// c|d`},
		{"strings", `"a\"b//" "open` + "\n" + `"c"`, `"a\"b//"|"open|"c"`},
		{"operators", `a >= b == c <= d -> e {-# #-}`, `a|>=|b|==|c|<=|d|->|e|{-#|#-}`},
		{"any bytes", "\x00\xff%", "\x00|\xff|%"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(tokensOf(c.text), "|"); got != c.want {
				t.Errorf("tokens of %q\n got %s\nwant %s", c.text, got, c.want)
			}
		})
	}
}

// Many openings without a close must not be searched again and again. The test
// would run for minutes if they were.
func TestScanUnclosedBodies(t *testing.T) {
	text := strings.Repeat("#a<", 300_000)
	if n := len(tokensOf(text)); n != 600_000 {
		t.Errorf("%d tokens, want 600000", n)
	}
}
