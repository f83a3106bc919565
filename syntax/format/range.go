package format

import (
	"slices"
	"sort"
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

// Range is the list of edits that lay out the ops on the lines that span touches
// as File would, with what stands between them; the edits may reach beyond
// these lines. It takes time in proportion to these ops, not to the file: those
// around them stay as they are, and so do blank lines at the ends of the region
// that holds them.
func Range(f *ast.File, span source.Span) []diag.Edit {
	if f.Unreadable {
		return nil
	}
	span.Start = f.Src.LineStart(f.Src.Pos(span.Start).Line)
	last := f.Src.Pos(max(span.Start, span.End)).Line
	span.End = f.Src.LineStart(last) + len(f.Src.Line(last))
	top := &ast.Region{Close: int32(f.Src.Len()), Blocks: []*ast.Block{{Ops: f.Items}}}
	levels := []level{{f, nil, top, 0}}
	for {
		l := levels[len(levels)-1]
		inner, ok := l.inner(span)
		if !ok {
			break
		}
		levels = append(levels, inner)
	}
	for _, l := range slices.Backward(levels) {
		if edits, ok := l.layOut(span); ok {
			return edits
		}
	}
	return nil
}

// level is a region with the op that owns it; the top level has no such op.
type level struct {
	f      *ast.File
	owner  *ast.Op
	region *ast.Region
	depth  int
}

func (l level) off() int {
	if l.owner == nil {
		return 0
	}
	return l.owner.Off
}

// begin is where a block begins: at its label, or at its first op.
func (l level) begin(b *ast.Block) int {
	switch {
	case b.Label != "":
		return l.off() + int(b.Span.Start)
	case len(b.Ops) > 0:
		return b.Ops[0].Off
	}
	return l.off() + int(l.region.Open)
}

// blocks are the indices of the first and last block that span touches.
func (l level) blocks(span source.Span) (first, last int) {
	bs := l.region.Blocks
	before := func(off int) int {
		return max(0, sort.Search(len(bs), func(i int) bool { return l.begin(bs[i]) > off })-1)
	}
	return before(span.Start), before(span.End)
}

// lastBefore is the index of the last op that begins at off or before it, -1
// where none does.
func lastBefore(ops []*ast.Op, off int) int {
	return sort.Search(len(ops), func(i int) bool { return ops[i].Off > off }) - 1
}

// inner is the region inside of which all of span lies.
func (l level) inner(span source.Span) (level, bool) {
	if len(l.region.Blocks) == 0 {
		return level{}, false
	}
	first, last := l.blocks(span)
	ops := l.region.Blocks[first].Ops
	i := lastBefore(ops, span.Start)
	if first != last || i < 0 || ops[i].Span().End < span.End {
		return level{}, false
	}
	for _, r := range ops[i].Regions {
		if ops[i].Off+int(r.Open) < span.Start && (r.Close < 0 || span.End <= ops[i].Off+int(r.Close)) {
			return level{l.f, ops[i], r, l.depth + 1}, true
		}
	}
	return level{}, false
}

// layOut prints the ops of the region that span touches, from one that begins
// its line to the first that ends behind span. It reports false where none
// begins its line.
func (l level) layOut(span source.Span) ([]diag.Edit, bool) {
	if len(l.region.Blocks) == 0 {
		return nil, false
	}
	src := l.f.Src
	lo, hi := l.blocks(span)
	blocks := slices.Clone(l.region.Blocks[lo : hi+1])
	i := max(0, lastBefore(blocks[0].Ops, span.Start))
	for i > 0 && !beginsLine(src, blocks[0].Ops[i].Off) {
		line := src.LineStart(src.Pos(blocks[0].Ops[i].Off).Line)
		i = max(0, min(i-1, lastBefore(blocks[0].Ops, line-1)+1))
	}
	from := l.begin(blocks[0])
	if i > 0 {
		from = blocks[0].Ops[i].Off
	}
	if !beginsLine(src, from) || from == 0 && strings.HasPrefix(src.Slice(source.Span{End: 3}), source.ByteOrderMark) {
		return nil, false
	}
	from = src.LineStart(src.Pos(from).Line)
	closing := l.off() + int(l.region.Close)
	if l.region.Close < 0 {
		closing = l.owner.Span().End
	}
	to := closing
	if hi+1 < len(l.region.Blocks) {
		to = l.begin(l.region.Blocks[hi+1])
	}
	if last := blocks[len(blocks)-1]; len(last.Ops) > 0 {
		j := max(0, lastBefore(last.Ops, span.End))
		b := *last
		b.Ops, to = last.Ops[:j+1], lineRest(src, last.Ops[j].Span().End)
		blocks[len(blocks)-1] = &b
	}
	if i > 0 {
		b := *blocks[0]
		b.Ops = b.Ops[i:]
		blocks[0] = &b
	}
	before := src.Slice(source.Span{Start: from, End: to})
	p := &printer{text: before, s: newScanner(before, 0), eol: lineEnd(src.Slice(source.Span{Start: from, End: to + 2})), fresh: true}
	p.stretch(l, blocks, i == 0, from)
	after := p.out.String()
	if !SameVisible(before, after) {
		return nil, true // the tree and the text do not agree
	}
	if blocks[len(blocks)-1].Ops == nil { // text after a label is not formatted alone
		before = strings.TrimRight(before, " \t\r\n")
	}
	edits := Edits(before, after)
	for i := range edits {
		edits[i].Span.Start += from
		edits[i].Span.End += from
	}
	return edits, true
}

// stretch prints blocks, the first one's label where labelled, of a text that
// begins at the offset from of the file.
func (p *printer) stretch(l level, blocks []*ast.Block, labelled bool, from int) {
	u := &unit{op: &ast.Op{Off: l.off() - from, Parts: ast.NoParts}, base: depthIndent(l.depth - 1)}
	near := make([]*ast.Block, len(blocks))
	for i, b := range blocks {
		near[i] = moved(b, from)
	}
	for i, b := range near {
		if b.Label != "" && (i > 0 || labelled) {
			p.label(u, b, labelLimit(u.op, near[i:], len(p.text)))
		}
		p.ops(b.Ops, l.depth)
	}
	p.between(len(p.text), depthIndent(l.depth))
}

// moved is a block as it stands in the text from an offset of the file on.
func moved(b *ast.Block, from int) *ast.Block {
	out := *b
	out.Ops = nil
	for _, o := range b.Ops {
		c := *o
		c.Off -= from
		parts := *o.Parts
		parts.Regions = nil
		c.Parts = &parts
		for _, r := range o.Regions {
			inner := *r
			inner.Blocks = nil
			for _, b := range r.Blocks {
				inner.Blocks = append(inner.Blocks, moved(b, from))
			}
			parts.Regions = append(parts.Regions, &inner)
		}
		out.Ops = append(out.Ops, &c)
	}
	return &out
}

// lineRest is the end of the line of off where only a comment stands behind
// off, else off.
func lineRest(src *source.File, off int) int {
	line := src.Pos(off).Line
	end := max(off, src.LineStart(line)+len(src.Line(line))) // an op may end inside of a line's end
	rest := strings.TrimLeft(src.Slice(source.Span{Start: off, End: end}), " \t")
	if rest == "" || strings.HasPrefix(rest, "//") {
		return end
	}
	return off
}

// beginsLine reports whether nothing but blanks stands before off on its line.
func beginsLine(src *source.File, off int) bool {
	start := src.LineStart(src.Pos(off).Line)
	return strings.Trim(src.Slice(source.Span{Start: start, End: off}), " \t") == ""
}

// SameVisible reports whether two texts differ in white space only.
func SameVisible(a, b string) bool {
	i, j := 0, 0
	for {
		i, j = lex.Run(a, i, len(a), lex.Space), lex.Run(b, j, len(b), lex.Space)
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		if a[i] != b[j] {
			return false
		}
		i, j = i+1, j+1
	}
}
