package lower

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
)

// attrText is what one attribute text means; texts repeat, so each is read once.
type attrText struct {
	expr  *ast.AttrExpr
	value types.Attr
	err   error
}

// maxCached is the length up to which attribute texts are remembered; longer
// ones are literals that hardly repeat.
const maxCached = 256

// maxAttrs is how many of them are remembered at a time.
const maxAttrs = 1 << 12

func (l *lowerer) attr(text string) attrText {
	if a, ok := l.attrs[text]; ok {
		return a
	}
	a := l.readAttr(text)
	if len(text) <= maxCached {
		if len(l.attrs) >= maxAttrs {
			clear(l.attrs)
		}
		l.attrs[text] = a
	}
	return a
}

func (l *lowerer) readAttr(text string) attrText {
	x, err := parse.Attr(text)
	if err != nil {
		return attrText{err: err}
	}
	if x.Kind == ast.ADense && x.Type == nil || types.IsFile(x) {
		return attrText{expr: x} // its type is the result's; see literals
	}
	v, err := types.AttrFromExpr(x, &l.env)
	return attrText{x, v, err}
}

// attributes reads the lead, the clauses, the properties and the dictionary.
func (l *lowerer) attributes(o *ir.Op, t *ast.Op, def *op.Def) {
	if !t.Lead.Empty() {
		if lead := def.Lead(); lead != nil {
			l.setAttr(o, t, t.Lead, lead, lead.Name)
		} else if def != nil {
			l.report(o, "DM172", t.Abs(t.Lead), "%s has no attribute before its operands", o.Name)
		}
	}
	for _, c := range t.Clauses {
		a := def.Attr(c.Name)
		if a == nil && def != nil {
			d := l.unknownAttr(o, t, def, c.Name, c.NameSpan)
			if a := def.ForeignAttr(c.Name); a != nil && len(d.Fixes) == 0 {
				d.Help = c.Name + " is " + a.Name + " in this dialect"
				d.Fixes = []diag.Fix{{Title: "Replace by " + a.Name, Safe: true, Edits: verify.RenameAttr(l.src, t, c, a)}}
			}
			continue
		}
		l.setAttr(o, t, c.Value, a, c.Name)
	}
	if !t.Props.Empty() { // <{…}>
		l.dictionary(o, t, def, ast.Rel{Start: t.Props.Start + 1, End: t.Props.End - 1}, true)
	}
	switch {
	case t.Attrs.Empty():
	case o.Name == op.Mesh && t.Form == ast.Pretty:
		l.mesh(o, t)
	default:
		l.dictionary(o, t, def, t.Attrs, false)
	}
	if o.Name == "func.call" && t.Form == ast.Pretty && len(t.Symbols) > 0 {
		o.SetAttr("callee", types.ParseSymbol(t.Symbols[0].Name))
	}
}

func (l *lowerer) setAttr(o *ir.Op, t *ast.Op, at ast.Rel, def *op.AttrDef, name string) {
	if v, ok := l.value(o, t, at, def); ok {
		o.SetAttr(name, v)
	}
}

// value is the attribute written at a place inside t, in the form that its
// definition wants; ok is false where it cannot be read, which is reported.
func (l *lowerer) value(o *ir.Op, t *ast.Op, at ast.Rel, def *op.AttrDef) (v types.Attr, ok bool) {
	a := l.attr(t.Text(l.src, at))
	switch {
	case def != nil && def.Kind == op.KindDense && a.expr != nil && ast.NotFinite(a.expr.Text):
		return literal{a.expr}, true // reported as one of the result's type
	case a.err != nil:
		l.reportParse(o, t, at, a.err)
		return nil, false
	case def != nil && def.Kind == op.KindDense:
		return untyped(a), true
	case a.value == nil:
		return types.Raw(a.expr.Text), true
	}
	return coerce(a.value, def), true
}

