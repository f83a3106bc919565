package types

import (
	"strings"

	"dmir/syntax/parse"
)

// SymbolOf is the reference to the symbol called name.
func SymbolOf(name string) Symbol {
	if isBareID(name) {
		return Symbol(name)
	}
	return Symbol(parse.Quote(name))
}

// ParseSymbol is the reference written as "@f" or "@f::@g" in the one spelling
// that all references to a symbol share: quotes stand only where they must.
func ParseSymbol(text string) Symbol {
	var path []string
	for text != "" {
		text = strings.TrimPrefix(strings.TrimSpace(text), "@")
		end := len(text)
		if strings.HasPrefix(text, `"`) {
			end = stringEnd(text, 0)
		} else if i := strings.Index(text, "::"); i >= 0 {
			end = i
		}
		path = append(path, string(SymbolOf(parse.Unquote(strings.TrimSpace(text[:end])))))
		_, text, _ = strings.Cut(text[end:], "::")
	}
	return Symbol(strings.Join(path, "::@"))
}

// Name is the name of the symbol without quotes; flat is false for a reference
// to a symbol inside another, whose path is given as it is spelled.
func (a Symbol) Name() (name string, flat bool) {
	s := string(a)
	if strings.HasPrefix(s, `"`) && stringEnd(s, 0) == len(s) {
		return parse.Unquote(s), true
	}
	return s, !strings.Contains(s, "::")
}
