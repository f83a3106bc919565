package refactor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"dmir/analysis/refactor"
	"dmir/dialect/op"
	"dmir/syntax/source"
	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

// FuzzSelection holds that any stretch of any text, however broken, gives
// actions that can be applied, or explain why not: no panic, edits in order inside
// of the text, no error that was not there before.
func FuzzSelection(f *testing.F) {
	files, _ := filepath.Glob("../../examples/*.dmir")
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), uint16(i*97), uint16(i*211+300))
	}
	for seed := range uint64(8) {
		text := randprog.Messy(seed, 10)
		f.Add(text, uint16(len(text)/3), uint16(len(text)/2))
	}
	f.Fuzz(selection)
}

// TestSelectionsOfBroken does the same with programs that are broken here and
// there, the same ones in every run. Set DMIR_ROUNDS for more than a few of each.
func TestSelectionsOfBroken(t *testing.T) {
	rounds := 6
	if n, err := strconv.Atoi(os.Getenv("DMIR_ROUNDS")); err == nil {
		rounds = n
	}
	var texts []string
	for _, d := range op.All() {
		texts = append(texts, d.Example)
	}
	for seed := range uint64(8) {
		texts = append(texts, randprog.Messy(seed, 10))
	}
	for i, text := range texts {
		for seed := range rounds {
			broken := randprog.Broken(uint64(seed), text)
			a, b := uint16(97*(i+seed)%len(text)), uint16(211*(i+seed)%len(text))
			if !t.Run(fmt.Sprintf("%d/%d", i, seed), func(t *testing.T) { selection(t, broken, a, b) }) {
				t.Logf("the text was %q, the selection %d to %d", broken, a, b)
			}
		}
	}
}

func selection(t *testing.T, text string, a, b uint16) {
	p := load(t, text, nil)
	before := len(errorsIn(p))
	n := len(text) + 2
	for _, span := range []source.Span{{Start: int(a) % n, End: int(b) % n}, {Start: int(a) % n, End: int(a) % n}} {
		for _, action := range refactor.Actions(p, span) {
			c, err := refactor.Apply(p, span, action.ID)
			if err != nil {
				if action.Disabled == "" && before == 0 {
					t.Errorf("%q is offered and refused: %v", action.Title, err)
				}
				continue
			}
			after := apply(t, text, c.Edits)
			if before == 0 {
				if now := errorsIn(load(t, after, nil)); len(now) > 0 {
					t.Errorf("%q leaves an error: %s\n%s", action.Title, now[0].Message, after)
				}
			}
		}
	}
}

// TestSelectionsOfExamples tries stretches of the examples, of a third of them in turn, that begin and end
// anywhere, ops or not.
func TestSelectionsOfExamples(t *testing.T) {
	need.Long(t)
	files, _ := filepath.Glob("../../examples/*.dmir")
	for i, file := range files {
		if !need.Turn(t, i, 3) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := load(t, string(text), nil)
		for start := 0; start < len(text); start += 61 {
			for _, length := range []int{0, 7, 150, 700} {
				span := source.Span{Start: start, End: start + length}
				for _, a := range refactor.Actions(p, span) {
					c, err := refactor.Apply(p, span, a.ID)
					if (err == nil) != (a.Disabled == "") {
						t.Errorf("%s %v: %q: %q, but %v", file, span, a.Title, a.Disabled, err)
					}
					if err != nil {
						continue
					}
					if now := errorsIn(load(t, apply(t, string(text), c.Edits), nil)); len(now) > 0 {
						t.Fatalf("%s %v: %q leaves an error: %s", file, span, a.Title, now[0].Message)
					}
				}
			}
		}
	}
}
