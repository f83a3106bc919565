// Command worse compares the newest results of each benchmark in bench/results with those that
// were committed before, and lists the figures that are worse by more than a tenth.
//
//	go run ./bench/worse [KIND...]     such as lsp or cpu-amd-epyc; default: all kinds
//
// It ends with status 1 if some are.
package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"dmir/bench/record"
)

const folder = "bench/results"

func main() {
	some, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "worse:", err)
		os.Exit(2)
	}
	if some {
		os.Exit(1)
	}
}

// dated matches the names of results and takes them apart.
var dated = regexp.MustCompile(`^(.+)-(\d{4}-\d\d-\d\d)\.json$`)

func run(kinds []string) (some bool, err error) {
	listed, err := exec.Command("git", "ls-tree", "--name-only", "HEAD", folder+"/").Output()
	if err != nil {
		return false, fmt.Errorf("git ls-tree: %w", err)
	}
	committed := byKind(strings.Fields(string(listed)))
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return false, err
	}
	present := byKind(files)
	for _, kind := range slices.Sorted(maps.Keys(present)) {
		if len(kinds) > 0 && !slices.Contains(kinds, kind) {
			continue
		}
		worse, err := compare(kind, present[kind], committed[kind])
		if err != nil {
			return false, err
		}
		some = some || worse
	}
	return some, nil
}

// byKind sorts files by what was measured, the newest first.
func byKind(files []string) map[string][]string {
	out := map[string][]string{}
	for _, f := range files {
		if m := dated.FindStringSubmatch(filepath.Base(f)); m != nil {
			out[m[1]] = append(out[m[1]], filepath.ToSlash(f))
		}
	}
	for _, list := range out {
		slices.Sort(list)
		slices.Reverse(list)
	}
	return out
}

// compare compares the newest of files with the newest committed one that differs from it.
func compare(kind string, files, committed []string) (worse bool, err error) {
	data, err := os.ReadFile(files[0])
	if err != nil {
		return false, err
	}
	for _, name := range committed {
		earlier, err := exec.Command("git", "show", "HEAD:"+name).Output()
		if err != nil {
			return false, fmt.Errorf("git show %s: %w", name, err)
		}
		if name > files[0] || bytes.Equal(earlier, data) {
			continue
		}
		list, same, err := record.Worse(earlier, data)
		if err != nil {
			return false, fmt.Errorf("%s: %w", kind, err)
		}
		on := "the same machine"
		if !same {
			on = "another machine: ratios only"
		}
		fmt.Printf("%s: %s since %s, %s: %d worse\n", kind, filepath.Base(files[0]), filepath.Base(name), on, len(list))
		for _, c := range list {
			fmt.Println("  " + c.String())
		}
		return len(list) > 0, nil
	}
	fmt.Printf("%s: nothing earlier to compare with\n", kind)
	return false, nil
}
