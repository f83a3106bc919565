package autodiff

import (
	"fmt"

	"dmir/dialect/ir"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Error is why a function cannot be differentiated, at the op in the way.
type Error struct {
	Op   *ir.Op
	Span source.Span
	Code string // one of Codes
	Line int    // of the op, from 1; 0 where it has no place in the text
	Msg  string // one sentence
	Help string
	Open bool // in other sizes, or without another error, the function may have a gradient
}

// Error is the sentence with the line in front of it.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Msg
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
}

// Diagnostic is e in the form that every tool prints.
func (e *Error) Diagnostic() diag.Diagnostic {
	d := diag.New(e.Code, diag.Error, e.Span, e.Msg)
	d.Help = e.Help
	return d
}

// Codes are the reasons why a function cannot be differentiated, sorted by code.
var Codes = diag.Register([]diag.Code{
	{Code: "DM811", Name: "no-derivative", Doc: "The gradient flows to an op that has no derivative.", Help: "use another op, or leave the arguments that lead to it out of wrt"},
	{Code: "DM812", Name: "gradient-callee", Doc: "The function that is differentiated, or one that it calls, is not a single block of ops that ends in return, or is recursive.", Help: "define the function in this file, without jumps and without recursion"},
	{Code: "DM813", Name: "gradient-argument", Doc: "A gradient is requested for an argument that does not exist or is not a floating-point tensor.", Help: "list floating-point arguments in wrt, by their numbers from 0"},
	{Code: "DM814", Name: "gradient-loss", Doc: "Without given cotangents the first result of a differentiated function is the loss: a floating-point scalar.", Help: "return the loss first, or give the cotangents of the results as further operands with cotangents = n"},
})

func fail(m *ir.Module, o *ir.Op, code, format string, args ...any) *Error {
	e := &Error{Op: o, Code: code, Msg: fmt.Sprintf(format, args...), Help: diag.Find(code).Help}
	if o == nil {
		return e
	}
	if e.Span = o.Head; e.Span.Len() == 0 {
		e.Span = o.Span
	}
	if m != nil && m.Src != nil && e.Span.Len() > 0 {
		e.Line, _ = m.Src.Human(e.Span.Start)
	}
	return e
}
