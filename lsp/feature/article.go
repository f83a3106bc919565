package feature

import (
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/config"
	"dmir/analysis/lint"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/schedule"
	"dmir/compile/target"
	"dmir/dialect/autodiff"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
)

// Article is what is known about one code.
type Article struct {
	Code, Name, Summary string
	Text                string // Markdown, without a title
}

// Articles are all lint rules and diagnostics in the order of their codes, and
// the tables of whoever else says something.
func Articles(others ...[]diag.Code) []Article {
	var as []Article
	tables := [][]diag.Code{parse.Codes, scope.Codes, op.Codes, types.Codes, lower.Codes, verify.Codes, autodiff.Codes, interp.Codes, config.Codes, pass.Codes, schedule.Codes, target.Codes(), driver.Codes}
	for _, c := range slices.Concat(slices.Concat(tables...), slices.Concat(others...)) {
		text := c.Doc + "\n"
		if c.Help != "" {
			text += "\n## What to do\n" + upperFirst(c.Help) + ".\n"
		}
		as = append(as, Article{c.Code, c.Name, firstSentence(c.Doc), text})
	}
	for _, r := range lint.Rules() {
		as = append(as, Article{r.Code, r.Name, r.Summary, r.Doc})
	}
	slices.SortStableFunc(as, func(a, b Article) int { return strings.Compare(a.Code, b.Code) })
	return as
}

// ArticleOf is the one of a code or of a name.
func ArticleOf(as []Article, code string) (Article, bool) {
	for _, a := range as {
		if strings.EqualFold(a.Code, code) || strings.EqualFold(a.Name, code) {
			return a, true
		}
	}
	return Article{}, false
}

// Markdown is the article as a page.
func (a Article) Markdown() string {
	title := fmt.Sprintf("# %s %s\n\n%s.\n\n", a.Code, a.Name, upperFirst(strings.TrimSuffix(a.Summary, ".")))
	if strings.HasPrefix(a.Text, a.Summary) {
		title = fmt.Sprintf("# %s %s\n\n", a.Code, a.Name)
	}
	text := title + a.Text
	if r := lint.Lookup(a.Code); r != nil {
		text += "\n## Silence\nOne line: `// dmir: ignore[" + r.Code + "] reason`. Everywhere: `ignore = [\"" + r.Code + "\"]` under `[lint]` in `dmir.toml`.\n"
	}
	return text
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
