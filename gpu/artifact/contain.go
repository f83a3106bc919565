package artifact

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// LLVM is the target whose programs' source is LLVM IR.
const LLVM = "llvm"

var (
	// inIR are the parts of IR that may hold any word: strings, comments, names.
	inIR = regexp.MustCompile(`"[^"]*"|;[^\n]*|[@%!$^][-a-zA-Z$._0-9]+`)
	// beyondIR matches assembly, which may read files.
	beyondIR = regexp.MustCompile(`\basm\b`)
	// linkerIR matches the metadata that linkers obey.
	linkerIR = regexp.MustCompile(`!llvm\.(linker\.options|dependent-libraries)\b`)
)

// containedIR is contained for LLVM IR, which includes no files.
func (p *Program) containedIR() error {
	n := 0
	for line := range strings.Lines(p.Source) {
		n++
		if linkerIR.MatchString(line) {
			return fmt.Errorf("its source, line %d, has options of a linker", n)
		}
		if beyondIR.MatchString(inIR.ReplaceAllString(line, " ")) {
			return fmt.Errorf("its source, line %d, has assembly", n)
		}
	}
	if len(p.Headers) > 0 {
		return fmt.Errorf("it has headers, which its source cannot include")
	}
	return nil
}

// contained returns an error if the program's C++ has an effect on the compilation
// beyond its own text: a compiler reads no file but the headers in the program, and
// obeys no pragmas or host assembly in it. It does not restrict what the code
// computes; see docs/SECURITY.md.
func (p *Program) contained() error {
	if p.Target == LLVM {
		return p.containedIR()
	}
	c := container{}
	if p.Headers != nil {
		c.headers = map[string]bool{}
	}
	for _, h := range p.Headers {
		if !flatHeader.MatchString(h.Name) || c.headers[h.Name] {
			return fmt.Errorf("%q is not a valid name for a header", h.Name)
		}
		c.headers[h.Name] = true
	}
	for _, h := range p.Headers {
		if err := c.text(h.Name, h.Text, true); err != nil {
			return err
		}
	}
	return c.text("its source", p.Source, false)
}

var (
	flatHeader = regexp.MustCompile(`^[A-Za-z0-9_]+\.cuh$`)
	// ofHost are the headers of the emulation, which programs do not hold.
	ofHost       = regexp.MustCompile(`^emu(_[a-z]+)?\.cuh$`)
	includeRest  = regexp.MustCompile(`^"([^"]*)"$`)
	lineRest     = regexp.MustCompile(`^[0-9]+( "([^"\\]|\\\\|\\077)*")?$`)
	pragmaRest   = regexp.MustCompile(`^(once|unroll( [0-9]+)?)$`)
	unrollString = regexp.MustCompile(`^"unroll( [0-9]+)?"$`)
)

// inHeaders and inSource are the directives that texts have. A source defines
// no macros, so that its tokens have their plain meaning.
var (
	inSource  = strings.Fields("include line pragma")
	inHeaders = append(strings.Fields("define undef if ifdef ifndef elif else endif error"), inSource...)
)

// container checks the texts of one program.
type container struct{ headers map[string]bool } // nil: those of the prelude that is built in

// text checks one of them as a preprocessor reads it: lines that a backslash joins
// are one, and comments are blanks.
func (c *container) text(name, text string, header bool) error {
	s := scanner{text: text, line: 1}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s, line %d, %s", name, s.line, fmt.Sprintf(format, args...))
	}
	for {
		toks, err := s.logical()
		if err != nil {
			return fail("%v", err)
		}
		if toks == nil {
			return nil
		}
		define := false
		if len(toks) > 0 && toks[0] == "#" {
			word, rest := "", ""
			if len(toks) > 1 {
				word, rest = toks[1], strings.Join(toks[2:], " ")
			}
			define = word == "define"
			allowed := inSource
			if header {
				allowed = inHeaders
			}
			switch {
			case word == "" && len(toks) == 1:
			case !slices.Contains(allowed, word):
				return fail("has the directive #%s", word)
			case word == "include":
				m := includeRest.FindStringSubmatch(rest)
				if m == nil || !c.has(m[1], header) {
					return fail("includes %s, which is not a header of the program", rest)
				}
			case word == "line" && !lineRest.MatchString(rest), word == "pragma" && !pragmaRest.MatchString(rest):
				return fail("has #%s %s", word, rest)
			}
		}
		for i, t := range toks {
			after := strings.Join(toks[i+1:min(i+4, len(toks))], " ")
			switch t {
			case "__has_include", "__has_include_next", "__has_embed", "__pragma", "import", "module":
				return fail("has the word %s", t)
			case "asm", "__asm", "__asm__":
				if !header { // headers have it for devices; the emulator forbids it
					return fail("has assembly")
				}
			case "_Pragma":
				text := ""
				if len(toks) > i+2 {
					text = toks[i+2]
				}
				macro := header && define && len(toks) == 11 && toks[2] == "DM_PRAGMA"
				if !header || !macro && !unrollString.MatchString(text) {
					return fail("has the pragma %s", after)
				}
			case "DM_PRAGMA":
				if !(define && i == 2) && !strings.HasPrefix(after, "( unroll") {
					return fail("has the pragma %s", after)
				}
			}
		}
	}
}

