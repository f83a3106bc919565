// Package tally counts what the processes of a run of the tests compile, and what they
// find compiled: each appends lines to the file that $DMIR_TALLY names. Without it
// nothing is written.
package tally

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// Variable names the file.
const Variable = "DMIR_TALLY"

// Kinds of compilations.
const (
	NVRTC    = "CUDA compiler"
	Emulator = "C++ compiler"
	Native   = "clang"
)

// Made counts a compilation, and Kept one that a cache has saved.
func Made(kind string) { add(kind, "made") }

// Kept is described at Made.
func Kept(kind string) { add(kind, "kept") }

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

// Summary is a line for each kind in a tally: "clang: 12 texts compiled, 3 found compiled".
func Summary(r io.Reader) []string {
	counts := map[string]*struct{ made, kept int }{}
	for in := bufio.NewScanner(r); in.Scan(); {
		how, kind, _ := strings.Cut(in.Text(), "\t")
		if counts[kind] == nil {
			counts[kind] = &struct{ made, kept int }{}
		}
		switch how {
		case "made":
			counts[kind].made++
		case "kept":
			counts[kind].kept++
		}
	}
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%s: %d texts compiled, %d found compiled", kind, counts[kind].made, counts[kind].kept))
	}
	return lines
}
