package conformance

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the results of the suites to testdata")

// result is what a suite gave.
type result struct {
	Passed      int               `json:"passed"`
	Failed      int               `json:"failed"`
	Unsupported int               `json:"unsupported"`
	NotPassed   map[string]string `json:"not_passed"` // why, by the name of the case
}

func resultOf(r *Report) result {
	s := result{r.Passed, r.Failed, r.Unsupported, map[string]string{}}
	for _, c := range r.Cases {
		if c.Status != Passed {
			s.NotPassed[c.Name] = c.Status + ": " + c.Reason
		}
	}
	return s
}

// compare compares the results of suites with those in the file golden.
func compare(t *testing.T, golden string, got map[string]result) {
	t.Helper()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(got); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]result
	if err := json.Unmarshal(before, &want); err != nil {
		t.Fatal(err)
	}
	for suite, s := range got {
		for name, reason := range s.NotPassed {
			if was, known := want[suite].NotPassed[name]; !known {
				t.Errorf("%s/%s: %s", suite, name, reason)
			} else if was != reason {
				t.Errorf("%s/%s: %s, it was %s: -update writes what holds", suite, name, reason, was)
			}
		}
		if s.Passed > want[suite].Passed {
			t.Errorf("%s: %d cases pass, %d did: -update writes what holds", suite, s.Passed, want[suite].Passed)
		}
	}
}
