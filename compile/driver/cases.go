package driver

import (
	"dmir/analysis/program"
	"dmir/dialect/ir"
)

// Case is a function that runs as a program.
type Case struct {
	Module *ir.Module
	Fn     *ir.Func
}

// Cases are the functions of p to run where none is named: @main, or else all that
// are not private and take no arguments, as files of cases have.
func Cases(p *program.Program) []Case {
	var out []Case
	for _, m := range p.Modules {
		for _, f := range m.Funcs {
			switch {
			case f.Body == nil && !f.Op.Bad:
			case f.Name == "main":
				return []Case{{m, f}}
			case !f.Private && len(f.Args) == 0:
				out = append(out, Case{m, f})
			}
		}
	}
	return out
}
