package feature

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/lex"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// storedText says how many of its elements t stores, a sparse tensor, under the sizes in
// bind.
func storedText(t *types.Tensor, bind map[string]int64) string {
	all, formula := t.Elements().Eval(bind), t.Values()
	stored := formula.Eval(bind)
	if stored.IsUnnamed() {
		return "an unknown number of " + count(all) + " elements stored"
	}
	text := count(stored) + " of " + count(all) + " elements stored"
	n, known := stored.Int()
	k, sized := all.Int()
	if !known || !sized || k == 0 {
		return text
	}
	text += ", " + units.Percent(float64(n), float64(k))
	if symbols := formula.Symbols(); len(symbols) > 0 {
		for i, s := range symbols {
			symbols[i] = fmt.Sprintf("%s = %d", s, bind[s])
		}
		text += " where " + strings.Join(symbols, ", ")
	}
	return text
}

// count is a number of elements in full, or the formula of it.
func count(d dim.Dim) string {
	if n, ok := d.Int(); ok {
		return group(n)
	}
	return d.String()
}

// componentsText is the table of what stores t, a sparse tensor: its levels, its components
// and, to compare, the tensor with all of its elements.
func componentsText(t *types.Tensor, bind map[string]int64) string {
	var rows []row
	for i, l := range t.Format.Levels {
		rows = append(rows, row{fmt.Sprintf("level %d", i), l.String()})
	}
	for _, c := range t.Components() {
		text := c.Tensor.Shape[0].String() + " × " + c.Tensor.Elem.String()
		bytes := units.DimBytes(c.Tensor.Bytes().Eval(bind))
		rows = append(rows, row{c.Name, text + " = " + bytes})
	}
	return table(append(rows, row{"dense", units.DimBytes(t.Elem.Size(t.Elements()).Eval(bind))}))
}

// formatAt describes the format that stands at off, in the type of a sparse tensor; nil
// where there is none.
func formatAt(p *program.Program, off int) *Hover {
	t, span := tensorAt(p, off)
	if t == nil || t.Format == nil {
		return nil
	}
	if at := strings.IndexByte(p.Src.Slice(span), '#'); at >= 0 {
		span = source.Span{Start: span.Start + at, End: span.End - 1}
	}
	if !span.Contains(off) {
		return nil
	}
	doc := ""
	for _, f := range types.Formats {
		if name, ok := strings.CutPrefix(p.Src.Slice(span), "#dm."+f.Name); ok && (name == "" || name[0] == '<') {
			doc = "`#dm." + f.Name + "` stores " + f.Doc + ".\n\n"
		}
	}
	return &Hover{span, doc + sparseText(t, bindingsAt(p, off))}
}

// aliasText is what is stored of the sparse tensor whose type the alias n is, or in whose
// type it states the format; "" where there is none.
func aliasText(p *program.Program, n *scope.Name, off int) string {
	t, _ := tensorAt(p, off)
	if n.Kind == scope.TypeAlias {
		s := &statement{p: p, off: off}
		x, err := parse.Type(n.Text)
		if err != nil {
			return ""
		}
		of, _ := types.FromExpr(x, s.moduleAt().Aliases)
		t, _ = of.(*types.Tensor)
	}
	if t == nil || t.Format == nil {
		return ""
	}
	return "\n" + sparseText(t, bindingsAt(p, off))
}

// bindingsAt are the sizes of symbols in the function that off lies in.
func bindingsAt(p *program.Program, off int) map[string]int64 {
	if f := funcOf(p, opAt(p, off)); f != nil {
		return op.Bindings(f.Func, p.Bind)
	}
	return p.Bind
}

// sparseText says how large t is, a sparse tensor, and what stores it.
func sparseText(t *types.Tensor, bind map[string]int64) string {
	return escape(units.DimBytes(t.Bytes().Eval(bind))) + " · " + escape(storedText(t, bind)) + "\n\n" + componentsText(t, bind)
}

// inFormat is the index of the bracket behind the name of the format that the place lies in,
// -1 where it lies in none.
func (s *statement) inFormat(l place) int {
	for _, i := range l.open {
		if s.tok(i) != "<" {
			continue
		}
		if name, ok := strings.CutPrefix(s.tok(i-1), "#dm."); ok && slices.ContainsFunc(types.Formats, func(f types.FormatName) bool { return f.Name == name }) {
			return i
		}
	}
	return -1
}

