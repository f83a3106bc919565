package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmir/syntax/source"
)

// Code documents one kind of diagnostic, for dmir explain and for editors.
type Code struct {
	Code      string // "DM001"
	Name      string // "not-text"
	Summary   string // one line, no final stop; the first sentence of Doc where it is empty
	Doc       string // what it means, in Markdown
	Help      string // what to do about it, may be empty
	Python    string // what to do about it in a Python program that was traced, may be empty: a clause without a final stop
	Remedy    string // the function of a framework that Python names, may be empty: at what was traced inside of it nothing is said
	Ignorable bool   // a comment or dmir.toml can silence it
}

// register holds every code by its code and by its name; of several with one name
// the lowest. Packages fill it while they are initialized; after that it is only
// read.
var register = map[string]*Code{}

// Register adds the codes of a package to the register and returns them. It
// panics if a code lacks its name or documentation, if it is registered already,
// or if it shares its name with one that is ignored by name.
func Register(codes []Code) []Code {
	for i := range codes {
		c := &codes[i]
		if c.Code == "" || c.Name == "" || c.Doc == "" {
			panic(fmt.Sprintf("diag: code %q (%s) has no name or no documentation", c.Code, c.Name))
		}
		if old := register[c.Code]; old != nil {
			panic(fmt.Sprintf("diag: %s is registered as %s and as %s", c.Code, old.Name, c.Name))
		}
		register[c.Code] = c
		switch old := register[c.Name]; {
		case old == nil || c.Code < old.Code && !old.Ignorable && !c.Ignorable:
			register[c.Name] = c
		case old.Ignorable || c.Ignorable:
			panic(fmt.Sprintf("diag: %s and %s are both named %s", old.Code, c.Code, c.Name))
		}
		if c.Summary == "" {
			c.Summary = firstSentence(c.Doc)
		}
	}
	return codes
}

// Find returns the registered code with the given code or name, in any case; of
// several with one name the lowest. It returns the zero Code if there is none.
func Find(codeOrName string) Code {
	c := register[codeOrName]
	if c == nil {
		c = register[strings.ToUpper(codeOrName)]
	}
	if c == nil {
		c = register[strings.ToLower(codeOrName)]
	}
	if c == nil {
		return Code{}
	}
	return *c
}

// Codes returns all registered codes in order.
func Codes() []Code {
	var all []Code
	for key, c := range register {
		if key == c.Code {
			all = append(all, *c)
		}
	}
	slices.SortFunc(all, func(a, b Code) int { return cmp.Compare(a.Code, b.Code) })
	return all
}

// New returns a diagnostic with the name and help of a registered code. Line breaks in
// message, which come with what it quotes from a program, become spaces.
func New(code string, severity Severity, span source.Span, message string) Diagnostic {
	c := Find(code)
	if strings.ContainsAny(message, "\n\r") {
		message = strings.Join(strings.Fields(message), " ")
	}
	return Diagnostic{Code: code, Name: c.Name, Severity: severity, Span: span, Message: message, Help: c.Help}
}

// Text is the documentation in Markdown, without a title.
func (c Code) Text() string {
	text := strings.TrimSuffix(c.Doc, "\n") + "\n"
	if c.Help != "" {
		text += "\n## What to do\n" + upperFirst(c.Help) + ".\n"
	}
	if c.Python != "" {
		text += "\n## In Python\n" + upperFirst(c.Python) + ".\n"
	}
	return text
}

// Markdown is the documentation as a page.
func (c Code) Markdown() string {
	page := fmt.Sprintf("# %s %s\n\n", c.Code, c.Name)
	text := c.Text()
	if !strings.HasPrefix(text, c.Summary) {
		page += upperFirst(strings.TrimSuffix(c.Summary, ".")) + ".\n\n"
	}
	page += text
	if c.Ignorable {
		page += "\n## Silence\nOne line: `// dmir: ignore[" + c.Code + "] reason`. Everywhere: `ignore = [\"" + c.Code + "\"]` under `[lint]` in `dmir.toml`.\n"
	}
	return page
}

func firstSentence(doc string) string {
	s, _, _ := strings.Cut(doc, ". ")
	s, _, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(s, ".")
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
