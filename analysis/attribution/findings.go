package attribution

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Finding is a diagnostic at a line of the person's own.
type Finding struct {
	Src *source.File // the Python file
	diag.Diagnostic
}

// Findings are diagnostics of p, at the lines that their ops come from; those without such a line are left out. What
// is found several times in a line is one finding, with the sum of what the remedies save. Fixes, which edit p's text, go, and
// help is that for Python.
func (s *Sources) Findings(p *program.Program, ds []diag.Diagnostic) []Finding {
	type key struct {
		file *File
		line int
		code string
	}
	at := index(p)
	times := map[key]int{}
	where := map[key]int{}
	var out []Finding
	texts := map[*File]*source.File{}
	for _, d := range ds {
		o := at.op(d.Span)
		if o == nil {
			continue
		}
		costs := Costs(written(o))
		place, code := s.Place(costs[0]), diag.Find(d.Code)
		if place.File == nil || code.Remedy != "" && place.calls(code.Remedy) || !place.File.Own || place.File.Text(place.Frame.Line) == "" {
			continue
		}
		k := key{place.File, place.Frame.Line, d.Code}
		times[k]++
		if i, known := where[k]; known {
			out[i].SavesNs += d.SavesNs
			continue
		}
		if texts[place.File] == nil {
			texts[place.File] = source.New(place.File.Path, strings.Join(place.File.Lines, "\n")+"\n")
		}
		where[k] = len(out)
		line, _ := p.Src.Human(d.Span.Start)
		d.Notes = append(slices.Clone(d.Notes), fmt.Sprintf("in the traced program: %s, line %d, %s", o.Name, line, strings.Join(names(o), ", ")))
		if code.Python != "" {
			d.Help = code.Python
		}
		d.Span, d.Fixes, d.Related, d.Tags = place.Span(texts[place.File]), nil, nil, nil
		out = append(out, Finding{texts[place.File], d})
	}
	for k, i := range where {
		if n := times[k]; n > 1 {
			note := fmt.Sprintf("found at %d ops of this line", n)
			if out[i].SavesNs > 0 {
				note += ", " + units.Time(out[i].SavesNs) + " in all"
			}
			out[i].Notes = append(out[i].Notes, note)
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Src.Path, b.Src.Path), cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.Code, b.Code))
	})
	return out
}

// written is the location of o in the source. JAX gives constants that of the call of the function that is compiled: they are written
// where they are used.
func written(o *ir.Op) loc.Loc {
	if o.Name != op.Constant {
		return o.Loc
	}
	for _, r := range o.Results {
		for _, u := range r.Uses {
			if u.Op.Loc != nil && !op.Ends(u.Op) {
				return u.Op.Loc
			}
		}
	}
	return o.Loc
}

func names(o *ir.Op) []string {
	var out []string
	for _, r := range o.Results {
		out = append(out, r.Name)
	}
	return out
}

// Span is where the place is in src, the text of its file: from the columns of a frame, which JAX counts from 0 in bytes, else
// the line without its indentation.
func (p Place) Span(src *source.File) source.Span {
	line := p.Frame.Line - 1
	text := src.Line(line)
	start := src.LineStart(line)
	from, to := len(text)-len(strings.TrimLeft(text, " \t")), len(strings.TrimRight(text, " \t\r"))
	if p.Frame.EndCol > 0 && p.Frame.Col < len(text) {
		from = p.Frame.Col
		if p.Frame.EndLine == p.Frame.Line && p.Frame.EndCol > from {
			to = min(p.Frame.EndCol, len(text))
		}
	}
	return source.Span{Start: start + from, End: start + max(from, to)}
}

// calls reports whether the place is in a function with name in its own, or where such a function is called: JAX's locations leave its
// own functions out.
func (p Place) calls(name string) bool {
	last := min(max(p.Frame.Line, p.Frame.EndLine), len(p.File.Lines)) // locations are data: they may end behind the file
	text := strings.Join(p.File.Lines[min(max(p.Frame.Line-1, 0), last):last], "\n")
	if p.Frame.EndLine == p.Frame.Line && p.Frame.Col < p.Frame.EndCol && p.Frame.EndCol <= len(text) {
		text = text[p.Frame.Col:p.Frame.EndCol]
	}
	return p.Trace.Inside(name) || strings.Contains(text, name)
}

// places are the ops of a program by where they begin.
type places []*ir.Op

func index(p *program.Program) places {
	var out places
	for _, m := range p.Modules {
		ir.Walk(m.Ops, func(o *ir.Op) bool {
			if o.Span.Len() > 0 {
				out = append(out, o)
			}
			return true
		})
	}
	slices.SortStableFunc(out, func(a, b *ir.Op) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
	return out
}

// op is the op that holds the beginning of span and begins last, nil where there is none.
func (p places) op(span source.Span) *ir.Op {
	i, found := slices.BinarySearchFunc(p, span.Start, func(o *ir.Op, at int) int { return cmp.Compare(o.Span.Start, at) })
	if !found {
		i--
	}
	for ; i >= 0; i-- {
		if p[i].Span.Contains(span.Start) {
			return p[i]
		}
	}
	return nil
}

// Line gives the place that a line of p's text was traced from: "model.py:14", "" where it has none.
func (s *Sources) Line(p *program.Program) func(n int) string {
	at := index(p)
	return func(n int) string {
		i, _ := slices.BinarySearchFunc(at, p.Src.LineStart(n-1), func(o *ir.Op, start int) int { return cmp.Compare(o.Span.Start, start) })
		for ; i < len(at) && p.Src.Pos(at[i].Span.Start).Line == n-1; i++ {
			costs := Costs(at[i].Loc)
			if place := s.Place(costs[0]); place.File != nil {
				return fmt.Sprintf("%s:%d", place.File.Path, place.Frame.Line)
			}
		}
		return ""
	}
}
