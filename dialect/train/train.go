// Package train makes of an imported model a step that trains it: the loss of its output, the gradients of its
// parameters, and the step of an optimizer, with the parameters, the buffers that the model updates and the state of the
// optimizer as arguments whose next values are results (dm.state).
//
// Losses and optimizers are those of PyTorch, with its names and defaults. The package knows no importer: it is given the
// model as a function, and what each argument of it is.
package train

import (
	"cmp"
	"fmt"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Code is the diagnostic of a model that cannot be trained.
const Code = "DM149"

// Codes are the diagnostics of this package.
var Codes = diag.Register([]diag.Code{
	{Code: Code, Name: "no-training-step", Doc: "`dmir import --train` cannot make a training step of the model: the model has no parameters or has lost them, its output does not fit the loss, or the gradient does not reach the parameters.", Help: "from PyTorch export the model with torch.onnx.export(model, args, dynamo=True, optimize=False)"},
})

// Error is why there is no step.
type Error struct {
	Key       string // of the specification that is wrong, as "lr=x"; "" where the model is in the way
	Msg, Help string
}

func (e *Error) Error() string { return e.Msg }

// bad is an error of the specification.
func bad(key, help, format string, args ...any) *Error {
	return &Error{Key: key, Msg: fmt.Sprintf(format, args...), Help: help}
}

// unfit is an error of the model.
func unfit(help, format string, args ...any) *Error {
	return &Error{Msg: fmt.Sprintf(format, args...), Help: help}
}

// Role is what an argument of a model's function is.
type Role int

// The roles.
const (
	Input     Role = iota
	Parameter      // what the optimizer changes
	Buffer         // what the model itself gives another value in each step, as the statistics of batch normalization
	Counter        // the number of the step, a scalar i64, by which random numbers are drawn
)

// Model is a function that an importer made.
type Model struct {
	Module  *ir.Module
	Func    *ir.Func
	Args    map[*ir.Value]Arg // of arguments that are no inputs
	Outputs []string          // the names of the model's outputs, which are the function's first results
}

// Arg is an argument of a model's function.
type Arg struct {
	Role  Role
	Name  string       // as the framework calls it
	Value *types.Dense // before the first step; nil where the model does not tell
	Begin types.Attr   // what stands for Value, as an array in a file; nil: nothing
	Next  int          // of a buffer: the result that is its next value
}

// begin is the value of the argument before the first step, nil where the model does not tell.
func (a Arg) begin() types.Attr {
	if a.Value == nil {
		return a.Begin
	}
	return a.Value
}

// Of is f, a function of an imported program, as a model whose parameters are the arguments that the specification names. An
// error is an *Error.
func Of(m *ir.Module, f *ir.Func, spec *Spec) (*Model, error) {
	model := &Model{Module: m, Func: f, Args: map[*ir.Value]Arg{}}
	var names []string
	matched := map[string]bool{}
	for i, v := range f.Args {
		a := Arg{Name: bare(v), Begin: op.SignatureAttr(f.Op, "arg_attrs", i, op.InitAttr)}
		names = append(names, a.Name)
		for _, pattern := range spec.Parameters {
			if matches(pattern, a.Name) {
				matched[pattern] = true
				if v.Tensor() != nil && v.Elem().IsFloat() {
					a.Role = Parameter
				}
			}
		}
		model.Args[v] = a
	}
	help := "the arguments are " + listed(names)
	if len(spec.Parameters) == 0 {
		return nil, bad("parameters=", help, "is missing: the program does not tell which of its arguments are parameters")
	}
	for _, pattern := range spec.Parameters {
		if !matched[pattern] {
			return nil, bad("parameters="+pattern, help, "names no argument")
		}
	}
	for i := range f.Results {
		name, _ := op.SignatureAttr(f.Op, "res_attrs", i, op.NameAttr).(types.Str)
		model.Outputs = append(model.Outputs, cmp.Or(string(name), fmt.Sprintf("result%d", i)))
	}
	f.Op.RemoveAttr("arg_attrs") // they are of the step
	f.Op.RemoveAttr("res_attrs")
	return model, nil
}

// StepName is the function of the step, lossName that of the loss.
const (
	StepName = "step"
	lossName = "loss"
)
