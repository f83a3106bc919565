package refactor

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
)

// offerBudget offers, at the head of a function, a budget that the function as
// it is just meets.
func offerBudget(s *selection) []Action {
	o := s.one()
	if o == nil || o.Name != op.Func || !s.onHead(o) || len(o.Regions) == 0 {
		return nil
	}
	a := Action{ID: "budget", Kind: Rewrite, Title: "Set the budget to the current cost as written"}
	if b := o.Body(0); b != nil && len(b.Ops) > maxListed { // to find the peak looks at each op
		return []Action{a}
	}
	limits, err := s.needs(o)
	if err != nil {
		a.Disabled = err.Error()
		return []Action{a}
	}
	var parts []string
	for _, l := range limits {
		if len(l.text) <= maxFormula/2 { // there are two of them
			parts = append(parts, l.verb+" "+l.text)
		}
	}
	if len(parts) > 0 {
		a.Title += ": " + strings.Join(parts, ", ")
	}
	return []Action{a}
}

// limit is a budget as it is written.
type limit struct{ attr, verb, text string }

// needs are the smallest budgets under which o, as written, stays: of three digits, or as
// formulas where sizes are open.
func (s *selection) needs(o *ir.Op) ([]limit, error) {
	f := s.p.Cost(asFunc(s.m, o))
	if f == nil || !s.clean(o.Span) {
		return nil, refuse("the cost of @%s is not known", o.Str("sym_name"))
	}
	if f.Unknown > 0 {
		return nil, refuse("@%s has ops whose cost is not known", f.Func.Name)
	}
	f = f.PerDevice()
	out := []limit{{cost.MaxMoved, "moves", written(f.Moved())}}
	if peaks := f.Peaks(); len(peaks) == 1 { // of several, which is the largest depends on the sizes
		out = append(out, limit{cost.MaxPeak, "holds", written(peaks[0])})
	}
	if sent, known := f.Sent(); known && len(sent) > 0 {
		out = append(out, limit{cost.MaxSent, "sends", atLeast(cost.TotalSent(sent))})
	}
	for _, l := range out {
		if l.text == "" {
			return nil, refuse("the cost of @%s cannot be written as a budget", f.Func.Name)
		}
	}
	return out, nil
}

// written is d as a budget, "" where it cannot be read back.
func written(d dim.Dim) string {
	if n, ok := d.Int(); ok {
		return atLeast(n)
	}
	text := d.String()
	if back, err := dim.Parse(text); err != nil || !back.Equal(d) {
		return ""
	}
	return text + " B"
}

// atLeast is the size of three digits that is n bytes or the next above them.
func atLeast(n int64) string {
	text := units.Bytes(n)
	if m, err := units.ParseBytes(text); err == nil && m >= n {
		return text
	}
	number, unit, _ := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return fmt.Sprintf("%d B", n)
	}
	digits := 0
	if _, fraction, ok := strings.Cut(number, "."); ok {
		digits = len(fraction)
	}
	step := math.Pow(10, -float64(digits))
	for range 3 {
		v += step
		up := strconv.FormatFloat(v, 'f', digits, 64) + " " + unit
		if m, err := units.ParseBytes(up); err == nil && m >= n {
			return up
		}
	}
	return fmt.Sprintf("%d B", n)
}

func applyBudget(s *selection, _ string) (*Change, error) {
	o := s.one()
	if o == nil || o.Name != op.Func || len(o.Regions) == 0 {
		return nil, refuse("only a function with a body can have a budget")
	}
	limits, err := s.needs(o)
	if err != nil {
		return nil, err
	}
	var attrs [][2]string
	for _, l := range limits {
		attrs = append(attrs, [2]string{l.attr, parse.Quote(l.text + " as written")})
	}
	return &Change{Edits: s.setAttrs(o, attrs)}, nil
}

// setAttrs writes attributes of a function, in the place of those of the same
// names or behind the others.
func (s *selection) setAttrs(o *ir.Op, attrs [][2]string) []diag.Edit {
	t := origin.Tree(o)
	var edits []diag.Edit
	var missing []string
	var dict *ast.AttrExpr
	if !t.Attrs.Empty() {
		dict, _ = parse.Attr(t.Text(s.src, t.Attrs))
	}
	for _, a := range attrs {
		text := a[0] + " = " + a[1]
		found := false
		for i := 0; dict != nil && i < len(dict.Entries); i++ {
			e := dict.Entries[i]
			if e.Key != a[0] {
				continue
			}
			at, by := e.VSpan, a[1]
			if at.Empty() {
				at, by = e.Span, text
			}
			span := t.Abs(ast.Rel{Start: t.Attrs.Start + at.Start, End: t.Attrs.Start + at.End})
			edits, found = append(edits, diag.Edit{Span: span, Text: by}), true
		}
		if !found {
			missing = append(missing, text)
		}
	}
	list := strings.Join(missing, ", ")
	switch {
	case list == "":
	case dict != nil && len(dict.Entries) > 0:
		last := dict.Entries[len(dict.Entries)-1]
		end := max(last.Span.End, last.VSpan.End)
		edits = append(edits, diag.Edit{Span: empty(t.Off + int(t.Attrs.Start+end)), Text: ", " + list})
	case dict != nil:
		edits = append(edits, diag.Edit{Span: t.Abs(t.Attrs), Text: "{" + list + "}"})
	case t.Form == ast.Generic:
		at := t.Off + int(t.Regions[len(t.Regions)-1].Close) + 1
		at += strings.IndexByte(s.src.Slice(t.Span())[at-t.Off:], ')') + 1
		edits = append(edits, diag.Edit{Span: empty(at), Text: " {" + list + "}"})
	default:
		head := s.src.Slice(t.Span())[:t.Regions[0].Open]
		at := t.Off + len(strings.TrimRight(head, blanks))
		edits = append(edits, diag.Edit{Span: empty(at), Text: " attributes {" + list + "}"})
	}
	return edits
}
