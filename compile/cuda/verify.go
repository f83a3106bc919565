package cuda

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// unsoundError is a kernel that the generator wrote and that is not valid.
type unsoundError struct {
	problems []string
	launches []launch
}

func (e *unsoundError) Error() string {
	slices.Sort(e.problems)
	var b strings.Builder
	fmt.Fprintf(&b, "the code generator made an unsound kernel: %s", strings.Join(slices.Compact(e.problems), "; "))
	for _, l := range e.launches {
		fmt.Fprintf(&b, "\n%s {\n%s}", l.declaration(), unmarked(l.body))
	}
	return b.String()
}

var (
	cppToken = regexp.MustCompile(`//[^\n]*|"(?:[^"\\]|\\.)*"|[0-9][0-9a-zA-Z_.]*(?:[eE][+-][0-9]+[a-zA-Z]*)?|(?:dm::)?[A-Za-z_][A-Za-z0-9_]*|[^\s]`)
	cppName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// cppWords are what kernels use of the language and of the prelude without
	// its prefix.
	cppWords = func() map[string]bool {
		m := map[string]bool{}
		for _, w := range strings.Fields("const auto if else for return template float double bool int true false DM_UNROLL DM_NO_UNROLL DM_SHARED") {
			m[w] = true
		}
		return m
	}()
	cppTypes = map[string]bool{"float": true, "double": true, "bool": true, "int": true, "auto": true}
)

// undefined are the names that the body of l uses where nothing in scope
// declares them.
func undefined(l *launch) []string {
	c := &scopes{tokens: cppToken.FindAllString(unmarked(l.body), -1), open: []map[string]bool{{}}}
	for _, p := range l.params {
		c.declare(p.name)
	}
	c.block(0)
	return c.missing
}

// scopes reads the statements of a kernel's body.
type scopes struct {
	tokens  []string
	open    []map[string]bool // names by scope, innermost last
	missing []string
}

func (c *scopes) declare(name string) { c.open[len(c.open)-1][name] = true }

func (c *scopes) at(i int) string {
	if i < 0 || i >= len(c.tokens) {
		return ""
	}
	return c.tokens[i]
}

// block reads from token i to the brace that closes the block, and returns the
// token behind it.
func (c *scopes) block(i int) int {
	c.open = append(c.open, map[string]bool{})
	for i < len(c.tokens) && c.tokens[i] != "}" {
		i = c.statement(i)
	}
	c.open = c.open[:len(c.open)-1]
	return i + 1
}

// statement reads one statement from token i on; what a for statement declares
// is seen in its body alone.
func (c *scopes) statement(i int) int {
	switch c.at(i) {
	case "{":
		return c.block(i + 1)
	case "DM_UNROLL", "DM_NO_UNROLL", "else":
		return c.statement(i + 1)
	case "for", "if":
		c.open = append(c.open, map[string]bool{})
		i = c.statement(c.expression(i+1, true))
		c.open = c.open[:len(c.open)-1]
		return i
	}
	return c.expression(i, false)
}

// expression reads to the semicolon that ends a statement, or to the parenthesis
// that closes the one it begins with.
func (c *scopes) expression(i int, parens bool) int {
	depth := 0
	for ; i < len(c.tokens); i++ {
		switch t := c.tokens[i]; {
		case t == "(" || t == "{" || t == "[":
			depth++
		case t == ")" || t == "}" || t == "]":
			if depth--; depth == 0 && parens {
				return i + 1
			}
		case t == ";" && depth == 0:
			return i + 1
		case cppName.MatchString(t):
			c.name(i)
		}
	}
	return i
}

// name sees to the name at token i: a declaration, or a use.
func (c *scopes) name(i int) {
	name, before, after := c.at(i), c.at(i-1), c.at(i+1)
	switch {
	case cppWords[name] || before == "." || before == ":" || before == "template":
		return
	case strings.HasPrefix(before, "dm::") || cppTypes[before] || before == ">" && c.closesType(i-1):
		if after == "=" || after == ";" || after == "[" {
			c.declare(name)
			return
		}
	case before == "," && c.at(i-4) == "DM_SHARED", before == "," && c.at(i-3) == "(" && c.at(i-4) == "DM_SHARED":
		c.declare(name)
		return
	}
	for _, s := range c.open {
		if s[name] {
			return
		}
	}
	c.missing = append(c.missing, "the name "+name+" is used where it is not declared")
}

// closesType reports whether the > at token i ends the arguments of a type of
// the prelude that begins a declaration, such as dm::Vec<float, 4>.
func (c *scopes) closesType(i int) bool {
	depth := 0
	for ; i >= 0; i-- {
		switch c.tokens[i] {
		case ">":
			depth++
		case "<":
			if depth--; depth == 0 {
				return strings.HasPrefix(c.at(i-1), "dm::")
			}
		case ";", "{", "}":
			return false
		}
	}
	return false
}
