package ptx

import (
	"os"
	"strings"
	"testing"
)

// docs/PTX.md has each rule in these words, and the number of mistakes.
func TestDocumentedRules(t *testing.T) {
	text, err := os.ReadFile("../../docs/PTX.md")
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.ReplaceAll(string(text), "`", "")
	for rule, demand := range Rules {
		if !strings.Contains(plain, "| "+string(rule)+" | "+demand+" |") {
			t.Errorf("docs/PTX.md has no row: | %s | %s |", rule, demand)
		}
	}
}
