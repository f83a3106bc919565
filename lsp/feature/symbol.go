package feature

import (
	"strings"
	"unicode"

	"dmir/syntax/ast"
	"dmir/syntax/scope"
)

// FindSymbols are the entries of the outline, in textual order and without
// their children, whose names hold the letters of query in this order,
// ignoring case. All match an empty query.
func FindSymbols(f *ast.File, query string) []scope.Item {
	var out []scope.Item
	var find func([]scope.Item)
	find = func(items []scope.Item) {
		for _, it := range items {
			inner := it.Children
			it.Children = nil
			if Matches(it.Name, query) {
				out = append(out, it)
			}
			find(inner)
		}
	}
	find(scope.Outline(f))
	return out
}

// Matches reports whether name holds the letters of query in this order,
// ignoring case.
func Matches(name, query string) bool {
	for _, q := range query {
		i := strings.IndexFunc(name, func(r rune) bool { return unicode.ToLower(r) == unicode.ToLower(q) })
		if i < 0 {
			return false
		}
		name = name[i+1:]
	}
	return true
}
