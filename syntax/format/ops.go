package format

import (
	"strings"

	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Ops is the text of ops as File lays them out that many regions deep, without
// the indentation of the first line and without a line end at the end. Where the
// text around indents otherwise, indent is what its lines begin with.
func Ops(ops string, depth int, indent string) string {
	ops = strings.ReplaceAll(ops, "\r\n", "\n")
	around := strings.Repeat("module {\n", depth) + strings.Trim(ops, "\n") + "\n" + strings.Repeat("}\n", depth)
	lines := strings.Split(strings.TrimSuffix(File(parse.File(source.New("", around))), "\n"), "\n")
	lines = lines[depth : len(lines)-depth]
	usual := strings.Repeat("  ", depth)
	for i, l := range lines {
		if rest, ok := strings.CutPrefix(l, usual); ok {
			lines[i] = indent + rest
		}
	}
	return strings.TrimPrefix(strings.Join(lines, "\n"), indent)
}
