package diag

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"dmir/base/escape"
	"dmir/syntax/source"
)

// Style is how Text draws: with ANSI colours or without.
type Style struct{ Color bool }

// ANSI sequences of the terminal's own palette, so that they follow its theme.
var ansi = map[string]string{
	"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "info": "\x1b[1;36m", "hint": "\x1b[1;34m",
	"bold": "\x1b[1m", "dim": "\x1b[2m", "reset": "\x1b[0m",
}

func (s Style) paint(color, text string) string {
	text = escape.Terminal(text)
	if !s.Color || text == "" {
		return text
	}
	return ansi[color] + text + ansi["reset"]
}

// Place is "path:line:col", the place as terminals and editors link it.
func Place(src *source.File, span source.Span) string {
	line, col := src.Human(span.Start)
	return fmt.Sprintf("%s:%d:%d", src.Path, line, col)
}

// Headline is the first line of a diagnostic, which is also the concise form:
// "path:line:col: warning[DM201] name: message".
func Headline(src *source.File, d Diagnostic, s Style) string {
	what := fmt.Sprintf("%s[%s]", d.Severity, d.Code)
	return fmt.Sprintf("%s: %s %s: %s", escape.Terminal(Place(src, d.Span)), s.paint(d.Severity.String(), what), d.Name, s.paint("bold", d.Message))
}

// Text writes d for a person at a terminal: the headline, the line with carets
// under the span, what it costs and what to do.
func Text(w io.Writer, src *source.File, d Diagnostic, s Style) {
	fmt.Fprintln(w, Headline(src, d, s))
	line, _ := src.Human(d.Span.Start)
	gutter := len(fmt.Sprint(line)) + 2
	excerpt(w, src, d.Span, d.Label, gutter, s.paint(d.Severity.String(), "%s"), s)
	note := func(text string) {
		fmt.Fprintf(w, "%s%s %s\n", strings.Repeat(" ", gutter+1), s.paint("dim", "="), escape.Terminal(text))
	}
	for _, n := range d.Notes {
		note(n)
	}
	for _, r := range d.Related {
		l, _ := src.Human(r.Span.Start)
		note(fmt.Sprintf("line %d: %s", l, r.Message))
	}
	if d.Help != "" {
		note("help: " + d.Help)
	}
	for _, f := range d.Fixes {
		kind, flag := "safe", "dmir lint --fix"
		if !f.Safe {
			kind, flag = "unsafe", "dmir lint --fix --unsafe-fixes"
		}
		if d.Severity == Hint {
			flag += " --hints"
		}
		note(fmt.Sprintf("fix available (%s): %s: %s", kind, f.Title, flag))
	}
	note("dmir explain " + d.Code)
}

// maxExcerpt is the widest piece of a source line that is shown, in runes.
const maxExcerpt = 160

func excerpt(w io.Writer, src *source.File, span source.Span, label string, gutter int, caretStyle string, s Style) {
	pos := src.Pos(span.Start)
	text := src.Line(pos.Line)
	col := min(pos.Col, len(text))
	// The part of a long line that may be shown, and one more rune, which marks the cut.
	const enough = (maxExcerpt + 1) * utf8.UTFMax
	before, rest := text[:col], text[col:]
	marked := rest[:min(len(rest), max(span.Len(), 0))]
	before, rest, marked = last(before, enough), first(rest, enough), first(marked, enough)
	before, rest = escape.Terminal(before), escape.Terminal(rest)
	n := utf8.RuneCountInString(marked)
	if cut := utf8.RuneCountInString(before) - maxExcerpt/2; cut > 0 {
		before = "…" + string([]rune(before)[cut+1:])
	}
	if r := []rune(rest); utf8.RuneCountInString(before)+len(r) > maxExcerpt {
		keep := maxExcerpt - utf8.RuneCountInString(before)
		rest = string(r[:keep]) + "…"
		n = min(n, keep)
	}
	fmt.Fprintf(w, " %s %s %s%s\n", fmt.Sprintf("%*d", gutter-1, pos.Line+1), s.paint("dim", "|"), before, rest)
	caret := strings.Repeat("^", max(n, 1))
	if label != "" {
		caret += " " + escape.Terminal(label)
	}
	fmt.Fprintf(w, " %s %s %s%s\n", strings.Repeat(" ", gutter-1), s.paint("dim", "|"), strings.Repeat(" ", utf8.RuneCountInString(before)), fmt.Sprintf(caretStyle, caret))
}

// first and last are the n bytes or so at the ends of s, whole runes.
func first(s string, n int) string {
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return s[:min(n, len(s))]
}

func last(s string, n int) string {
	start := max(len(s)-n, 0)
	for start > 0 && !utf8.RuneStart(s[start]) {
		start--
	}
	return s[start:]
}

// TextWithoutPlace writes the headline of a diagnostic about something that is
// no place in a text: a missing file, a flag.
func TextWithoutPlace(w io.Writer, where string, d Diagnostic, s Style) {
	what := fmt.Sprintf("%s[%s]", d.Severity, d.Code)
	fmt.Fprintf(w, "%s: %s %s: %s\n", escape.Terminal(where), s.paint(d.Severity.String(), what), d.Name, s.paint("bold", d.Message))
}
