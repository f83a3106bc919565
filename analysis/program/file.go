package program

import (
	"errors"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Codes are the diagnostics about files that programs name.
var Codes = diag.Register([]diag.Code{
	{Code: types.MissingArray, Name: "missing-array", Doc: "A file that has the elements of a constant or of an argument (`dm.init`), or the array in it, cannot be read. Cost does not need the elements; what runs, compiles or exports the program does.", Help: "put the file beside the program, or correct the path or the name"},
	{Code: types.OtherArray, Name: "other-array", Doc: "The array that has the elements of a constant, or of an argument (`dm.init`), is of another element type or shape. bf16 and f8 are kept as float32 in NumPy's files, i4 and ui4 as int8 and uint8.", Help: "write the type of the array"},
})

// findArrays reports the files that o, a constant or a function, names and that do not have its elements. The program
// is costed without them.
func (p *Program) findArrays(o *ir.Op) {
	switch {
	case o.Bad:
	case o.Name == op.Constant:
		if d, ok := o.Attr("value").(*types.Dense); ok {
			p.find(d, func() source.Span { return origin.AttrSpan(o, p.Src, "value") })
		}
	case o.Name == op.Func:
		all, _ := o.Attr("arg_attrs").(types.Array)
		for i := range all {
			if d := op.InitialArray(o, i); d != nil {
				p.find(d, func() source.Span {
					_, value := origin.SignatureEntry(o, p.Src, "arg_attrs", i, op.InitAttr)
					return value
				})
			}
		}
	}
}

// find reports a literal whose elements are in a file that does not have them; at is where it stands.
func (p *Program) find(d *types.Dense, at func() source.Span) {
	err := d.Find()
	if err == nil {
		return
	}
	report := diag.Diagnostic{Severity: diag.Warning, Code: types.MissingArray, Message: err.Error()}
	if e := (*types.Error)(nil); errors.As(err, &e) {
		report.Severity, report.Code, report.Message = diag.Error, e.Code, e.Msg
	}
	c := diag.Find(report.Code)
	report.Name, report.Help, report.Span = c.Name, c.Help, at()
	p.rules = append(p.rules, report)
}
