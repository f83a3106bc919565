package refactor

import (
	"fmt"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// offerExtract offers a function of the selected ops.
func offerExtract(s *selection) []Action {
	if s.cursor || s.fn == nil || s.block == nil {
		return nil
	}
	name := s.freshFunc()
	a := Action{ID: "extract", Kind: Extract, Title: "Extract into a function @" + name}
	if index(s.ops[len(s.ops)-1])-index(s.ops[0]) >= maxListed {
		return []Action{a}
	}
	if _, err := s.functionGroup(); err != nil {
		a.Disabled = err.Error()
	}
	return []Action{a}
}

// functionGroup is the selection as one call, or why it cannot be.
func (s *selection) functionGroup() (*group, error) {
	if s.fn == nil || s.block == nil {
		return nil, refuse("the selection is outside a function")
	}
	for b := s.block; b != nil; b = b.Region.Op.Parent {
		switch o := b.Region.Op; {
		case o.Name == op.Func:
		case o.Name == op.Kernel:
			return nil, refuse("a kernel cannot contain calls; unfuse it first")
		case isolated(o):
			return nil, refuse("a scalar region cannot contain calls")
		}
	}
	for _, o := range s.ops {
		def := op.Of(o)
		switch last := o == s.block.Terminator(); {
		case op.Ends(o) || len(o.Succs) > 0 || last && def == nil && o.Name != op.Call:
			return nil, refuse("%s is the terminator of the block", o.Name)
		}
	}
	g, err := s.gather(s.block, s.ops)
	if err != nil {
		return nil, err
	}
	for _, v := range append(g.imports(), g.exports...) {
		if err := s.typed(v); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// freshFunc is a name for the new function that no function has.
func (s *selection) freshFunc() string {
	stem := s.fn.Name + "_part"
	if strings.ContainsFunc(stem, func(r rune) bool {
		return !(r == '_' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
	}) {
		stem = "part"
	}
	name := stem
	for i := 2; s.m.Func(name) != nil; i++ {
		name = fmt.Sprintf("%s_%d", stem, i)
	}
	return name
}

func applyExtract(s *selection, _ string) (*Change, error) {
	g, err := s.functionGroup()
	if err != nil {
		return nil, err
	}
	name := "@" + s.freshFunc()
	args := g.imports()
	inner, outside := renaming{}, renaming{}
	n := newNames()
	n.addInside(g.ops, nil)
	for _, v := range args {
		if single(v) {
			n.taken[v.Name] = true
		}
	}
	var params, passed, passedTypes []string
	for _, v := range args {
		if !single(v) {
			inner[v] = n.fresh(numbered(v))
		}
		params = append(params, inner.of(v)+": "+s.typeText(v))
		passed = append(passed, spelled(v))
		passedTypes = append(passedTypes, s.typeText(v))
	}
	heads := g.heads(outside)
	list, arrow := g.typeList()
	results, returns := "", "return"
	if len(g.exports) > 0 {
		heads += " = "
		results = " -> " + arrow
		var names []string
		for _, v := range g.exports {
			names = append(names, inner.of(v))
		}
		returns += " " + strings.Join(names, ", ") + " : " + list
	}
	var body string
	edits := g.rewrite(inner, outside, false, func(text string) string {
		body = text
		return fmt.Sprintf("%sfunc.call %s(%s) : (%s) -> %s", heads, name, strings.Join(passed, ", "), strings.Join(passedTypes, ", "), arrow)
	})
	fn := fmt.Sprintf("func.func private %s(%s)%s%s {\n%s\n%s\n}", name, strings.Join(params, ", "), results, s.attributes(), body, returns)
	off := origin.Tree(s.fn.Op).Span().End
	off = source.Behind(s.src.Text(), off)
	eol, at := s.eol(), origin.Tree(s.fn.Op).Off
	text := s.write(fn, s.fn.Op.Parent, at)
	if strings.TrimSpace(restOfLine(s.src.Text(), off)) != "" {
		text += eol
	}
	edits = append(edits, diag.Edit{Span: empty(off), Text: eol + eol + indentAt(s.src.Text(), at) + text})
	return &Change{Edits: edits, Name: name}, nil
}

// numbered is a name for one value among several of one name: %r_1 of %r#1.
func numbered(v *ir.Value) string {
	name, i, _ := strings.Cut(v.Name, "#")
	switch {
	case name == "":
		return "%arg"
	case isNumber(name):
		return name
	}
	return name + "_" + i
}

// attributes are those by which the function around gives sizes to symbols and names
// the mesh whose devices run it: what is taken out of it needs the same.
func (s *selection) attributes() string {
	var list []string
	for _, name := range []string{op.BindAttr, op.MeshAttr} {
		a := s.fn.Op.Attr(name)
		if bind, ok := a.(types.Dict); ok && name == op.BindAttr {
			if bind = s.sized(bind); len(bind) == 0 {
				continue
			}
			a = bind
		}
		if a != nil {
			list = append(list, types.Named{Name: name, Value: a}.String())
		}
	}
	if list == nil {
		return ""
	}
	return fmt.Sprintf(" attributes {%s}", strings.Join(list, ", "))
}

// sized are the entries of bind for symbols in the types of the selected ops.
func (s *selection) sized(bind types.Dict) (out types.Dict) {
	have := map[string]bool{op.TripsSymbol: true}
	add := func(v *ir.Value) {
		for _, m := range types.Members(v.Type) {
			for _, d := range m.Tensor.Sizes() {
				for _, name := range d.Symbols() {
					have[name] = true
				}
			}
		}
	}
	for _, o := range s.ops {
		for _, v := range o.Operands {
			add(v)
		}
	}
	ir.WalkValues(s.ops, add)
	for _, e := range bind {
		if have[e.Name] {
			out = append(out, e)
		}
	}
	return out
}

// restOfLine is what stands behind off on its line.
func restOfLine(text string, off int) string {
	rest, _, _ := strings.Cut(text[off:], "\n")
	return rest
}