func (c *container) has(name string, header bool) bool {
	if c.headers == nil {
		return flatHeader.MatchString(name)
	}
	return c.headers[name] || header && ofHost.MatchString(name)
}

// scanner splits C++ into preprocessor tokens.
type scanner struct {
	text string
	at   int
	line int // on which the last logical line began
	next int // lines that it had
}

// splice is the length of a backslash and the end of line behind it, 0 where
// there is none.
func (s *scanner) splice() int {
	if s.text[s.at] != '\\' {
		return 0
	}
	n := 1
	for s.at+n < len(s.text) && strings.IndexByte(" \t\r", s.text[s.at+n]) >= 0 {
		n++
	}
	if s.at+n < len(s.text) && s.text[s.at+n] == '\n' {
		return n + 1
	}
	return 0
}

// peek is the current character, with lines joined; 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.text) {
		n := s.splice()
		if n == 0 {
			return s.text[s.at]
		}
		s.at += n
		s.next++
	}
	return 0
}

func (s *scanner) take() byte {
	c := s.peek()
	if c == '\n' {
		s.next++
	}
	if s.at < len(s.text) {
		s.at++
	}
	return c
}

func letter(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// logical is the tokens of the next logical line, none of a blank one; nil at the
// end of the text.
func (s *scanner) logical() ([]string, error) {
	s.line += s.next
	s.next = 0
	if s.at >= len(s.text) {
		return nil, nil
	}
	toks := []string{}
	for {
		c := s.peek()
		switch {
		case c == 0 && s.at >= len(s.text):
			return toks, nil
		case c == '\n':
			s.take()
			return toks, nil
		case c == ' ' || c == '\t' || c == '\r' && strings.HasPrefix(s.text[s.at:], "\r\n"):
			s.take()
		case c < ' ' || c == 0x7f:
			return nil, fmt.Errorf("holds the character %#x", c)
		default:
			t, err := s.token()
			if err != nil {
				return nil, err
			}
			if t != "" {
				toks = append(toks, t)
			}
		}
	}
}

// token is the next token; "" for a comment.
func (s *scanner) token() (string, error) {
	c := s.take()
	switch {
	case c == '\\':
		return "", fmt.Errorf("has a backslash outside strings")
	case c == '?' && s.peek() == '?':
		return "", fmt.Errorf("has a trigraph, or a sequence that resembles one")
	case c == '%' && s.peek() == ':':
		return "", fmt.Errorf("has the digraph of #")
	case c == '/' && s.peek() == '/':
		for s.at < len(s.text) && s.peek() != '\n' {
			if err := s.inside(s.take()); err != nil {
				return "", err
			}
		}
		return "", nil
	case c == '/' && s.peek() == '*':
		s.take()
		for last := byte(0); ; {
			if s.at >= len(s.text) {
				return "", fmt.Errorf("has an unterminated comment")
			}
			c := s.take()
			if last == '*' && c == '/' {
				return "", nil
			}
			if err := s.inside(c); err != nil {
				return "", err
			}
			last = c
		}
	case c == '"' || c == '\'':
		return s.literal(c)
	case letter(c):
		b := []byte{c}
		for letter(s.peek()) || digit(s.peek()) {
			b = append(b, s.take())
		}
		if s.peek() == '"' && b[len(b)-1] == 'R' {
			return "", fmt.Errorf("has a raw string")
		}
		return string(b), nil
	case digit(c):
		b := []byte{c}
		for {
			n := s.peek()
			if !letter(n) && !digit(n) && n != '.' && n != '\'' {
				return string(b), nil
			}
			b = append(b, s.take())
		}
	}
	return string(c), nil
}

// inside checks a character of a comment or literal.
func (s *scanner) inside(c byte) error {
	switch {
	case c == '?' && s.peek() == '?':
		return fmt.Errorf("has a trigraph, or a sequence that resembles one")
	case c < ' ' && c != '\n' && c != '\t' && !(c == '\r' && s.peek() == '\n'), c == 0x7f:
		return fmt.Errorf("holds the character %#x", c)
	}
	return nil
}

// literal is a text or a character behind its quote.
func (s *scanner) literal(quote byte) (string, error) {
	b := []byte{quote}
	for {
		c := s.peek()
		if c == '\n' || s.at >= len(s.text) {
			return "", fmt.Errorf("has an unterminated string")
		}
		s.take()
		if err := s.inside(c); err != nil {
			return "", err
		}
		b = append(b, c)
		switch c {
		case quote:
			return string(b), nil
		case '\\':
			if c := s.peek(); c == '\n' || s.at >= len(s.text) {
				return "", fmt.Errorf("has an unterminated string")
			}
			b = append(b, s.take())
		}
	}
}
