// Progress reads the events of `go test -json` and prints one line for each package
// as it ends, every half minute the tests that are still running, the output of
// tests that fail, and at the end what failed, why tests were skipped, and how much
// the tests had compiled (package tally).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"dmir/base/tally"
)

// event is an event of `go test -json`, as `go doc test2json` describes it.
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // of a build
	Elapsed                       float64
}

// test is a test, or a package as a whole, that runs.
type test struct {
	start  time.Time
	output strings.Builder
	last   string // line of output that is no header
}

// report is what is known of the tests.
type report struct {
	to      io.Writer
	tests   map[string]map[string]*test // by package and test; "" is the package itself
	passed  int
	failed  []string
	skipped map[string]int // tests, by reason
}

func newReport(to io.Writer) *report {
	return &report{to: to, tests: map[string]map[string]*test{}, skipped: map[string]int{}}
}

func main() {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	newReport(os.Stdout).read(lines, time.Tick(30*time.Second))
	if f, err := os.Open(os.Getenv(tally.Variable)); err == nil {
		defer f.Close()
		for _, line := range tally.Summary(f) {
			fmt.Println(line)
		}
	}
}

func (r *report) read(lines <-chan string, tick <-chan time.Time) {
	for {
		select {
		case now := <-tick:
			r.running(now)
		case line, ok := <-lines:
			if !ok {
				r.end()
				return
			}
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(r.to, line)
				continue
			}
			r.event(e)
		}
	}
}

var header = regexp.MustCompile(`^(=== |\s*--- )`)

func (r *report) event(e event) {
	of := r.tests[e.Package]
	if of == nil {
		of = map[string]*test{}
		r.tests[e.Package] = of
	}
	t := of[e.Test]
	if t == nil {
		t = &test{start: time.Now()}
		of[e.Test] = t
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.to, e.Output)
	case "output":
		t.output.WriteString(e.Output)
		if text := strings.TrimSpace(e.Output); text != "" && !header.MatchString(e.Output) {
			t.last = text
		}
	case "pass", "skip", "fail":
		delete(of, e.Test)
		switch {
		case e.Test == "":
			r.ended(e, t)
		case e.Action == "fail":
			fmt.Fprint(r.to, t.output.String())
			r.failed = append(r.failed, e.Package+" "+e.Test)
		case e.Action == "skip":
			r.skipped[reason(t.last)]++
		}
	}
}

// place is how the testing package marks the line of a message.
var place = regexp.MustCompile(`^\w+\.go:\d+: `)

func reason(line string) string { return place.ReplaceAllString(line, "") }

// ended reports the result of a package. The output of tests that did not end
// says why the process did.
func (r *report) ended(e event, t *test) {
	rest := r.tests[e.Package]
	delete(r.tests, e.Package)
	switch {
	case e.Action == "fail":
		for _, name := range slices.Sorted(maps.Keys(rest)) {
			fmt.Fprint(r.to, rest[name].output.String())
		}
		fmt.Fprint(r.to, t.output.String())
		r.failed = append(r.failed, e.Package)
	case e.Action == "pass":
		r.passed++
		cached := ""
		if strings.Contains(t.last, "(cached)") {
			cached = " (cached)"
		}
		fmt.Fprintf(r.to, "ok   %-32s %6.1fs%s\n", e.Package, e.Elapsed, cached)
	}
}

// running prints which tests have run for long.
func (r *report) running(now time.Time) {
	for _, pkg := range slices.Sorted(maps.Keys(r.tests)) {
		names := slices.Sorted(maps.Keys(r.tests[pkg]))
		for _, name := range names {
			inner := slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") })
			if took := now.Sub(r.tests[pkg][name].start); name != "" && !inner && took >= 20*time.Second {
				fmt.Fprintf(r.to, "     %-32s running %s for %.0fs\n", pkg, name, took.Seconds())
			}
		}
	}
}

func (r *report) end() {
	fmt.Fprintf(r.to, "%d packages passed", r.passed)
	if len(r.failed) > 0 {
		fmt.Fprintf(r.to, "; failed:\n  %s", strings.Join(r.failed, "\n  "))
	}
	fmt.Fprintln(r.to)
	for _, why := range slices.Sorted(maps.Keys(r.skipped)) {
		fmt.Fprintf(r.to, "skipped tests: %d: %s\n", r.skipped[why], why)
	}
}
