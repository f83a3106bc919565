package refactor_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/analysis/refactor"
	"dmir/testkit/commented"
	"dmir/testkit/randprog"
)

// A refactoring of a program whose every statement has comments leaves each
// comment at its statement.
func TestCommentsStayWithTheirStatements(t *testing.T) {
	texts := texts(t)
	for seed := range uint64(20) {
		texts[fmt.Sprint("random ", seed)] = randprog.Messy(seed, 4+int(seed))
	}
	done := map[string]int{}
	for name, text := range texts {
		text = commented.Program(text)
		p := load(t, text, nil)
		r := rand.New(rand.NewPCG(1, uint64(len(text))))
		for _, span := range selections(p, r, 8) {
			for _, a := range refactor.Actions(p, span) {
				c, err := refactor.Apply(p, span, a.ID)
				if err != nil {
					continue
				}
				kind, _, _ := strings.Cut(a.ID, ":")
				done[kind]++
				if kind == "inline" {
					continue // the function stays, so that its comments are there twice
				}
				after := apply(t, text, c.Edits)
				if err := commented.Check(text, after); err != nil {
					t.Errorf("%s %v: %q: %v\n%s", name, span, a.Title, err, format1(text, after))
				}
			}
		}
	}
	for _, kind := range []string{"fuse", "unfuse", "inline", "extract", "expand", "form"} {
		if done[kind] == 0 {
			t.Errorf("%s was not applied: %v", kind, done)
		}
	}
}
