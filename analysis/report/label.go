package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"dmir/analysis/attribution"
	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// unknownLabel stands where nothing is known.
const unknownLabel = "?"

// number is d where it is one.
func number(d dim.Dim) *int64 {
	if n, ok := d.Int(); ok {
		return &n
	}
	return nil
}

// widestLabel bounds a label: the rest of a formula in thousands of symbols does not
// help a reader.
const widestLabel = 160

func bytesLabel(d dim.Dim) string { return cut(units.DimBytes(d), widestLabel) }

func flopLabel(d dim.Dim) string { return cut(units.DimFLOP(d), widestLabel) }

func timeLabel(t cost.Time) string {
	if !t.Known {
		return unknownLabel
	}
	return units.Time(t.Ns)
}

func costOf(flop, read, written dim.Dim, t cost.Time) Cost {
	moved := read.Add(written)
	c := Cost{
		FLOP: number(flop), FLOPLabel: flopLabel(flop),
		Read: number(read), ReadLabel: bytesLabel(read),
		Written: number(written), WrittenLabel: bytesLabel(written),
		Moved: number(moved), MovedLabel: bytesLabel(moved),
		TimeLabel: timeLabel(t), Bound: t.Bound,
	}
	if t.Known {
		ns := int64(math.Round(t.Ns))
		c.TimeNs = &ns
	}
	if c.FLOP != nil && c.Moved != nil && *c.Moved > 0 {
		x := float64(*c.FLOP) / float64(*c.Moved)
		c.Intensity, c.IntensityLabel = &x, units.Intensity(x)
	}
	return c
}

// entryCost is the cost of e, all of it unknown if the op is unknown.
func unknownCost() Cost {
	return Cost{FLOPLabel: unknownLabel, ReadLabel: unknownLabel, WrittenLabel: unknownLabel, MovedLabel: unknownLabel, TimeLabel: unknownLabel}
}

func (b *builder) entryCost(e *cost.Entry) Cost {
	if !e.Known {
		return unknownCost()
	}
	c := costOf(e.FLOP, e.Read, e.Written, e.Time(b.p.Target))
	c.Why = why(e, b.p.Target)
	return c
}

// why is the terms of e's time with their figures, the largest first.
func why(e *cost.Entry, m *machine.Machine) []string {
	t, ok := e.TimeTerms(m)
	if !ok {
		return nil
	}
	type term struct {
		ns   float64
		text string
	}
	terms := make([]term, 0, len(t.Work)+3)
	for _, w := range t.Work {
		terms = append(terms, term{w.Ns(), w.Text() + " = " + units.Time(w.Ns())})
	}
	if t.Moved > 0 {
		terms = append(terms, term{t.Memory, t.MovedText() + " = " + units.Time(t.Memory)})
	}
	if t.Tables > 0 {
		terms = append(terms, term{t.Tables, t.NearText(m) + " = " + units.Time(t.Tables)})
	}
	if t.LinkRate > 0 {
		terms = append(terms, term{t.Link, units.Bytes(t.Linked) + " / " + units.Bandwidth(t.LinkRate) + " to the host = " + units.Time(t.Link)})
	}
	for _, x := range []term{
		{t.L2, "tiles from L2 = " + units.Time(t.L2)},
		{t.Longest, "longest row alone = " + units.Time(t.Longest)},
		{t.Tail, "tail of the last tiles = " + units.Time(t.Tail)},
		{t.Latency, "latency of the memory = " + units.Time(t.Latency)},
		{t.Launch, "launch " + t.LaunchText(m)},
	} {
		if x.ns > 0 {
			terms = append(terms, x)
		}
	}
	slices.SortStableFunc(terms, func(a, b term) int { return cmp.Compare(b.ns, a.ns) })
	lines := make([]string, len(terms))
	for i, x := range terms {
		lines[i] = x.text
	}
	return lines
}

func className(e *cost.Entry) string {
	if !e.Known && len(e.Inner) == 0 {
		return "unknown"
	}
	return string(e.Class)
}

// share is part of the function's time, 0 where that is not known.
func (b *builder) share(ns float64) float64 {
	if !b.total.Known || b.total.Ns <= 0 {
		return 0
	}
	return ns / b.total.Ns
}

// place is span as people count, up to the end of its first line.
func place(src *source.File, span source.Span) Place {
	if span.Len() <= 0 {
		return Place{}
	}
	if end := strings.IndexAny(src.Slice(span), "\r\n"); end >= 0 {
		span.End = span.Start + end
	}
	line, column := src.Human(span.Start)
	_, end := src.Human(span.End)
	return Place{Line: line, Column: column, EndColumn: max(end, column)}
}

