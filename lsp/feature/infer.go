package feature

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// expected is the type that must stand next, as it would be written, and what
// it is; "" if it is not known.
func (s *statement) expected(l place) (text, what string) {
	if s.op == nil || len(s.before) == 0 || l.colon < 0 {
		return "", ""
	}
	last, in := s.tok(len(s.before)-1), l.inside()
	switch {
	case in == l.colon+1 && s.tok(in) == "(":
		if n := s.commasFrom(in); n < len(s.op.Operands) {
			return s.op.Operands[n].Type.String(), "type of " + s.op.Operands[n].Name
		}
		return "", ""
	case in >= 0 || last != ":" && last != "->":
		return "", ""
	}
	f := s.callee()
	if f != nil && s.opName() != op.Grad {
		text = strings.TrimPrefix(signature(s.instance(f)), " : ")
		if last == "->" {
			_, text, _ = strings.Cut(text, " -> ")
		}
		return text, "type of @" + f.Name
	}
	if def := op.Lookup(s.op.Name); s.op.Name == op.Return || def.Is(op.Terminator) {
		if last == "->" || slices.ContainsFunc(s.op.Operands, func(v *ir.Value) bool { return v.Type == types.Type(types.Unknown) }) {
			return "", ""
		}
		return list(s.op.Operands), "types of the operands"
	}
	results, ok := s.inferred(l)
	if f != nil && len(results) >= len(f.Results) { // a gradient gives the callee's results first
		copy(results, s.instance(f).Results)
	}
	switch {
	case !ok || slices.Contains(results, types.Type(types.Unknown)):
		return "", ""
	case last == "->":
		return resultText(results), "inferred from the operands"
	}
	return signatureText(s.op.Operands, results), "inferred from the operands"
}

// commasFrom counts the commas at the level of the bracket at i.
func (s *statement) commasFrom(i int) int {
	n, depth := 0, 0
	for i++; i < len(s.before); i++ {
		switch s.tok(i)[0] {
		case '(', '[', '{', '<':
			depth++
		case ')', ']', '}', '>':
			depth--
		case ',':
			if depth == 0 {
				n++
			}
		}
	}
	return n
}

// op.Grad names a function as a call does.

// callee is the function that a call or a gradient names, nil where there is none.
func (s *statement) callee() *ir.Func {
	if name := s.opName(); name != "call" && name != op.Call && name != op.Grad {
		return nil
	}
	for i := s.name + 1; i < len(s.before); i++ {
		if name, ok := strings.CutPrefix(s.tok(i), "@"); ok {
			return s.module.Func(name)
		}
	}
	return nil
}

// instance is f with the types that it has for the operands that are written: the sizes of these for its symbols, and
// what it returns then. A symbol that they leave open stays.
func (s *statement) instance(f *ir.Func) *ir.Func {
	if !op.Generic(f) || s.op == nil {
		return f
	}
	call := *s.op
	call.Name, call.Bad, call.Attrs = op.Call, false, nil
	call.SetAttr("callee", types.SymbolOf(f.Name))
	b, _ := op.Bound(f, ir.Types(s.op.Operands), s.p.Bind)
	c := &ir.Func{Name: f.Name}
	for _, a := range f.Args {
		c.Args = append(c.Args, &ir.Value{Name: a.Name, Type: types.Sized(a.Type, b.Sizes)})
	}
	for _, t := range f.Results {
		c.Results = append(c.Results, types.Sized(t, b.Sizes))
	}
	if i := s.p.Instance(s.module, &call); i != nil {
		c.Results = i.Results
	}
	return c
}

// inferred are the types of the results as they follow from the operands and
// attributes of an op of the dialect.
func (s *statement) inferred(l place) ([]types.Type, bool) {
	def := op.Lookup(s.opName())
	if def == nil || slices.ContainsFunc(def.Regions, func(r op.RegionDef) bool { return !r.Optional }) || len(s.op.Operands) == 0 {
		return nil, false
	}
	// The op as it would be read if a type were there already.
	f := parse.File(source.New("", s.p.Src.Text()[s.op.Span.Start:s.before[l.colon].End]+" none"))
	if len(f.Items) != 1 || f.Items[0].Form != ast.Pretty || len(f.Items[0].Operands) != len(s.op.Operands) {
		return nil, false
	}
	t := f.Items[0]
	o := &ir.Op{Name: s.op.Name, Operands: s.op.Operands, Results: s.op.Results, Origin: t}
	set := func(name string, at ast.Rel) {
		if x, err := parse.Attr(t.Text(f.Src, at)); err == nil {
			if a, err := types.AttrFromExpr(x, nil); err == nil {
				o.SetAttr(name, a)
			}
		}
	}
	if a := def.Lead(); a != nil && !t.Lead.Empty() {
		set(a.Name, t.Lead)
	}
	for _, c := range t.Clauses {
		set(c.Name, c.Value)
	}
	return verify.Infer(o)
}

// signatureText is the type of an op as people write it: once where all
// operands and results share it.
func signatureText(operands []*ir.Value, results []types.Type) string {
	one := operands[0].Type.String()
	same := len(results) > 0
	for _, v := range operands {
		same = same && v.Type.String() == one
	}
	for _, t := range results {
		same = same && t.String() == one
	}
	if same {
		return one
	}
	return "(" + list(operands) + ") -> " + resultText(results)
}

func list(vs []*ir.Value) string {
	in := make([]string, len(vs))
	for i, v := range vs {
		in[i] = v.Type.String()
	}
	return strings.Join(in, ", ")
}

func resultText(results []types.Type) string {
	out := make([]string, len(results))
	for i, t := range results {
		out[i] = t.String()
	}
	if len(out) == 1 {
		return out[0]
	}
	return "(" + strings.Join(out, ", ") + ")"
}
