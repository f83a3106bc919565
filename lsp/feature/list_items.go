package feature

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// equation are the completions in an einsum's equation: after the arrow the output
// that sums over the letters in two operands, and each letter; before it the
// letters in use, and an unused one. If the operands are written, the letters show
// their sizes.
func (s *statement) equation(span *source.Span) []Completion {
	written := strings.TrimPrefix(s.typed(), `"`)
	inputs, output, arrow := strings.Cut(written, "->")
	parts := strings.Split(inputs, ",")
	sizes := map[rune]string{}
	count := map[rune]int{}
	var letters []rune
	for i, part := range parts {
		for j, l := range []rune(strings.TrimSpace(part)) {
			if count[l]++; count[l] == 1 {
				letters = append(letters, l)
			}
			if s.op != nil && i < len(s.op.Operands) && sizes[l] == "" {
				if t := s.op.Operands[i].Tensor(); t != nil && j < t.Rank() {
					sizes[l] = t.Shape[j].String()
				}
			}
		}
	}
	if written == "" {
		return usualEquations
	}
	current := parts[len(parts)-1]
	if arrow {
		current = output
	}
	here := strings.TrimLeft(current, " ")
	span.Start = span.End - len(here)
	var out []Completion
	add := func(letter rune, detail string) {
		if size := sizes[letter]; size != "" {
			detail += ", " + size
		}
		out = append(out, Completion{Kind: WordItem, Label: string(letter), Detail: detail, Text: here + string(letter)})
	}
	if arrow {
		if kept := once(letters, count); kept != here && strings.HasPrefix(kept, here) {
			out = append(out, Completion{Kind: WordItem, Label: kept, Detail: "sums over what stands in two operands", Text: kept})
		}
	}
	for _, l := range letters {
		if !strings.ContainsRune(here, l) {
			add(l, letterOf(l, parts))
		}
	}
	if !arrow {
		for l := 'a'; l <= 'z'; l++ {
			if count[l] == 0 {
				add(l, "free")
				break
			}
		}
	}
	return out
}

// usualEquations begin one that is not written yet.
var usualEquations = []Completion{
	{Kind: WordItem, Label: "ij,jk->ik", Detail: "matrix product", Text: `"ij,jk->ik`},
	{Kind: WordItem, Label: "bij,jk->bik", Detail: "rows of a batch by one matrix", Text: `"bij,jk->bik`},
	{Kind: WordItem, Label: "bij,bjk->bik", Detail: "matrix products of a batch", Text: `"bij,bjk->bik`},
	{Kind: WordItem, Label: "bhqd,bhkd->bhqk", Detail: "scores of attention", Text: `"bhqd,bhkd->bhqk`},
}

// once are the letters that occur once.
func once(letters []rune, count map[rune]int) string {
	var b strings.Builder
	for _, l := range letters {
		if count[l] == 1 {
			b.WriteRune(l)
		}
	}
	return b.String()
}

// letterOf reports in which operands a letter stands.
func letterOf(l rune, parts []string) string {
	var in []string
	for i, p := range parts {
		if strings.ContainsRune(p, l) {
			in = append(in, strconv.Itoa(i+1))
		}
	}
	if len(in) == 1 {
		return "operand " + in[0]
	}
	return "operands " + strings.Join(in, ", ")
}

// inEquation reports whether the word is the string of an einsum.
func (s *statement) inEquation() bool {
	lead := op.Lookup(s.opName()).Lead()
	return lead != nil && lead.Name == "equation" && len(s.before) == s.name+1
}

