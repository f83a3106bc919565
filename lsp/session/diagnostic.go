package session

import (
	"encoding/json"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/workspace"
	"dmir/syntax/diag"
)

var severities = map[diag.Severity]protocol.DiagnosticSeverity{
	diag.Hint:    protocol.DiagnosticSeverityHint,
	diag.Info:    protocol.DiagnosticSeverityInformation,
	diag.Warning: protocol.DiagnosticSeverityWarning,
	diag.Error:   protocol.DiagnosticSeverityError,
}

// Diagnostic returns a diagnostic with the text that the command line prints: the
// sentence, what it costs, what to do.
func (f Features) Diagnostic(p Place, d diag.Diagnostic) protocol.Diagnostic {
	lines := []string{d.Message}
	lines = append(lines, d.Notes...)
	if d.Help != "" {
		lines = append(lines, "help: "+d.Help)
	}
	out := protocol.Diagnostic{
		Range:    p.Range(d.Span),
		Severity: severities[d.Severity],
		Source:   protocol.NewOptional("dmir"),
		Message:  protocol.String(strings.Join(lines, "\n")),
	}
	if d.Code != "" {
		out.Code = protocol.String(d.Code)
		if f.CodeLinks && f.VirtualDocuments {
			out.CodeDescription.Href = uri.URI(RuleAddress(d.Code))
		}
	}
	if f.LinkDiagnostics {
		for _, r := range d.Related {
			out.RelatedInformation = append(out.RelatedInformation, protocol.DiagnosticRelatedInformation{Location: p.Location(r.Span), Message: r.Message})
		}
	}
	if f.Tags && len(d.Tags) > 0 {
		var tags []protocol.DiagnosticTag
		for _, t := range d.Tags {
			tags = append(tags, protocol.DiagnosticTag(t))
		}
		out.Tags = protocol.NewDiagnosticTags(tags...)
	}
	if f.DiagnosticData && len(d.Fixes) > 0 {
		out.Data = fixData(d.Fixes)
	}
	return out
}

// fixData is what the fixes of a diagnostic promise, for editors that show it
// beside the diagnostic or choose by it.
func fixData(fixes []diag.Fix) protocol.LSPAny {
	type fix struct {
		Title      string  `json:"title"`
		Safe       bool    `json:"safe"`
		SavesBytes int64   `json:"saves_bytes,omitzero"`
		SavesNs    float64 `json:"saves_ns,omitzero"`
		SavesSent  int64   `json:"saves_sent_bytes,omitzero"`
	}
	data := struct {
		Fixes []fix `json:"fixes"`
	}{}
	for _, f := range fixes {
		data.Fixes = append(data.Fixes, fix{f.Title, f.Safe, f.SavesBytes, f.SavesNs, f.SavesSent})
	}
	raw, err := json.Marshal(data)
	if err != nil { // a saving that is no number
		return nil
	}
	return raw
}

// Diagnostics are the diagnostics of a snapshot as they are sent.
func (f Features) Diagnostics(snap *workspace.Snapshot, ds []diag.Diagnostic) []protocol.Diagnostic {
	out := make([]protocol.Diagnostic, 0, len(ds))
	for _, d := range ds {
		out = append(out, f.Diagnostic(Bare(snap), d))
	}
	return out
}
