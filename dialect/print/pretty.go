package print

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// prettyOp prints o in its pretty form; false if it has none that holds everything.
func (p *printer) prettyOp(o *ir.Op, depth int) bool {
	switch o.Name {
	case op.Func:
		return p.function(o, depth)
	case op.Call:
		return p.call(o)
	case op.Return:
		p.out.WriteString("return")
		p.dict(" ", o.Attrs)
		if len(o.Operands) > 0 {
			p.out.WriteByte(' ')
			p.uses(o.Operands)
			p.terminated(o)
		}
		return true
	case op.Module:
		if len(o.Regions) != 1 || len(o.Regions[0].Blocks) > 1 {
			return false
		}
		p.moduleHead(o)
		p.braces(o.Regions[0], depth, false)
		return true
	}
	if o.Name == op.Mesh && p.mesh(o) {
		return true
	}
	def := op.Of(o)
	if def == nil || len(o.Succs) > 0 || len(o.Regions) > len(def.Regions) {
		return false
	}
	p.dialectOp(o, def, depth)
	return true
}

func (p *printer) moduleHead(o *ir.Op) {
	p.out.WriteString("module ")
	if name, ok := o.Attr("sym_name").(types.Str); ok {
		p.out.WriteString(types.SymbolOf(string(name)).String() + " ")
	}
	if rest := without(o.Attrs, "sym_name"); len(rest) > 0 {
		p.out.WriteString("attributes")
		p.dict(" ", rest)
		p.out.WriteByte(' ')
	}
}

func without(attrs []types.Named, names ...string) []types.Named {
	var out []types.Named
next:
	for _, a := range attrs {
		for _, n := range names {
			if a.Name == n {
				continue next
			}
		}
		out = append(out, a)
	}
	return out
}

func (p *printer) call(o *ir.Op) bool {
	callee, ok := o.Attr("callee").(types.Symbol)
	if !ok {
		return false
	}
	defer p.results(o)()
	p.out.WriteString("call " + callee.String() + "(")
	p.uses(o.Operands)
	p.out.WriteByte(')')
	p.dict(" ", without(o.Attrs, "callee"))
	p.out.WriteString(" : (")
	p.typeList(o, o.Operands)
	p.out.WriteString(") -> ")
	p.resultTypes(o)
	return true
}

// dialectOp prints "results = dm.name lead operands, clauses {…} : type regions".
func (p *printer) dialectOp(o *ir.Op, def *op.Def, depth int) {
	defer p.results(o)()
	p.out.WriteString(o.Name)
	var rest []types.Named
	lead := def.Lead()
	if lead != nil {
		if a := o.Attr(lead.Name); a != nil {
			if text, ok := clause(a, lead.Kind == op.KindDense); ok {
				p.out.WriteString(" " + text)
			} else {
				rest = append(rest, types.Named{Name: lead.Name, Value: a})
			}
		}
	}
	leadWritten := lead != nil && o.Attr(lead.Name) != nil && len(rest) == 0
	if len(o.Operands) > 0 {
		p.out.WriteByte(' ')
		p.uses(o.Operands)
	}
	before := ", "
	if !leadWritten && len(o.Operands) == 0 {
		before = " "
	}
	for i := range def.Attrs {
		a := &def.Attrs[i]
		v := o.Attr(a.Name)
		if v == nil || a.Lead {
			continue
		}
		text, ok := clause(v, a.Kind == op.KindDense)
		if !ok {
			rest = append(rest, types.Named{Name: a.Name, Value: v})
			continue
		}
		p.out.WriteString(before + a.Name + " = " + text)
		before = ", "
	}
	for _, a := range o.Attrs {
		if def.Attr(a.Name) == nil {
			rest = append(rest, a)
		}
	}
	p.dict(" ", rest)
	p.signature(o, def)
	for i, r := range o.Regions {
		if k := def.Regions[i].Keyword; k != "" {
			p.out.WriteString(" " + k)
		}
		p.out.WriteByte(' ')
		p.region(r, depth)
	}
}

// clause is the text of a value in a clause; ok is false for values that can
// only be written with their type behind them, which a clause has no room for.
// The type of a literal is that of the result.
func clause(a types.Attr, literal bool) (text string, ok bool) {
	switch a := a.(type) {
	case *types.Dense:
		return a.Bare(), true
	case types.Raw:
		return "", false
	case types.Float:
		if literal {
			return types.FloatText(a.V, a.Elem), true
		}
	case types.Int:
		if literal {
			return types.Int{V: a.V}.String(), true
		}
	}
	text = a.String()
	return text, !strings.Contains(text, " : ") || strings.HasPrefix(text, `"`)
}

