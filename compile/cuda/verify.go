package cuda

// undefined are the names that statements use without a declaration in scope;
// outer are the names declared around them.
func undefined(list []*stmt, outer map[string]bool) (missing []string) {
	var open []map[string]bool // names by scope, innermost last
	declare := func(n string) { open[len(open)-1][n] = true }
	use := func(n string) {
		for _, s := range open {
			if s[n] {
				return
			}
		}
		missing = append(missing, "the name "+n+" is used where it is not declared")
	}
	var walk func(list []*stmt, scope map[string]bool)
	walk = func(list []*stmt, scope map[string]bool) {
		open = append(open, scope)
		for _, s := range list {
			if s.style <= bare { // a name is not defined in its own initializer
				s.head.names(use, func(string) {})
				s.head.names(func(string) {}, declare)
				continue
			}
			// Names declared in the head of a loop or of a function are visible only
			// in its body.
			open = append(open, map[string]bool{})
			s.head.names(use, declare)
			walk(s.body, map[string]bool{})
			open = open[:len(open)-1]
		}
		open = open[:len(open)-1]
	}
	walk(list, outer)
	return missing
}
