package history

import (
	"slices"
	"strings"
	"unicode/utf8"

	"dmir/syntax/source"
)

// change is a replacement of bytes of a text.
type change struct {
	start, end int
	text       string
}

// maxRefined is the size of a change beyond which it is not looked into.
const maxRefined = 4 << 20

// refine returns the changes that a change consists of, in the order of the text: an
// editor may send a whole text where some of its lines are others.
func refine(before *source.File, start, end int, after *source.File) []change {
	behind := before.Len() - end
	old, text := before.Slice(source.Span{Start: start, End: end}), after.Slice(source.Span{Start: start, End: after.Len() - behind})
	if old == text {
		return nil
	}
	if len(old) > maxRefined || len(text) > maxRefined || !strings.Contains(old, "\n") || !strings.Contains(text, "\n") {
		return appendTrimmed(nil, start, old, text)
	}
	a, b := slices.Collect(strings.Lines(old)), slices.Collect(strings.Lines(text))
	var out []change
	i, j, at := 0, 0, start
	gap := func(toA, toB int) {
		from := at
		var x, y strings.Builder
		for ; i < toA; i++ {
			x.WriteString(a[i])
		}
		for ; j < toB; j++ {
			y.WriteString(b[j])
		}
		at += x.Len()
		out = appendTrimmed(out, from, x.String(), y.String())
	}
	for _, m := range anchors(a, b) {
		gap(m.a, m.b)
		at += len(a[i])
		i, j = i+1, j+1
	}
	gap(len(a), len(b))
	return out
}

// appendTrimmed appends the replacement of old at a place by text, without what both
// begin and end with.
func appendTrimmed(out []change, start int, old, text string) []change {
	lo := common(old, text)
	hi := commonEnd(old[lo:], text[lo:])
	if lo+hi == len(old) && lo+hi == len(text) {
		return out
	}
	return append(out, change{start + lo, start + len(old) - hi, text[lo : len(text)-hi]})
}

// pair is a line of both texts, by its index in each.
type pair struct{ a, b int }

// anchors are lines that stand once in both texts, as many as are in the same order,
// together with the equal lines that begin and end the texts.
func anchors(a, b []string) []pair {
	lo, hi := 0, 0
	for lo < len(a) && lo < len(b) && a[lo] == b[lo] {
		lo++
	}
	for hi < len(a)-lo && hi < len(b)-lo && a[len(a)-1-hi] == b[len(b)-1-hi] {
		hi++
	}
	var out []pair
	for i := range lo {
		out = append(out, pair{i, i})
	}
	type count struct{ a, b, at int }
	seen := map[string]*count{}
	of := func(line string) *count {
		if seen[line] == nil {
			seen[line] = &count{}
		}
		return seen[line]
	}
	for _, line := range a[lo : len(a)-hi] {
		of(line).a++
	}
	for j, line := range b[lo : len(b)-hi] {
		c := of(line)
		c.b++
		c.at = lo + j
	}
	// The longest rising sequence of places in b.
	var ends []int // by length: the index in unique of the least end
	var unique []pair
	var prev []int
	for i := lo; i < len(a)-hi; i++ {
		c := seen[a[i]]
		if c.a != 1 || c.b != 1 {
			continue
		}
		n, _ := slices.BinarySearchFunc(ends, c.at, func(k, at int) int { return unique[k].b - at })
		p := -1
		if n > 0 {
			p = ends[n-1]
		}
		unique, prev = append(unique, pair{i, c.at}), append(prev, p)
		if n == len(ends) {
			ends = append(ends, len(unique)-1)
		} else {
			ends[n] = len(unique) - 1
		}
	}
	var middle []pair
	if len(ends) > 0 {
		for k := ends[len(ends)-1]; k >= 0; k = prev[k] {
			middle = append(middle, unique[k])
		}
	}
	slices.Reverse(middle)
	out = append(out, middle...)
	for i := range hi {
		out = append(out, pair{len(a) - hi + i, len(b) - hi + i})
	}
	return out
}

// common is the length of what two texts begin with both. It ends no line between its
// two characters and splits no rune: editors have no position there.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	if n > 0 && a[n-1] == '\r' && (strings.HasPrefix(a[n:], "\n") || strings.HasPrefix(b[n:], "\n")) {
		n--
	}
	return n
}

// commonEnd is the length of what two texts end with both, as common.
func commonEnd(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for n > 0 && !utf8.RuneStart(a[len(a)-n]) {
		n--
	}
	if n > 0 && a[len(a)-n] == '\n' && (strings.HasSuffix(a[:len(a)-n], "\r") || strings.HasSuffix(b[:len(b)-n], "\r")) {
		n--
	}
	return n
}
