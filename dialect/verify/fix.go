package verify

import (
	"dmir/dialect/ir"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// resultFix writes the type t for result i of o: in its place in the list of
// results, or in a list where the op had one type for everything.
func resultFix(src *source.File, o *ir.Op, i int, t types.Type) []diag.Fix {
	if origin.Tree(o) == nil || origin.Tree(o).Sig.Empty() {
		return nil
	}
	sig, err := parse.Signature(origin.Tree(o).Text(src, origin.Tree(o).Sig))
	if err != nil {
		return nil
	}
	edit := diag.Edit{Span: origin.Tree(o).Abs(origin.Tree(o).Sig), Text: t.String()}
	switch {
	case !sig.Single && i < len(sig.OutSpans):
		at := sig.OutSpans[i]
		edit.Span = origin.Tree(o).Abs(ast.Rel{Start: origin.Tree(o).Sig.Start + at.Start, End: origin.Tree(o).Sig.Start + at.End})
	case !sig.Single:
		return nil
	case len(o.Operands) > 0 && len(o.Results) == 1:
		edit.Text = (&types.Func{In: ir.Types(o.Operands), Out: []types.Type{t}}).String()
	case len(o.Operands) > 0:
		return nil
	}
	return []diag.Fix{{Title: "Write " + t.String(), Edits: []diag.Edit{edit}}}
}
