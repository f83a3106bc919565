package cuda

import (
	"slices"
	"strings"
)

// constant is a statement that declares a constant, and the constants that it uses.
type constant struct {
	uses []*constant
	live bool
}

// pruner finds the constants that a block of statements needs.
type pruner struct {
	scopes []map[string]*constant // by name, innermost last; nil: a declaration of another kind
	of     map[*stmt]*constant
}

// prune removes the constants that read no parameter and that no statement but they themselves use: in C++ each is a warning.
func (u *unit) prune() {
	p := &pruner{of: map[*stmt]*constant{}}
	p.block(u.statements(), nil)
	*u.blocks[0] = p.sweep(u.statements())
}

// block resolves the names of a block whose head is one of another, or nil.
func (p *pruner) block(list []*stmt, head *stmt) {
	p.scopes = append(p.scopes, map[string]*constant{})
	if head != nil {
		p.names(head, nil)
	}
	for _, s := range list {
		if s.body != nil {
			p.block(s.body, s)
			continue
		}
		var c *constant
		if s.style == plain && strings.HasPrefix(s.head.format, "const ") && s.head.declares() {
			c = &constant{}
			p.of[s] = c
		}
		p.names(s, c)
	}
	p.scopes = p.scopes[:len(p.scopes)-1]
}

// names resolves the names of a statement, which is the constant c or, if that is nil, is needed.
func (p *pruner) names(s *stmt, c *constant) {
	s.head.names(func(n string) {
		for _, scope := range slices.Backward(p.scopes) {
			if used, ok := scope[n]; ok {
				if c != nil && !c.live {
					c.uses = append(c.uses, used)
				} else {
					used.keep()
				}
				return
			}
		}
		c.keep() // it reads a parameter, as the plan says
	}, func(n string) { p.scopes[len(p.scopes)-1][n] = c })
}

// keep makes a constant and those that it uses live.
func (c *constant) keep() {
	if c == nil || c.live {
		return
	}
	c.live = true
	for _, used := range c.uses {
		used.keep()
	}
}

// sweep is list without the constants that are not live.
func (p *pruner) sweep(list []*stmt) []*stmt {
	return slices.DeleteFunc(list, func(s *stmt) bool {
		s.body = p.sweep(s.body)
		c := p.of[s]
		return c != nil && !c.live
	})
}

// declares reports whether c declares a name.
func (c code) declares() (found bool) {
	c.names(func(string) {}, func(string) { found = true })
	return found
}
