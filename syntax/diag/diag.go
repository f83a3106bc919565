// Package diag defines diagnostics: place, severity, code, one sentence, cost and
// what to do. The parser, the verifier, the linter, the command line and the
// language server all report with it, so that a problem has the same text
// everywhere.
package diag

import (
	"strconv"
	"strings"
	"unicode"

	"dmir/syntax/source"
)

// Severity orders diagnostics from harmless to fatal.
type Severity int

// The severities, in the vocabulary of the LSP.
const (
	Hint Severity = iota
	Info
	Warning
	Error
)

var severityNames = [...]string{"hint", "info", "warning", "error"}

func (s Severity) String() string { return severityNames[s] }

// Edit replaces the text of a span; Start == End inserts.
type Edit struct {
	Span source.Span
	Text string
}

// Fix is a change that removes the finding. A safe fix keeps the meaning and
// the numerics of the program; an unsafe one may change rounding, names that
// others use, or comments.
type Fix struct {
	Title string // imperative, e.g. "Move into the kernel of %h"
	Safe  bool
	Edits []Edit // sorted by Start, not overlapping, all in the same file

	// SavesBytes and SavesNs are what the cost model promises for the function
	// after the edits; tests recompute and require equality of SavesBytes.
	SavesBytes int64
	SavesNs    float64
	SavesSent  int64 // bytes that each device sends less to others
}

// Related points at another place that takes part in the finding.
type Related struct {
	Span    source.Span
	Message string
}

// Tag tells editors how to draw the span.
type Tag int

// Unnecessary text is drawn faded. The values are those of the LSP.
const Unnecessary Tag = 1

// Diagnostic is one finding in one file.
type Diagnostic struct {
	Code     string // "DM201"; codes are listed and explained by `dmir explain`
	Name     string // "fusible-into-producer"
	Severity Severity
	Span     source.Span
	Message  string   // one sentence, no final stop, no newline
	Label    string   // short text printed under the caret, may be empty
	Notes    []string // each printed after "= ", e.g. what it costs
	Help     string   // what to do, may be empty
	Related  []Related
	Tags     []Tag
	Fixes    []Fix
	SavesNs  float64 // the predicted time that the remedy saves, with a fix or without; 0 where it is not known
}

// Replace proposes word in place of what d is about.
func (d *Diagnostic) Replace(word string) {
	d.Help = "did you mean " + word + "?"
	d.Fixes = []Fix{{Title: "Replace by " + word, Edits: []Edit{{Span: d.Span, Text: word}}}}
}

// Name is a name from a text as a message shows it: in quotes where it is empty or
// holds what no name does.
func Name(s string) string {
	odd := func(r rune) bool {
		return r != '.' && r != '_' && r != '-' && r != '$' && r != '…' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if s == "" || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}
