package scope

import (
	"fmt"
	"slices"
	"strings"

	"dmir/syntax/diag"
)

// Rename is the list of edits that give n another name, with or without its
// sigil. It returns an error for a name that MLIR does not allow there, and
// for one that would then have two definitions.
func Rename(x *Index, n *Name, name string) ([]diag.Edit, error) {
	text, err := spelling(n.Kind, name)
	if err != nil {
		return nil, err
	}
	if text == n.Text {
		return nil, nil
	}
	for _, other := range x.Names() {
		if other != n && other.Kind == n.Kind && other.Text == text && collide(n, other) {
			return nil, fmt.Errorf("%s is already the name of another %s here", text, n.Kind)
		}
	}
	var edits []diag.Edit
	for _, span := range append(n.Defs(), n.Uses()...) {
		to := text
		if written := x.src.Slice(span); n.Kind != Axis && (written == "" || written[0] != n.Text[0]) {
			to = strings.Trim(text[1:], `"`) // the content of a string: sym_name, dm.state
		}
		edits = append(edits, diag.Edit{Span: span, Text: to})
	}
	slices.SortFunc(edits, func(a, b diag.Edit) int { return a.Span.Start - b.Span.Start })
	return edits, nil
}

// collide reports whether two things could not both have one name: values where
// one is visible from the other's region, symbols likewise, labels of the same
// region, aliases of the same section.
func collide(a, b *Name) bool {
	switch a.Kind {
	case Block:
		return a.home == b.home
	case AttrAlias, TypeAlias:
		return a.section == b.section
	case Axis:
		return a.mesh == b.mesh
	}
	return visible(a.home, b) || visible(b.home, a)
}

// visible reports whether looking up from r reaches the region of n.
func visible(r *region, n *Name) bool {
	for ; r != nil; r = r.parent {
		if r == n.home {
			return true
		}
		if n.Kind == Value && r.isolated {
			return false
		}
	}
	return false
}

// spelling is a new name as it is written, sigil included.
func spelling(k Kind, name string) (string, error) {
	sigil := [...]string{"%", "^", "@", "#", "!", ""}[k]
	bare := strings.TrimPrefix(name, sigil)
	switch k {
	case Symbol:
		if q, ok := strings.CutPrefix(bare, `"`); ok {
			bare, ok = strings.CutSuffix(q, `"`)
			if !ok || bare == "" || strings.ContainsAny(bare, "\"\\\n\r") {
				return "", fmt.Errorf("%s is not a symbol: the text in quotes cannot contain quotes, backslashes or line ends", name)
			}
			return symbolSpelling(bare), nil
		}
		if !isBareID(bare) {
			return "", fmt.Errorf("%s is not a symbol: write a letter or _ and then letters, digits and _$., or put it in quotes", name)
		}
	case AttrAlias, TypeAlias:
		if !isBareID(bare) || strings.Contains(bare, ".") {
			return "", fmt.Errorf("%s is not an alias: write a letter or _ and then letters, digits, _ and $; names with a dot are those of dialects", name)
		}
	case Axis:
		if !isBareID(bare) {
			return "", fmt.Errorf("%s is not an axis: write a letter or _ and then letters, digits, dots, _ and $", name)
		}
	default:
		if !isSuffixID(bare) {
			return "", fmt.Errorf("%s is not the name of a %s: write a number, or letters, digits and $._- that do not begin with a digit", name, k)
		}
	}
	return sigil + bare, nil
}

// isSuffixID reports whether s may follow "%" or "^".
func isSuffixID(s string) bool {
	number := s != "" && isDigit(s[0])
	for i := range len(s) {
		if number && !isDigit(s[i]) || !isNameByte(s[i]) && s[i] != '-' {
			return false
		}
	}
	return s != ""
}
