package escape

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Fprintf is fmt.Fprintf with every text and error among args escaped by Terminal;
// format itself is not escaped.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	shown := slices.Clone(args)
	for i, a := range shown {
		switch a := a.(type) {
		case string:
			shown[i] = Terminal(a)
		case error:
			shown[i] = Terminal(a.Error())
		case fmt.Stringer:
			shown[i] = Terminal(a.String())
		}
	}
	return fmt.Fprintf(w, format, shown...)
}

// Lines is Terminal for text of several lines, such as the output of a tool.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Terminal(strings.TrimSuffix(l, "\r"))
	}
	return strings.Join(lines, "\n")
}

// Filter passes text to a terminal: lines, tabs and the colours that dmir uses; every
// other control sequence becomes one visible character. All output passes through it,
// including unescaped text such as a program's source.
type Filter struct {
	w       io.Writer
	pending []byte // the beginning of a character or of a colour
}

// NewFilter returns a filter that writes to w.
func NewFilter(w io.Writer) *Filter { return &Filter{w: w} }

// Write implements io.Writer.
func (f *Filter) Write(p []byte) (int, error) {
	text := append(f.pending, p...)
	shown, rest := filtered(text, false)
	f.pending = bytes.Clone(rest)
	if _, err := f.w.Write(shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes buffered bytes.
func (f *Filter) Flush() error {
	shown, _ := filtered(f.pending, true)
	f.pending = nil
	_, err := f.w.Write(shown)
	return err
}

// filtered is text for a terminal, and its end where that may go on, unless it
// is the last.
func filtered(text []byte, last bool) (shown, rest []byte) {
	for len(text) > 0 {
		if text[0] == '\n' || text[0] == '\t' {
			shown, text = append(shown, text[0]), text[1:]
			continue
		}
		if text[0] == '\x1b' {
			n, whole := colour(text)
			if !whole && !last {
				return shown, text
			}
			if n > 0 && whole {
				shown, text = append(shown, text[:n]...), text[n:]
				continue
			}
		}
		if !utf8.FullRune(text) && !last {
			return shown, text
		}
		_, n := utf8.DecodeRune(text)
		shown, text = append(shown, Terminal(string(text[:n]))...), text[n:]
	}
	return shown, nil
}

// colour is the length of the colour that text begins with, 0 where it is none;
// whole is false where more text decides.
func colour(text []byte) (n int, whole bool) {
	const most = len("\x1b[1;31m")
	for i, c := range text {
		switch {
		case i == 0, i == 1 && c == '[', i > 1 && (c >= '0' && c <= '9' || c == ';') && i < most-1:
		case i > 1 && c == 'm' && styles(string(text[2:i])):
			return i + 1, true
		default:
			return 0, true
		}
	}
	return 0, false
}

// styles reports whether all parameters of a colour are plain ones: bold, faint
// and the six colours that show on any background.
func styles(parameters string) bool {
	for p := range strings.SplitSeq(parameters, ";") {
		if !slices.Contains([]string{"0", "1", "2", "31", "32", "33", "34", "35", "36"}, p) {
			return false
		}
	}
	return true
}
