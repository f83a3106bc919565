package refactor

import (
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/print"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// offerExpand offers the simpler ops that a composite stands for.
func offerExpand(s *selection) []Action {
	o := s.one()
	if o == nil || !s.onHead(o) || op.Of(o) == nil || op.Of(o).Expand == nil || s.fn == nil || s.block == nil {
		return nil
	}
	a := Action{ID: "expand", Kind: Rewrite, Title: "Expand " + o.Name + " into simpler ops"}
	x, err := s.expand(o)
	if err != nil {
		a.Disabled = err.Error()
		return []Action{a}
	}
	if around(o, op.Kernel) != nil {
		return []Action{a}
	}
	var added []*cost.Entry
	for _, n := range x.ops {
		added = append(added, s.entry(n))
	}
	for _, v := range x.values {
		if v.Op == nil || v.Op.Parent != x.block {
			return []Action{a} // users of the result read the existing value
		}
	}
	return []Action{s.promised(s.block, []*cost.Entry{s.entry(o)}, added).on(a)}
}

// expansion is the ops that stand for a composite, in a block of their own.
type expansion struct {
	block  *ir.Block
	ops    []*ir.Op
	values []*ir.Value // that stand for its results
}

// expand asks the registry. The op and its operands are copied for it: what the
// program consists of must not change.
func (s *selection) expand(o *ir.Op) (*expansion, error) {
	if err := s.flawed([]*ir.Op{o}); err != nil {
		return nil, err
	}
	if !op.Valid(o) {
		return nil, refuse("the types of %s are not known", describe(o))
	}
	c := *o
	x := &expansion{block: &ir.Block{Region: o.Parent.Region}}
	own := map[*ir.Value]*ir.Value{} // of the copies
	copied := map[*ir.Value]*ir.Value{}
	c.Parent, c.Operands = x.block, slices.Clone(o.Operands)
	for i, v := range o.Operands {
		if copied[v] == nil {
			w := *v
			w.Uses = nil
			copied[v], own[&w] = &w, v
		}
		c.Operands[i] = copied[v]
	}
	x.block.Ops = []*ir.Op{&c}
	b := &ir.Builder{Block: x.block, At: &c}
	values := op.Of(o).Expand(b, &c)
	if values == nil {
		return nil, refuse("the expansion of %s needs a size that is an unbound symbol", o.Name)
	}
	values = op.KeepShardings(b, &c, values)
	x.ops = x.block.Ops[:len(x.block.Ops)-1]
	for _, n := range x.ops {
		for i, v := range n.Operands {
			if w := own[v]; w != nil {
				n.Operands[i] = w
			}
		}
	}
	for _, v := range values {
		if w := own[v]; w != nil {
			v = w
		}
		x.values = append(x.values, v)
	}
	x.drop(o)
	return x, nil
}

// drop leaves out what is computed for unused results of o.
func (x *expansion) drop(o *ir.Op) {
	used := map[*ir.Value]bool{}
	for i, v := range x.values {
		used[v] = used[v] || len(o.Results[i].Uses) > 0 || i == 0
	}
	for i := len(x.ops) - 1; i >= 0; i-- {
		n := x.ops[i]
		if !slices.ContainsFunc(n.Results, func(v *ir.Value) bool { return used[v] }) {
			x.ops = slices.Delete(slices.Clone(x.ops), i, i+1)
			continue
		}
		operands(n, func(v *ir.Value) { used[v] = true })
	}
}

func applyExpand(s *selection, _ string) (*Change, error) {
	o := s.one()
	if o == nil || op.Of(o) == nil || op.Of(o).Expand == nil || s.fn == nil || s.block == nil {
		return nil, refuse("there is no composite op here")
	}
	x, err := s.expand(o)
	if err != nil {
		return nil, err
	}
	results := renaming{}
	for i, v := range x.values {
		r := o.Results[i]
		if v.Op != nil && v.Op.Parent == x.block && v.Name == "" && r.Name != "" && !strings.Contains(r.Name, "#") {
			v.Name = r.Name
		}
	}
	n := s.allNames(nil)
	prefix := ""
	if r := base(o.Results[0]); r != "" && !isNumber(r) {
		prefix = r[1:] + "_"
	}
	for _, p := range x.ops {
		for _, v := range p.Results {
			if v.Name == "" {
				v.Name = n.fresh("%" + prefix + wordFor(p))
			}
		}
	}
	results.stand(o.Results, x.values, renaming{})
	raw, perr := print.Pretty(&ir.Module{Src: s.src, Ops: x.ops, Aliases: s.m.Aliases})
	if perr != nil {
		return nil, refuse("the expansion cannot be written: %v", perr)
	}
	for i, v := range o.Results { // a result that is no longer used has no value
		if len(v.Uses) == 0 {
			delete(results, o.Results[i])
		}
	}
	if loc := origin.Tree(o).Text(s.src, origin.Tree(o).Loc); loc != "" {
		raw = strings.ReplaceAll(raw, "\n", " "+loc+"\n") // what each of the ops comes from
	}
	return s.swap(o, comments(s.src.Text(), origin.Tree(o).Span())+s.withAliases(raw, o), results), nil
}

// wordFor is what the value that p gives is called.
func wordFor(p *ir.Op) string {
	name := strings.TrimPrefix(p.Name, op.Prefix)
	switch name {
	case "reduce":
		switch kind := op.Str(p, "kind"); kind {
		case "add":
			return "sum"
		case "":
		default:
			return kind
		}
	case "convert":
		switch t := p.Results[0].Type.(type) {
		case *types.Tensor:
			return t.Elem.String()
		case types.Scalar:
			return t.Elem.String()
		}
	case "constant":
		return "cst"
	case "sub":
		return "diff"
	case "mul":
		return "prod"
	case "div":
		return "quot"
	}
	return name
}

// withAliases spells types as the file does: by the aliases that o uses, then by
// the first alias there is for a tensor.
func (s *selection) withAliases(raw string, o *ir.Op) string {
	spelt := map[string]string{} // a type's own text to how the file has it
	add := func(own, text string) {
		if _, err := parse.Type(text); text != own && spelt[own] == "" && err == nil {
			spelt[own] = text
		}
	}
	values := slices.Concat(o.Results, o.Operands)
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			values = append(values, b.Args...)
		}
	}
	for _, v := range values {
		add(v.Type.String(), s.typeText(v))
	}
	if ty, ok := o.Attr("function_type").(types.TypeAttr); ok && origin.Tree(o) != nil && origin.Tree(o).Func != nil {
		sig, _ := ty.T.(*types.Func)
		for i, r := range origin.Tree(o).Func.Results {
			if sig != nil && i < len(sig.Out) {
				add(sig.Out[i].String(), origin.Tree(o).Text(s.src, r.Type))
			}
		}
	}
	for _, t := range origin.File(s.m).Items {
		if t.Form != ast.TypeAlias {
			continue
		}
		add(s.m.Aliases.Expand(s.src.Slice(t.Abs(t.Sig))), t.Name)
	}
	var out strings.Builder
	for i := 0; i < len(raw); {
		if !strings.HasPrefix(raw[i:], "tensor<") {
			out.WriteByte(raw[i])
			i++
			continue
		}
		end := i + closing(raw[i:])
		if alias := spelt[raw[i:end]]; alias != "" {
			out.WriteString(alias)
		} else {
			out.WriteString(raw[i:end])
		}
		i = end
	}
	return out.String()
}

// closing is the end of the bracket that text opens, the length of text where
// it does not end.
func closing(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '<':
			depth++
		case '>':
			if text[i-1] == '-' { // an arrow
				continue
			}
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// line is the text of one op as package print writes it, aliases kept.
func (s *selection) line(o *ir.Op, generic bool) (string, error) {
	m := &ir.Module{Src: s.src, Ops: []*ir.Op{o}, Aliases: s.m.Aliases}
	write := print.Pretty
	if generic {
		write = print.Generic
	}
	text, err := write(m, print.SameLocations)
	if err != nil {
		return "", refuse("%v", err)
	}
	return s.withAliases(strings.TrimRight(text, "\n"), o), nil
}

// empty is a place in the text without length.
func empty(off int) source.Span { return source.Span{Start: off, End: off} }