// signature prints ": T" where all operands and results share a type, ": T, U"
// for terminators, "-> T" without operands, and otherwise both lists.
func (p *printer) signature(o *ir.Op, def *op.Def) {
	switch {
	case len(o.Operands)+len(o.Results) == 0:
	case def.Is(op.Terminator) && len(o.Results) == 0:
		p.terminated(o)
	case len(o.Operands) == 0 && (len(o.Regions) > 0 || len(o.Results) > 1):
		out := p.measured(func() { p.resultTypes(o) })
		p.broken(len("->  {") + out)
		p.out.WriteString("-> ")
		p.resultTypes(o)
	case len(o.Results) > 0 && shared(o):
		p.out.WriteString(" : ")
		p.typ(o, o.Results[0].Type)
	default:
		in := p.typeTexts(o, o.Operands)
		out := p.measured(func() { p.resultTypes(o) })
		p.broken(width(in) + len(": ->  {") + out)
		p.out.WriteString(": ")
		p.list(in, false)
		p.out.WriteString(" -> ")
		p.resultTypes(o)
	}
}

// terminated prints the types of a terminator's operands.
func (p *printer) terminated(o *ir.Op) {
	p.broken(len(": ") + p.measured(func() { p.typeList(o, o.Operands) }))
	p.out.WriteString(": ")
	p.typeList(o, o.Operands)
}

// shared reports whether all operands and results read the same type.
func shared(o *ir.Op) bool {
	first := o.Results[0].Type
	if _, isFunc := first.(*types.Func); isFunc || first == nil {
		return false
	}
	same := func(v *ir.Value) bool {
		return v.Type != nil && (types.Equal(v.Type, first) || types.HasUnnamed(first) && v.Type.String() == first.String())
	}
	for _, v := range o.Operands {
		if !same(v) {
			return false
		}
	}
	for _, v := range o.Results[1:] {
		if !same(v) {
			return false
		}
	}
	return true
}

// function prints func.func; false where its attributes are not a function's.
func (p *printer) function(o *ir.Op, depth int) bool {
	name, ok := o.Attr("sym_name").(types.Str)
	ta, _ := o.Attr("function_type").(types.TypeAttr)
	sig, ok2 := ta.T.(*types.Func)
	if !ok || !ok2 || len(o.Regions) > 1 {
		return false
	}
	p.names = newNames(p.names)
	defer func() { p.names = p.names.outer }()
	p.out.WriteString("func.func ")
	if vis := o.Str("sym_visibility"); vis != "" {
		p.out.WriteString(vis + " ")
	}
	p.out.WriteString(types.SymbolOf(string(name)).String())
	body := o.Body(0)
	args := make([]string, len(sig.In))
	for i, t := range sig.In {
		args[i] = p.captured(func() {
			if body != nil && i < len(body.Args) {
				p.out.WriteString(p.names.define(body.Args[i:i+1]) + ": ")
			}
			p.typ(o, t)
			p.argAttrs(o, "arg_attrs", i)
			if body != nil && i < len(body.Args) {
				p.traced(body.Args[i])
			}
		})
	}
	p.list(args, true)
	p.functionResults(o, sig)
	if rest := without(o.Attrs, properties[op.Func]...); len(rest) > 0 || o.Attr("no_inline") != nil {
		if a := o.Attr("no_inline"); a != nil {
			rest = append(rest, types.Named{Name: "no_inline", Value: a})
		}
		p.broken(p.measured(func() { p.dict("attributes ", rest) }) + len(" {"))
		p.out.WriteString("attributes")
		p.dict(" ", rest)
	}
	if body != nil {
		p.out.WriteString(" {\n")
		p.blocks(o.Regions[0], depth, false)
		p.indent(depth)
		p.out.WriteByte('}')
	}
	return true
}

func (p *printer) functionResults(o *ir.Op, sig *types.Func) {
	if len(sig.Out) == 0 {
		return
	}
	_, isFunc := sig.Out[0].(*types.Func)
	results := make([]string, len(sig.Out))
	for i, t := range sig.Out {
		results[i] = p.captured(func() {
			p.typ(o, t)
			p.resultAttrs(o, i)
		})
	}
	p.broken(width(results) + len("->  {"))
	p.out.WriteString("-> ")
	if len(sig.Out) == 1 && !isFunc && o.Attr("res_attrs") == nil {
		p.out.WriteString(results[0])
		return
	}
	p.list(results, false)
}

// resultAttrs prints the dictionary of result i; dm.state names its argument.
func (p *printer) resultAttrs(o *ir.Op, i int) {
	n, ok := op.StateAttrOf(o, i).(types.Int)
	body := o.Body(0)
	if !ok || body == nil || n.V < 0 || n.V >= int64(len(body.Args)) {
		p.argAttrs(o, "res_attrs", i)
		return
	}
	name := strings.TrimPrefix(p.names.define(body.Args[n.V:n.V+1]), "%")
	d := o.Attr("res_attrs").(types.Array)[i].(types.Dict)
	p.dict(" ", op.WithState(d, types.Str(name)))
}

func (p *printer) argAttrs(o *ir.Op, list string, i int) {
	if l, ok := o.Attr(list).(types.Array); ok && i < len(l) {
		if d, ok := l[i].(types.Dict); ok {
			p.dict(" ", d)
		}
	}
}
