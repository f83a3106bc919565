package scope

import (
	"fmt"
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

// region is a scope: a section of the file, a region of an op, or, for an op
// with several regions, the op itself, whose own definitions all of them see.
type region struct {
	parent   *region
	isolated bool // values from around it are not visible
	names    [Symbol + 1]map[string]*Name
	unknown  map[string]*Name     // values and symbols looked up in vain; see builder.missing
	mesh     string               // the symbol of the mesh whose devices run the function that this is the body of
	own      map[string][]*ast.Op // ops inside an isolated region, by the values that their own text defines for their regions
}

// lookup is the name that text stands for in r.
func (r *region) lookup(k Kind, text string) *Name {
	for ; r != nil; r = r.parent {
		if n := r.names[k][text]; n != nil {
			return n
		}
		if k == Block || k == Value && r.isolated {
			return nil
		}
	}
	return nil
}

// owned notes an op whose text defines a value for its regions.
func (r *region) owned(text string, o *ast.Op) {
	for r.parent != nil && !r.isolated {
		r = r.parent
	}
	if r.own == nil {
		r.own = map[string][]*ast.Op{}
	}
	r.own[text] = append(r.own[text], o)
}

type builder struct {
	x     *Index
	found []occurrence
	refs  []symbolRef
	in    *section
	slab  []Name // free ones
	made  int    // how many were made the last time
}

// maxMade is how many names are made at a time in a long text. While one op is
// read there are few, as each keeps all of them in memory.
const maxMade = 64

// section is what is known of the names of a section.
type section struct {
	number  int32
	aliases map[string]*Name
	symbols map[*ast.Op]*Name // the symbol that an op defines
	guesses int               // suggestions so far for unknown functions
	root    *region
}

// symbolRef is a symbol use kept until all definitions are known.
type symbolRef struct {
	in *region
	op *ast.Op
	// The path @a::@b is op.Symbols[first:last].
	first, last int
	axes        ast.Rel // there is no path, but a list of axes of the function's mesh
}

func (b *builder) section(items []*ast.Op, number int32) {
	root := &region{isolated: true}
	b.in = &section{number: number, aliases: map[string]*Name{}, symbols: map[*ast.Op]*Name{}, root: root}
	b.x.sections = append(b.x.sections, b.in)
	for _, o := range items {
		switch o.Form {
		case ast.AttrAlias:
			b.defineAlias(o, AttrAlias)
		case ast.TypeAlias:
			b.defineAlias(o, TypeAlias)
		case ast.Bad: // of which the name is known, so that its uses are no mistakes
			switch {
			case strings.HasPrefix(o.Name, "!"):
				b.defineAlias(o, TypeAlias)
			case strings.HasPrefix(o.Name, "#"):
				b.defineAlias(o, AttrAlias)
			}
		}
	}
	b.define(items, root)
	b.use(items, root)
	b.resolveAll()
}

// resolveAll resolves the symbols used so far.
func (b *builder) resolveAll() {
	for _, ref := range b.refs {
		b.resolve(ref)
	}
	b.refs = b.refs[:0]
}

// region indexes a region of o: first all that its blocks define, then what
// they use and hold.
func (b *builder) region(o *ast.Op, reg *ast.Region, r *region) {
	if o.Name == "func.func" && len(reg.Blocks) == 1 {
		b.x.bodies[reg.Blocks[0]] = body{r, b.in}
	}
	for _, block := range reg.Blocks {
		if block.Label != "" {
			b.defineIn(r, Block, block.Label, place{o, block.Span})
		}
		b.args(o, block.Args, r)
		b.define(block.Ops, r)
	}
	for _, block := range reg.Blocks {
		for _, a := range block.Args {
			b.aliasesIn(o, a.Type)
			b.aliasesIn(o, a.Attrs)
		}
		b.use(block.Ops, r)
	}
}

func (b *builder) args(o *ast.Op, args []ast.BlockArg, r *region) {
	for _, a := range args {
		if a.Name != "" {
			b.defineIn(r, Value, a.Name, place{o, a.Span})
		}
	}
}

// define registers the results and the symbols of ops in r.
func (b *builder) define(items []*ast.Op, r *region) {
	if r.names[Value] == nil && len(items) > 8 {
		r.names[Value] = make(map[string]*Name, len(items))
	}
	for _, o := range items {
		for _, res := range o.Results {
			b.defineIn(r, Value, res.Name, place{o, res.Span})
		}
		for _, s := range o.Symbols {
			if s.Def {
				b.in.symbols[o] = b.defineIn(r, Symbol, symbolText(s.Name), place{o, s.Span})
			}
		}
		if text, at := symName(o, b.x.src); text != "" {
			b.in.symbols[o] = b.defineIn(r, Symbol, text, place{o, at})
		}
		if n := b.in.symbols[o]; n != nil && o.Name == meshOp {
			b.meshAxes(o, n)
		}
	}
}

// use resolves the uses of ops in r and goes into their regions.
func (b *builder) use(items []*ast.Op, r *region) {
	for _, o := range items {
		inner := b.nested(o, r)
		for _, u := range o.Operands {
			b.useValue(o, u, r, inner)
		}
		for _, s := range o.Succs {
			b.useBlock(r, s.Name, place{o, s.Span})
		}
		for _, a := range o.Aliases {
			b.useAlias(o, a)
		}
		b.symbolRefs(o, r)
		b.axesRef(o, r)
		if o.Func != nil && len(inner) > 0 {
			b.states(o, inner[0])
		}
		for i, reg := range o.Regions {
			b.region(o, reg, inner[i])
		}
	}
}

// nested makes the scopes of an op's regions and defines in them what the op's
// own text defines.
func (b *builder) nested(o *ast.Op, r *region) []*region {
	defs := o.Defs
	if o.Func != nil {
		defs = o.Func.Args
	}
	if len(o.Regions) == 0 {
		if len(defs) > 0 {
			b.args(o, defs, &region{parent: r, isolated: true}) // a declaration's
		}
		return nil
	}
	for _, a := range defs {
		r.owned(a.Name, o)
	}
	mesh := b.meshOf(o)
	name := b.in.symbols[o]
	isolated := o.Func != nil || o.Name == "func.func" || o.Name == "module" || o.Name == "builtin.module" // what others are, dmir does not know
	around := r
	if len(o.Regions) > 1 && len(defs) > 0 {
		around = &region{parent: r, isolated: isolated}
		isolated = false
		b.args(o, defs, around)
	}
	inner := make([]*region, len(o.Regions))
	for i := range inner {
		inner[i] = &region{parent: around, isolated: isolated, mesh: mesh}
	}
	if around == r {
		b.args(o, defs, inner[0])
	}
	if name != nil {
		name.inner = append(name.inner, inner...)
	}
	return inner
}

// defineIn adds a definition. A second one of the same name in the same region
// joins the first; that of a label or symbol is a finding.
func (b *builder) defineIn(r *region, k Kind, text string, at place) *Name {
	n := r.names[k][text]
	if n != nil {
		if k != Value {
			b.redefined(n, at)
		}
		b.occur(n, at, true)
		return n
	}
	n = b.newName(k, text, r)
	if r.names[k] == nil {
		r.names[k] = map[string]*Name{}
	}
	r.names[k][text] = n
	b.occur(n, at, true)
	return n
}

func (b *builder) newName(k Kind, text string, home *region) *Name {
	if len(b.slab) == 0 {
		b.made = min(max(2*b.made, 1), maxMade)
		b.slab = make([]Name, b.made)
	}
	n := &b.slab[0]
	b.slab = b.slab[1:]
	*n = Name{Kind: k, Text: text, home: home, section: b.in.number, id: int32(len(b.x.all)), first: noPlace}
	b.x.all = append(b.x.all, n)
	return n
}

func (b *builder) occur(n *Name, at place, def bool) {
	if def && n.first == noPlace {
		n.first = at
	}
	b.found = append(b.found, occurrence{at, n.id, def})
}

// redefined reports a second definition of n.
func (b *builder) redefined(n *Name, at place) {
	code, what, sev := "DM173", "alias", diag.Error
	switch n.Kind {
	case Block:
		what = "block"
	case Symbol:
		code, what, sev = "DM170", "symbol", certain(at.op)
		if at.op.Func != nil {
			what = "function"
		}
	}
	d := b.report(code, sev, at.span(), "the %s %s is defined twice", what, n.Text)
	d.Related = []diag.Related{{Span: n.first.span(), Message: "first defined here"}}
}

// report adds a finding, which may be completed until the next one.
func (b *builder) report(code string, sev diag.Severity, span source.Span, format string, args ...any) *diag.Diagnostic {
	b.x.Diags = append(b.x.Diags, diag.New(code, sev, span, fmt.Sprintf(format, args...)))
	return &b.x.Diags[len(b.x.Diags)-1]
}

// certain is the severity of a finding about a name in o. What the pretty form
// of another dialect's op means is not known, so there it is no certain error.
func certain(o *ast.Op) diag.Severity {
	if o.Form == ast.Custom {
		return diag.Hint
	}
	return diag.Error
}

func (b *builder) useValue(o *ast.Op, u ast.Use, r *region, inner []*region) {
	at := place{o, u.Span}
	at.rel.End = min(at.rel.End, at.rel.Start+int32(len(u.Name)))
	n := r.lookup(Value, u.Name)
	for i := 0; n == nil && i < len(inner); i++ {
		// Some ops repeat in their own text what they define for their regions.
		n = inner[i].names[Value][u.Name]
	}
	if n == nil {
		n = b.missing(r, Value, u.Name)
	}
	b.occur(n, at, false)
}

func (b *builder) useBlock(r *region, label string, at place) {
	n := r.lookup(Block, label)
	if n == nil {
		n = b.missing(r, Block, label)
		b.report("DM171", certain(at.op), at.span(), "there is no block %s in this region", label)
	}
	b.occur(n, at, false)
}

// missing is the name of a use without definition. All such uses of one name
// that a definition could have served share a Name, so that they can be found
// and renamed together.
func (b *builder) missing(r *region, k Kind, text string) *Name {
	home := r
	for home.parent != nil && k != Block && (k == Symbol || !home.isolated) {
		home = home.parent
	}
	n := home.unknown[text]
	if n == nil {
		n = b.newName(k, text, home)
		if home.unknown == nil {
			home.unknown = map[string]*Name{}
		}
		home.unknown[text] = n
	}
	return n
}

func (b *builder) defineAlias(o *ast.Op, k Kind) {
	n, at := b.in.aliases[o.Name], place{o, o.NameSpan}
	if n != nil {
		b.redefined(n, at)
	} else {
		n = b.newName(k, o.Name, nil)
		b.in.aliases[o.Name] = n
	}
	b.occur(n, at, true)
}

// aliasesIn uses the aliases in a stretch of a label, which the tree keeps as
// text.
func (b *builder) aliasesIn(o *ast.Op, at ast.Rel) {
	text := o.Text(b.x.src, at)
	if !strings.ContainsAny(text, "!#") {
		return
	}
	for _, t := range lex.Tokens(text, source.Span{End: len(text)}) {
		name := text[t.Start:t.End]
		dialect := strings.Contains(name, ".") || t.End < len(text) && text[t.End] == '<'
		if len(name) > 1 && (name[0] == '!' || name[0] == '#') && !dialect {
			b.useAlias(o, ast.Alias{Name: name, Span: ast.Rel{Start: at.Start + int32(t.Start), End: at.Start + int32(t.End)}})
		}
	}
}

func (b *builder) useAlias(o *ast.Op, a ast.Alias) {
	n, at := b.in.aliases[a.Name], place{o, a.Span}
	kind, meaning := AttrAlias, "attribute"
	if strings.HasPrefix(a.Name, "!") {
		kind, meaning = TypeAlias, "type"
	}
	if n == nil {
		n = b.newName(kind, a.Name, nil)
		b.in.aliases[a.Name] = n
	}
	b.occur(n, at, false)
	if n.first == noPlace {
		b.report("DM151", certain(o), at.span(), "the %s %s is not defined", kind, a.Name).
			Help = "define it at the top of the file: " + a.Name + " = " + meaning
	}
}