// placeOf is where o's name and results stand.
func (b *builder) placeOf(o *ir.Op) Place {
	p := opPlace(b.p.Src, o)
	p.InLines, p.InModules = b.groups.of(o)
	return p
}

func opPlace(src *source.File, o *ir.Op) Place {
	if o == nil {
		return Place{}
	}
	span := o.Head
	if span.Len() == 0 {
		span = o.Span
	}
	p := place(src, span)
	p.Origin = attribution.OriginText(o.Loc)
	return p
}

// FunctionSpan is where the name of fn stands.
func FunctionSpan(fn *ir.Func) source.Span {
	if fn.Op == nil {
		return source.Span{}
	}
	if t := origin.Tree(fn.Op); t != nil && t.Func != nil && !t.Func.NameSpan.Empty() {
		return t.Abs(t.Func.NameSpan)
	}
	return fn.Op.Head
}

// shortType is "8×512×1024 f16"; other types as MLIR writes them, cut where long.
func shortType(v *ir.Value) string {
	if v == nil || v.Type == nil {
		return ""
	}
	t := v.Tensor()
	if t == nil {
		return cut(v.Type.String(), 40)
	}
	if t.Rank() == 0 {
		return t.Elem.String()
	}
	var s strings.Builder
	for i, d := range t.Shape {
		if i > 0 {
			s.WriteString("×")
		}
		text := d.String()
		if d.IsUnnamed() {
			text = "?"
		}
		if d.Terms() > 1 || strings.ContainsAny(text, "+-") {
			text = "(" + text + ")"
		}
		s.WriteString(text)
	}
	text := cut(s.String(), 60) + " " + t.Elem.String()
	if t.Format != nil {
		text += " " + cmp.Or(t.Format.ShortName(t.Rank()), "sparse")
	}
	return text
}

// detail is what sets o apart from others of its name: an equation, a kind, a
// callee, an element type, or its first attributes.
func detail(o *ir.Op) string {
	d := op.Of(o)
	switch {
	case o.Name == op.Call || o.Name == op.Grad:
		return cut("@"+o.Str("callee"), 40)
	case o.Name == op.Kernel:
		return contents(o)
	case d == nil:
		return ""
	case d.Is(op.Pointwise|op.Cast) && o.In(0) != nil && o.Out(0) != nil:
		return o.In(0).Elem.String() + " → " + o.Out(0).Elem.String()
	}
	var parts []string
	for _, a := range d.Attrs {
		v := o.Attr(a.Name)
		if v == nil {
			continue
		}
		if a.Lead {
			if text := types.TextOf(v); text != "" {
				return cut(text, 40)
			}
			return cut(v.String(), 40)
		}
		if a.Kind != op.KindDense && len(parts) < 2 {
			parts = append(parts, a.Name+" = "+v.String())
		}
	}
	return cut(strings.Join(parts, ", "), 40)
}

// contents names up to three of the ops in a kernel, in the order of the text:
// contractions and normalizations before others.
func contents(kernel *ir.Op) string {
	const most = 3
	var names []string
	rank := map[string]int{}
	body := kernel.Body(0)
	if body == nil { // a broken text
		return ""
	}
	for _, o := range body.Ops {
		d := op.Of(o)
		if d == nil || d.Is(op.View) || d.Family == op.Sources || o == body.Terminator() {
			continue
		}
		if _, seen := rank[d.Name]; seen {
			continue
		}
		names = append(names, d.Name)
		switch d.Class {
		case op.ClassContraction:
			rank[d.Name] = 0
		case op.ClassNormalization:
			rank[d.Name] = 1
		default:
			rank[d.Name] = 2
		}
	}
	more := ""
	if len(names) > most {
		more = ", …"
		shown := slices.Clone(names)
		slices.SortStableFunc(shown, func(a, b string) int { return rank[a] - rank[b] })
		shown = shown[:most]
		names = slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(shown, n) })
	}
	return strings.Join(names, ", ") + more
}

// cut shortens s to at most n characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// valueName is what to call v: its name, and of a component of a sparse tensor whose it is and what it stores, "%adj's positions".
func valueName(v *ir.Value) string {
	at := strings.LastIndexByte(v.Name, '.')
	if at <= 0 {
		return v.Name
	}
	kind, level, ok := types.ParseComponent(v.Name[at+1:])
	if !ok {
		return v.Name
	}
	name := v.Name[:at] + "'s " + string(kind)
	if level != "" {
		name += " of level " + level
	}
	return name
}

// resultNames are those of the results of e's op.
func resultNames(e *cost.Entry) string {
	if len(e.Op.Results) == 1 {
		return valueName(e.Op.Results[0])
	}
	return e.Results()
}
