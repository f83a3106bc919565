package feature

import (
	"dmir/analysis/units"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Fix is a change that is offered at a place.
type Fix struct {
	Title      string // with what the fix is worth
	Short      string // without that
	Diagnostic diag.Diagnostic
	Fix        diag.Fix
}

// FixesAt are the fixes of the diagnostics that touch span, those of the safe
// kind first where a diagnostic has several.
func FixesAt(ds []diag.Diagnostic, span source.Span) []Fix {
	var out []Fix
	for _, d := range ds {
		if d.Span.Start > span.End || d.Span.End < span.Start {
			continue
		}
		for _, safe := range []bool{true, false} {
			for _, f := range d.Fixes {
				if f.Safe == safe {
					out = append(out, Fix{fixTitle(f, true), fixTitle(f, false), d, f})
				}
			}
		}
	}
	return out
}

// fixTitle describes what a fix does and, if worth, what that saves.
func fixTitle(f diag.Fix, worth bool) string {
	title := f.Title
	if worth && f.SavesSent > 0 {
		title += ": saves " + units.Bytes(f.SavesSent) + " sent"
	} else if worth && f.SavesBytes > 0 {
		title += ": saves " + units.Bytes(f.SavesBytes)
		if f.SavesNs > 0 {
			title += ", " + units.Time(f.SavesNs)
		}
	}
	if !f.Safe {
		title += " (may change rounding)"
	}
	return title
}
