package inline_test

import (
	"testing"

	"dmir/compile/bind"
	"dmir/compile/inline"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/testkit/randprog"
)

func both(string) []pass.Pass { return []pass.Pass{inline.Pass(), bind.Pass()} }

func TestGolden(t *testing.T) {
	passtest.Golden(t, "testdata", both)
}

// Calls vanish from random programs, and every bit of the results stays.
func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(40) {
		text := randprog.Messy(seed, 30)
		after, err := passtest.Apply(t, text, "f", nil, both("")...)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		passtest.Same(t, text, after, "f", nil, 0)
	}
}
