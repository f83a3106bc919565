package lower

import (
	"errors"
	"fmt"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// report adds an error and marks the op it is about, which may be nil. The
// diagnostic may be completed until the next report.
func (l *lowerer) report(o *ir.Op, code string, span source.Span, format string, args ...any) *diag.Diagnostic {
	if o != nil {
		o.Bad = true
	}
	l.m.Diags = append(l.m.Diags, diag.New(code, diag.Error, span, fmt.Sprintf(format, args...)))
	return &l.m.Diags[len(l.m.Diags)-1]
}

// reportParse reports a text inside t that is no type or attribute.
func (l *lowerer) reportParse(o *ir.Op, t *ast.Op, at ast.Rel, err error) {
	var p *parse.Error
	if !errors.As(err, &p) {
		l.reportType(o, t.Abs(at), err)
		return
	}
	if o != nil {
		o.Bad = true
	}
	span := t.Abs(at)
	d := p.Diagnostic(span.Start)
	if p.Span.Empty() || d.Span.End > span.End {
		d.Span = span
	}
	l.m.Diags = append(l.m.Diags, d)
}

// reportType reports a type or attribute that parses but means nothing.
func (l *lowerer) reportType(o *ir.Op, span source.Span, err error) {
	var t *types.Error
	if !errors.As(err, &t) {
		t = &types.Error{Code: "DM042", Msg: err.Error()}
	}
	if len(t.Path) > 0 {
		start, end := t.In(l.src.Slice(span))
		span = source.Span{Start: span.Start + start, End: span.Start + end}
	}
	if i := strings.Index(l.src.Slice(span), t.Part); i > 0 && t.Part != "" {
		span = source.Span{Start: span.Start + i, End: span.Start + i + len(t.Part)}
	}
	if t.Code == types.UnknownAlias { // package scope reports it
		if o != nil {
			o.Bad = true
		}
		return
	}
	if l.badTypes[span] { // a function's arguments are read twice, for its type and for its body
		if o != nil {
			o.Bad = true
		}
		return
	}
	l.badTypes[span] = true
	d := l.report(o, t.Code, span, "%s", t.Msg)
	if t.Help != "" {
		d.Help = t.Help
	}
	if t.Write != "" && l.src.Slice(span) == t.Part {
		d.Fixes = []diag.Fix{{Title: "Write " + t.Write, Safe: true, Edits: []diag.Edit{{Span: span, Text: t.Write}}}}
	}
}
