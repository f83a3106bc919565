package regions_test

import (
	"testing"

	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/regions"
)

func TestGolden(t *testing.T) {
	passtest.Golden(t, "testdata", func(string) []pass.Pass { return []pass.Pass{regions.Pass()} })
}
