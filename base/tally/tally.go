// Package tally counts what the processes of a run of the tests compile, what they
// find compiled, and the processor time that compilers and emulated programs take: each
// appends lines to the file that $DMIR_TALLY names. Without it nothing is written.
package tally

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Variable names the file.
const Variable = "DMIR_TALLY"

// Kinds of compilations.
const (
	NVRTC    = "CUDA compiler"
	Emulator = "C++ compiler"
	Native   = "clang"
	Emulated = "emulated programs"
)

// Made counts a compilation, and Kept one that a cache has saved.
func Made(kind string) { add(kind, "made") }

// Kept is described at Made.
func Kept(kind string) { add(kind, "kept") }

// Took adds what a process that has ended used of the processor, with those that it waited for.
func Took(kind string, p *os.ProcessState) {
	if p != nil { // else it has not started
		took(kind, p.UserTime()+p.SystemTime())
	}
}

// Within starts to count the processor time of what the calling goroutine calls in its own thread; the result
// ends it.
func Within(kind string) func() {
	if os.Getenv(Variable) == "" {
		return func() {}
	}
	stop := threadTime()
	return func() { took(kind, stop()) }
}

func took(kind string, d time.Duration) { add(kind, strconv.FormatInt(d.Milliseconds(), 10)) }

// add appends a line: "made", "kept" or a number of milliseconds, and of what kind.
func add(kind, how string) {
	path := os.Getenv(Variable)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return // a test's environment may not let it
	}
	defer f.Close()
	fmt.Fprintf(f, "%s\t%s\n", how, kind) // one write, so that lines of several processes stay whole
}

// Summary is a line for each kind in a tally: "clang: 12 texts compiled, 3 found compiled, 9s of processor time".
func Summary(r io.Reader) []string {
	type count struct {
		made, kept int
		took       time.Duration
	}
	counts := map[string]*count{}
	for in := bufio.NewScanner(r); in.Scan(); {
		how, kind, _ := strings.Cut(in.Text(), "\t")
		if counts[kind] == nil {
			counts[kind] = &count{}
		}
		switch how {
		case "made":
			counts[kind].made++
		case "kept":
			counts[kind].kept++
		default:
			ms, _ := strconv.ParseInt(how, 10, 64)
			counts[kind].took += time.Duration(ms) * time.Millisecond
		}
	}
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		c := counts[kind]
		text := fmt.Sprintf("%d texts compiled, %d found compiled, ", c.made, c.kept)
		if c.made+c.kept == 0 {
			text = ""
		}
		lines = append(lines, fmt.Sprintf("%s: %s%.0fs of processor time", kind, text, c.took.Seconds()))
	}
	return lines
}
