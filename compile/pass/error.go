package pass

import (
	"fmt"

	"dmir/dialect/ir"
	"dmir/dialect/shard"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Error is why a function cannot be compiled, at the op that stands in the way.
type Error struct {
	Span source.Span // zero where there is no place in the text
	Code string      // registered with package diag
	Msg  string      // one sentence
	Help string      // what to do, may be empty
}

func (e *Error) Error() string { return e.Msg }

// Diagnostic is e in the form that every tool prints.
func (e *Error) Diagnostic() diag.Diagnostic {
	d := diag.New(e.Code, diag.Error, e.Span, e.Msg)
	d.Help = e.Help
	return d
}

// Errorf is an Error at o, which may be nil; its help is that of the code.
func Errorf(o *ir.Op, code, format string, args ...any) *Error {
	e := &Error{Code: code, Msg: fmt.Sprintf(format, args...), Help: diag.Find(code).Help}
	if o != nil {
		if e.Span = o.Head; e.Span.Len() == 0 {
			e.Span = o.Span
		}
	}
	return e
}

// Refused is p, why the function cannot be divided, as an Error.
func (u *Unit) Refused(code string, p *shard.Problem) *Error {
	at := p.At
	if at == nil {
		at = u.Func.Op
	}
	e := Errorf(at, code, "%s", p.Msg)
	if p.Help != "" {
		e.Help = p.Help
	}
	return e
}

// Replace puts fn, which has the name of the function, in its place.
func (u *Unit) Replace(fn *ir.Func) {
	u.Module.RemoveFunc(u.Func.Name)
	u.Module.AddFunc(fn)
	u.Module.Ops = append(u.Module.Ops, fn.Op)
	u.Func = fn
}

// Codes lists what keeps a program from being compiled.
var Codes = diag.Register([]diag.Code{
	{Code: "DM801", Name: "unbound-symbol", Doc: "Compiled programs have static sizes, but a dimension of this function is a symbol without a value.", Help: "bind it with `--bind n=512`, in `dmir.toml`, or with the attribute `dm.bind` of the function"},
	{Code: "DM802", Name: "recursion", Doc: "A function calls itself, directly or through others, so it cannot be inlined.", Help: "repeat with `dm.while`"},
	{Code: "DM803", Name: "cannot-inline", Doc: "The function that is called has no body here, or its blocks branch to one another.", Help: "give it a body of one block"},
	{Code: "DM804", Name: "not-compiled", Doc: "Ops of other dialects and blocks that branch to one another are not compiled for devices, nor are checks of scalars, inside `dm.map`. Loops and branches are: write them as `dm.while` and `dm.if`.", Help: "run it with `--device reference`"},
	{Code: "DM805", Name: "sizes-disagree", Doc: "The sizes given to symbols are inconsistent: with them an op is invalid.", Help: "bind other sizes"},
	{Code: "DM806", Name: "not-one-kernel", Doc: "A `dm.kernel` contains ops that cannot run as one device kernel, such as a softmax of a contraction's result. They run as several kernels, which move more bytes than the cost of the line shows.", Help: "take ops out of the kernel"},
	{Code: "DM820", Name: "invalid-after-pass", Doc: "A pass of the compiler failed or produced an invalid function. This is a bug in dmir, not in the program.", Help: "report it with the file; `dmir opt --skip PASS` may work without the pass"},
})
