// Command compare compares the output of `tree-sitter query` for the names of ops with dmir's own parser: both must find the
// same ops at the same positions. It exits with status 1 if they differ.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"

	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

func main() {
	ops, files, problems, err := compare(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("%d files, %d ops, %d differences\n", files, ops, problems)
	if problems > 0 || files == 0 {
		os.Exit(1)
	}
}

var capture = regexp.MustCompile(`^    capture: .*start: \((\d+), (\d+)\)`)

// compare prints each op that only one of the two parsers found, and counts the ops that both did.
func compare(in io.Reader, out io.Writer) (ops, files, problems int, err error) {
	var path string
	found := map[source.Pos]bool{}
	end := func() error {
		if path == "" {
			return nil
		}
		files++
		want, err := names(path)
		if err != nil {
			return err
		}
		for at, name := range want {
			if found[at] {
				ops++
				continue
			}
			problems++
			fmt.Fprintf(out, "%s:%d:%d: tree-sitter misses %s\n", path, at.Line+1, at.Col+1, name)
		}
		for at := range found {
			if _, ok := want[at]; !ok {
				problems++
				fmt.Fprintf(out, "%s:%d:%d: tree-sitter alone sees an op\n", path, at.Line+1, at.Col+1)
			}
		}
		return nil
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			continue
		}
		if line[0] != ' ' { // the name of the next file
			if err := end(); err != nil {
				return ops, files, problems, err
			}
			path = line
			clear(found)
			continue
		}
		if m := capture.FindStringSubmatch(line); m != nil {
			row, _ := strconv.Atoi(m[1])
			column, _ := strconv.Atoi(m[2])
			found[source.Pos{Line: row, Col: column}] = true
		}
	}
	if err := lines.Err(); err != nil {
		return ops, files, problems, err
	}
	return ops, files, problems, end()
}

// names are the names of the ops that dmir finds in a file, by position.
func names(path string) (map[source.Pos]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	src := source.New(path, string(text))
	out := map[source.Pos]string{}
	ast.Walk(parse.File(src).Items, func(o *ast.Op) bool {
		if o.Form != ast.AttrAlias && o.Form != ast.TypeAlias && !o.NameSpan.Empty() {
			out[src.Pos(o.Abs(o.NameSpan).Start)] = o.Name
		}
		return true
	})
	return out, nil
}
