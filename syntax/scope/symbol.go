package scope

import (
	"slices"
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// symbolText is a symbol without quotes that it does not need: @"f" is @f.
func symbolText(name string) string {
	if q := strings.TrimPrefix(name, `@"`); q != name {
		if bare := strings.TrimSuffix(q, `"`); isBareID(bare) {
			return "@" + bare
		}
	}
	return name
}

// symbolSpelling is the symbol whose unquoted name is s.
func symbolSpelling(s string) string {
	if isBareID(s) {
		return "@" + s
	}
	return `@"` + s + `"`
}

// symName is the symbol that an op in generic form defines by the attribute
// sym_name = "f", and the span of the string's content.
func symName(o *ast.Op, src *source.File) (string, ast.Rel) {
	if o.Form != ast.Generic {
		return "", ast.Rel{}
	}
	for _, dict := range []ast.Rel{o.Props, o.Attrs} {
		if name, at := stringEntry(o, src, dict, "sym_name"); name != "" {
			return symbolSpelling(name), at
		}
	}
	return "", ast.Rel{}
}

// stringEntry is the content of a string that is the value of key in a dictionary
// of o, and its span; "" where there is none.
func stringEntry(o *ast.Op, src *source.File, dict ast.Rel, key string) (string, ast.Rel) {
	text := o.Text(src, dict)
	i := entry(text, key)
	if i < 0 || i >= len(text) || text[i] != '"' {
		return "", ast.Rel{}
	}
	end := i + 1
	for end < len(text) && text[end] != '"' && text[end] != '\n' {
		if text[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(text) || text[end] != '"' {
		return "", ast.Rel{}
	}
	return text[i+1 : end], ast.Rel{Start: dict.Start + int32(i) + 1, End: dict.Start + int32(end)}
}

// states notes the arguments that the results of the function o name by
// dm.state = "w". What names none is for the verifier.
func (b *builder) states(o *ast.Op, body *region) {
	for _, r := range o.Func.Results {
		if r.Attrs.Empty() {
			continue
		}
		name, at := stringEntry(o, b.x.src, r.Attrs, "dm.state")
		if n := body.names[Value]["%"+name]; n != nil {
			b.occur(n, place{o, at}, false)
		}
	}
}

// entry is the offset of the value of key in a dictionary's text, -1 where the
// dictionary itself (not one inside it, nor a string) has no such entry.
func entry(dict, key string) int {
	if !strings.Contains(dict, key) {
		return -1
	}
	depth := 0
	for i := 0; i < len(dict); i++ {
		switch c := dict[i]; c {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		case '"':
			end := i + 1
			for end < len(dict) && dict[end] != '"' {
				if dict[end] == '\\' {
					end++
				}
				end++
			}
			i = end
		default:
			if depth != 1 || !strings.HasPrefix(dict[i:], key) || isNameByte(dict[i-1]) {
				continue
			}
			rest := strings.TrimLeft(dict[i+len(key):], " \t\r\n")
			if v, ok := strings.CutPrefix(rest, "="); ok {
				return len(dict) - len(strings.TrimLeft(v, " \t\r\n"))
			}
		}
	}
	return -1
}

// symbolRefs notes the symbol uses of o; the parts of @a::@b belong together.
func (b *builder) symbolRefs(o *ast.Op, r *region) {
	for i := 0; i < len(o.Symbols); {
		first := i
		i++
		for i < len(o.Symbols) && b.joined(o, o.Symbols[i-1].Span.End, o.Symbols[i].Span.Start) {
			i++
		}
		if !o.Symbols[first].Def {
			b.refs = append(b.refs, symbolRef{in: r, op: o, first: first, last: i})
		}
	}
}

func (b *builder) joined(o *ast.Op, from, to int32) bool {
	return strings.TrimSpace(o.Text(b.x.src, ast.Rel{Start: from, End: to})) == "::"
}

// resolve finds what the parts of a symbol reference stand for.
func (b *builder) resolve(ref symbolRef) {
	if !ref.axes.Empty() {
		b.axisStrings(ref.op, ref.axes, b.meshNamed(ref.in))
		return
	}
	path := ref.op.Symbols[ref.first:ref.last]
	n := ref.in.lookup(Symbol, symbolText(path[0].Name))
	if own := b.in.symbols[ref.op]; n == nil && own != nil {
		n = lookupIn(own, path[0])
	}
	for i, s := range path {
		if i > 0 && n != nil {
			n = lookupIn(n, s)
		}
		at := place{ref.op, s.Span}
		if n != nil {
			b.occur(n, at, false)
			b.split(ref.op, ref.first+i, n)
			continue
		}
		text := symbolText(s.Name)
		unknown := b.missing(ref.in, Symbol, text)
		b.occur(unknown, at, false)
		b.split(ref.op, ref.first+i, unknown)
		if b.x.calls(ref.op.Name) {
			d := b.report("DM169", certain(ref.op), at.span(), "there is no function %s", named(text))
			if like := b.in.like(text); like != "" {
				d.Replace(like)
			}
		}
	}
}

// named is a symbol for a message.
func named(symbol string) string {
	if symbol == "@" {
		return "without a name"
	}
	return symbol
}

// like is the symbol of the section most like text, "" where none is. Each
// search compares all names, so their number is bounded.
func (in *section) like(text string) string {
	if in.guesses++; in.guesses > maxGuesses {
		return ""
	}
	bare := func(symbol string) string { return strings.Trim(symbol[1:], `"`) }
	names := make([]string, 0, len(in.symbols))
	for _, n := range in.symbols {
		names = append(names, bare(n.Text))
	}
	slices.Sort(names)
	if s := diag.Suggest(bare(text), names); s != "" {
		return symbolSpelling(s)
	}
	return ""
}

// maxGuesses bounds the unknown functions of a section for which a name is
// suggested.
const maxGuesses = 32

// lookupIn is the symbol that the op of n holds under the name of s.
func lookupIn(n *Name, s ast.Symbol) *Name {
	for _, r := range n.inner {
		if m := r.names[Symbol][symbolText(s.Name)]; m != nil {
			return m
		}
	}
	return nil
}

// isBareID reports whether s needs no quotes behind "@".
func isBareID(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) || i == 0 && (isDigit(s[i]) || s[i] == '$' || s[i] == '.') {
			return false
		}
	}
	return s != ""
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c) || c == '_' || c == '$' || c == '.'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
