package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"dmir/analysis/config"
	"dmir/analysis/lint"
	"dmir/compile/interp"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/lsp/worker"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
)

type explainCmd struct {
	Rule string `arg:"" optional:"" help:"A code (DM201), a name (fusible-into-producer) or an op (dm.softmax); without it, the list of all."`
}

// article is what explain knows about one code.
type article struct {
	code, name, summary, text string
}

// articles are all rules and diagnostics in the order of their codes.
func articles() []article {
	var as []article
	for _, table := range [][]diag.Code{parse.Codes, scope.Codes, op.Codes, types.Codes, lower.Codes, verify.Codes, interp.Codes, worker.Codes, config.Codes, failureCodes} {
		for _, c := range table {
			text := c.Doc + "\n"
			if c.Help != "" {
				text += "\n## What to do\n" + upperFirst(c.Help) + ".\n"
			}
			as = append(as, article{c.Code, c.Name, firstSentence(c.Doc), text})
		}
	}
	for _, r := range lint.Rules() {
		as = append(as, article{r.Code, r.Name, r.Summary, r.Doc})
	}
	slices.SortStableFunc(as, func(a, b article) int { return strings.Compare(a.code, b.code) })
	return as
}

func explanation(code string) (article, bool) {
	for _, a := range articles() {
		if strings.EqualFold(a.code, code) || strings.EqualFold(a.name, code) {
			return a, true
		}
	}
	return article{}, false
}

// Run prints one article, or the list.
func (c explainCmd) Run(a *app) error {
	if c.Rule == "" {
		return list(a.stdout)
	}
	for _, name := range []string{c.Rule, "dm." + c.Rule} {
		if d := op.Lookup(name); d != nil {
			_, err := fmt.Fprintf(a.stdout, "# dm.%s\n\n%s\n", d.Name, strings.TrimSuffix(d.Markdown(), "\n"))
			return err
		}
	}
	e, ok := explanation(c.Rule)
	if !ok {
		return &failure{"DM610", c.Rule, "is no rule, diagnostic or op of dmir", likely(c.Rule)}
	}
	title := fmt.Sprintf("# %s %s\n\n%s.\n\n", e.code, e.name, upperFirst(strings.TrimSuffix(e.summary, ".")))
	if strings.HasPrefix(e.text, e.summary) {
		title = fmt.Sprintf("# %s %s\n\n", e.code, e.name)
	}
	text := title + e.text
	if r := lint.Lookup(e.code); r != nil {
		text += "\n## Silence\nOne line: `// dmir: ignore[" + r.Code + "] reason`. Everywhere: `ignore = [\"" + r.Code + "\"]` under `[lint]` in `dmir.toml`.\n"
	}
	_, err := io.WriteString(a.stdout, text)
	return err
}

func list(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CODE\tNAME\tFIX\tWHAT IT SAYS")
	for _, a := range articles() {
		fix := "-"
		if r := lint.Lookup(a.code); r != nil && r.Fix != lint.NoFix {
			fix = string(r.Fix)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", a.code, a.name, fix, upperFirst(a.summary))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(tw, "\nOP\tWHAT IT COMPUTES")
	for _, d := range op.All() {
		fmt.Fprintf(tw, "dm.%s\t%s\n", d.Name, upperFirst(strings.TrimSuffix(d.Summary, ".")))
	}
	return tw.Flush()
}

// likely is what was probably meant by a word that explain does not know.
func likely(word string) string {
	var known []string
	for _, a := range articles() {
		known = append(known, a.code, a.name)
	}
	for _, d := range op.All() {
		known = append(known, d.Name, "dm."+d.Name)
	}
	if s := diag.Suggest(word, known); s != "" {
		return "did you mean " + s + "?"
	}
	return "dmir explain lists them"
}

func firstSentence(doc string) string {
	s, _, _ := strings.Cut(doc, ". ")
	s, _, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(s, ".")
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
