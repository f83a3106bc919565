package feature

import (
	"path/filepath"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/print"
	"dmir/dialect/weights"
)

// became is what an op of an imported text stands for: ops of the dialect, which have
// its place.
type became struct {
	es                  []*cost.Entry
	flop, read, written dim.Dim
	time                cost.Time
}

// becameOf splits entries in the order of the text by the ops that they come from.
func becameOf(p *program.Program, es []*cost.Entry) []became {
	var out []became
	for _, e := range es {
		if n := len(out); n == 0 || out[n-1].es[0].Op.Span != e.Op.Span {
			out = append(out, became{time: cost.Time{Known: true}})
		}
		b := &out[len(out)-1]
		b.es = append(b.es, e)
		b.flop, b.read, b.written = b.flop.Add(e.FLOP), b.read.Add(e.Read), b.written.Add(e.Written)
		t := e.Time(p.Target)
		if len(b.es) == 1 || t.Ns > b.time.Ns/2 { // of what takes most of it
			b.time.Bound = t.Bound
		}
		b.time.Ns += t.Ns
		b.time.Known = b.time.Known && t.Known
	}
	return out
}

func (b became) moved() dim.Dim { return b.read.Add(b.written) }

func (b became) rows(f *cost.Func, p *program.Program) []row {
	if len(b.es) == 1 {
		return append(entryRows(b.es[0], f, p.Target), row{"becomes", b.names()})
	}
	rows := append(timeRows(b.time, p.Target, latencyOf(nil, p.Target)), counts(b.flop, b.read, b.written)...)
	return append(append(rows, row{"becomes", b.names()}), originRows(b.es[0].Op)...)
}

// names are the ops that b became, each once.
func (b became) names() string {
	var names []string
	times := map[string]int{}
	for _, e := range b.es {
		if times[e.Op.Name]++; times[e.Op.Name] == 1 {
			names = append(names, e.Op.Name)
		}
	}
	return strings.Join(names, ", ")
}

// imported adds the hints of the ops of a text that es come from.
func (h *hinter) imported(f *cost.Func, es []*cost.Entry) {
	for _, b := range becameOf(h.p, es) {
		at := b.es[0].Op.Span.Start
		if b.flop.IsZero() && b.moved().IsZero() && len(b.es[0].Inner) == 0 || !h.shown(at) {
			continue
		}
		var ns int64
		if h.ran != nil {
			ns = h.ran.Ops[h.p.Src.Pos(at).Line+1]
		}
		h.add(at, b.moved(), b.time, nil, ns, b.rows(f, h.p))
	}
	for _, e := range es {
		h.entries(f, e.Inner, false)
	}
}

// importedHover describes the op of an imported text at off: its cost, and the ops that
// it became.
func importedHover(p *program.Program, off int) *Hover {
	o := opAt(p, off)
	if o == nil {
		return nil
	}
	f, e := costAt(p, o)
	if e == nil || !o.Head.Contains(off) {
		return nil
	}
	es := f.Entries
	if r := o.Parent.Region.Op; r != f.Func.Op {
		_, around := costAt(p, r)
		es = around.Inner
	}
	for _, b := range becameOf(p, entriesIn(es, o.Span)) {
		if b.es[0].Op.Span == o.Span {
			return &Hover{o.Head, table(b.rows(f, p))}
		}
	}
	return nil
}

// Converted is the program in the ops of the dialect, as dmir import writes it to a file.
func Converted(p *program.Program) string {
	return unlessBroken(p, func() (string, error) {
		modules := make([]*ir.Module, len(p.Modules))
		for i, m := range p.Modules {
			modules[i] = m.Clone()
		}
		if _, err := weights.Place(modules, filepath.Base(weights.Path(p.Src.Path))); err != nil {
			return "", err
		}
		return print.Sections(modules)
	})
}
