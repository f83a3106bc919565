package fuse

import (
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// names generates unique names of kernels.
type names struct{ taken map[string]bool }

func newNames() *names { return &names{map[string]bool{}} }

// of is the name of a kernel with these results: the results' names or, where
// they are numbers, that of main.
func (n *names) of(results []*ir.Value, main *ir.Op) string {
	var words []string
	for _, v := range results {
		if w := word(v.Name); w != "" && len(words) < 3 {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		words = append(words, strings.TrimPrefix(main.Name, op.Prefix))
		for _, v := range main.Results {
			if w := word(v.Name); w != "" {
				words = []string{w}
				break
			}
		}
	}
	base := strings.Join(words, "_")
	if len(base) > 60 {
		base = strings.TrimRight(base[:60], "_")
	}
	name := base
	for i := 2; n.taken[name]; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	n.taken[name] = true
	return name
}

// word is the name of a value as a part of an identifier, "" for one that is
// only a number.
func word(name string) string {
	w := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		case r == '%':
			return -1
		}
		return '_'
	}, name)
	if strings.Trim(w, "0123456789_") == "" {
		return ""
	}
	return strings.Trim(w, "_")
}
