package unfuse_test

import (
	"testing"

	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/unfuse"
)

func TestGolden(t *testing.T) {
	passtest.Golden(t, "testdata", func(string) []pass.Pass { return []pass.Pass{unfuse.Pass()} })
}
