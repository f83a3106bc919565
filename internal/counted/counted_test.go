package counted

import (
	"os"
	"strings"
	"testing"

	"dmir/gpu/emulator"
)

// random is how many random programs a test compares; bench/counted takes more.
const random = 8

// known are programs with steps whose bytes differ and that do not say why yet,
// by program and step; a step that is mended fails until it is taken out.
var known = map[string]string{
	"testdata/counted/dus @dus y":      "the update is a copy",
	"testdata/counted/dus @dus_live y": "the update is a copy",
	"testdata/counted/kv_decode @kv y": "the update is a copy",
	"testdata/counted/scatter @f y":    "the scatter is a copy",
	"ops @all r71":                     "the update is a copy",
	"ops @all r76":                     "the scatter is a copy",
	"ops @all r78":                     "rows that several ids name are read once",
	"random/4 @f v16":                  "a dropout's mask needs no operand",
}

// What the cost model predicts for each step of each program of the suite is
// what the emulator counts, or the step says why it is not.
func TestCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles C++")
	}
	if err := emulator.Check(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	programs, err := Suite("../..", random)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		t.Run(p.Name, func(t *testing.T) {
			rows, err := Steps(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				switch why, problem := known[r.Program+" "+r.Step], r.Problem(); {
				case problem != "" && why == "":
					t.Error(problem)
				case problem == "" && why != "":
					t.Errorf("%s: step %s: the bytes are equal now", r.Program, r.Step)
				}
			}
		})
	}
}

// A row is held to its term: none, one that is known, one that bounds it.
func TestProblem(t *testing.T) {
	for _, c := range []struct {
		name string
		row  Row
		want string
	}{
		{"equal", Row{PredictedRead: 8, CountedRead: 8, PredictedWritten: 4, CountedWritten: 4}, ""},
		{"more is read", Row{PredictedRead: 8, CountedRead: 9}, "no term says why"},
		{"less is written, more read", Row{PredictedRead: 8, CountedRead: 12, PredictedWritten: 4}, "no term says why"},
		{"a scratch buffer that nothing predicts", Row{CountedWritten: 4}, "no term says why"},
		{"a known term", Row{CountedWritten: 4, Term: "12 partial sums of each element pass through memory"}, ""},
		{"without its number", Row{Term: " partial sums of each element pass through memory"}, "no known term"},
		{"an unknown term", Row{Term: "it is what it is"}, "no known term"},
		{"a bound that holds", Row{PredictedRead: 8, CountedRead: 2, Term: "the mask of keys that no query of a tile sees is not read"}, ""},
		{"a bound that does not", Row{PredictedRead: 8, CountedRead: 10, Term: "the mask of keys that no query of a tile sees is not read"}, "more than"},
	} {
		if got := c.row.Problem(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
