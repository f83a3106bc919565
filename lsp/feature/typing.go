package feature

import (
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// FormatTriggers are the characters after which the layout follows the typing,
// besides the line end.
const FormatTriggers = "}:"

// FormatTyped are the edits that follow a character that was just typed in
// front of off: white space only, on the line that it ends or begins.
//
//   - A line end lays out the line that it ends, if that is a whole op without
//     errors, and indents the next line as far as its region asks; not in the
//     middle of an op, whose lines people align as they like.
//   - A "}" that begins its line moves under the op that its region belongs to.
//   - The ":" of a label moves the label there too.
func FormatTyped(f *ast.File, off int, typed string) []diag.Edit {
	line := f.Src.Pos(off).Line
	switch typed {
	case "\n":
		return afterLineEnd(f, line)
	case "}":
		if text := strings.TrimLeft(f.Src.Line(line), " \t"); strings.HasPrefix(text, "}") {
			return indent(f, line)
		}
	case ":":
		if text := strings.TrimLeft(f.Src.Line(line), " \t"); strings.HasPrefix(text, "^") {
			return indent(f, line)
		}
	}
	return nil
}

// afterLineEnd follows a line end behind which line begins.
func afterLineEnd(f *ast.File, line int) []diag.Edit {
	if line == 0 {
		return nil
	}
	start, above := f.Src.LineStart(line), f.Src.Line(line-1)
	n := nest(f, start)
	if n.holder != nil {
		return nil
	}
	var out []diag.Edit
	switch o := opBefore(n.ops, start); {
	case above != "" && strings.Trim(above, " \t") == "":
		out = []diag.Edit{{Span: source.Span{Start: f.Src.LineStart(line - 1), End: f.Src.LineStart(line-1) + len(above)}}}
	case o != nil && o.Form != ast.Bad && len(o.Diags) == 0 && f.Src.Pos(o.Off).Line == line-1 && f.Src.Pos(o.Span().End).Line == line-1:
		out = formatLines(f, line-1, line-1)
	}
	return append(out, indent(f, line)...)
}

// indent is the edit that gives a line the white space that its region asks
// for, none where it has that already.
func indent(f *ast.File, line int) []diag.Edit {
	start, text := f.Src.LineStart(line), f.Src.Line(line)
	rest := strings.TrimLeft(text, " \t")
	n := nest(f, start)
	if n.holder != nil {
		return nil
	}
	depth := n.depth
	if strings.HasPrefix(rest, "}") || strings.HasPrefix(rest, "^") && strings.Contains(rest, ":") {
		depth--
	}
	want := strings.Repeat("  ", max(depth, 0))
	if has := text[:len(text)-len(rest)]; has == want {
		return nil
	}
	return []diag.Edit{{Span: source.Span{Start: start, End: start + len(text) - len(rest)}, Text: want}}
}

// nesting is where the beginning of a line lies among the regions of a file.
type nesting struct {
	depth  int       // regions around it
	ops    []*ast.Op // of the innermost block
	holder *ast.Op   // of these the one that it is in the middle of, nil where it is in none
}

func nest(f *ast.File, off int) nesting {
	n := nesting{ops: f.Items}
	for {
		o := opBefore(n.ops, off)
		if o == nil || o.Off == off || o.Span().End <= off && !unclosed(o) {
			return n
		}
		r := regionAt(o, off)
		if r == nil {
			n.holder = o
			return n
		}
		end := o.Span().End
		if r.Close >= 0 {
			end = o.Off + int(r.Close)
		}
		n.depth++
		n.ops, _ = blockAt(o, r, source.Span{Start: o.Off + int(r.Open) + 1, End: end}, off)
	}
}

// unclosed reports whether the end of an op is missing, so that what follows
// is still in its last region.
func unclosed(o *ast.Op) bool {
	n := len(o.Regions)
	return n > 0 && o.Regions[n-1].Close < 0
}
