package stablehlo

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// node is an op of the text in one form for all ways to write it: operands and
// result types, and attributes under the names of generic form.
type node struct {
	*importer
	t     *ast.Op
	name  string // with its dialect; mhlo is written stablehlo
	in    []*ir.Value
	out   []types.Type
	attrs map[string]attr
	words []string     // of a pretty form, that no rule has given a name
	kinds []types.Type // of the operands, where in has their parts; see inParts
	side  int          // which parts of compound values in and out have, counted from 1; 0: none
}

// attr is an attribute with its place in the text.
type attr struct {
	x  *ast.AttrExpr
	at source.Span
}

// canonical is the name of an op under which it is converted.
func canonical(name string) string {
	switch name {
	case "return":
		return "func.return"
	case "call":
		return "func.call"
	}
	if rest, ok := strings.CutPrefix(name, "mhlo."); ok {
		return "stablehlo." + rest
	}
	return name
}

// read brings t into the form of a node.
func (c *importer) read(t *ast.Op) *node {
	n := &node{importer: c, t: t, name: canonical(t.Name), attrs: map[string]attr{}}
	sig := ""
	switch t.Form {
	case ast.Custom:
		sig = n.pretty()
	default:
		sig = t.Text(c.src, t.Sig)
		n.dicts()
		if !t.Lead.Empty() {
			n.setAttr("value", t.Abs(t.Lead))
		}
		for _, s := range t.Symbols {
			n.words = append(n.words, s.Name)
		}
	}
	n.structured()
	operands := n.signature(sig)
	for i, u := range n.uses() {
		n.in = append(n.in, n.use(u, operands(i)))
	}
	return n
}

// uses are the operands in the order of generic form. The pretty form of reductions
// writes each operand with its initial value.
func (n *node) uses() []ast.Use {
	us := n.t.Operands
	if k := len(us) / 2; k > 1 && len(us) == 2*k && slices.Contains(n.words, "init") {
		us = make([]ast.Use, 2*k)
		for i := range k {
			us[i], us[k+i] = n.t.Operands[2*i], n.t.Operands[2*i+1]
		}
	}
	return us
}

// setAttr reads the attribute at span.
func (n *node) setAttr(name string, span source.Span) {
	x, err := parse.Attr(n.src.Slice(span))
	if err != nil {
		n.failError(span, err)
	}
	n.attrs[name] = attr{n.resolve(x, span), span}
}

// resolve replaces an alias by what it stands for.
func (n *node) resolve(x *ast.AttrExpr, span source.Span) *ast.AttrExpr {
	if x == nil || x.Kind != ast.AAlias {
		return x
	}
	y, err := parse.Attr(n.env.Expand(x.Text))
	if err != nil || y.Kind == ast.AAlias {
		n.failAt("DM141", span, "the attribute alias %s is not defined", x.Name)
	}
	return y
}

// dicts reads the attributes of generic form.
func (n *node) dicts() {
	if !n.t.Props.Empty() {
		n.dict(ast.Rel{Start: n.t.Props.Start + 1, End: n.t.Props.End - 1})
	}
	if !n.t.Attrs.Empty() {
		n.dict(n.t.Attrs)
	}
}

// dict reads the entries of the dictionary at a place inside the op.
func (n *node) dict(at ast.Rel) {
	x, err := parse.Attr(n.t.Text(n.src, at))
	if err != nil {
		n.failError(n.t.Abs(at), err)
	}
	for _, e := range x.Entries {
		v := e.Value
		span := n.t.Abs(ast.Rel{Start: at.Start + e.VSpan.Start, End: at.Start + e.VSpan.End})
		if v == nil {
			v, span = &ast.AttrExpr{Kind: ast.AUnit}, n.t.Abs(ast.Rel{Start: at.Start + e.Span.Start, End: at.Start + e.Span.End})
		}
		n.attrs[e.Key] = attr{n.resolve(v, span), span}
	}
}

// structured gives the fields of attributes such as #stablehlo.gather<offset_dims = [1]>
// the place of attributes of the op.
func (n *node) structured() {
	for _, a := range n.attrs {
		if a.x.Kind != ast.ADialect {
			continue
		}
		_, kind, _ := strings.Cut(a.x.Name, ".")
		switch kind {
		case "dot", "gather", "scatter", "ragged_dot":
		default:
			continue
		}
		x, err := parse.Attr("{" + a.x.Body + "}")
		if err != nil {
			n.failAt("DM141", a.at, "%s cannot be read: its fields are name = value", a.x.Name)
		}
		for _, e := range x.Entries {
			if e.Value != nil {
				n.attrs[e.Key] = attr{e.Value, a.at}
			}
		}
	}
}

