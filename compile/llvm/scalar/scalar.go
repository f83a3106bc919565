package scalar

import (
	"fmt"

	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/dialect/types"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/value"
)

// Lib makes the IR of scalar operations in one module, which has each function that
// they need once.
type Lib struct{ M *code.Module }

// New is for the module m.
func New(m *code.Module) *Lib { return &Lib{M: m} }

// scalar is what an op computes from operands of a kind; nil: it is not defined on it.
type scalar struct {
	float function
	whole wholeFunction // of integers other than i1
	flag  function      // of i1
}

// table has the scalar functions by the names of their ops, of one of several forms with
// the form behind it.
var table = map[string]scalar{}

func register(all map[string]scalar) {
	for name, s := range all {
		table[name] = s
	}
}

// Number is the constant x.
func (l *Lib) Number(x *kernel.Expr) value.Value {
	t := Register(x.Elem)
	switch {
	case x.Elem.IsFloat():
		return number(t, x.Num)
	case x.Elem == types.I1:
		return constant.NewBool(x.Int != 0)
	}
	return whole(t, x.Int)
}

// Identity is the identity element of a reduction of that kind.
func (l *Lib) Identity(kind string, elem types.Elem) value.Value {
	f, i := kernel.Identity(kind, elem)
	return l.Number(&kernel.Expr{Op: kernel.Number, Elem: elem, Num: f, Int: i})
}

// Apply computes x from the values of its operands; the value of x.At, an i64,
// follows them where x is a Count, a Keep or a Random.
func (l *Lib) Apply(f *code.Func, x *kernel.Expr, args []value.Value) value.Value {
	b := builder{Func: f}
	last := func() value.Value { return args[len(args)-1] }
	switch x.Op {
	case "convert":
		return b.convert(args[0], x.Args[0].Elem, x.Elem)
	case "bitcast":
		return b.widen(b.reinterpret(b.narrow(args[0], x.Args[0].Elem), x.Elem), x.Elem)
	case "compare":
		return b.compare(x.Kind, x.Args[0].Elem, args[0], args[1])
	case "select":
		return b.choose(args[0], args[1], args[2])
	case "clamp":
		raised := l.binary(f, "max", x.Elem, args[1], args[0])
		return l.binary(f, "min", x.Elem, raised, args[2])
	case kernel.Count:
		return b.count(x, last())
	case kernel.Keep:
		return b.keep(x, b.seed(x, args), last())
	case kernel.Random:
		return b.random(x, b.seed(x, args), last())
	}
	s, other := table[x.Op+" "+x.Kind] // another form of the function than the default
	if !other {
		s = table[x.Op]
	}
	elem := x.Args[0].Elem
	switch {
	case elem.IsFloat() && s.float != nil:
		return s.float(b, args)
	case elem == types.I1 && s.flag != nil:
		return s.flag(b, args)
	case elem.IsInt() && s.whole != nil:
		return s.whole(b, elem, args)
	}
	panic(fmt.Sprintf("scalar: %s is not defined on %s", x.Op, elem))
}

// binary is the op of that name of x and y.
func (l *Lib) binary(f *code.Func, name string, elem types.Elem, x, y value.Value) value.Value {
	e := &kernel.Expr{Elem: elem}
	return l.Apply(f, &kernel.Expr{Op: name, Elem: elem, Args: []*kernel.Expr{e, e}}, []value.Value{x, y})
}
