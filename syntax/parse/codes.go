package parse

import (
	"fmt"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Codes are all diagnostics of the parser, in the order of their numbers.
var Codes = diag.Register([]diag.Code{
	{Code: "DM001", Name: "not-text", Doc: "The file holds NUL bytes or is not valid UTF-8, so it is not MLIR text. MLIR bytecode has to be turned into text first.", Help: "print bytecode as text with `mlir-opt`"},
	{Code: "DM002", Name: "too-deep", Doc: "Regions or brackets are nested deeper than dmir reads. What lies deeper is kept as text.", Help: "move the inner ops to a function of their own"},
	{Code: "DM003", Name: "too-large", Doc: "The file is 2 GiB or larger, beyond what positions in a file can express.", Help: "put large constants into dialect_resources or a weights file"},
	{Code: "DM004", Name: "too-many-errors", Doc: "The file has more syntax errors than are shown. It may not be MLIR at all.", Help: "correct the first errors, or check that this is the file you mean"},
	{Code: "DM010", Name: "unclosed-bracket", Doc: "A bracket is opened and never closed before the next op begins.", Help: "add the missing bracket"},
	{Code: "DM011", Name: "unmatched-bracket", Doc: "A closing bracket has no opening one.", Help: "remove the bracket, or add the opening one"},
	{Code: "DM012", Name: "unclosed-region", Doc: "A region's closing brace is missing; dmir assumes that the region ends before the next function or at the end of the file.", Help: "add the missing `}`"},
	{Code: "DM013", Name: "unclosed-string", Doc: "A string has no closing quote on its line.", Help: "add the closing `\"`; write a line end inside a string as `\\n`"},
	{Code: "DM014", Name: "unclosed-resource", Doc: "A `{-#` section has no `#-}`.", Help: "add `#-}` at its end"},
	{Code: "DM020", Name: "expected-op", Doc: "An op is expected here, and the text does not begin one.", Help: "an op is `%results = dialect.name operands : type`"},
	{Code: "DM021", Name: "unfinished-op", Doc: "An op ends before it is complete.", Help: "complete the op or remove it"},
	{Code: "DM022", Name: "unexpected-token", Doc: "An op contains text that its syntax does not allow there.", Help: "compare the line with the op's form, which `dmir explain` and hover show"},
	{Code: "DM023", Name: "bad-operand", Doc: "A list of operands holds something that is not an SSA value such as `%x` or `%x#1`.", Help: "operands are values: write `%name`"},
	{Code: "DM024", Name: "bad-result", Doc: "The names left of `=` are not a list of SSA values such as `%x` or `%x:2`.", Help: "results are values: write `%name = …`"},
	{Code: "DM025", Name: "bad-block", Doc: "A block label is not of the form `^name(%arg: type, …):`.", Help: "write `^bb0(%x: f32):`"},
	{Code: "DM026", Name: "bad-argument", Doc: "An argument of a function or block is not of the form `%name: type`.", Help: "write `%name: type`"},
	{Code: "DM027", Name: "unknown-keyword", Doc: "An op is expected here, but the name has no dialect prefix and is not a builtin op.", Help: "write the op's full name, `dialect.op`"},
	{Code: "DM028", Name: "bad-alias", Doc: "An alias definition is not of the form `#name = attribute` or `!name = type`.", Help: "write `#name = attribute` or `!name = type`"},
	{Code: "DM040", Name: "bad-type", Doc: "The text is not a type.", Help: "types are written like `tensor<8x?xf16>`, `f32`, `(f32) -> f32`"},
	{Code: "DM041", Name: "dimension-overflow", Doc: "A dimension does not fit in 63 bits.", Help: "a dimension is at most 9223372036854775807"},
	{Code: "DM042", Name: "bad-attribute", Doc: "The text is not an attribute.", Help: "attributes are written like `1 : i64`, `\"text\"`, `[1, 2]`, `dense<0.0> : tensor<4xf32>`"},
	{Code: "DM043", Name: "bad-signature", Doc: "The type of an op is not of the form `(A, B) -> C`, `A` or `A, B`.", Help: "write `(operand types) -> result types`, or one type for all"},
	{Code: "DM044", Name: "bad-dictionary", Doc: "A dictionary is not of the form `{name = value, …}`.", Help: "write `{name = value}`; a name alone is a unit attribute"},
	{Code: "DM045", Name: "duplicate-key", Doc: "A dictionary has the same name twice.", Help: "remove one of the two"},
})

// Error is why a type, an attribute or a signature could not be read.
type Error struct {
	Span ast.Rel // relative to the text given
	Code string
	Msg  string
	Help string
}

func (e *Error) Error() string { return e.Msg }

// Diagnostic is e as a diagnostic of a file in which the text starts at off.
func (e *Error) Diagnostic(off int) diag.Diagnostic {
	d := newDiag(e.Code, off+int(e.Span.Start), off+int(e.Span.End), "%s", e.Msg)
	d.Help = e.Help
	return d
}

func newError(code string, start, end int, format string, args ...any) *Error {
	return &Error{rel(start, end), code, fmt.Sprintf(format, args...), diag.Find(code).Help}
}

// newDiag makes an error diagnostic of the table; an empty span is widened to
// one byte so that there is something to underline.
func newDiag(code string, start, end int, format string, args ...any) diag.Diagnostic {
	if end <= start {
		end = start + 1
	}
	return diag.New(code, diag.Error, source.Span{Start: start, End: end}, fmt.Sprintf(format, args...))
}

func rel(start, end int) ast.Rel { return ast.Rel{Start: int32(start), End: int32(end)} }

// excerpt shortens text for a message and keeps it on one line.
func excerpt(s string) string {
	for i := range s {
		if i >= 24 || s[i] == '\n' {
			return s[:i] + "…"
		}
	}
	return s
}
