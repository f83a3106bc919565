package types

import (
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/lex"
)

// Error is why the dialect cannot use a type or an attribute.
type Error struct {
	Code  string // listed in Codes, or UnknownAlias
	Msg   string // one sentence without a final stop
	Help  string
	Part  string // the part of the text that is wrong, "" for all of it
	Write string // what to write instead of Part, "" where that is not known
	Path  []int  // of an error in a literal's lists: the entry that is wrong, by its places in them; nil of all of it
}

func (e *Error) Error() string { return e.Msg }

// Env is what the meaning of a type or attribute text depends on: the aliases
// of the section. The zero value has none. An Env remembers what it has read; it
// is not safe for concurrent use.
type Env struct {
	typeAlias map[string]*ast.TypeExpr
	attrAlias map[string]*ast.AttrExpr
	reading   map[string]bool // aliases being expanded, to find cycles
	types     map[string]Type // by text
	attrs     map[string]Attr // by text
}

// DefineType adds the alias name ("!name"). The first definition of a name counts.
func (e *Env) DefineType(name string, t *ast.TypeExpr) {
	if _, taken := e.typeAlias[name]; taken {
		return
	}
	if e.typeAlias == nil {
		e.typeAlias = map[string]*ast.TypeExpr{}
	}
	e.typeAlias[name] = t
}

// DefineAttr adds the alias name ("#name"). The first definition of a name counts.
func (e *Env) DefineAttr(name string, a *ast.AttrExpr) {
	if _, taken := e.attrAlias[name]; taken {
		return
	}
	if e.attrAlias == nil {
		e.attrAlias = map[string]*ast.AttrExpr{}
	}
	e.attrAlias[name] = a
}

// enter marks alias name as being expanded; leave it with the function returned.
func (e *Env) enter(name string) (leave func(), err error) {
	if e.reading[name] {
		return nil, &Error{Code: "DM152", Msg: "the alias " + name + " is defined in terms of itself"}
	}
	if e.reading == nil {
		e.reading = map[string]bool{}
	}
	e.reading[name] = true
	return func() { delete(e.reading, name) }, nil
}

// maxExpansion bounds what an alias may stand for in bytes: aliases of aliases
// double with every step, and 60 lines could otherwise fill all memory.
const maxExpansion = 1 << 16

// Expand replaces the aliases in a text that dmir does not look into by what
// they stand for, so that the text can leave its file. Aliases in a cycle, and
// those beyond 64 KiB of expanded text, stay. e may be nil; Expand changes
// nothing in it and may run beside itself.
func (e *Env) Expand(text string) string {
	if e == nil || len(e.typeAlias)+len(e.attrAlias) == 0 || !strings.ContainsAny(text, "!#") {
		return text
	}
	var b strings.Builder
	e.expand(&b, text, len(text)+maxExpansion, len(e.typeAlias)+len(e.attrAlias))
	return b.String()
}

func (e *Env) expand(b *strings.Builder, text string, budget, depth int) {
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '"':
			end := stringEnd(text, i)
			b.WriteString(text[i:end])
			i = end
		case '!', '#':
			end := i + 1
			for end < len(text) && (isWord(text[end]) || text[end] == '.' || text[end] == '$') {
				end++
			}
			name := text[i:end]
			if def := e.Alias(name); def != "" && depth > 0 && b.Len() < budget {
				e.expand(b, def, budget, min(depth, maxAliasDepth)-1)
			} else {
				b.WriteString(name)
			}
			i = end
		default:
			b.WriteByte(c)
			i++
		}
	}
}

// foreign is the text of a type or attribute that dmir does not look into, by which
// it is compared, printed and shown in messages: without aliases, on one line,
// without the comments that a line break ends.
func (e *Env) foreign(text string) string {
	text = e.Expand(text)
	if !strings.ContainsAny(text, "\n\r") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && strings.IndexByte(" \t\n\r", text[end]) >= 0 || strings.HasPrefix(text[end:], "//") {
			if text[end] == '/' {
				end = lex.LineEnd(text, end, len(text))
			} else {
				end++
			}
		}
		switch {
		case end > i:
			b.WriteByte(' ')
		case text[i] == '"':
			end = stringEnd(text, i)
			b.WriteString(text[i:end])
		default:
			b.WriteByte(text[i])
			end++
		}
		i = end
	}
	return b.String()
}

// maxAliasDepth bounds chains of aliases, which are short or cycles.
const maxAliasDepth = 64

// Alias is the text that the alias name ("#name" or "!name") is defined as, "" where it is not defined.
func (e *Env) Alias(name string) string {
	if t, ok := e.typeAlias[name]; ok {
		return t.Text
	}
	if a, ok := e.attrAlias[name]; ok {
		return a.Text
	}
	return ""
}

// fits refuses aliases that stand for too long a text.
func fits(name, expansion string) error {
	if len(expansion) <= maxExpansion {
		return nil
	}
	return &Error{Code: "DM156", Msg: "the alias " + name + " stands for more than 64 KiB of text"}
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// stringEnd is the offset behind the string literal that begins at i.
func stringEnd(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// TypeAliases are the types that aliases stand for, by name; those that are not read
// are left out. e may be nil.
func (e *Env) TypeAliases() map[string]Type {
	out := map[string]Type{}
	if e == nil {
		return out
	}
	for name, x := range e.typeAlias {
		if t, err := e.typeOf(x); err == nil {
			out[name] = t
		}
	}
	return out
}
