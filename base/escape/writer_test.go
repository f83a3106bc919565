package escape_test

import (
	"errors"
	"strings"
	"testing"

	"dmir/base/escape"
)

// TestFilter writes each text whole and byte by byte.
func TestFilter(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a\tb\nc", "a\tb\nc"},
		{"größe 日本 · ─", "größe 日本 · ─"},
		{"\x1b[1;31merror\x1b[0m", "\x1b[1;31merror\x1b[0m"},
		{"\x1b[2mfaint\x1b[0m", "\x1b[2mfaint\x1b[0m"},
		{"\x1b[2J", "·[2J"},
		{"\x1b[8mhidden", "·[8mhidden"},
		{"\x1b[38;5;1m", "·[38;5;1m"},
		{"\x1b[m", "·[m"},
		{"\x1b]0;title\a", "·]0;title·"},
		{"\x1b\x1b[1mx", "·\x1b[1mx"},
		{"\r\b\x00\x7f", "····"},
		{"\u009b2J\u202e", "·2J·"},
		{"\xc3", "·"},
		{"\xff\xfe", "··"},
		{"\x1b", "·"},
		{"\x1b[1", "·[1"},
	} {
		for _, step := range []int{1, 2, 3, 100} {
			var b strings.Builder
			f := escape.NewFilter(&b)
			for at := 0; at < len(c.text); at += step {
				part := c.text[at:min(at+step, len(c.text))]
				if n, err := f.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := f.Flush(); err != nil || b.String() != c.want {
				t.Errorf("%q in parts of %d: %q, want %q (%v)", c.text, step, b.String(), c.want, err)
			}
		}
	}
}

func TestFprintf(t *testing.T) {
	var b strings.Builder
	escape.Fprintf(&b, "%s\t%-3s|%d %v %q\n", "a\x1b[2J", "x", 7, errors.New("b\nc"), "d\r")
	if want := "a·[2J\tx  |7 b·c \"d·\"\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if got := escape.Lines("a\r\nb\x1b\n"); got != "a\nb·\n" {
		t.Errorf("%q", got)
	}
}