// encodings are the formats that a tensor of that rank may have, of any where rank is -1.
func encodings(rank int) []Completion {
	var out []Completion
	for _, f := range types.Formats {
		if rank >= 0 && f.Rank > 0 && f.Rank != rank {
			continue
		}
		args := f.Args
		if f.Name == "sparse" {
			args = levelMap(max(rank, 1)) + ", nnz = e"
		}
		first, size, _ := strings.Cut(args, "nnz = ")
		snippet := first
		switch {
		case size == "":
			snippet = "${1:" + first + "}"
		case f.Blocks:
			snippet = "${1:" + strings.TrimSuffix(first, ", ") + "}, nnz = ${2:" + size + "}"
		default:
			snippet += "nnz = ${1:" + size + "}"
		}
		name := "#dm." + f.Name
		out = append(out, Completion{Kind: PlaceItem, Label: name + "<" + args + ">", Detail: "format", Doc: f.Doc, Text: name + "<" + args + ">", Filter: name, Snippet: name + "<" + snippet + ">"})
	}
	return out
}

// levelMap is the map of a format of that rank whose last dimension is compressed.
func levelMap(rank int) string {
	dims, levels := make([]string, rank), make([]string, rank)
	for d := range dims {
		dims[d] = "d" + strconv.Itoa(d)
		levels[d] = dims[d] + " : dense"
	}
	levels[rank-1] = dims[rank-1] + " : compressed"
	return "map = (" + strings.Join(dims, ", ") + ") -> (" + strings.Join(levels, ", ") + ")"
}

// encoded is the rank of the tensor in whose type the place, behind a comma, lies; -1 where
// its shape has errors.
func (s *statement) encoded(in int) int {
	text := s.p.Src.Slice(source.Span{Start: s.before[in].End, End: s.off - len(s.typed())})
	t, err := parse.Type("tensor<" + strings.TrimRight(text, ", \t\r\n") + ">")
	if err != nil {
		return -1
	}
	return len(t.Shape)
}

// formatItems are the completions in a format whose arguments begin behind the bracket open.
func (s *statement) formatItems(l place, open int) []Completion {
	in, last := l.inside(), s.tok(len(s.before)-1)
	switch s.tok(in) {
	case "[":
		return s.dimensions()
	case "(":
		if last != ":" {
			return nil
		}
		var out []Completion
		for _, k := range types.LevelKinds {
			out = append(out, Completion{Kind: WordItem, Label: string(k.Kind), Detail: k.Doc, Text: string(k.Kind)})
		}
		return out
	}
	if in != open {
		return nil
	}
	if last == "=" {
		switch s.tok(len(s.before) - 2) {
		case "nnz":
			return s.dimensions()
		case "posWidth", "crdWidth":
			var out []Completion
			for _, bits := range []string{"8", "16", "32", "64"} {
				out = append(out, Completion{Kind: WordItem, Label: bits, Detail: "bits", Text: bits})
			}
			return out
		}
		return nil
	}
	if last != "<" && last != "," {
		return nil
	}
	has := func(name string) bool {
		return slices.ContainsFunc(s.before[open:], func(t lex.Token) bool { return s.p.Src.Slice(t.Span) == name })
	}
	var out []Completion
	switch name := s.tok(open - 1); {
	case last == "<" && (name == "#dm.bsr" || name == "#dm.nm"):
		for _, f := range types.Formats {
			if "#dm."+f.Name == name {
				first, _, _ := strings.Cut(f.Args, ",")
				out = append(out, Completion{Kind: WordItem, Label: first, Detail: f.Doc, Text: first, Snippet: "${1:" + first + "}"})
			}
		}
		return out
	case name == "#dm.sparse" && !has("map"):
		out = append(out, Completion{Kind: AttrItem, Label: "map", Detail: "(d0, …) -> (d0 : dense, …)", Doc: "the levels, the outermost first", Text: levelMap(2)})
	}
	for _, a := range []struct{ name, form, doc, hole string }{
		{"nnz", "e, or a list", "how many entries each compressed level has room for", "e"},
		{"posWidth", "8, 16, 32, 64", "bits of a position; 32 by default", "64"},
		{"crdWidth", "8, 16, 32, 64", "bits of a coordinate; 32 by default", "16"},
		{"dims", "[…]", "names of the sizes written as `?`", "[]"},
	} {
		if !has(a.name) {
			out = append(out, Completion{Kind: AttrItem, Label: a.name, Detail: a.form, Doc: a.doc, Text: a.name + " = ", Snippet: a.name + " = ${1:" + a.hole + "}"})
		}
	}
	return out
}
