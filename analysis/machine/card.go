package machine

import (
	"slices"
	"strings"

	"dmir/syntax/diag"
)

// ofEvery are words in the names of cards that tell no two machines here apart: makers, brands, sockets and kinds of memory.
var ofEvery = []string{"nvidia", "geforce", "tesla", "rtx", "generation", "gpu", "sxm", "sxm2", "sxm4", "sxm5", "hbm2", "hbm2e", "hbm3", "hbm3e"}

// OfCard is the built-in machine that has the data sheet of a GPU, by the name that its driver gives it: the longest one whose
// parts are all words of it, as a100-80 is for "NVIDIA A100-SXM4-80GB". It is nil where there is none, and where a word names
// another card, as in "GeForce RTX 4090 Laptop GPU" or "GeForce RTX 3090 Ti".
func OfCard(title string) *Machine {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return r == ' ' || r == '-' || r == '_' })
	var best *Machine
	for _, m := range All() {
		if !m.CPU && len(m.Links) == 0 && (best == nil || len(m.Name) > len(best.Name)) && names(words, strings.Split(m.Name, "-")) {
			best = m
		}
	}
	return best
}

// names reports whether words are those of a card whose name has the given parts: rtx4090 is of two words, 80 of 80GB, and b200
// of GB200, where a processor of NVIDIA's is beside it.
func names(words, parts []string) bool {
	left := slices.Clone(parts)
	for i := 0; i < len(words); i++ {
		is := func(part string) bool { return words[i] == part || words[i] == part+"gb" || words[i] == "g"+part }
		pair := func(part string) bool { return i+1 < len(words) && words[i]+words[i+1] == part }
		switch at := slices.IndexFunc(left, pair); {
		case at >= 0:
			left = slices.Delete(left, at, at+1)
			i++
		case slices.ContainsFunc(left, is):
			left = slices.DeleteFunc(left, is)
		case !slices.Contains(ofEvery, words[i]) && !strings.HasSuffix(words[i], "gb"):
			return false
		}
	}
	return len(left) == 0
}

// mostMeant is how many machines are named where one is misspelt.
const mostMeant = 6

// Meant is the advice where none of the machines called names is called name: those that it begins, those that are spelt nearly
// so, or all.
func Meant(name string, names []string) string {
	meant := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, strings.ToLower(name)+"-") })
	if len(meant) == 0 {
		meant = diag.Near(name, names)
	}
	if len(meant) == 0 {
		return "use one of " + strings.Join(names, ", ")
	}
	return "did you mean " + strings.Join(meant[:min(len(meant), mostMeant)], ", ") + "?"
}
