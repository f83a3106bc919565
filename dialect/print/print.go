// Package print writes modules as text: Generic is MLIR's generic form, which
// mlir-opt reads with --allow-unregistered-dialect; Pretty is the form people
// write. What either prints lowers to an equal module again (see Diff).
//
// Source is that form in the layout of package format, with aliases for types.
//
// Names of values are kept where they are legal and free. Aliases are expanded, but
// for those of Source.
// Ops of other dialects in a form of their own are printed as they were
// written, with their regions printed again.
package print

import (
	"fmt"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Generic is m in MLIR's generic form. The error names the op that
// cannot be printed: one with an error, or one without known types.
func Generic(m *ir.Module, opts ...Option) (string, error) {
	p := newPrinter(m, true, opts...)
	return p.module()
}

// Loaded is Generic for a dialect that mlir-opt loads from its IRDL definition:
// such dialects have no properties, so the attributes of dm ops stand in {…}.
func Loaded(m *ir.Module) (string, error) {
	p := newPrinter(m, true)
	p.loaded = true
	return p.module()
}

// Pretty is m in the form people write. Comments and the layout of the source
// are lost; package format keeps them. Errors are those of Generic.
func Pretty(m *ir.Module, opts ...Option) (string, error) {
	p := newPrinter(m, false, opts...)
	return p.module()
}

type printer struct {
	m         *ir.Module
	generic   bool
	loaded    bool       // attributes of dm ops are no properties
	locations *locations // nil: there are none
	same      bool       // locations are printed as they stand
	aliases   *aliases   // nil: types are written out, and lines are not broken
	out       strings.Builder
	names     *names
	err       error
}

func newPrinter(m *ir.Module, generic bool, opts ...Option) *printer {
	p := &printer{m: m, generic: generic, names: newNames(nil)}
	for _, set := range opts {
		set(p)
	}
	return p
}

// fail remembers the first error; printing goes on so that callers stay simple.
func (p *printer) fail(o *ir.Op, format string, args ...any) {
	if p.err != nil {
		return
	}
	where := ""
	if origin.Tree(o) != nil && p.m.Src != nil {
		line, _ := p.m.Src.Human(o.Head.Start)
		where = fmt.Sprintf("%s:%d: ", p.m.Src.Path, line)
	}
	p.err = fmt.Errorf("%scannot print %s: %s", where, o.Name, fmt.Sprintf(format, args...))
}

func (p *printer) module() (string, error) {
	outer := p.m.Outer
	switch {
	case outer == nil || len(outer.Attrs) == 0:
		p.ops(p.m.Ops, 0)
	case p.generic:
		props, attrs := p.split(outer)
		p.out.WriteString(`"` + op.Module + `"()`)
		p.props(props)
		p.out.WriteString(" ({\n")
		if len(p.m.Ops) == 0 {
			p.out.WriteString("^bb0:\n")
		}
		p.ops(p.m.Ops, 1)
		p.out.WriteString("})")
		p.dict(" ", attrs)
		p.out.WriteString(" : () -> ()\n")
	default:
		p.moduleHead(outer)
		p.out.WriteString("{\n")
		p.ops(p.m.Ops, 1)
		p.out.WriteString("}\n")
	}
	p.definitions()
	p.resources()
	return p.out.String(), p.err
}

// resources prints the {-# … #-} sections.
func (p *printer) resources() {
	for _, s := range p.m.Resources {
		p.out.WriteString("\n" + p.m.Src.Slice(s) + "\n")
	}
}

func (p *printer) ops(ops []*ir.Op, depth int) {
	for _, o := range ops {
		p.op(o, depth)
	}
}

func (p *printer) indent(depth int) {
	for range depth {
		p.out.WriteString("  ")
	}
}

func (p *printer) op(o *ir.Op, depth int) {
	if o.Bad {
		p.fail(o, "there is an error in it")
	}
	p.indent(depth)
	switch {
	case o.Verbatim:
		p.custom(o, depth)
	case p.generic || !p.prettyOp(o, depth):
		p.genericOp(o, depth)
	}
	p.loc(o)
	p.out.WriteByte('\n')
}

func (p *printer) genericOp(o *ir.Op, depth int) {
	defer p.results(o)()
	p.out.WriteString(parse.Quote(o.Name))
	p.out.WriteByte('(')
	p.uses(o.Operands)
	p.out.WriteByte(')')
	for i, b := range o.Succs {
		p.out.WriteString([]string{"[", ", "}[min(i, 1)])
		p.out.WriteString(p.names.block(b))
		if i == len(o.Succs)-1 {
			p.out.WriteByte(']')
		}
	}
	props, attrs := p.split(o)
	p.props(props)
	if len(o.Regions) > 0 || o.Name == op.Func {
		p.out.WriteString(" (")
		for i, r := range o.Regions {
			if i > 0 {
				p.out.WriteString(", ")
			}
			p.region(r, depth)
		}
		if len(o.Regions) == 0 { // a declaration
			p.out.WriteString("{\n")
			p.indent(depth)
			p.out.WriteByte('}')
		}
		p.out.WriteByte(')')
	}
	p.dict(" ", attrs)
	p.out.WriteString(" : (")
	p.typeList(o, o.Operands)
	p.out.WriteString(") -> ")
	p.resultTypes(o)
}

// resultTypes prints one type, or several in parentheses.
func (p *printer) resultTypes(o *ir.Op) {
	if len(o.Results) == 1 {
		if _, isFunc := o.Results[0].Type.(*types.Func); !isFunc {
			p.typ(o, o.Results[0].Type)
			return
		}
	}
	p.list(p.typeTexts(o, o.Results), false)
}

// typeTexts are the types of vs.
func (p *printer) typeTexts(o *ir.Op, vs []*ir.Value) []string {
	parts := make([]string, len(vs))
	for i, v := range vs {
		parts[i] = p.captured(func() { p.typ(o, v.Type) })
	}
	return parts
}

func (p *printer) typeList(o *ir.Op, vs []*ir.Value) {
	for i, v := range vs {
		if i > 0 {
			p.out.WriteString(", ")
		}
		p.typ(o, v.Type)
	}
}

func (p *printer) typ(o *ir.Op, t types.Type) {
	if t == nil || t == types.Type(types.Unknown) {
		p.fail(o, "the type of a value is not known, because an op of another dialect gives it")
		p.out.WriteByte('?')
		return
	}
	if p.aliases != nil {
		p.out.WriteString(p.aliases.of(t.String()))
		return
	}
	p.out.WriteString(t.String())
}

func (p *printer) uses(vs []*ir.Value) {
	for i, v := range vs {
		if i > 0 {
			p.out.WriteString(", ")
		}
		p.out.WriteString(p.names.use(v))
	}
}

// results prints "%a, %b:2 = ". The names are taken by defined, which must
// be called behind the op's regions.
func (p *printer) results(o *ir.Op) (defined func()) {
	n := p.names
	for i := 0; i < len(o.Results); {
		if i > 0 {
			p.out.WriteString(", ")
		}
		k := group(o.Results[i:])
		name := n.hold(o.Results[i : i+k])
		n.held[name]++
		if len(o.Regions) == 0 || k < len(o.Results) {
			n.define(o.Results[i : i+k])
		}
		p.out.WriteString(name)
		if k > 1 {
			p.out.WriteByte(':')
			p.out.WriteString(strconv.Itoa(k))
		}
		i += k
	}
	if len(o.Results) > 0 {
		p.out.WriteString(" = ")
	}
	return func() {
		for i := 0; i < len(o.Results); {
			k := group(o.Results[i:])
			n.held[n.define(o.Results[i:i+k])]--
			i += k
		}
	}
}

// region prints { … } with a label where the entry block has arguments or a name,
// or has no ops: braces with nothing inside are a region without blocks.
func (p *printer) region(r *ir.Region, depth int) { p.braces(r, depth, true) }

func (p *printer) braces(r *ir.Region, depth int, label bool) {
	p.out.WriteString("{\n")
	p.body(r, depth, label)
	p.indent(depth)
	p.out.WriteByte('}')
}

// body prints the blocks of r, in names of their own where r sees no others.
func (p *printer) body(r *ir.Region, depth int, label bool) {
	if isolated(r.Op) {
		p.names = newNames(p.names)
		defer func() { p.names = p.names.outer }()
	}
	p.blocks(r, depth, label)
}

func (p *printer) blocks(r *ir.Region, depth int, label bool) {
	mark := p.names.mark()
	for i, b := range r.Blocks {
		if i > 0 || label && (len(b.Args)+len(b.Label) > 0 || len(b.Ops) == 0) {
			p.indent(depth)
			p.out.WriteString(p.names.block(b))
			for j, v := range b.Args {
				p.out.WriteString([]string{"(", ", "}[min(j, 1)])
				p.out.WriteString(p.names.define(b.Args[j : j+1]))
				p.out.WriteString(": ")
				p.typ(r.Op, v.Type)
				if j == len(b.Args)-1 {
					p.out.WriteByte(')')
				}
			}
			p.out.WriteString(":\n")
		}
		p.ops(b.Ops, depth+1)
	}
	p.names.release(mark)
}

func isolated(o *ir.Op) bool { return o.Name == op.Func || o.Name == op.Module }

// props prints <{…}>.
func (p *printer) props(attrs []types.Named) {
	if len(attrs) > 0 {
		p.out.WriteString(" <")
		p.dict("", attrs)
		p.out.WriteByte('>')
	}
}

func (p *printer) dict(before string, attrs []types.Named) {
	if len(attrs) == 0 {
		return
	}
	p.out.WriteString(before)
	p.out.WriteByte('{')
	for i, a := range attrs {
		if i > 0 {
			p.out.WriteString(", ")
		}
		p.out.WriteString(types.Named{Name: a.Name, Value: plain(a.Value)}.String())
	}
	p.out.WriteByte('}')
}

// plain is a value as MLIR writes it: words of dm clauses become strings.
func plain(a types.Attr) types.Attr {
	switch a := a.(type) {
	case types.Keyword:
		return types.Str(a)
	case types.Array:
		out := make(types.Array, len(a))
		for i, e := range a {
			out[i] = plain(e)
		}
		return out
	case types.Dict:
		out := make(types.Dict, len(a))
		for i, e := range a {
			out[i] = types.Named{Name: e.Name, Value: plain(e.Value)}
		}
		return out
	}
	return a
}

// custom prints an op of another dialect as it was written, its regions printed again.
func (p *printer) custom(o *ir.Op, depth int) {
	t, src := origin.Tree(o), p.m.Src
	if len(t.Regions) != len(o.Regions) {
		p.fail(o, "its regions were changed, and its form is another dialect's")
		return
	}
	by := moved(src, t.Span().Start, depth)
	own := ownUses(o)
	for i, v := range o.Operands {
		if i < len(t.Operands) && !own[v] && !sameUse(p.names.use(v), t.Operands[i]) {
			p.fail(o, "its operand %s was replaced, and its form is another dialect's", t.Operands[i].Name)
		}
	}
	defer p.defineAll(o)
	at := int32(0)
	for i, r := range t.Regions {
		p.out.WriteString(indented(p.m.Aliases.Expand(t.Text(src, ast.Rel{Start: at, End: r.Open})), by))
		p.out.WriteString("{\n")
		labelled := len(r.Blocks) > 0 && r.Blocks[0].Label != ""
		mark := p.names.mark()
		if !labelled && len(o.Regions[i].Blocks) > 0 {
			for j, v := range o.Regions[i].Blocks[0].Args {
				if p.names.define(o.Regions[i].Blocks[0].Args[j:j+1]) != v.Name {
					p.fail(o, "its argument %s needs another name, and its form is another dialect's", v.Name)
				}
			}
		}
		p.body(o.Regions[i], depth, labelled)
		p.names.release(mark)
		p.indent(depth)
		if r.Close < 0 {
			p.fail(o, "a region is not closed")
			return
		}
		at = r.Close
	}
	p.out.WriteString(indented(p.m.Aliases.Expand(strings.TrimRight(t.Text(src, ast.Rel{Start: at, End: t.Len}), " \t\r\n")), by))
}

// moved is how much further to the right an op at depth begins than in its text. One
// that something precedes on its line counts as if it began before the line.
func moved(src *source.File, start, depth int) int {
	column := len(src.Indent(start))
	if src.Pos(start).Col != column {
		column = -1
	}
	return 2*depth - column
}

// indented is a text whose lines, but for the first, begin by further to the right: what
// is further in than an op stays so, since where ops of other dialects end depends on it.
func indented(text string, by int) string {
	if by == 0 || !strings.Contains(text, "\n") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if rest := strings.TrimLeft(l, " \t"); i > 0 && strings.TrimSpace(rest) != "" {
			lines[i] = strings.Repeat(" ", max(len(l)-len(rest)+by, 0)) + rest
		}
	}
	return strings.Join(lines, "\n")
}