// dictionary reads the entries of {…} at a place inside t. Properties must be
// the op's own; other entries may be anything, but not a misspelt one of those.
func (l *lowerer) dictionary(o *ir.Op, t *ast.Op, def *op.Def, at ast.Rel, props bool) {
	x, err := parse.Attr(t.Text(l.src, at))
	if err != nil {
		l.reportParse(o, t, at, err)
		return
	}
	var set []types.Named
	for _, e := range x.Entries {
		a := def.Attr(e.Key)
		key := ast.Rel{Start: at.Start + e.Span.Start, End: at.Start + e.Span.End}
		if a == nil && def != nil && (props || diag.Suggest(e.Key, attrNames(def)) != "") {
			l.unknownAttr(o, t, def, e.Key, key)
			continue
		}
		value := ast.Rel{Start: at.Start + e.VSpan.Start, End: at.Start + e.VSpan.End}
		switch {
		case e.Value == nil || e.Value.Kind == ast.AUnit:
			set = append(set, types.Named{Name: e.Key, Value: coerce(types.Unit{}, a)})
		default:
			if v, ok := l.value(o, t, value, a); ok {
				set = append(set, types.Named{Name: e.Key, Value: v})
			}
		}
	}
	o.SetAttrs(set)
}

func attrNames(def *op.Def) []string {
	names := make([]string, len(def.Attrs))
	for i, a := range def.Attrs {
		names[i] = a.Name
	}
	return names
}

func (l *lowerer) unknownAttr(o *ir.Op, t *ast.Op, def *op.Def, name string, at ast.Rel) *diag.Diagnostic {
	d := l.report(o, "DM168", t.Abs(at), "%s has no attribute %s", o.Name, name)
	names := attrNames(def)
	switch s := diag.Suggest(name, names); {
	case s != "":
		d.Replace(s)
	case len(names) > 0:
		d.Help = "its attributes are " + strings.Join(names, ", ")
	default:
		d.Help = "it has no attributes"
	}
	return d
}

// untyped is a literal whose type comes from the result: dense<…>, a file or a number.
func untyped(a attrText) types.Attr {
	if d, ok := a.value.(*types.Dense); ok {
		return d
	}
	return literal{a.expr}
}

// literal stands for a dense value until the type of the result is known.
type literal struct{ expr *ast.AttrExpr }

func (x literal) String() string { return x.expr.Text }

// literals gives the dense attributes without a type that of the first result.
// Where that is a bare element type, as in scalar regions, the value is a number.
func (l *lowerer) literals(o *ir.Op) {
	for i, a := range o.Attrs {
		x, ok := a.Value.(literal)
		if !ok {
			continue
		}
		o.Attrs[i].Value = types.Raw(x.expr.Text)
		var written types.Type
		if len(o.Results) > 0 {
			written = o.Results[0].Type
		}
		tensor, isTensor := written.(*types.Tensor)
		scalar, isScalar := written.(types.Scalar)
		if isScalar {
			tensor = &types.Tensor{Elem: scalar.Elem, At: types.Placement{Space: types.HBM}}
		}
		if !isTensor && !isScalar {
			// The type is missing, or none that a literal can have: reported elsewhere.
			o.Bad = types.ForeignElem(written) == ""
			continue
		}
		d, err := l.literal(x.expr, tensor)
		if err != nil {
			l.reportType(o, origin.AttrSpan(o, l.src, a.Name), err)
			continue
		}
		o.Attrs[i].Value = d
		switch {
		case !isScalar:
		case d.Elem.IsFloat():
			o.Attrs[i].Value = types.Float{V: d.Float(0), Elem: scalar.Elem}
		case scalar.Elem == types.I1:
			o.Attrs[i].Value = types.Bool(d.Int(0) != 0)
		default:
			o.Attrs[i].Value = types.Int{V: d.Int(0), Elem: scalar.Elem}
		}
	}
}

// literal is the value of a literal as type t.
func (l *lowerer) literal(x *ast.AttrExpr, t *types.Tensor) (*types.Dense, error) {
	if !types.IsFile(x) {
		return types.DenseFromExpr(asDense(x), t)
	}
	f, err := types.FileFromExpr(x, l.arrays)
	if err != nil {
		return nil, err
	}
	return types.InFile(t, f), nil
}

// asDense is a literal as dense<…>, whose type is the result's: "1.0 : f32"
// becomes dense<1.0>.
func asDense(x *ast.AttrExpr) *ast.AttrExpr {
	if x.Kind == ast.ADense {
		return x
	}
	number := *x
	if x.Kind == ast.AInt || x.Kind == ast.AFloat {
		number.Text, _, _ = strings.Cut(x.Text, ":")
		number.Text = strings.TrimSpace(number.Text)
	}
	return &ast.AttrExpr{Kind: ast.ADense, Text: "dense<" + number.Text + ">", Elems: []*ast.AttrExpr{&number}}
}

