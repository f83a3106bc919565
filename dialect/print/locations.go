package print

import (
	"fmt"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/origin"
	"dmir/internal/escape"
)

// An Option changes what is printed.
type Option func(*printer)

// Locations prints the locations of ops, "loc(…)" in their text: as aliases, which stand behind the ops. Without
// it there are none.
func Locations(p *printer) {
	p.locations = &locations{alias: map[string]string{}, read: map[string]string{}}
}

// SameLocations prints the locations of ops as they stand in their text, for ops that stay in it.
func SameLocations(p *printer) { p.same = true }

// locations are the aliases of locations, in the order in which they are printed.
type locations struct {
	alias map[string]string // "#loc3", by what it stands for
	read  map[string]string // the location in terms of aliases, by its text
	lines []string
}

// loc prints the location written behind the op.
func (p *printer) loc(o *ir.Op) {
	t := origin.Tree(o)
	if p.locations == nil && !p.same || t == nil || o.Verbatim || t.Loc.Empty() {
		return
	}
	text := t.Text(p.m.Src, t.Loc)
	if p.same {
		p.out.WriteString(" " + text)
		return
	}
	name, known := p.locations.read[text]
	if !known {
		whole := p.m.Aliases.Expand(text)
		name = p.locations.of(unwrap(strings.TrimSuffix(strings.TrimPrefix(whole, "loc("), ")")), 0)
		p.locations.read[text] = name
	}
	p.out.WriteString(" loc(" + name + ")")
}

// definitions prints the aliases that were used.
func (p *printer) definitions() {
	if p.locations != nil {
		p.out.WriteString(strings.Join(p.locations.lines, ""))
	}
}

// maxNested bounds how deep locations are taken apart; those of programs are calls.
const maxNested = 64

// of is a location that is written in full, as an alias; a location in it is an alias too.
func (l *locations) of(text string, depth int) string {
	text = strings.TrimSpace(text)
	if text == "unknown" || depth > maxNested {
		return text
	}
	inside := func(s string) string { return l.of(s, depth+1) }
	switch {
	case strings.HasPrefix(text, "callsite(") && strings.HasSuffix(text, ")"):
		callee, caller := cutLocation(text[len("callsite("):len(text)-1], " at ")
		text = "callsite(" + inside(callee) + " at " + inside(caller) + ")"
	case strings.HasPrefix(text, "fused") && strings.HasSuffix(text, "]"):
		open := strings.IndexByte(text, '[')
		if attr, of := cutLocation(text, "["); of != "" {
			open = len(attr)
		}
		var parts []string
		for rest := text[open+1 : len(text)-1]; rest != ""; {
			var part string
			part, rest = cutLocation(rest, ",")
			parts = append(parts, inside(part))
		}
		text = text[:open+1] + strings.Join(parts, ", ") + "]"
	case strings.HasPrefix(text, `"`) && strings.HasSuffix(text, ")"):
		if name, of := cutLocation(text, "("); of != "" {
			text = name + "(" + inside(of[:len(of)-1]) + ")"
		}
	}
	text = visible(text)
	name, known := l.alias[text]
	if !known {
		name = "#loc"
		if n := len(l.alias); n > 0 {
			name += strconv.Itoa(n)
		}
		l.alias[text] = name
		l.lines = append(l.lines, name+" = loc("+text+")\n")
	}
	return name
}

// visible is a location with the escapes of MLIR in its strings, in place of characters that would change how a terminal or
// an editor shows what stands around them: control characters and those that turn the direction of text.
func visible(text string) string {
	if !strings.ContainsFunc(text, escape.Control) {
		return text
	}
	var b strings.Builder
	quoted, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		}
		if !quoted || !escape.Control(r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, `\%02X`, c)
		}
	}
	return b.String()
}

// cutLocation cuts text at the first separator outside of strings and brackets.
func cutLocation(text, at string) (before, after string) {
	depth := 0
	for i := 0; i < len(text); i++ {
		if depth == 0 && strings.HasPrefix(text[i:], at) {
			return text[:i], text[i+len(at):]
		}
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '(', '[', '<', '{':
			depth++
		case ')', ']', '>', '}':
			depth--
		}
	}
	return text, ""
}
