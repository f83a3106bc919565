package feature

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// dividedAtOnce is the number of ops up to which a function is divided when its hints are asked
// for; the cost of a larger one follows after the pause in which lint runs.
const dividedAtOnce = 64

// Settled is the cost of f that is shown: that of each device, where its values are divided. It is nil
// while a large function has not been divided since the last edit.
func Settled(f *cost.Func) *cost.Func {
	if f.Mesh() == nil && f.Microbatches() == 0 || f.Tried() || len(f.Func.Body.Ops) <= dividedAtOnce {
		return f.PerDevice()
	}
	return nil
}

// spreadAtOnce is the number of ops up to which shardings are propagated through a function when its
// hints are asked for; in a larger one, new values have theirs after the pause.
const spreadAtOnce = 256

// Divide divides those of funcs whose cost follows later, and propagates their shardings, until ctx ends; it
// reports whether there were any.
func Divide(ctx context.Context, funcs []*cost.Func) bool {
	some := false
	for _, f := range funcs {
		if ctx.Err() != nil {
			return false
		}
		if Settled(f) == nil {
			some = f.DivideUnless(ctx) || some
		}
		if spreadsLater(f) {
			f.Shardings()
			some = true
		}
	}
	return some
}

// Undivided reports whether there are functions among funcs whose cost or whose shardings follow later.
func Undivided(funcs []*cost.Func) bool {
	return slices.ContainsFunc(funcs, func(f *cost.Func) bool { return Settled(f) == nil || spreadsLater(f) })
}

func spreadsLater(f *cost.Func) bool { return len(f.Func.Body.Ops) > spreadAtOnce && !f.Spread() }

// shardings are how the values of a function are divided.
type shardings struct {
	mesh    *mesh.Mesh
	values  *shard.Values
	divided *cost.Divided // nil while f has not been divided
}

// shardingsOf are those of f; ok is false where its text states none.
func shardingsOf(f *cost.Func) (s shardings, ok bool) {
	if spreadsLater(f) {
		s.values = f.LastShardings()
	} else {
		s.values, _ = f.Shardings()
	}
	if s.values == nil {
		return s, false
	}
	s.mesh = s.values.Grid.Mesh
	if Settled(f) != nil {
		s.divided, _ = f.Divide()
	}
	return s, true
}

// of is the sharding of v, nil of a value that every device has whole.
func (s shardings) of(v *ir.Value) *types.Sharding {
	t := v.Tensor()
	if t == nil {
		return nil
	}
	own, _ := s.values.Sharding(v)
	if s.divided != nil {
		if made := s.divided.Sharding(v); made != nil && len(made.Partial) > 0 {
			own = made
		}
	}
	if own == nil || own.Short() == "" {
		return nil
	}
	return own
}

// maxSharding is the width of the shardings in a hint, in characters.
const maxSharding = 28

// label is the shardings of values in one hint, "" where all are whole.
func (s shardings) label(vs []*ir.Value) string {
	var parts []string
	for _, v := range vs {
		if own := s.of(v); own != nil {
			parts = append(parts, own.Short())
		} else if len(vs) > 1 {
			parts = append(parts, "whole")
		}
	}
	text := strings.Join(parts, " | ")
	if strings.Trim(text, "whole| ") == "" {
		return ""
	}
	if utf8.RuneCountInString(text) > maxSharding {
		return string([]rune(text)[:maxSharding-1]) + "…"
	}
	return text
}

// rows describe how the devices have v: pieces, padding, and why.
func (s shardings) rows(v *ir.Value) []row {
	own := s.of(v)
	if own == nil {
		return nil
	}
	rows := []row{{"sharding of " + v.Name, fmt.Sprintf("%s on @%s (%s)", own.Short(), s.mesh.Name, s.mesh)}}
	if text := s.piece(v.Tensor(), own); text != "" {
		rows = append(rows, row{"piece", text})
	}
	_, stated := s.values.Sharding(v)
	switch from, by := s.values.Why(v); {
	case stated:
		rows = append(rows, row{"why", "stated here"})
	case from != nil && by != nil && from.Name != "":
		rows = append(rows, row{"why", fmt.Sprintf("as %s, by %s", from.Name, by.Name)})
	case len(own.Partial) > 0:
		rows = append(rows, row{"why", "each device has a part of the sum, which is reduced where it is needed"})
	}
	return rows
}

