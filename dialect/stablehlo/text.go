package stablehlo

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/print"
	"dmir/dialect/raise"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Import replaces the ops of m, raises composites that they write out, and reports what is wrong in it then, names and types
// too.
func Import(m *ir.Module) []diag.Diagnostic {
	if diags := Convert(m); len(diags) > 0 {
		return diags
	}
	raise.Module(m)
	return append(errorsOf(m.Diags), errorsOf(verify.Module(m))...)
}

func errorsOf(ds []diag.Diagnostic) (out []diag.Diagnostic) {
	for _, d := range ds {
		if d.Severity == diag.Error {
			out = append(out, d)
		}
	}
	return out
}

// Text is a program as text of the dialect, formatted. It is the program itself if no
// op of it is to be replaced.
func Text(src *source.File) (string, []diag.Diagnostic) {
	if !slices.ContainsFunc(dialects, func(d string) bool { return strings.Contains(src.Text(), d) }) {
		return src.Text(), nil
	}
	tree := parse.File(src)
	modules := lower.File(tree)
	if !slices.ContainsFunc(modules, has) {
		return src.Text(), nil
	}
	if diags := errorsOf(tree.Diags); len(diags) > 0 {
		return "", diags
	}
	sections := make([]string, len(modules))
	for i, m := range modules {
		if diags := Import(m); len(diags) > 0 {
			return "", diags
		}
		text, err := print.Source(m)
		if err != nil {
			return "", []diag.Diagnostic{diag.New("DM199", diag.Error, source.Span{}, err.Error())}
		}
		sections[i] = text
	}
	return strings.Join(sections, "// -----\n"), nil
}