// ownUses are the operands of an op in another dialect's form that nothing
// around it defines, but its own text does, for its regions: they take no name
// from the values there.
func ownUses(o *ir.Op) map[*ir.Value]bool {
	var own map[*ir.Value]bool
	var defs map[string]bool
	for _, v := range o.Operands {
		if v.Op != nil || v.Block != nil {
			continue
		}
		if own == nil {
			own, defs = map[*ir.Value]bool{}, map[string]bool{}
			for _, d := range origin.Tree(o).Defs {
				defs[d.Name] = true
			}
		}
		own[v] = defs[v.Name]
	}
	return own
}

// defineAll names o's results as its text does.
func (p *printer) defineAll(o *ir.Op) {
	for i := 0; i < len(o.Results); {
		n := group(o.Results[i:])
		if name := p.names.define(o.Results[i : i+n]); strings.HasPrefix(o.Results[i].Name, "%") {
			if base, _, _ := strings.Cut(o.Results[i].Name, "#"); base != name {
				p.fail(o, "its result %s needs another name, and its form is another dialect's", base)
			}
		}
		i += n
	}
}

// sameUse reports whether name is how u reads; "%r" is short for "%r#0".
func sameUse(name string, u ast.Use) bool {
	if u.Index > 0 || u.Index == 0 && name != u.Name {
		return name == u.Name+"#"+strconv.Itoa(int(u.Index))
	}
	return name == u.Name || name == u.Name+"#0"
}
