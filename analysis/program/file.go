package program

import (
	"errors"

	"dmir/dialect/ir"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Codes are the diagnostics about files that programs name.
var Codes = diag.Register([]diag.Code{
	{Code: types.MissingArray, Name: "missing-array", Doc: "A file that has the elements of a constant, or the array in it, cannot be read. Cost does not need the elements; what runs, compiles or exports the program does.", Help: "put the file beside the program, or correct the path or the name"},
	{Code: types.OtherArray, Name: "other-array", Doc: "The array that has the elements of a constant is of another element type or shape than the constant. bf16 and f8 are kept as float32 in NumPy's files, i4 and ui4 as int8 and uint8.", Help: "write the type of the array"},
})

// find reports a constant whose elements are in a file that does not have them. The
// program is costed without them.
func (p *Program) find(o *ir.Op) {
	d, _ := o.Attr("value").(*types.Dense)
	if d == nil {
		return
	}
	err := d.Find()
	if err == nil {
		return
	}
	report := diag.Diagnostic{Severity: diag.Warning, Code: types.MissingArray, Message: err.Error()}
	if e := (*types.Error)(nil); errors.As(err, &e) {
		report.Severity, report.Code, report.Message = diag.Error, e.Code, e.Msg
	}
	c := diag.Find(report.Code)
	report.Name, report.Help, report.Span = c.Name, c.Help, origin.AttrSpan(o, p.Src, "value")
	p.rules = append(p.rules, report)
}
