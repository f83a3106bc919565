package refactor

import (
	"cmp"
	"slices"
	"strings"

	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// tidy sorts edits and joins those that meet.
func tidy(edits []diag.Edit) []diag.Edit {
	sorted := slices.Clone(edits)
	slices.SortStableFunc(sorted, func(a, b diag.Edit) int {
		return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.Span.End, b.Span.End))
	})
	out := sorted[:0]
	for _, e := range sorted {
		switch n := len(out); {
		case e.Span.Len() == 0 && e.Text == "":
		case n > 0 && out[n-1].Span.End == e.Span.Start:
			out[n-1].Span.End = e.Span.End
			out[n-1].Text += e.Text
		default:
			out = append(out, e)
		}
	}
	return out
}

// maxCompared bounds the table by which lines before and after are paired, in
// entries; beyond it a stretch is replaced as a whole.
const maxCompared = 1 << 18

// replace turns the text of span into after, keeping the lines that only move
// to the right or left: editors keep their marks and cursors there.
func replace(text string, span source.Span, after string) []diag.Edit {
	old, fresh := strings.SplitAfter(text[span.Start:span.End], "\n"), strings.SplitAfter(after, "\n")
	if len(old)*len(fresh) > maxCompared {
		return []diag.Edit{{Span: span, Text: after}}
	}
	var edits []diag.Edit
	i, j, at := 0, 0, span.Start
	swap := func(toOld, toFresh int) {
		end := at + size(old[i:toOld])
		edits = append(edits, diag.Edit{Span: source.Span{Start: at, End: end}, Text: strings.Join(fresh[j:toFresh], "")})
		i, j, at = toOld, toFresh, end
	}
	for _, p := range pairs(old, fresh) {
		if p[0] > i || p[1] > j {
			swap(p[0], p[1])
		}
		edits = append(edits, spacing(at, old[i], fresh[j])...)
		at += len(old[i])
		i, j = i+1, j+1
	}
	if i < len(old) || j < len(fresh) {
		swap(len(old), len(fresh))
	}
	return edits
}

func size(lines []string) int {
	n := 0
	for _, l := range lines {
		n += len(l)
	}
	return n
}

// pairs are the lines, by number, that differ in the blanks at their ends at
// most: a longest common subsequence.
func pairs(a, b []string) [][2]int {
	same := func(i, j int) bool { return strings.TrimSpace(a[i]) == strings.TrimSpace(b[j]) }
	longest := make([][]int, len(a)+1)
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if same(i, j) {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var out [][2]int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case same(i, j):
			out = append(out, [2]int{i, j})
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			i++
		default:
			j++
		}
	}
	return out
}

// spacing turns the line old, which begins at off, into one that differs from
// it in the blanks at its ends.
func spacing(off int, old, fresh string) []diag.Edit {
	word := strings.TrimSpace(old)
	if word == "" {
		return []diag.Edit{{Span: source.Span{Start: off, End: off + len(old)}, Text: fresh}}
	}
	a, b := strings.Index(old, word), strings.Index(fresh, word)
	var edits []diag.Edit
	if old[:a] != fresh[:b] {
		edits = append(edits, diag.Edit{Span: source.Span{Start: off, End: off + a}, Text: fresh[:b]})
	}
	if end := old[a+len(word):]; end != fresh[b+len(word):] {
		edits = append(edits, diag.Edit{Span: source.Span{Start: off + len(old) - len(end), End: off + len(old)}, Text: fresh[b+len(word):]})
	}
	return edits
}
