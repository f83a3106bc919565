package conformance

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"dmir/testkit/need"
)

var (
	update = flag.Bool("update", false, "write the results of the suites to testdata")
	all    = flag.Bool("all", false, "run all programs on the processor, not some")
)

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

const shared = "../../../shared/conformance"

// folder is a folder of what other projects test with.
func folder(t *testing.T, path string) string {
	t.Helper()
	dir := filepath.Join(shared, path)
	_, err := os.Stat(dir)
	need.OK(t, err)
	return dir
}

// compare compares the results of the suites of a format with testdata/FORMAT.json: what
// passed once must go on to pass.
func compare(t *testing.T, format string, suites ...string) {
	t.Helper()
	golden := filepath.Join("testdata", format+".json")
	got := map[string]result{}
	for _, suite := range suites {
		r, err := Suites[format](t.Context(), folder(t, format+"/"+suite), Options{})
		if err != nil {
			t.Fatal(err)
		}
		got[suite] = resultOf(r)
		t.Logf("%s: %s", suite, r.Summary())
	}
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
		if s.Passed != want[suite].Passed {
			t.Errorf("%s: %d cases pass, %d did: -update writes what holds", suite, s.Passed, want[suite].Passed)
		}
	}
}