// coerce brings a value into the form that the registry promises for its
// kind: generic form has strings for keywords, units for true, and other ways
// to write lists. Values of the wrong kind stay; the verifier reports them.
func coerce(a types.Attr, def *op.AttrDef) types.Attr {
	if def == nil {
		return a
	}
	switch def.Kind {
	case op.KindKeyword:
		switch a := a.(type) {
		case types.Str:
			return types.Keyword(a)
		case types.TypeAttr: // words such as f16 and none are types elsewhere
			return types.Keyword(a.T.String())
		}
	case op.KindBool:
		if _, ok := a.(types.Unit); ok {
			return types.Bool(true)
		}
	case op.KindInt, op.KindSize:
		switch a := a.(type) {
		case types.Int:
			if a.Elem == types.I64 {
				return types.Int{V: a.V}
			}
		case types.Keyword:
			if def.Kind == op.KindSize {
				return types.Str(a)
			}
		}
	case op.KindFloat:
		switch n := a.(type) {
		case types.Int:
			if n.Elem == types.InvalidElem || n.Elem == types.I64 {
				return types.Float{V: float64(n.V)}
			}
		case types.Float:
			if n.Elem == types.F64 {
				return types.Float{V: n.V}
			}
		}
	case op.KindInts:
		return list(a)
	case op.KindPairs:
		return pairs(a)
	case op.KindName:
		if s, ok := a.(types.Symbol); ok {
			if name, flat := s.Name(); flat {
				return types.Str(name)
			}
		}
	case op.KindStrings:
		return texts(a)
	}
	return a
}

// texts is a list of strings, which pretty form may write as words.
func texts(a types.Attr) types.Attr {
	l, ok := a.(types.Array)
	if !ok {
		return a
	}
	out := make(types.Array, len(l))
	for i, e := range l {
		out[i] = e
		if k, ok := e.(types.Keyword); ok {
			out[i] = types.Str(k)
		}
	}
	return out
}

// list is a list of integers written as [1, 0], array<i64: 1, 0> or dense<…>.
func list(a types.Attr) types.Attr {
	var ints []int64
	switch a := a.(type) {
	case types.Array:
		if !slices.ContainsFunc(a, func(e types.Attr) bool { n, ok := e.(types.Int); return ok && n.Elem == types.I64 }) {
			return a
		}
		out := make(types.Array, len(a))
		for i, e := range a {
			out[i] = e
			if n, ok := e.(types.Int); ok && n.Elem == types.I64 {
				out[i] = types.Int{V: n.V}
			}
		}
		return out
	case *types.ArrayOf:
		if !a.Elem.IsInt() {
			return a
		}
		ints = a.Ints()
	case *types.Dense:
		if a.Type.Rank() > 1 || !a.Type.Elem.IsInt() {
			return a
		}
		ints = a.Spread()
	default:
		return a
	}
	return numbers(ints)
}

func numbers(ints []int64) types.Array {
	out := make(types.Array, len(ints))
	for i, n := range ints {
		out[i] = types.Int{V: n}
	}
	return out
}

// pairs is a list of pairs, written as [[0, 1]] or dense<[[0, 1]]>.
func pairs(a types.Attr) types.Attr {
	switch a := a.(type) {
	case types.Array:
		out := make(types.Array, len(a))
		for i, e := range a {
			out[i] = list(e)
		}
		return out
	case *types.Dense:
		if a.Type.Rank() != 2 || !a.Type.Elem.IsInt() {
			return a
		}
		ints := a.Spread()
		if n, ok := a.Type.Shape[1].Int(); !ok || n != 2 || len(ints)%2 != 0 {
			return a
		}
		out := make(types.Array, len(ints)/2)
		for i := range out {
			out[i] = numbers(ints[2*i : 2*i+2])
		}
		return out
	}
	return a
}

// expected reads the constant that a check.expect_*_const in a form of its own
// compares with, behind the comma of its operand, as the attribute "value". All
// other attributes of ops in such a form stay in the text.
func (l *lowerer) expected(o *ir.Op, t *ast.Op) {
	if !strings.HasPrefix(o.Name, "check.expect_") || !strings.HasSuffix(o.Name, "_const") || len(t.Operands) == 0 {
		return
	}
	end := t.Len
	if !t.Loc.Empty() {
		end = t.Loc.Start
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(t.Text(l.src, ast.Rel{Start: t.Operands[0].Span.End, End: end})), ",")
	if !ok {
		return
	}
	x, err := parse.Attr(strings.TrimSpace(text))
	if err != nil {
		return
	}
	if v, err := types.AttrFromExpr(x, &l.env); err == nil {
		o.SetAttr("value", v)
	}
}
