package stablehlo

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/print"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Modules are the sections of a text in the ops of the dialect, with what is wrong in
// the text: its syntax, names and types, ops that have no equivalent.
func Modules(src *source.File) ([]*ir.Module, []diag.Diagnostic) {
	tree := parse.File(src)
	diags := errorsOf(tree.Diags)
	modules := lower.File(tree)
	for _, m := range modules {
		if len(diags) == 0 {
			diags = Convert(m)
		}
		if len(diags) == 0 {
			diags = append(errorsOf(m.Diags), errorsOf(verify.Module(m))...)
		}
	}
	return modules, diags
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
	any := false
	for _, m := range lower.File(parse.File(src)) {
		any = any || Has(m)
	}
	if !any {
		return src.Text(), nil
	}
	modules, diags := Modules(src)
	if len(diags) > 0 {
		return "", diags
	}
	sections := make([]string, len(modules))
	for i, m := range modules {
		text, err := print.Source(m)
		if err != nil {
			return "", []diag.Diagnostic{diag.New("DM199", diag.Error, source.Span{}, err.Error())}
		}
		sections[i] = text
	}
	return strings.Join(sections, "// -----\n"), nil
}