// signature reads the types of the op. It returns the type written for an operand,
// nil where none is.
func (n *node) signature(text string) func(i int) types.Type {
	none := func(int) types.Type { return nil }
	text = strings.TrimSpace(text)
	if text == "" {
		return none
	}
	sig, err := parse.Signature(text)
	if in, out, ok := strings.Cut(text, "->"); err != nil && ok { // T -> U without parentheses
		sig, err = parse.Signature("(" + strings.TrimSpace(in) + ") -> " + strings.TrimSpace(out))
	}
	span := n.t.Abs(n.t.Sig)
	if i := strings.Index(n.src.Slice(n.t.Span()), text); i >= 0 && n.t.Sig.Empty() {
		span = source.Span{Start: n.t.Off + i, End: n.t.Off + i + len(text)}
	}
	if err != nil {
		n.failError(span, err)
	}
	list := func(xs []*ast.TypeExpr) []types.Type {
		ts := make([]types.Type, len(xs))
		for i, x := range xs {
			ts[i] = n.typeOf(x, span)
		}
		return ts
	}
	in := list(sig.In)
	results := 0
	for _, r := range n.t.Results {
		results += int(r.Count)
	}
	switch {
	case sig.Single && n.name == "stablehlo.tuple":
		n.out = in
		return none
	case sig.Single:
		for range results {
			n.out = append(n.out, in[0])
		}
		if n.name == "stablehlo.complex" { // of two real tensors
			return none
		}
		return func(int) types.Type { return in[0] }
	case sig.List && n.name == "stablehlo.select":
		n.out = in[len(in)-1:]
		return func(i int) types.Type {
			if i == 0 {
				return in[0]
			}
			return in[len(in)-1]
		}
	case sig.List:
		n.out = in[:min(results, len(in))]
	default:
		n.out = list(sig.Out)
	}
	n.must(len(n.out) == results || results == 0, "DM142", "%s names %d results, but has %d result types", n.name, results, len(n.out))
	if len(in) != len(n.t.Operands) {
		if !sig.List {
			n.fail("DM142", "%s has %d operands, but %d operand types", n.name, len(n.t.Operands), len(in))
		}
		return none
	}
	return func(i int) types.Type { return in[i] }
}

// typeOf is the meaning of a type that the dialect must have.
func (n *node) typeOf(x *ast.TypeExpr, span source.Span) types.Type {
	t, err := n.importer.typeOf(x)
	if err != nil {
		n.failError(span, err)
	}
	if why := unsupportedType(t); why != "" && !(n.dynamic && slices.ContainsFunc(splitTypes([]types.Type{t}), types.HasUnnamed)) {
		n.failAt(Unsupported, span, "%s", why)
	}
	return t
}

func (c *importer) typeOf(x *ast.TypeExpr) (types.Type, error) {
	t, err := types.FromExpr(x, &c.env)
	if err != nil {
		return nil, err
	}
	if types.ForeignElem(t) != "" {
		if of, err := c.compoundType(x); of != nil || err != nil {
			return of, err
		}
	}
	if tensor, ok := t.(*types.Tensor); ok && tensor.Enc != "" { // bounds and sparsity are no part of the values
		plain := *tensor
		plain.Enc = ""
		return &plain, nil
	}
	return t, nil
}

// unsupportedType is why the dialect has no such type, "" where it has.
func unsupportedType(t types.Type) string {
	switch t := t.(type) {
	case *types.Tensor:
		if t.Elem == types.Index {
			return "tensors of index are not supported"
		}
		for _, d := range t.Shape {
			if _, ok := d.Int(); !ok {
				return "sizes that are not known before the program runs are not supported: " + t.String()
			}
		}
		return ""
	case compound:
		return unsupportedType(t.parts()[0])
	case *types.Tuple:
		for _, m := range t.Of {
			if why := unsupportedType(m); why != "" {
				return why
			}
		}
		return ""
	case types.Opaque:
		if e := types.ForeignElem(t); e != "" {
			return "the element type " + e + " is not supported"
		}
		if strings.HasPrefix(t.Text, "!util.ptr") || strings.HasPrefix(t.Text, "!iree") {
			return ""
		}
		return "the type " + t.String() + " is not supported"
	}
	return ""
}

// use is the value that an operand names; want is the type written for it, or nil.
func (n *node) use(u ast.Use, want types.Type) *ir.Value {
	values := n.scope.lookup(u.Name)
	at := n.t.Abs(u.Span)
	if values == nil {
		n.failAt("DM160", at, "%s is not defined", u.Name)
	}
	i := max(0, int(u.Index))
	if i >= len(values) {
		n.failAt("DM160", at, "%s refers to %s; there is no #%d", u.Name, diag.Count(len(values), "value"), i)
	}
	v := values[i]
	if v == nil { // of an op whose problem has been reported
		panic(bailout{})
	}
	if want != nil && n.batch == nil && !n.bare && !fits(v.Type, want) {
		n.failAt("DM142", at, "%s has type %s, but is used as %s", n.src.Slice(at), v.Type, want)
	}
	return v
}

// fits reports whether a value of type t may stand where want is written.
func fits(t, want types.Type) bool {
	return types.Compatible(plain(t), want) || isCompound(t) && alike(t, want)
}

// scope is the values that names stand for.
type scope struct {
	outer *scope
	names map[string][]*ir.Value
}

func (s *scope) lookup(name string) []*ir.Value {
	for ; s != nil; s = s.outer {
		if vs, ok := s.names[name]; ok {
			return vs
		}
	}
	return nil
}
