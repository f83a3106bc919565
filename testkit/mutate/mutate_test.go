package main

import (
	"bytes"
	"strings"
	"testing"
)

// Every mutant of a small package compiles with the others, and the tests kill those that change what they look at.
func TestMutants(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out, "./testdata/clamp", 1000, 1, "", "", nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"clamp.go:10: comparison: < → <=: survived",
		"clamp.go:11: no statement: continue outer → : killed by TestLow",
		"clamp.go:14: no statement: continue outer → : survived",
		"clamp.go:17: result: n → 0: killed by TestLow",
		"clamp.go:21: result: limit → 0: survived",
		"clamp.go:25: arithmetic: - → +: survived, its function is never called",
		"4 of 14 killed",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line with %q in\n%s", want, out.String())
		}
	}
}
