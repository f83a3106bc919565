package format

import (
	"bytes"

	"github.com/rogpeppe/go-internal/diff"

	"dmir/syntax/diag"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

// Edits is the list of replacements, in order and without overlap, that turn
// before into after. Where the texts differ in white space only, as they do
// after formatting, each edit lies inside one stretch of it, so that an
// editor's cursor and marks stay where they were; otherwise there is one edit.
func Edits(before, after string) []diag.Edit {
	var edits []diag.Edit
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		if i < len(before) && j < len(after) && before[i] == after[j] && !lex.Is(before[i], lex.Space) {
			i, j = i+1, j+1
			continue
		}
		iEnd, jEnd := lex.Run(before, i, len(before), lex.Space), lex.Run(after, j, len(after), lex.Space)
		if iEnd == i && jEnd == j {
			return []diag.Edit{replace(before, after, 0, len(before), 0, len(after))}
		}
		if before[i:iEnd] != after[j:jEnd] {
			edits = append(edits, replace(before, after, i, iEnd, j, jEnd))
		}
		i, j = iEnd, jEnd
	}
	return edits
}

// replace turns before[i:iEnd] into after[j:jEnd], less what they share at
// their ends. It does not part a "\r\n".
func replace(before, after string, i, iEnd, j, jEnd int) diag.Edit {
	for iEnd > i && jEnd > j && before[iEnd-1] == after[jEnd-1] {
		iEnd, jEnd = iEnd-1, jEnd-1
	}
	if (iEnd < len(before) && before[iEnd] == '\n') && (iEnd > i && before[iEnd-1] == '\r' || jEnd > j && after[jEnd-1] == '\r') {
		iEnd, jEnd = iEnd+1, jEnd+1
	}
	for i < iEnd && j < jEnd && before[i] == after[j] && before[i] != '\r' {
		i, j = i+1, j+1
	}
	return diag.Edit{Span: source.Span{Start: i, End: iEnd}, Text: after[j:jEnd]}
}

// Diff is the unified diff from before to after with the given path in its
// header; it is empty where the texts are equal.
func Diff(path, before, after string) string {
	d := diff.Diff(path, []byte(before), path, []byte(after))
	// The first line repeats the command that a shell user would have typed.
	_, d, _ = bytes.Cut(d, []byte("\n"))
	return string(d)
}
