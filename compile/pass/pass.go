// Package pass holds what every pass of the compiler is given and the one
// ordered list of them. A pass changes a function in place, from valid text to
// valid text; after each one the module is verified.
package pass

import (
	"dmir/analysis/machine"
	"dmir/dialect/ir"
)

// Unit is what is compiled: one function of a module.
type Unit struct {
	Module  *ir.Module
	Func    *ir.Func
	Machine *machine.Machine
	Options Options
}

// Options are the choices a person has.
type Options struct {
	Bind map[string]int64 // sizes of dimension symbols
}

// Pass is one step from function to function.
type Pass struct {
	Name    string // as in dmir opt --passes
	Summary string // one line, no final stop
	Run     func(*Unit) error
}
