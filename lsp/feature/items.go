package feature

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/lex"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// opItems are all ops of the registry.
var opItems = sync.OnceValue(func() []Completion {
	var out []Completion
	for _, d := range op.All() {
		out = append(out, Completion{Kind: OpItem, Label: d.FullName(), Detail: d.Summary, Text: d.FullName(), Snippet: snippet(d, filling{}), Op: d.FullName()})
	}
	return append(out,
		Completion{Kind: OpItem, Label: "return", Detail: "ends a function", Text: "return"},
		Completion{Kind: OpItem, Label: op.Call, Detail: "calls a function", Text: op.Call, Snippet: "func.call @${1:f}(${2:%x}) : (${3:types}) -> ${4:type}"},
		Completion{Kind: OpItem, Label: op.Func, Detail: "a function", Text: op.Func, Snippet: "func.func @${1:f}(${2:%x: type}) -> ${3:type} {\n  $0\n}"},
		Completion{Kind: OpItem, Label: "module", Detail: "holds functions", Text: "module", Snippet: "module {\n  $0\n}"},
	)
})

// foreignItems are the ops that other frameworks call by a name that begins with
// what has been typed, once that is long enough to tell.
func foreignItems(typed string) []Completion {
	typed = strings.ToLower(strings.TrimPrefix(typed, op.Prefix))
	if len(typed) < 2 {
		return nil
	}
	var out []Completion
	for _, d := range op.All() {
		for _, f := range d.Elsewhere() {
			names := strings.Fields(f.Names)
			i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, typed) })
			if i < 0 {
				continue
			}
			c := Completion{Kind: OpItem, Label: d.FullName(), Detail: names[i] + " elsewhere: " + d.Summary, Text: d.FullName(), Filter: op.Prefix + names[i], Op: d.FullName()}
			if m := (op.Meaning{Def: d, Form: f.Form}); m.Form != "" && !m.Clause() {
				c.Label, c.Text = m.String(), m.String()
			} else if m.Form == "" {
				c.Snippet = snippet(d, filling{})
			}
			out = append(out, c)
		}
	}
	return out
}

// quotedOps are the ops of the dialect in generic form, behind the opening
// quote: editors close it themselves.
var quotedOps = sync.OnceValue(func() []Completion {
	var out []Completion
	for _, d := range op.All() {
		out = append(out, Completion{Kind: OpItem, Label: `"` + d.FullName(), Detail: d.Summary, Text: `"` + d.FullName(), Op: d.FullName()})
	}
	return out
})

// attrs are the attributes that the op does not have yet, those that it needs
// first; as clauses, or as entries of a dictionary.
func (s *statement) attrs(def *op.Def, clauses bool) []Completion {
	if def == nil {
		return nil
	}
	has := s.written()
	var needed, others []Completion
	for i := range def.Attrs {
		a := &def.Attrs[i]
		if has[a.Name] || clauses && a.Lead {
			continue
		}
		c := Completion{Kind: AttrItem, Label: a.Name, Detail: valueForm(a), Doc: attrDoc(a), Text: a.Name + " = ", Snippet: a.Name + " = " + hole(1, a)}
		if a.Default == nil && !a.Optional {
			needed = append(needed, c)
		} else {
			others = append(others, c)
		}
	}
	return append(needed, others...)
}

// attrsOn are the attributes of the dialect's prefix that a site may have, but for those in has.
func attrsOn(site op.Sites, has map[string]bool) []Completion {
	var out []Completion
	for _, d := range op.AttrsOn(site) {
		if has[d.Name] {
			continue
		}
		form := ""
		if d.Example != "" {
			form = " = " + cmp.Or(d.Snippet, d.Example)
		}
		text, _, _ := strings.Cut(form, "$")
		out = append(out, Completion{Kind: AttrItem, Label: d.Name, Doc: d.Doc, Text: d.Name + strings.TrimRight(text, "\"{[@"), Snippet: d.Name + form})
	}
	return out
}

// signatureAttrs are the attributes of arguments or, behind the arrow, of results.
func (s *statement) signatureAttrs() []Completion {
	if slices.Contains(s.tokens(), "->") {
		return attrsOn(op.OnResult, nil)
	}
	return attrsOn(op.OnArgument, nil)
}

// stateNames are the arguments that dm.state may name.
func (s *statement) stateNames() []Completion {
	var out []Completion
	for _, t := range s.tokens() {
		if t == "->" {
			break
		}
		if name, ok := strings.CutPrefix(t, "%"); ok {
			out = append(out, Completion{Kind: ValueItem, Label: `"` + name + `"`, Doc: "the result is the next value of %" + name, Text: `"` + name + `"`})
		}
	}
	return out
}

