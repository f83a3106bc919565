package feature

import (
	"cmp"
	"slices"
	"strings"

	"dmir/analysis/program"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// Function is a function of a file, as hierarchies show it.
type Function struct {
	Name   string // with "@"
	Detail string // its type
	Span   source.Span
	Head   source.Span // its name
}

// Call is a function with the places where it is called, or calls.
type Call struct {
	Function
	Places []source.Span // of the callee's name in the calls, in order
}

// FunctionAt is the function that the name at off stands for, nil where there
// is none. Names resolve within a file, so that its callers and callees are
// there too.
func FunctionAt(p *program.Program, off int) *Function {
	n, _, ok := p.Names().At(off)
	if !ok {
		return nil
	}
	return functionOf(p, n)
}

// functionOf is the function that n names, nil where it names something else.
func functionOf(p *program.Program, n *scope.Name) *Function {
	if n.Kind != scope.Symbol || len(n.Defs()) == 0 {
		return nil
	}
	around := enclosing(p.Tree, n.Defs()[0].Start)
	if len(around) == 0 || !isFunction(around[len(around)-1]) {
		return nil
	}
	return functionItem(p, n, around[len(around)-1])
}

func functionItem(p *program.Program, n *scope.Name, o *ast.Op) *Function {
	f := &Function{Name: n.Text, Span: o.Span(), Head: n.Defs()[0]}
	for _, m := range p.Modules {
		if fn := m.Func(strings.TrimPrefix(n.Text, "@")); fn != nil && fn.Op.Span == f.Span {
			f.Detail = strings.TrimPrefix(signature(fn), " : ")
		}
	}
	return f
}

// isFunction reports whether an op is a function: func.func, and another
// dialect's, which are all called so.
func isFunction(o *ast.Op) bool { return o.Func != nil || strings.HasSuffix(o.Name, ".func") }

// isCall reports whether an op calls the symbol that it names, or its gradient.
func isCall(o *ast.Op) bool {
	return o.Name == "call" || o.Name == op.Grad || strings.HasSuffix(o.Name, ".call")
}

// enclosing are the ops that hold off, from the outermost to the innermost.
func enclosing(f *ast.File, off int) []*ast.Op {
	var out []*ast.Op
	for ops := f.Items; ; {
		o := opBefore(ops, off)
		if o == nil || !o.Span().Contains(off) {
			return out
		}
		out = append(out, o)
		r := regionAt(o, off)
		if r == nil {
			return out
		}
		ops, _ = blockAt(o, r, source.Span{}, off)
	}
}

// Callers are the functions that call the one at off, in the order of the file.
func Callers(p *program.Program, off int) []Call {
	names := p.Names()
	n, _, ok := names.At(off)
	if !ok || functionOf(p, n) == nil {
		return nil
	}
	var out []Call
	for _, use := range n.Uses() {
		around := enclosing(p.Tree, use.Start)
		if len(around) == 0 || !isCall(around[len(around)-1]) {
			continue
		}
		i := lastFunction(around)
		if i < 0 {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].Span == around[i].Span() {
			out[last].Places = append(out[last].Places, use)
			continue
		}
		if caller := symbolOf(p, around[i]); caller != nil {
			out = append(out, Call{*functionItem(p, caller, around[i]), []source.Span{use}})
		}
	}
	return out
}

func lastFunction(ops []*ast.Op) int {
	for i := len(ops) - 1; i >= 0; i-- {
		if isFunction(ops[i]) {
			return i
		}
	}
	return -1
}

// symbolOf is the name of a function.
func symbolOf(p *program.Program, o *ast.Op) *scope.Name {
	for _, s := range o.Symbols {
		if s.Def {
			if n, _, ok := p.Names().At(o.Abs(s.Span).Start); ok && n.Kind == scope.Symbol {
				return n
			}
		}
	}
	for _, part := range []ast.Rel{o.Props, o.Attrs} { // sym_name = "f" of a generic form
		if i := strings.Index(o.Text(p.Src, part), "sym_name"); i >= 0 {
			text := o.Text(p.Src, ast.Rel{Start: part.Start + int32(i), End: part.End})
			if q := strings.IndexByte(text, '"'); q >= 0 {
				if n, _, ok := p.Names().At(o.Abs(part).Start + i + q + 1); ok && n.Kind == scope.Symbol {
					return n
				}
			}
		}
	}
	return nil
}

// Callees are the functions that the one at off calls, in the order of their
// first calls.
func Callees(p *program.Program, off int) []Call {
	names := p.Names()
	n, _, ok := names.At(off)
	if !ok {
		return nil
	}
	f := functionOf(p, n)
	if f == nil {
		return nil
	}
	places := map[*scope.Name][]source.Span{}
	walkIn(p.Tree.Items, f.Span, func(o *ast.Op) bool {
		if isCall(o) && f.Span.Start <= o.Off && o.Span().End <= f.Span.End {
			for _, s := range o.Symbols {
				at := o.Abs(s.Span)
				if callee, span, ok := names.At(at.Start); ok && span.Start == at.Start && callee.Kind == scope.Symbol {
					places[callee] = append(places[callee], span)
				}
			}
		}
		return true
	})
	var out []Call
	for callee, at := range places {
		if to := functionOf(p, callee); to != nil {
			out = append(out, Call{*to, at})
		}
	}
	slices.SortFunc(out, func(a, b Call) int { return cmp.Compare(a.Places[0].Start, b.Places[0].Start) })
	return out
}

// FunctionNamed is the offset of the name of the function called name (with
// "@"): near, if it is there, else where the file first defines it, else -1.
func FunctionNamed(p *program.Program, name string, near int) int {
	if n, _, ok := p.Names().At(near); ok && n.Text == name {
		return near
	}
	for _, m := range p.Modules {
		if f := m.Func(strings.TrimPrefix(name, "@")); f != nil && origin.Tree(f.Op) != nil {
			if n := symbolOf(p, origin.Tree(f.Op)); n != nil {
				return n.Defs()[0].Start
			}
		}
	}
	return -1
}
