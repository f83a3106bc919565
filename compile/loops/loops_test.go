package loops_test

import (
	"testing"

	"dmir/compile/loops"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
)

// The loops that the pass writes compute what the scans did.
func TestGolden(t *testing.T) {
	passtest.Golden(t, "testdata", func(string) []pass.Pass { return []pass.Pass{loops.Pass()} })
}