// attrValues are what an attribute may be, as far as that can be listed.
func attrValues(a *op.AttrDef) []Completion {
	if a == nil {
		return nil
	}
	var words []string
	switch {
	case a.Enum != nil:
		words = a.Enum
	case a.Kind == op.KindBool:
		words = []string{"true", "false"}
	case a.Kind == op.KindPlace:
		return placements()
	case a.Kind == op.KindDense:
		return []Completion{
			{Kind: WordItem, Label: "dense<…>", Doc: a.Doc, Text: "dense<>", Snippet: "dense<$1>"},
			{Kind: WordItem, Label: "#dm.file<…>", Doc: a.Doc, Text: `#dm.file<"">`, Snippet: `#dm.file<"${1:weights.npz}", "$2">`},
		}
	case a.Default != nil:
		words = []string{defaultValue(a)}
	}
	var out []Completion
	for _, w := range words {
		c := Completion{Kind: WordItem, Label: w, Doc: a.Doc, Text: w}
		if a.Default != nil && w == defaultValue(a) {
			c.Detail = "default"
		}
		out = append(out, c)
	}
	return out
}

// placements begin a placement.
func placements() []Completion {
	return []Completion{{Kind: PlaceItem, Label: "#dm.at", Detail: "placement", Doc: "memory space, order of the dimensions, names of the sizes written as `?`, the axes of a mesh that they are divided over", Text: "#dm.at<>", Snippet: "#dm.at<$1>"}}
}

// stated begins a placement that states a sharding.
func stated() []Completion {
	return []Completion{{Kind: PlaceItem, Label: "#dm.at<split = …>", Detail: "sharding", Doc: "the mesh, and for each dimension the axes that it is divided over", Text: "#dm.at<split = >", Snippet: "#dm.at<split = $1>"}}
}

// opAttrs are the attributes that any op of the dialect, and a call, may have and this one does not have yet.
func (s *statement) opAttrs(def *op.Def) []Completion {
	if def == nil && s.opName() != op.Call {
		return nil
	}
	return attrsOn(op.OnOp, s.written())
}

// placeItems are the completions in a placement.
func (s *statement) placeItems(l place) []Completion {
	in, last := l.inside(), s.tok(len(s.before)-1)
	if s.tok(in) == "[" && s.tok(in-2) == "dims" {
		return s.dimensions()
	}
	if s.tok(in) == "[" && s.tok(in-2) == "order" {
		return s.indices(in, s.placed(l), true)
	}
	if s.tok(in) == "{" {
		return s.splitAxes(in)
	}
	if s.tok(in) == "<" && last == "=" {
		switch s.tok(len(s.before) - 2) {
		case "split":
			return s.meshItems()
		case "partial":
			return partials()
		}
	}
	if s.tok(in) != "<" || last != "<" && last != "," {
		return nil
	}
	var out []Completion
	has := func(name string) bool {
		return slices.ContainsFunc(s.before[in:], func(t lex.Token) bool { return s.p.Src.Slice(t.Span) == name })
	}
	if last == "<" {
		for _, space := range types.Spaces {
			out = append(out, Completion{Kind: WordItem, Label: string(space), Detail: "memory space", Text: string(space)})
		}
	}
	for _, list := range []struct{ name, doc string }{
		{"order", "the dimensions from the outermost to the innermost; row-major by default"},
		{"dims", "names of the sizes written as `?`"},
	} {
		if !has(list.name) {
			out = append(out, Completion{Kind: AttrItem, Label: list.name, Detail: "[…]", Doc: list.doc, Text: list.name + " = []", Snippet: list.name + " = [$1]"})
		}
	}
	switch {
	case !has("split"):
		out = append(out, Completion{Kind: AttrItem, Label: "split", Detail: "@mesh[{…}, …]", Doc: "the axes of a mesh that each dimension is divided over", Text: "split = "})
	case !has("partial"):
		out = append(out, Completion{Kind: AttrItem, Label: "partial", Detail: "{…}", Doc: "the axes along which each device has a part of the value", Text: "partial = ", Snippet: "partial = {$1}"})
	}
	return out
}

// dimensions are the names of sizes in the types of the values in scope.
func (s *statement) dimensions() []Completion {
	seen := map[string]bool{}
	var out []Completion
	looked := 0
	for v := range s.visible() {
		t := v.Tensor()
		if looked++; looked > maxLooked {
			break
		}
		if t == nil {
			continue
		}
		add := func(d dim.Dim, what string) {
			for _, name := range d.Symbols() {
				if !seen[name] && wordByte(name[0]) {
					seen[name] = true
					out = append(out, Completion{Kind: WordItem, Label: name, Detail: what + " of " + v.Name, Text: name})
				}
			}
		}
		add(t.Elements(), "dimension")
		if t.Format != nil {
			for _, d := range t.Format.Stored {
				add(d, "stored entries")
			}
		}
	}
	return out
}

