package print

import (
	"fmt"
	"strconv"
	"strings"

	"dmir/base/escape"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/origin"
)

// An Option changes what is printed.
type Option func(*printer)

// Locations prints the locations of ops, "loc(…)" in their text: as aliases, which stand behind the ops. Without
// it there are none.
func Locations(p *printer) {
	p.locations = &locations{alias: map[string]string{}, of: map[loc.Loc]string{}}
}

// SameLocations prints the locations of ops as they stand in their text, for ops that stay in it.
func SameLocations(p *printer) { p.same = true }

// locations are the aliases of locations, in the order in which they are printed.
type locations struct {
	alias map[string]string  // "#loc3", by what it stands for
	of    map[loc.Loc]string // by the location
	lines []string
}

// loc prints the location behind the op.
func (p *printer) loc(o *ir.Op) {
	switch t := origin.Tree(o); {
	case o.Verbatim:
	case p.same:
		if t != nil && !t.Loc.Empty() {
			p.out.WriteString(" " + t.Text(p.m.Src, t.Loc))
		}
	case p.locations != nil && o.Loc != nil:
		p.out.WriteString(" loc(" + p.locations.name(o.Loc) + ")")
	}
}

// traced prints what an argument was called in the program that it was traced from, where that is not its name.
func (p *printer) traced(v *ir.Value) {
	if p.locations != nil && v.Loc != nil && v.Loc.Kind == loc.Name && v.Loc.A == nil && "%"+v.Loc.Text != v.Name {
		p.out.WriteString(" loc(" + visible(v.Loc.Write(p.locations.name)) + ")")
	}
}

// definitions prints the aliases that were used.
func (p *printer) definitions() {
	if p.locations != nil {
		p.out.WriteString(strings.Join(p.locations.lines, ""))
	}
}

// name is the alias of n; the locations in it have aliases too, before its own.
func (l *locations) name(n loc.Loc) string {
	if n == nil {
		return "unknown"
	}
	name, known := l.of[n]
	if known {
		return name
	}
	text := visible(n.Write(l.name))
	if name, known = l.alias[text]; !known {
		name = "#loc"
		if n := len(l.alias); n > 0 {
			name += strconv.Itoa(n)
		}
		l.alias[text] = name
		l.lines = append(l.lines, name+" = loc("+text+")\n")
	}
	l.of[n] = name
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
