package stablehlo

import (
	"errors"
	"fmt"

	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// maxDiags bounds the diagnostics of a section.
const maxDiags = 100

func (c *importer) report(t *ast.Op, code string, span source.Span, format string, args ...any) *diag.Diagnostic {
	if span.Len() == 0 && t != nil {
		span = t.Head()
	}
	c.reported++
	d := diag.New(code, diag.Error, span, fmt.Sprintf(format, args...))
	if len(c.m.Diags) >= maxDiags {
		return &d
	}
	c.m.Diags = append(c.m.Diags, d)
	return &c.m.Diags[len(c.m.Diags)-1]
}

// reportError reports what package parse or types has against the text at span.
func (c *importer) reportError(t *ast.Op, span source.Span, err error) {
	var syntax *parse.Error
	var meaning *types.Error
	switch {
	case errors.As(err, &syntax):
		d := syntax.Diagnostic(span.Start)
		if d.Span.End > span.End || d.Span.Len() == 0 {
			d.Span = span
		}
		if c.reported++; len(c.m.Diags) < maxDiags {
			c.m.Diags = append(c.m.Diags, d)
		}
	case errors.As(err, &meaning):
		code := meaning.Code
		if code == types.UnknownAlias {
			code = "DM141"
		}
		if len(meaning.Path) > 0 {
			start, end := meaning.In(c.src.Slice(span))
			span = source.Span{Start: span.Start + start, End: span.Start + end}
		}
		d := c.report(t, code, span, "%s", meaning.Msg)
		if meaning.Help != "" {
			d.Help = meaning.Help
		}
	default:
		c.report(t, "DM141", span, "%v", err)
	}
}

// bailout ends the conversion of one op, after its problem has been reported. It is
// recovered in convert.
type bailout struct{}

// fail reports a problem of the op and ends its conversion.
func (n *node) fail(code, format string, args ...any) {
	n.failAt(code, n.t.Head(), format, args...)
}

func (n *node) failAt(code string, span source.Span, format string, args ...any) {
	n.report(n.t, code, span, format, args...)
	panic(bailout{})
}

func (n *node) failError(span source.Span, err error) {
	n.reportError(n.t, span, err)
	panic(bailout{})
}

// unsupported ends the conversion of an op that is valid.
func (n *node) unsupported(format string, args ...any) { n.fail(Unsupported, format, args...) }

// must is fail unless ok.
func (n *node) must(ok bool, code, format string, args ...any) {
	if !ok {
		n.fail(code, format, args...)
	}
}

// mustAttr is must for the value of an attribute.
func (n *node) mustAttr(name string, ok bool, format string, args ...any) {
	if ok {
		return
	}
	at := n.attrs[name].at
	if at.Len() == 0 {
		at = n.t.Head()
	}
	n.failAt("DM141", at, format, args...)
}
