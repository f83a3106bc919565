package escape_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"dmir/base/escape"
	"dmir/base/escape/escapetest"
)

func TestPlainTextStays(t *testing.T) {
	for _, s := range []string{"layer", "grad_fn.2", "größe", "/home/a b/c.dmir", "x = y / z", "日本語", "نامه\u200cای", "👩\u200d👩\u200d👧"} {
		for name, got := range map[string]string{"terminal": escape.Terminal(s), "comment": escape.Comment(s), "string": strings.Trim(escape.String(s), `"`)} {
			if got != s {
				t.Errorf("%s: %q became %q", name, s, got)
			}
		}
	}
}

func TestExamples(t *testing.T) {
	for _, c := range []struct{ s, terminal, comment, str, identifier string }{
		{"\x1b]0;x\a", "·]0;x·", "·]0;x·", `"\033]0;x\007"`, "_0_x_"},
		{"a\nb", "a·b", "a·b", `"a\012b"`, "a_b"},
		{"a\r\nb\u2028c", "a··b·c", "a··b·c", `"a\015\012b\342\200\250c"`, "a_b_c"},
		{`C:\dir\`, `C:\dir\`, "C:/dir/", `"C:\\dir\\"`, "C_dir_"},
		{"a??/", "a??/", "a? ?/", `"a?\077/"`, "a_"},
		{"*/ x /*", "*/ x /*", "* / x / *", `"*/ x /*"`, "_x_"},
		{`*\`, `*\`, "* /", `"*\\"`, "_"},
		{"0", "0", "0", `"0"`, "v0"},
		{"", "", "", `""`, "v"},
		{"___asm___", "___asm___", "___asm___", `"___asm___"`, "_asm_"},
		{"\x80\x85", "··", "··", `"\200\205"`, "_"},
		{"\u009b31m\u202e", "·31m·", "·31m·", `"\302\23331m\342\200\256"`, "_31m_"},
	} {
		want := []string{c.terminal, c.comment, c.str, c.identifier}
		for i, got := range []string{escape.Terminal(c.s), escape.Comment(c.s), escape.String(c.s), escape.Identifier(c.s)} {
			if got != want[i] {
				t.Errorf("%q, place %d: %q, want %q", c.s, i, got, want[i])
			}
		}
	}
}

func TestFileName(t *testing.T) {
	for s, want := range map[string]string{
		"layer": "layer", "größe": "größe", "../../x": ".._.._x", `C:\x`: "C__x", "a\x00\n\x1b\xff": "a____", "": "",
		strings.Repeat("é", 100): strings.Repeat("é", 75),
	} {
		if got := escape.FileName(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	for s, want := range map[string]string{
		"dir/größe.dmir": `"dir/größe.dmir"`, `C:\a "b".dmir`: `"C:\\a 'b'.dmir"`, "a\nb\xff": `"a·b·"`, "??/": `"?\077/"`,
	} {
		if got := escape.Line(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func FuzzPlaces(f *testing.F) {
	for _, s := range escapetest.Names {
		f.Add(s)
	}
	identifier := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	f.Fuzz(func(t *testing.T, s string) {
		for _, shown := range []string{escape.Terminal(s), escape.Comment(s), escape.String(s)} {
			for _, r := range shown {
				if unicode.IsControl(r) || r == '\u2028' || r == '\u202e' {
					t.Errorf("%q keeps %U: %q", s, r, shown)
				}
			}
		}
		if c := escape.Comment(s); strings.Contains(c, "*/") || strings.Contains(c, "/*") || strings.Contains(c, "??") || strings.Contains(c, `\`) {
			t.Errorf("the comment of %q: %q", s, c)
		}
		if back, err := strconv.Unquote(escape.String(s)); err != nil || back != s {
			t.Errorf("the string of %q: %s, which is %q: %v", s, escape.String(s), back, err)
		}
		if id := escape.Identifier(s); !identifier.MatchString(id) || strings.Contains(id, "__") || escape.Identifier(id) != id {
			t.Errorf("the identifier of %q: %q", s, id)
		}
	})
}

// The names of values are names of MLIR and of files, whatever the path of a value in its structure has in it.
func TestValueName(t *testing.T) {
	for s, want := range map[string]string{
		"params['w']": "params.w", `params["layers_0"][1]`: "params.layers_0.1", "result[1]['b1']": "result.1.b1", "x": "x", "[0]": "0", "[0]['b']": "v0.b",
		"": "", "['']": "", "../../etc/passwd": "etc.passwd", "a\x1b[31m\n": "a.31m", "größe": "gr__e", "a.b": "a.b", "%x, %y": "x.y",
		strings.Repeat("ab", 200): strings.Repeat("ab", 50),
	} {
		if got := escape.ValueName(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
