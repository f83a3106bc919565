package print

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Source is m as people write it: Pretty with the file's aliases for types, and new
// ones for long types that repeat, in lines of about lineWidth characters. Package
// format would change nothing in it.
func Source(m *ir.Module, opts ...Option) (string, error) {
	count := newPrinter(m, false)
	count.aliases = &aliases{uses: map[string]int{}}
	if _, err := count.module(); err != nil {
		return "", err
	}
	p := newPrinter(m, false, opts...)
	p.aliases = newAliases(m, count.aliases.uses)
	body, err := p.module()
	if err != nil {
		return "", err
	}
	return format.File(parse.File(source.New("", p.aliases.definitions()+body))), nil
}

// Sections are the sources of modules, cut as in the text that they come from.
func Sections(modules []*ir.Module, opts ...Option) (string, error) {
	texts := make([]string, len(modules))
	for i, m := range modules {
		var err error
		if texts[i], err = Source(m, opts...); err != nil {
			return "", err
		}
	}
	return strings.Join(texts, "\n// -----\n\n"), nil
}

const (
	// lineWidth is where signatures are broken.
	lineWidth = 120
	// A type of this many characters, used as often, gets an alias.
	longType  = 32
	oftenType = 3
)

// aliases are the names of types while they are printed.
type aliases struct {
	uses map[string]int    // of types, by their text
	name map[string]string // of types that have one, by their text
	used []string          // names, in the order of their first use

	still bool // what is printed is only measured
}

func newAliases(m *ir.Module, uses map[string]int) *aliases {
	a := &aliases{uses: map[string]int{}, name: map[string]string{}}
	taken := map[string]bool{}
	known := m.Aliases.TypeAliases()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		taken[name] = true
		if text := known[name].String(); a.name[text] == "" && text != "" {
			a.name[text] = name
		}
	}
	ir.WalkValues(m.Ops, func(v *ir.Value) {
		if v.Type == nil {
			return
		}
		text := v.Type.String()
		if len(text) < longType || uses[text] < oftenType || a.name[text] != "" {
			return
		}
		if _, isFunc := v.Type.(*types.Func); isFunc {
			return
		}
		a.name[text] = freeAlias(v.Name, taken)
		taken[a.name[text]] = true
	})
	return a
}

// freeAlias is a name for the type of the value called name.
func freeAlias(name string, taken map[string]bool) string {
	base := strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.TrimPrefix(name, "%"))
	if base == "" || base[0] >= '0' && base[0] <= '9' {
		base = "t"
	}
	alias := "!" + base
	for i := 1; taken[alias]; i++ {
		alias = "!" + base + "_" + strconv.Itoa(i)
	}
	return alias
}

// of is how a type is written.
func (a *aliases) of(text string) string {
	name := cmp.Or(a.name[text], text)
	if a.still {
		return name
	}
	if a.uses[text]++; a.uses[text] == 1 && name != text {
		a.used = append(a.used, name)
	}
	return name
}

// definitions are those of the names that were used.
func (a *aliases) definitions() string {
	if len(a.used) == 0 {
		return ""
	}
	text := map[string]string{}
	for t, name := range a.name {
		text[name] = t
	}
	var b strings.Builder
	for _, name := range a.used {
		b.WriteString(name + " = " + text[name] + "\n")
	}
	return b.String() + "\n"
}

// rest is how many characters the current line has room for.
func (p *printer) rest() int {
	s := p.out.String()
	return lineWidth - (len(s) - 1 - strings.LastIndexByte(s, '\n'))
}

// list prints parts in parentheses. Where lines are broken, one that is full is; own
// begins the first part on a line of its own if not all have room in this one.
func (p *printer) list(parts []string, own bool) {
	p.out.WriteByte('(')
	indent := lineWidth - p.rest()
	if own && p.aliases != nil && p.rest() < width(parts) {
		p.out.WriteString("\n" + hang)
		indent = len(hang)
	}
	for i, part := range parts {
		switch {
		case i == 0:
		case p.aliases != nil && p.rest() < len(", ,")+len(part):
			p.out.WriteString(",\n" + strings.Repeat(" ", indent))
		default:
			p.out.WriteString(", ")
		}
		p.out.WriteString(part)
	}
	p.out.WriteByte(')')
}

// hang is in front of a line that continues another one, before package format indents
// it for the depth of that.
const hang = "    "

// broken begins a new line, where lines are broken and what follows in this one, of n
// characters, has no room; otherwise it prints a blank.
func (p *printer) broken(n int) {
	if p.aliases != nil && p.rest() < n+1 {
		p.out.WriteString("\n" + hang)
		return
	}
	p.out.WriteByte(' ')
}

// captured is what f prints.
func (p *printer) captured(f func()) string {
	before := p.out
	p.out = strings.Builder{}
	f()
	text := p.out.String()
	p.out = before
	return text
}

// measured is how many characters f prints.
func (p *printer) measured(f func()) int {
	if p.aliases != nil {
		p.aliases.still = true
		defer func() { p.aliases.still = false }()
	}
	return len(p.captured(f))
}

// width is how many characters a list of parts takes.
func width(parts []string) int {
	n := len("()")
	for _, part := range parts {
		n += len(part) + len(", ")
	}
	return n - cmp.Compare(len(parts), 0)*len(", ")
}
