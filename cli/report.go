package cli

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"dmir/analysis/lint"
	"dmir/base/escape"
	"dmir/syntax/diag"
)

// report writes the findings in one of the output formats of lint; hidden is the
// number of hints that are left out.
func report(w io.Writer, format string, found []finding, files, hidden int) error {
	switch format {
	case "json":
		return reportJSON(w, found)
	case "sarif":
		return reportSARIF(w, found)
	case "github":
		for _, f := range found {
			reportGitHub(w, f)
		}
		return nil
	}
	style := styleOf(w)
	for i, f := range found {
		if format == "concise" {
			fmt.Fprintln(w, diag.Headline(f.src, f.Diagnostic, style))
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		diag.Text(w, f.src, f.Diagnostic, style)
	}
	if format == "text" {
		summary(w, found, files, hidden)
	}
	return nil
}

func summary(w io.Writer, found []finding, files, hidden int) {
	findings, notes, hints, unchecked := 0, 0, 0, 0
	fixable, fixableHints := 0, 0
	for _, f := range found {
		switch {
		case f.counts():
			findings++
		case f.Severity == diag.Hint:
			hints++
		case f.Code == lint.NotCounted:
			unchecked++ // one of each file
		default:
			notes++
		}
		switch {
		case len(f.Fixes) == 0 || !f.Fixes[0].Safe:
		case f.Severity == diag.Hint:
			fixableHints++
		default:
			fixable++
		}
	}
	if len(found) > 0 {
		fmt.Fprintln(w)
	}
	if findings+files == 0 {
		return
	}
	shown := []string{diag.Count(findings, "finding")}
	if notes > 0 {
		shown = append(shown, count(notes, "note"))
	}
	if hints > 0 {
		shown = append(shown, count(hints, "hint"))
	}
	fmt.Fprint(w, diag.List(shown))
	fmt.Fprintf(w, " in %s", count(files, "file"))
	if fixable > 0 {
		fmt.Fprintf(w, ", %d fixable with --fix", fixable)
	}
	if fixableHints > 0 {
		fmt.Fprintf(w, ", %d fixable with --fix --hints", fixable+fixableHints)
	}
	if hidden > 0 {
		fmt.Fprintf(w, "; %s about what the compiler does by itself: --hints", count(hidden, "hint"))
	}
	if unchecked > 0 {
		fmt.Fprintf(w, "; ops of other dialects in %s were not checked", count(unchecked, "file"))
	}
	fmt.Fprintln(w)
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

type jsonFinding struct {
	Path      string    `json:"path"`
	Line      int       `json:"line"`
	Column    int       `json:"column"`
	EndLine   int       `json:"end_line"`
	EndColumn int       `json:"end_column"`
	Code      string    `json:"code"`
	Name      string    `json:"name"`
	Severity  string    `json:"severity"`
	Message   string    `json:"message"`
	Label     string    `json:"label,omitempty"`
	Notes     []string  `json:"notes,omitempty"`
	Help      string    `json:"help,omitempty"`
	Fixes     []jsonFix `json:"fixes"`
}

type jsonFix struct {
	Title      string     `json:"title"`
	Safe       bool       `json:"safe"`
	SavesBytes int64      `json:"saves_bytes"`
	SavesNs    float64    `json:"saves_ns"`
	SavesSent  int64      `json:"saves_sent_bytes,omitempty"`
	Edits      []jsonEdit `json:"edits"`
}

type jsonEdit struct {
	Start int    `json:"start"` // byte offsets into the file
	End   int    `json:"end"`
	Text  string `json:"text"`
}

func reportJSON(w io.Writer, found []finding) error {
	out := []jsonFinding{}
	for _, f := range found {
		j := jsonFinding{
			Path: f.src.Path, Code: f.Code, Name: f.Name, Severity: f.Severity.String(), Message: f.Message,
			Label: f.Label, Notes: f.Notes, Help: f.Help, Fixes: []jsonFix{},
		}
		j.Line, j.Column = f.src.Human(f.Span.Start)
		j.EndLine, j.EndColumn = f.src.Human(f.Span.End)
		for _, x := range f.Fixes {
			fix := jsonFix{Title: x.Title, Safe: x.Safe, SavesBytes: x.SavesBytes, SavesNs: x.SavesNs, SavesSent: x.SavesSent}
			for _, e := range x.Edits {
				fix.Edits = append(fix.Edits, jsonEdit{e.Span.Start, e.Span.End, e.Text})
			}
			j.Fixes = append(j.Fixes, fix)
		}
		out = append(out, j)
	}
	return writeJSON(w, map[string]any{"findings": out})
}

// github's levels and escapes: "Workflow commands for GitHub Actions".
var (
	githubLevel    = map[diag.Severity]string{diag.Error: "error", diag.Warning: "warning", diag.Info: "notice", diag.Hint: "notice"}
	githubText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func reportGitHub(w io.Writer, f finding) {
	line, col := f.src.Human(f.Span.Start)
	endLine, endCol := f.src.Human(f.Span.End)
	text := escape.Lines(strings.Join(append([]string{f.Message}, f.Notes...), "\n"))
	fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,endLine=%d,endColumn=%d,title=%s::%s\n",
		githubLevel[f.Severity], githubProperty.Replace(escape.Terminal(f.src.Path)), line, col, endLine, endCol,
		githubProperty.Replace(f.Code+" "+f.Name), githubText.Replace(text))
}

// address is a path as a URI reference, which SARIF asks for.
func address(path string) string {
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.VolumeName(path) != "" { // "C:" is not a scheme
		u.Scheme, u.Path = "file", "/"+u.Path
	}
	return u.String()
}

func reportSARIF(w io.Writer, found []finding) error {
	level := map[diag.Severity]string{diag.Error: "error", diag.Warning: "warning", diag.Info: "note", diag.Hint: "note"}
	run := sarif.NewRun()
	driver := sarif.NewToolComponent().WithName("dmir").WithVersion(version)
	run.WithTool(sarif.NewTool().WithDriver(driver))
	known := map[string]bool{}
	for _, f := range found {
		if !known[f.Code] {
			known[f.Code] = true
			rule := run.AddRule(f.Code).WithName(f.Name)
			if doc := diag.Find(f.Code); doc.Code != "" {
				rule.WithShortDescription(sarif.NewMultiformatMessageString().WithText(doc.Summary)).
					WithHelp(sarif.NewMultiformatMessageString().WithText(doc.Text()).WithMarkdown(doc.Text()))
			}
		}
		line, col := f.src.Human(f.Span.Start)
		endLine, endCol := f.src.Human(f.Span.End)
		region := sarif.NewRegion().WithStartLine(line).WithStartColumn(col).WithEndLine(endLine).WithEndColumn(endCol)
		place := sarif.NewPhysicalLocation().
			WithArtifactLocation(sarif.NewSimpleArtifactLocation(address(f.src.Path))).
			WithRegion(region)
		run.AddResult(sarif.NewRuleResult(f.Code).
			WithLevel(level[f.Severity]).
			WithMessage(sarif.NewTextMessage(strings.Join(append([]string{f.Message}, f.Notes...), "\n"))).
			AddLocation(sarif.NewLocationWithPhysicalLocation(place)))
	}
	out := sarif.NewReport()
	out.AddRun(run)
	return out.PrettyWrite(w)
}
