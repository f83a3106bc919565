package interp

import (
	"fmt"

	"dmir/dialect/ir"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Error is a failure of a run at one op or argument.
type Error struct {
	Span source.Span // zero for ops made by passes
	Code string      // one of Codes
	Msg  string      // one sentence
	Help string      // what to do, may be empty
}

func (e *Error) Error() string { return e.Msg }

// Diagnostic returns e as a diagnostic.
func (e *Error) Diagnostic() diag.Diagnostic {
	d := diag.New(e.Code, diag.Error, e.Span, e.Msg)
	d.Help = e.Help
	return d
}

// Codes lists the errors of runs.
var Codes = diag.Register([]diag.Code{
	{Code: "DM701", Name: "unbound-size", Doc: "A size is a symbol that has no value, so no memory can be given to the tensor.", Help: "bind it on the command line (--bind n=512), in dmir.toml, or with the function attribute dm.bind"},
	{Code: "DM702", Name: "input-mismatch", Doc: "An input has another element type or shape than the argument it is for.", Help: "give an array of the argument's type, or leave it out for a seeded random one"},
	{Code: "DM703", Name: "not-executable", Doc: "The reference executor runs the ops of the dm dialect, func.call and func.return; control flow between blocks and ops of other dialects are not supported.", Help: "lower or rewrite the op in the dm dialect"},
	{Code: "DM704", Name: "size-mismatch", Doc: "Sizes that are known only at run time do not match.", Help: "check the bound sizes, or name equal sizes with the same symbol"},
	{Code: "DM705", Name: "out-of-memory", Doc: "The program needs more memory than the executor may take.", Help: "bind smaller sizes or raise the memory limit"},
	{Code: "DM706", Name: "call-depth", Doc: "Functions call each other too deeply.", Help: "end the recursion"},
	{Code: "DM707", Name: "invalid-value", Doc: "A value that is known only at run time is not allowed.", Help: ""},
	{Code: "DM708", Name: "internal-error", Doc: "The executor failed unexpectedly. This is a bug in dmir, not in the program.", Help: "report it with the file"},
	{Code: CheckFailed, Name: "check-failed", Doc: "The program ran, and a check.expect_* op found a value that differs from the expected one. `dmir run` ends with status 1.", Help: "correct the program or its expectation"},
	{Code: "DM710", Name: "one-device", Doc: "A function with the attribute `dm.mesh` is what one device of a mesh runs, together with the others.", Help: "run it with --devices and the number of devices of its mesh"},
	{Code: "DM711", Name: "collective-failed", Doc: "A collective did not come to its end: a device ran something else, failed, or could not be reached.", Help: "run the same program on every device"},
	{Code: "DM712", Name: "sparse-storage", Doc: "What is given for a sparse argument is none that its format stores: positions that fall or do not begin with 0, or go beyond the coordinates; coordinates that are outside, not sorted, or there twice; padding that is not 0; more elements than the type has room for. Or no pattern stores as many elements as the type says.", Help: "give the argument a file of a matrix, `--input a=FILE.mtx` or one that SciPy has written, `--input a=FILE.npz`: it is stored as the format asks for"},
})

func errorAt(o *ir.Op, code, help, format string, args ...any) *Error {
	e := &Error{Code: code, Msg: fmt.Sprintf(format, args...), Help: help}
	if o != nil {
		e.Span = o.Head
		if e.Span.Len() == 0 {
			e.Span = o.Span
		}
	}
	if e.Help == "" {
		e.Help = diag.Find(code).Help
	}
	return e
}