// piece is the shape that a device has: "32x1024 of 64x1024", with what is padded.
func (s shardings) piece(t *types.Tensor, own *types.Sharding) string {
	local, ok := s.mesh.Local(t, own)
	if !ok {
		return ""
	}
	shape := func(ds []dim.Dim) string {
		parts := make([]string, len(ds))
		for i, d := range ds {
			parts[i] = d.String()
		}
		return strings.Join(parts, "x")
	}
	text := fmt.Sprintf("%s of %s", shape(local.Shape), shape(t.Shape))
	for i, d := range own.Dims {
		n, known := t.Shape[i].Int()
		if p := int64(s.mesh.Count(d.Axes)); known && p > 1 && n%p != 0 {
			all := mesh.Piece(n, int(p)) * p
			text += fmt.Sprintf("; dimension %d is padded from %d to %d, %s more", i, n, all, units.Percent(float64(all-n), float64(n)))
		}
	}
	return text
}

// shardingHints adds the shardings to the hints of f's lines, and to that of its signature those of
// the arguments.
func (h *hinter) shardingHints(f *cost.Func) {
	s, ok := shardingsOf(f)
	if !ok || h.p.Imported {
		return
	}
	if at := f.Func.Op.Span.Start; h.shown(at) {
		hint := h.line(h.p.Src.Pos(at).Line)
		for _, a := range f.Func.Args {
			hint.rows = append(hint.rows, s.rows(a)...)
		}
	}
	in := opsIn(f.Func.Body.Ops, h.span)
	h.p.Work().Add("hints", len(in))
	ir.Walk(in, func(o *ir.Op) bool {
		if len(o.Results) > 0 && h.shown(o.Span.Start) {
			hint := h.line(h.p.Src.Pos(o.Span.Start).Line)
			if hint.Sharding == "" {
				hint.Sharding = s.label(o.Results)
				for _, v := range o.Results {
					hint.rows = append(hint.rows, s.rows(v)...)
				}
			}
		}
		return true
	})
}

// opsIn are those of ops, in textual order, that touch a span.
func opsIn(ops []*ir.Op, span source.Span) []*ir.Op {
	first := sort.Search(len(ops), func(i int) bool { return ops[i].Span.End >= span.Start })
	n := sort.Search(len(ops)-first, func(i int) bool { return ops[first+i].Span.Start > span.End })
	return ops[first : first+n]
}

// collectiveRows are the collectives that e causes: what each sends, along which axes, over which
// link, how long and by which algorithm.
func collectiveRows(e *cost.Entry, m *machine.Machine) []row {
	var rows []row
	var visit func(e *cost.Entry, times string)
	visit = func(e *cost.Entry, times string) {
		if c := e.Comm; c != nil {
			if len(rows) > maxCollectives {
				return
			}
			text := fmt.Sprintf("%s along %s of %s", units.Bytes(c.Sent), c.Axes, plural(c.Devices, "device"))
			if x, err := c.Estimate(m); err == nil && x.Link != "" {
				text += fmt.Sprintf(", %s %s over %s", units.Time(x.Time*1e9), x.Algorithm, x.Link)
			} else if err != nil {
				text += ", no time: " + err.Error()
			}
			if len(rows) == maxCollectives {
				rows = append(rows, row{"…", "and more"})
				return
			}
			rows = append(rows, row{strings.TrimPrefix(e.Op.Name, op.Prefix), text + times})
			return
		}
		if len(e.Parts()) > 0 {
			for _, p := range e.Parts() {
				visit(p, times)
			}
			return
		}
		if e.Fused {
			return
		}
		if n, ok := e.Trips.Int(); !ok || n != 1 {
			times += ", × " + e.Trips.String()
		}
		for _, i := range e.Inner {
			visit(i, times)
		}
	}
	visit(e, "")
	return rows
}

// maxCollectives bounds how many collectives of an op are listed.
const maxCollectives = 8

// sentRows is what a device sends to run something, by axes.
func sentRows(sent []cost.Sent, known bool) []row {
	switch {
	case !known:
		return []row{{"sent", "not known"}}
	case len(sent) == 0:
		return nil
	}
	return []row{{"sent", cost.SentText(sent)}}
}

// deviceRows are what concerns the devices that run f together.
func deviceRows(f *cost.Func, m *machine.Machine) []row {
	on := f.Mesh()
	if on == nil {
		return nil
	}
	rows := []row{{"devices", fmt.Sprintf("%d of @%s (%s); figures are of each", on.Devices(), on.Name, on)}}
	if _, problem := f.Divide(); problem != nil {
		return []row{{"devices", fmt.Sprintf("%d of @%s (%s)", on.Devices(), on.Name, on)}, {"not divided", problem.Msg}}
	}
	rows = append(rows, sentRows(f.Sent())...)
	if o := f.Overlap(m); o.Known && o.Comm > 0 {
		rows = append(rows, row{"exposed", fmt.Sprintf("%s of %s of communication", units.Time(o.ExposedNs), units.Time(o.Comm))})
	}
	return rows
}
