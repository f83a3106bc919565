package lint

import (
	"strings"

	"dmir/syntax/diag"
	"dmir/syntax/source"
)

const marker = "// dmir: ignore["

// suppress drops the findings silenced by "// dmir: ignore[DM201, DM207] why",
// written at the end of the finding's line or on a line of its own above it.
func suppress(src *source.File, found []diag.Diagnostic) []diag.Diagnostic {
	if !strings.Contains(src.Text(), marker) {
		return found
	}
	kept := found[:0]
	for _, d := range found {
		line := src.Pos(d.Span.Start).Line
		if silences(src.Line(line), d) || silencedAbove(src, line, d) {
			continue
		}
		kept = append(kept, d)
	}
	return kept
}

func silencedAbove(src *source.File, line int, d diag.Diagnostic) bool {
	for n := line - 1; n >= 0; n-- {
		text := strings.TrimSpace(src.Line(n))
		if !strings.HasPrefix(text, "//") {
			return false
		}
		if silences(text, d) {
			return true
		}
	}
	return false
}

func silences(line string, d diag.Diagnostic) bool {
	_, rest, found := strings.Cut(line, marker)
	list, _, closed := strings.Cut(rest, "]")
	if !found || !closed {
		return false
	}
	for s := range strings.SplitSeq(list, ",") {
		if s = strings.TrimSpace(s); strings.EqualFold(s, d.Code) || strings.EqualFold(s, d.Name) {
			return true
		}
	}
	return false
}
