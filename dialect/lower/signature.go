package lower

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// signature is the types of operands and results in an op's text.
type signature struct {
	in, out []types.Type
	inAt    []ast.Rel
	outAt   []ast.Rel
	kind    sigKind
	errs    []sigError
	parse   error
}

type sigKind uint8

const (
	sigNone   sigKind = iota
	sigFull           // (A, B) -> C
	sigSingle         // T
	sigList           // T, U
	sigArrow          // -> T: results only
)

type sigError struct {
	at  ast.Rel
	err error
}

var noSignature = &signature{}

func (s *signature) absent() bool { return s.kind == sigNone }

// full reports whether the result types are listed one by one.
func (s *signature) full() bool { return s.kind == sigFull || s.kind == sigArrow }

// counts reports whether the number of operand types contradicts n operands.
func (s *signature) counts(n int) bool {
	return (s.kind == sigFull || s.kind == sigList) && len(s.in) != n && s.parse == nil
}

// operand is the type written for operand i of n, nil where none is.
func (s *signature) operand(i, n int) types.Type {
	switch {
	case s.kind == sigSingle:
		return s.in[0]
	case len(s.in) == n:
		return s.in[i]
	}
	return nil
}

// results is the number of results of an op that names none.
func (s *signature) results(def *op.Def) int {
	switch s.kind {
	case sigFull, sigArrow:
		return len(s.out)
	case sigSingle:
		n := 0
		if def != nil {
			for _, p := range def.Results {
				if !p.Optional && !p.Variadic {
					n++
				}
			}
		}
		return n
	}
	return 0
}

// result is the type written for result i, nil where none is.
func (s *signature) result(i int) types.Type {
	switch {
	case s.kind == sigSingle:
		return s.out[0]
	case i < len(s.out):
		return s.out[i]
	}
	return nil
}

// span is where the types are written.
func (s *signature) span(t *ast.Op) source.Span {
	if t.Sig.Empty() {
		return t.Head()
	}
	return t.Abs(t.Sig)
}

// signature reads the types of t. Texts repeat, so each is resolved once.
func (l *lowerer) signature(o *ir.Op, t *ast.Op) *signature {
	if t.Sig.Empty() || t.Form == ast.Custom || t.Form == ast.Bad {
		return noSignature
	}
	text := t.Text(l.src, t.Sig)
	s := l.sigs[text]
	if s == nil {
		s = l.resolve(text)
		l.sigs[text] = s
	}
	if s.parse != nil {
		l.reportParse(o, t, t.Sig, s.parse)
	}
	for _, e := range s.errs {
		at := ast.Rel{Start: t.Sig.Start + e.at.Start, End: t.Sig.Start + e.at.End}
		l.reportType(o, t.Abs(at), e.err)
	}
	return s
}

func (l *lowerer) resolve(text string) *signature {
	x, err := parse.Signature(text)
	if err != nil {
		return &signature{parse: err}
	}
	s := &signature{kind: sigFull, inAt: x.InSpans, outAt: x.OutSpans}
	switch {
	case x.Single:
		s.kind = sigSingle
	case x.List:
		s.kind = sigList
	case strings.HasPrefix(text, "->"):
		s.kind = sigArrow
	}
	read := func(exprs []*ast.TypeExpr, at []ast.Rel, report bool) []types.Type {
		out := make([]types.Type, len(exprs))
		for i, e := range exprs {
			t, err := types.FromExpr(e, &l.env)
			if err != nil {
				t = types.Unknown
				if report {
					s.errs = append(s.errs, sigError{at[i], err})
				}
			}
			out[i] = t
		}
		return out
	}
	s.in = read(x.In, x.InSpans, true)
	s.out = read(x.Out, x.OutSpans, !x.Single)
	if x.Single && (len(s.in) != 1 || len(s.out) != 1) {
		s.in, s.out = append(s.in, s.out...)[:1], append(s.out, s.in...)[:1]
	}
	return s
}

// typeAt is the type written at a place inside t, Unknown where it is none.
func (l *lowerer) typeAt(o *ir.Op, t *ast.Op, at ast.Rel) types.Type {
	x, err := parse.Type(t.Text(l.src, at))
	if err != nil {
		l.reportParse(o, t, at, err)
		return types.Unknown
	}
	ty, err := types.FromExpr(x, &l.env)
	if err != nil {
		l.reportType(o, t.Abs(at), err)
		return types.Unknown
	}
	return ty
}

// refine makes a result's dimensions without a name the same symbols as those
// of the operands that they follow from: the result of an element-wise op is as
// long as its operand. The text of the type stays the same.
func (l *lowerer) refine(o *ir.Op, def *op.Def) {
	if def == nil || def.Infer == nil || o.Bad {
		return
	}
	unnamed := false
	for _, v := range o.Results {
		unnamed = unnamed || types.HasUnnamed(v.Type)
	}
	if !unnamed {
		return
	}
	inferred, ok := verify.Infer(o)
	if !ok || len(inferred) != len(o.Results) {
		return
	}
	for i, v := range o.Results {
		written, ok := v.Type.(*types.Tensor)
		from, ok2 := inferred[i].(*types.Tensor)
		if ok && ok2 {
			v.Type = written.Refined(from)
		}
	}
}

// missingTypes reports n results without types and offers those that follow from
// the operands, where they do.
func (l *lowerer) missingTypes(o *ir.Op, t *ast.Op, n int) {
	o.Results = l.slab.list(n) // for the rules that count them
	for i := range o.Results {
		o.Results[i] = &ir.Value{Type: types.Unknown, Op: o, Index: i}
	}
	inferred, ok := verify.Infer(o)
	d := l.report(o, "DM165", o.Head, "the result types of %s are not written", o.Name)
	if !ok || len(inferred) != n || op.Lookup(o.Name).Is(op.Cast) || slices.Contains(inferred, types.Type(types.Unknown)) {
		return
	}
	text := " : " + (&types.Func{In: ir.Types(o.Operands), Out: inferred}).String()
	d.Help = "add" + text
	end := t.Span().End
	if len(t.Regions) == 0 && t.Loc.Empty() {
		d.Fixes = []diag.Fix{{Title: "Write the types", Safe: true, Edits: []diag.Edit{{Span: source.Span{Start: end, End: end}, Text: text}}}}
	}
}
