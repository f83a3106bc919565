package feature

import (
	"sort"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/syntax/source"
)

// lines is span grown to whole lines.
func lines(p *program.Program, span source.Span) source.Span {
	last := p.Src.Pos(span.End).Line
	return source.Span{
		Start: p.Src.LineStart(p.Src.Pos(span.Start).Line),
		End:   p.Src.LineStart(last) + len(p.Src.Line(last)),
	}
}

// funcsIn are the functions that reach into span. What is asked about a part of
// a file is found by bisection: it must not take longer in a longer file.
func funcsIn(p *program.Program, span source.Span) []*cost.Func {
	first := sort.Search(len(p.Funcs), func(i int) bool { return p.Funcs[i].Func.Op.Span.End >= span.Start })
	n := sort.Search(len(p.Funcs)-first, func(i int) bool { return p.Funcs[first+i].Func.Op.Span.Start > span.End })
	return p.Funcs[first : first+n]
}

// entriesIn are those of es, which stand in the order of the text, that reach
// into span.
func entriesIn(es []*cost.Entry, span source.Span) []*cost.Entry {
	first := sort.Search(len(es), func(i int) bool { return es[i].Op.Span.End >= span.Start })
	n := sort.Search(len(es)-first, func(i int) bool { return es[first+i].Op.Span.Start > span.End })
	return es[first : first+n]
}