// indices are the numbers of the dimensions of shape that a list does not have
// yet; whole begins with all of them, as they are laid out in a row, in a
// column, and with the last two swapped.
func (s *statement) indices(open int, shape []string, whole bool) []Completion {
	last := s.tok(len(s.before) - 1)
	if len(shape) == 0 || last != "[" && last != "," {
		return nil
	}
	var out []Completion
	if n := len(shape); whole && last == "[" && n > 1 {
		rows := make([]int, n)
		for i := range rows {
			rows[i] = i
		}
		columns := slices.Clone(rows)
		slices.Reverse(columns)
		swapped := slices.Clone(rows)
		swapped[n-1], swapped[n-2] = swapped[n-2], swapped[n-1]
		seen := map[string]bool{}
		for _, c := range []struct {
			order []int
			what  string
		}{{rows, "as they are"}, {swapped, "the last two swapped"}, {columns, "reversed"}} {
			text := strings.Trim(strings.ReplaceAll(fmt.Sprint(c.order), " ", ", "), "[]")
			if !seen[text] {
				seen[text] = true
				out = append(out, Completion{Kind: WordItem, Label: text, Detail: c.what, Text: text})
			}
		}
	}
	has := map[string]bool{}
	for i := open + 1; i < len(s.before); i++ {
		has[s.tok(i)] = true
	}
	for i, size := range shape {
		if n := strconv.Itoa(i); !has[n] {
			out = append(out, Completion{Kind: WordItem, Label: n, Detail: "dimension of size " + size, Text: n})
		}
	}
	return out
}

// placed is the shape of the type whose placement is being written.
func (s *statement) placed(l place) []string {
	for i, at := range l.open {
		if s.tok(at) != "<" || !shaped(s.tok(at-1)) || i+1 >= len(l.open) {
			continue
		}
		next := l.open[i+1] - 1 // #dm.at
		text := s.p.Src.Slice(source.Span{Start: s.before[at].End, End: s.before[next].Start})
		t, err := parse.Type("tensor<" + strings.TrimRight(text, ", \t\r\n") + ">")
		if err != nil {
			return nil
		}
		var out []string
		for _, n := range t.Shape {
			size := "?"
			if n >= 0 {
				size = strconv.FormatInt(n, 10)
			}
			out = append(out, size)
		}
		return out
	}
	return s.stating(l)
}

// stating is the shape of the tensor of which the attribute dm.sharding that is being written states the
// sharding: of an argument the type before it, of an op that of its result.
func (s *statement) stating(l place) []string {
	var t types.Type
	for _, at := range l.open {
		switch {
		case s.tok(at) != "{":
		case s.tok(at-1) == ">":
			first := at - 1
			for depth := 0; first > 0; first-- {
				switch s.tok(first) {
				case ">":
					depth++
				case "<":
					depth--
				}
				if depth == 0 {
					break
				}
			}
			x, err := parse.Type(s.p.Src.Slice(source.Span{Start: s.before[max(first-1, 0)].Start, End: s.before[at-1].End}))
			if err != nil {
				return nil
			}
			t, _ = types.FromExpr(x, nil)
		case s.op != nil && len(s.op.Results) == 1:
			t = s.op.Results[0].Type
		}
	}
	tensor, ok := t.(*types.Tensor)
	if !ok {
		return nil
	}
	var out []string
	for _, d := range tensor.Shape {
		out = append(out, d.String())
	}
	return out
}

// listed are the completions in the list of integers that opens at in: dimensions
// of the first operand, if the attribute names dimensions.
func (s *statement) listed(def *op.Def, in int) []Completion {
	if items := s.functionAxes(in); items != nil {
		return items
	}
	if s.tok(in-1) == "=" && s.tok(in-2) == op.ShardingAttr {
		return stated()
	}
	a := def.Attr(s.tok(in - 2))
	if a == nil || a.Kind != op.KindInts || a.Name != "dims" || s.tok(in-1) != "=" || s.op == nil || len(s.op.Operands) == 0 {
		return nil
	}
	t := s.op.Operands[0].Tensor()
	if t == nil {
		return nil
	}
	var sizes []string
	for _, d := range t.Shape {
		sizes = append(sizes, d.String())
	}
	return s.indices(in, sizes, a.Order)
}