// symbols are the functions and other symbols of the section. A symbol that is
// being named has none to choose from.
func (s *statement) symbols() (out []Completion, more bool) {
	if name := s.opName(); (name == op.Func || name == "module" || name == op.Module) && s.place().inside() < 0 {
		return nil, false
	}
	for _, n := range s.defined(scope.Symbol) {
		if !Matches(n.Text, s.typed()) || len(n.Axes()) > 0 { // a mesh is asked for elsewhere
			continue
		}
		if len(out) == maxValues {
			return out, true
		}
		c := Completion{Kind: SymbolItem, Label: n.Text, Text: n.Text}
		if f := s.module.Func(strings.TrimPrefix(n.Text, "@")); f != nil {
			c.Detail = strings.TrimPrefix(signature(f), " : ")
		}
		out = append(out, c)
	}
	return out, false
}

// aliases are those of attributes (sigil '#') or types ('!') in the section.
func (s *statement) aliases(sigil byte) []Completion {
	kind := scope.TypeAlias
	if sigil == '#' {
		kind = scope.AttrAlias
	}
	var out []Completion
	for _, n := range s.defined(kind) {
		_, value, _ := strings.Cut(firstLine(s.p.Src.Text()[n.Defs()[0].End:]), "=")
		out = append(out, Completion{Kind: AliasItem, Label: n.Text, Detail: strings.TrimSpace(value), Text: n.Text})
	}
	return out
}

// defined are the names of a kind that the section defines, outside of
// functions: what a function defines for itself is no other's.
func (s *statement) defined(kind scope.Kind) []*scope.Name {
	var out []*scope.Name
	add := func(at source.Span) {
		if n, _, ok := s.p.Names().At(at.Start); ok && n.Kind == kind {
			out = append(out, n)
		}
	}
	var look func([]*ast.Op)
	look = func(ops []*ast.Op) {
		for _, o := range ops {
			if o.Form == ast.AttrAlias || o.Form == ast.TypeAlias {
				add(o.Abs(o.NameSpan))
				continue
			}
			for _, sym := range o.Symbols {
				if sym.Def {
					add(o.Abs(sym.Span))
				}
			}
			if isFunction(o) {
				continue
			}
			for _, r := range o.Regions {
				for _, b := range r.Blocks {
					look(b.Ops)
				}
			}
		}
	}
	look(origin.File(s.module).Items)
	return out
}

// labels are the blocks of the region.
func (s *statement) labels() []Completion {
	if s.block == nil {
		return nil
	}
	var out []Completion
	for _, b := range s.block.Region.Blocks {
		if b.Label != "" {
			out = append(out, Completion{Kind: LabelItem, Label: b.Label, Detail: blockArgs(b), Text: b.Label})
		}
	}
	return out
}

func blockArgs(b *ir.Block) string {
	var args []string
	for _, a := range b.Args {
		args = append(args, a.Name+": "+a.Type.String())
	}
	return strings.Join(args, ", ")
}

// elements are the element types, behind the dimensions of a shape.
func (s *statement) elements(span *source.Span) []Completion {
	rest := strings.TrimPrefix(s.typed(), "x")
	for {
		size := strings.TrimLeft(rest, "0123456789")
		next, ok := strings.CutPrefix(size, "x")
		if !ok || size == rest {
			break
		}
		rest = next
	}
	span.Start = span.End - len(rest)
	return elementTypes()
}

func elementTypes() []Completion {
	var out []Completion
	for e := types.InvalidElem + 1; e <= types.Index; e++ {
		out = append(out, Completion{Kind: TypeItem, Label: e.String(), Text: e.String()})
	}
	return out
}

// types are the items after ":" or "->": the type that follows from the
// operands, those of the operands and of other values near by, aliases, and
// the beginnings of any other.
func (s *statement) types(l place) []Completion {
	var out []Completion
	seen := map[string]bool{}
	add := func(text, detail string) {
		text = s.spelled(text)
		if !seen[text] && text != "" && text != types.Unknown.String() {
			seen[text] = true
			out = append(out, Completion{Kind: TypeItem, Label: text, Detail: detail, Text: text})
		}
	}
	add(s.expected(l))
	if s.op != nil && origin.Tree(s.op) != nil && origin.Tree(s.op).Form != ast.Custom {
		for _, v := range s.op.Operands {
			add(v.Type.String(), "type of "+v.Name)
		}
	}
	looked := 0
	for v := range s.visible() {
		if looked++; len(out) >= 12 || looked > maxValues {
			break
		}
		add(v.Type.String(), "type of "+v.Name)
	}
	for _, a := range s.aliases('!') {
		if !seen[a.Label] {
			out = append(out, a)
		}
	}
	out = append(out, Completion{Kind: TypeItem, Label: "tensor", Detail: "tensor type", Text: "tensor<>", Snippet: "tensor<$1>"})
	return append(out, elementTypes()...)
}
