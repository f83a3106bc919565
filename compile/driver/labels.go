package driver

import (
	"fmt"

	"dmir/compile/tensor"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Labels are the arguments of a function, counted without tuples, whose elements an op takes for numbers of classes or
// of rows of a table.
type Labels map[int]label

type label struct {
	op    *ir.Op
	count int64 // of classes
	none  int64 // the number that stands for none
}

// LabelsOf are the labels among the arguments of f in m, as far as moves, conversions and calls lead from them to an op
// that takes them, and the number of classes is known.
func LabelsOf(m *ir.Module, f *ir.Func, bind map[string]int64) Labels {
	m, f, _ = flatten.In(m, f)
	w := &labelWalk{m: m, found: Labels{}, done: map[string]bool{}}
	from := map[*ir.Value]int{}
	for i, a := range f.Args {
		from[a] = i
	}
	w.sizes = op.Bindings(f, bind)
	w.function(f, from)
	return w.found
}

type labelWalk struct {
	m     *ir.Module
	sizes map[string]int64
	found Labels
	done  map[string]bool // functions, with what they were called on
}

// function looks at f, of whose values those in from are arguments of the function that runs.
func (w *labelWalk) function(f *ir.Func, from map[*ir.Value]int) {
	if f.Body == nil {
		return
	}
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		def := op.Of(o)
		if def != nil && def.Classes != nil && op.Valid(o) {
			operand, count, none := def.Classes(o)
			arg, isLabel := from[o.Operands[operand]]
			if n, known := count.Eval(w.sizes).Int(); isLabel && known {
				if _, twice := w.found[arg]; !twice {
					w.found[arg] = label{o, n, none}
				}
			}
		}
		if o.Name == op.Call || o.Name == op.Grad {
			w.call(o, from)
			return true
		}
		if def != nil && (def.Move != nil || def.Is(op.Cast)) && len(o.Results) == 1 && len(o.Operands) > 0 && integers(o.Operands[0]) && integers(o.Results[0]) {
			if arg, ok := from[o.Operands[0]]; ok {
				from[o.Results[0]] = arg
			}
		}
		return true
	})
}

func integers(v *ir.Value) bool {
	t, ok := v.Type.(*types.Tensor)
	return ok && t.Elem.IsInt() && t.Elem != types.I1
}

// call looks at the function that o calls or differentiates, once for each choice of arguments.
func (w *labelWalk) call(o *ir.Op, from map[*ir.Value]int) {
	f := w.m.Func(o.Str("callee"))
	if f == nil {
		return
	}
	inside, key := map[*ir.Value]int{}, f.Name
	for i, a := range f.Args {
		if i >= len(o.Operands) {
			break
		}
		if arg, ok := from[o.Operands[i]]; ok && integers(a) {
			inside[a] = arg
			key += fmt.Sprintf(" %d:%d", i, arg)
		}
	}
	if len(inside) > 0 && !w.done[key] {
		w.done[key] = true
		w.function(f, inside)
	}
}

// Outside is the warning of elements of t, the value of argument i, that are no classes; nil where there are none.
func (l Labels) Outside(i int, name string, t *tensor.Tensor) *diag.Diagnostic {
	of, ok := l[i]
	if !ok || t == nil {
		return nil
	}
	n, first := 0, int64(0)
	for k := range t.Len() {
		if v := t.Integer(k); (v < 0 || v >= of.count) && v != of.none {
			if n++; n == 1 {
				first = v
			}
		}
	}
	if n == 0 {
		return nil
	}
	d := diag.New("DM624", diag.Warning, of.op.Head, fmt.Sprintf("%%%s has %s outside of 0 … %d, the first is %d", name, diag.Count(n, "number"), of.count-1, first))
	d.Help = "classes and rows are numbered from 0, and a number outside counts as the nearest one"
	return &d
}
