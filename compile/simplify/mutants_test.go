package simplify_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/pass/passtest"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Programs that nearly are attentions: each is a spelling in which some words are
// changed. Those that are still correct compute the same afterwards, whether an
// attention was found in them or not.
func TestMutants(t *testing.T) {
	word := regexp.MustCompile(`%\w+|\d+|"[^"]*"|dm\.\w+|\b(le|ge|lt|gt|max|add|true|false)\b`)
	ops := strings.Fields("dm.add dm.sub dm.mul dm.div dm.exp dm.neg dm.max dm.and dm.or")
	keywords := strings.Fields("le ge lt gt max add true false")
	numbers := strings.Fields("0 1 2 3 5 7")
	tried, found := 0, 0
	for seed := range uint64(*programs * 15) {
		r := rand.New(rand.NewPCG(seed, 3))
		one := func(list []string) string { return list[r.IntN(len(list))] }
		s := spellings[r.IntN(len(spellings))]
		if !strings.Contains(s.lines, "max") && strings.Contains(s.lines, "dm.exp") {
			continue // greater scores overflow, which those of an attention do not
		}
		before := s.program(one([]string{"f32", "f64"}))
		lines := strings.Split(before, "\n")
		for range 1 + r.IntN(3) {
			i := r.IntN(len(lines))
			at := word.FindAllStringIndex(lines[i], -1)
			if at == nil {
				continue
			}
			span := at[r.IntN(len(at))]
			old := lines[i][span[0]:span[1]]
			fresh := one(keywords)
			switch {
			case old[0] == '%':
				if names := word.FindAllString(one(lines), -1); names != nil {
					fresh = one(names)
				}
			case old[0] == '"':
				letters := []byte(old)
				a, b := 1+r.IntN(len(old)-2), 1+r.IntN(len(old)-2)
				letters[a], letters[b] = letters[b], letters[a]
				fresh = string(letters)
			case old[0] >= '0' && old[0] <= '9':
				fresh = one(numbers)
			case strings.HasPrefix(old, "dm."):
				fresh = one(ops)
			}
			lines[i] = lines[i][:span[0]] + fresh + lines[i][span[1]:]
		}
		text := strings.Join(lines, "\n")
		if text == before || broken(text) {
			continue
		}
		tried++
		after, err := passtest.Apply(t, text, "f", nil, attentionPasses("")...)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if strings.Contains(after, "dm.attention") {
			found++
			passtest.Same(t, text, after, "f", nil, 256)
		}
	}
	t.Logf("%d programs, an attention in %d of them", tried, found)
}

func broken(text string) bool {
	for _, d := range program.Load(source.New("in.dmir", text), program.Options{}).Diags {
		if d.Severity == diag.Error {
			return true
		}
	}
	return false
}
