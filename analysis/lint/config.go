package lint

import (
	"dmir/analysis/config"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Config is [config.ForFile], which does not validate rules, with the problems in the
// choice of them: a misspelt one would silently select nothing.
func Config(path string) (*config.Config, *source.File, []diag.Diagnostic) {
	return ConfigWith(path, nil)
}

// ConfigWith is Config where some files are open in an editor; see
// [config.ForFileWith].
func ConfigWith(path string, open func(name string) (text string, ok bool)) (*config.Config, *source.File, []diag.Diagnostic) {
	c, src, diags := config.ForFileWith(path, open)
	if src != nil {
		diags = append(diags, c.UnknownRules(src, func(s string) bool {
			return len(Options{Select: []string{s}}.Unmatched()) == 0
		})...)
	}
	return c, src, diags
}

// Choices are the rules that [lint] of a dmir.toml may name.
func Choices() []config.Choice {
	var all []config.Choice
	for _, r := range Rules() {
		all = append(all, config.Choice{Name: r.Code, Doc: r.Name + ": " + r.Summary})
	}
	return all
}
