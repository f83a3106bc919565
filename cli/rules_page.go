package cli

import (
	"fmt"
	"strings"

	"dmir/analysis/lint"
	"dmir/syntax/diag"
)

//go:generate go test -run TestRulesPage -update .

// rulesPage is docs/RULES.md: the texts of dmir explain for every code, as one page.
func rulesPage() string {
	var b strings.Builder
	b.WriteString("# Rules and diagnostics\n\nEvery diagnostic of dmir, by code; `dmir explain CODE` prints the same. " +
		"Generated from the rules and tables of codes: `go generate ./cli`.\n\n| code | name | level | fix | meaning |\n|---|---|---|---|---|\n")
	for _, a := range diag.Codes() {
		level, fix := "", ""
		if r := lint.Lookup(a.Code); r != nil {
			level, fix = r.Level(), string(r.Fix)
		}
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s | %s |\n", a.Code, anchor(a.Code), a.Name, level, fix, strings.ReplaceAll(upperFirst(a.Summary), "|", `\|`))
	}
	for _, a := range diag.Codes() {
		fmt.Fprintf(&b, "\n<a id=%q></a>\n\n%s", anchor(a.Code), deeper(a.Markdown()))
	}
	return b.String()
}

func anchor(code string) string { return strings.ToLower(code) }

// deeper is a page with its headings one level down, as a section of another.
func deeper(page string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if !code && strings.HasPrefix(line, "#") {
			b.WriteByte('#')
		}
		b.WriteString(line)
	}
	return b.String()
}
