package feature

import (
	"slices"
	"sort"

	"dmir/analysis/program"
	"dmir/syntax/ast"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

// Selections are the spans around off that a person may want to select, each
// inside the next: token, operand, type or clause, op, block, region, and so on
// outwards to the file.
func Selections(p *program.Program, off int) []source.Span {
	whole := source.Span{End: p.Src.Len()}
	off = max(0, min(off, whole.End))
	out := []source.Span{whole}
	add := func(s source.Span) {
		last := out[len(out)-1]
		if s.Contains(off) && s != last && s.Start >= last.Start && s.End <= last.End && s.Len() > 0 {
			out = append(out, s)
		}
	}
	at := p.Src.LineStart(p.Src.Pos(off).Line)
	ops := p.Tree.Items
	for ops != nil {
		o := opBefore(ops, off)
		if o == nil || !o.Span().Contains(off) {
			break
		}
		add(o.Span())
		at = min(at, o.Off)
		ops = nil
		if inner := regionAt(o, off); inner != nil {
			end := o.Span().End
			if inner.Close >= 0 {
				end = o.Off + int(inner.Close) + 1
			}
			region := source.Span{Start: o.Off + int(inner.Open), End: end}
			add(region)
			body := source.Span{Start: region.Start + 1, End: region.End - 1}
			add(body)
			block, span := blockAt(o, inner, body, off)
			add(span)
			ops = block
			at = max(at, p.Src.LineStart(p.Src.Pos(off).Line))
			continue
		}
		for _, s := range details(o) {
			add(o.Abs(s))
		}
		at = o.Off
	}
	brackets(p.Src.Text(), source.Span{Start: at, End: out[len(out)-1].End}, off, add)
	if n := len(out) - maxSelections; n > 0 {
		out = slices.Delete(out, 1, 1+n)
	}
	slices.Reverse(out)
	return out
}

// maxSelections bounds what is given: each span is written inside of the next,
// and editors read nothing that is nested without end. The innermost are kept,
// and the file.
const maxSelections = 256

// opBefore is the last of ops that begins at off or before it.
func opBefore(ops []*ast.Op, off int) *ast.Op {
	i := sort.Search(len(ops), func(i int) bool { return ops[i].Off > off }) - 1
	if i < 0 {
		return nil
	}
	return ops[i]
}

func regionAt(o *ast.Op, off int) *ast.Region {
	for _, r := range o.Regions {
		if o.Off+int(r.Open) < off && (r.Close < 0 || off <= o.Off+int(r.Close)) {
			return r
		}
	}
	return nil
}

// blockAt is the block of r that holds off, and its span.
func blockAt(o *ast.Op, r *ast.Region, body source.Span, off int) ([]*ast.Op, source.Span) {
	span := body
	var ops []*ast.Op
	for _, b := range r.Blocks {
		start := body.Start
		if b.Label != "" {
			start = o.Off + int(b.Span.Start)
		}
		if start > off {
			span.End = min(span.End, start)
			break
		}
		span.Start, ops = start, b.Ops
	}
	return ops, span
}

// details are the parts of an op without regions, larger ones first.
func details(o *ast.Op) []ast.Rel {
	var out []ast.Rel
	if n := len(o.Operands); n > 1 && o.Operands[0].Span.Start < o.Operands[n-1].Span.End {
		out = append(out, ast.Rel{Start: o.Operands[0].Span.Start, End: o.Operands[n-1].Span.End})
	}
	for _, c := range o.Clauses {
		out = append(out, ast.Rel{Start: c.NameSpan.Start, End: c.Value.End}, c.Value)
	}
	for _, r := range o.Results {
		out = append(out, r.Span)
	}
	return append(out, o.Lead, o.Props, o.Attrs, o.Sig, o.Loc, o.NameSpan)
}

// brackets adds what stands in each pair of brackets around off in a stretch,
// the word in front of them included, and the token there.
func brackets(text string, in source.Span, off int, add func(source.Span)) {
	toks := lex.Tokens(text, in)
	var open []int
	var pairs []source.Span
	for i, t := range toks {
		switch text[t.Start] {
		case '(', '[', '{', '<':
			open = append(open, i)
		case ')', ']', '}', '>':
			if len(open) == 0 {
				continue
			}
			j := open[len(open)-1]
			open = open[:len(open)-1]
			start := toks[j].Start
			if start > off || t.End < off {
				continue
			}
			pairs = append(pairs, source.Span{Start: start, End: t.End})
			if j > 0 && toks[j-1].End == start && wordLike(text[toks[j-1].Start]) {
				pairs = append(pairs, source.Span{Start: toks[j-1].Start, End: t.End})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b source.Span) int { return b.Len() - a.Len() })
	for _, s := range pairs {
		add(s)
	}
	for _, t := range toks {
		if t.Contains(off) && (t.End > off || wordLike(text[t.Start])) {
			add(t.Span)
			return
		}
	}
}
