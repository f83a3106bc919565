package fuse

import (
	"strconv"
	"strings"

	"dmir/dialect/ir"
)

const nameAttr = "dm.name"

// names gives kernels names that say what they compute.
type names struct{ taken map[string]bool }

func newNames() *names { return &names{map[string]bool{}} }

// of is the name of a kernel made of ops that gives results: the results' names,
// or, where these say nothing, what the ops are.
func (n *names) of(results, _ []*ir.Value, ops []*ir.Op) string {
	var words []string
	for _, v := range results {
		if w := word(v.Name); w != "" && len(words) < 3 {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		for _, o := range ops {
			if w := strings.TrimPrefix(o.Name, "dm."); !strings.HasPrefix(o.Name, "dm.constant") && len(words) < 4 {
				words = append(words, w)
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
