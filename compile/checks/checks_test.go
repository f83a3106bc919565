package checks_test

import (
	"testing"

	"dmir/compile/bind"
	"dmir/compile/checks"
	"dmir/compile/inline"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
)

func TestGolden(t *testing.T) {
	passtest.Golden(t, "testdata", func(string) []pass.Pass { return []pass.Pass{inline.Pass(), bind.Pass(), checks.Pass()} })
}
