package parse

import (
	"fmt"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Code explains one kind of syntax diagnostic.
type Code struct {
	Code string // "DM001"
	Name string // "not-text"
	Doc  string // what it means, a sentence or two
	Help string // what to do about it
}

// Codes are all diagnostics of the parser, in the order of their numbers.
var Codes = []Code{
	{"DM001", "not-text", "The file holds NUL bytes or is not valid UTF-8, so it is not MLIR text. MLIR bytecode has to be turned into text first.", "print bytecode as text with `mlir-opt`"},
	{"DM002", "too-deep", "Regions or brackets are nested deeper than dmir reads. What lies deeper is kept as text.", "move the inner ops to a function of their own"},
	{"DM003", "too-large", "The file is 2 GiB or larger, beyond what positions in a file can express.", "put large constants into dialect_resources or a weights file"},
	{"DM010", "unclosed-bracket", "A bracket is opened and never closed before the next op begins.", "add the missing bracket"},
	{"DM011", "unmatched-bracket", "A closing bracket has no opening one.", "remove the bracket, or add the opening one"},
	{"DM012", "unclosed-region", "A region's closing brace is missing; the region was taken to end where the next function or the file's end begins.", "add the missing `}`"},
	{"DM013", "unclosed-string", "A string has no closing quote on its line.", "add the closing `\"`; write a line end inside a string as `\\n`"},
	{"DM014", "unclosed-resource", "A `{-#` section has no `#-}`.", "add `#-}` at its end"},
	{"DM020", "expected-op", "Something stands where an op should begin, and no op begins like that.", "an op is `%results = dialect.name operands : type`"},
	{"DM021", "unfinished-op", "An op ends before it is complete.", "complete the op or remove it"},
	{"DM022", "unexpected-token", "An op has something where its grammar wants something else.", "see the form of the op with hover, or `dmir explain DM022`"},
	{"DM023", "bad-operand", "A list of operands holds something that is not an SSA value such as `%x` or `%x#1`.", "operands are values: write `%name`"},
	{"DM024", "bad-result", "The names left of `=` are not a list of SSA values such as `%x` or `%x:2`.", "results are values: write `%name = …`"},
	{"DM025", "bad-block", "A block label is not of the form `^name(%arg: type, …):`.", "write `^bb0(%x: f32):`"},
	{"DM026", "bad-argument", "An argument of a function or block is not of the form `%name: type`.", "write `%name: type`"},
	{"DM027", "unknown-keyword", "A name without a dialect stands where an op should begin, and it is no builtin op.", "write the op's full name, `dialect.op`"},
	{"DM028", "bad-alias", "An alias definition is not of the form `#name = attribute` or `!name = type`.", "write `#name = attribute` or `!name = type`"},
	{"DM040", "bad-type", "The text is not a type.", "types are written like `tensor<8x?xf16>`, `f32`, `(f32) -> f32`"},
	{"DM041", "dimension-overflow", "A dimension does not fit in 63 bits.", "a dimension is at most 9223372036854775807"},
	{"DM042", "bad-attribute", "The text is not an attribute.", "attributes are written like `1 : i64`, `\"text\"`, `[1, 2]`, `dense<0.0> : tensor<4xf32>`"},
	{"DM043", "bad-signature", "The type of an op is not of the form `(A, B) -> C`, `A` or `A, B`.", "write `(operand types) -> result types`, or one type for all"},
	{"DM044", "bad-dictionary", "A dictionary is not of the form `{name = value, …}`.", "write `{name = value}`; a name alone is a unit attribute"},
	{"DM045", "duplicate-key", "A dictionary has the same name twice.", "remove one of the two"},
}

var codeIndex = func() map[string]*Code {
	m := make(map[string]*Code, len(Codes))
	for i := range Codes {
		m[Codes[i].Code] = &Codes[i]
	}
	return m
}()

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
	return &Error{rel(start, end), code, fmt.Sprintf(format, args...), codeIndex[code].Help}
}

// newDiag makes an error diagnostic of the table; an empty span is widened to
// one byte so that there is something to underline.
func newDiag(code string, start, end int, format string, args ...any) diag.Diagnostic {
	if end <= start {
		end = start + 1
	}
	c := codeIndex[code]
	return diag.Diagnostic{
		Code: c.Code, Name: c.Name, Severity: diag.Error, Help: c.Help,
		Span: source.Span{Start: start, End: end}, Message: fmt.Sprintf(format, args...),
	}
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
