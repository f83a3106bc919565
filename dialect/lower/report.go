package lower

import (
	"errors"
	"fmt"

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
	d := diag.Diagnostic{Code: code, Severity: diag.Error, Span: span, Message: fmt.Sprintf(format, args...)}
	if c := CodeOf(code); c != nil {
		d.Name, d.Help = c.Name, c.Help
	}
	l.m.Diags = append(l.m.Diags, d)
	return &l.m.Diags[len(l.m.Diags)-1]
}

// reportParse reports a text inside t that is no type or attribute.
func (l *lowerer) reportParse(o *ir.Op, t *ast.Op, at ast.Rel, err error) {
	var p *parse.Error
	if !errors.As(err, &p) {
		l.reportType(o, t.Abs(at), err)
		return
	}
	span := t.Abs(at)
	inner := source.Span{Start: span.Start + int(p.Span.Start), End: span.Start + int(p.Span.End)}
	if inner.Start < inner.End && inner.End <= span.End {
		span = inner
	}
	d := l.report(o, p.Code, span, "%s", p.Msg)
	d.Help = p.Help
	for _, c := range parse.Codes {
		if c.Code == p.Code {
			d.Name = c.Name
		}
	}
}

// reportType reports a type or attribute that parses but means nothing.
func (l *lowerer) reportType(o *ir.Op, span source.Span, err error) {
	var t *types.Error
	if !errors.As(err, &t) {
		t = &types.Error{Code: "DM042", Msg: err.Error()}
	}
	d := l.report(o, t.Code, span, "%s", t.Msg)
	if t.Help != "" {
		d.Help = t.Help
	}
}
