package cost

import (
	"math"
	"slices"

	"dmir/analysis/machine"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/reuse"
)

// table is rows of a value in memory that an op reads by numbers that are in memory too.
type table struct {
	of, by *ir.Value
	machine.Table
	segments *machine.Segments // of an attention
}

// tables are those that o reads whose sizes are known. Where nothing says which rows are read more often than others, each is as likely.
func (s *scope) tables(o *ir.Op) (out []table) {
	var reads []op.TableRead
	if op.IsSparse(o) {
		reads = s.written(o).Tables()
	} else {
		reads = op.TableReads(o)
	}
	// Where numbers and tables are from is followed through ops: views, conversions, what has the pattern of its operand.
	s.asked = s.asked || len(reads) > 0 && slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return v.Op != nil && v.Op.Name != op.Constant })
	for _, l := range reads {
		tables, ok1 := l.Tables.Subst(s.env).Int()
		rows, ok2 := l.Rows.Subst(s.env).Int()
		reads, ok3 := l.Reads.Subst(s.env).Int()
		row, ok4 := l.Row.Subst(s.env).Int()
		if !ok1 || !ok2 || !ok3 || !ok4 || tables <= 0 || rows <= 0 || reads <= 0 || row <= 0 {
			continue
		}
		p, known := l.Numbers.Profile(rows, reads, s.env)
		if !known {
			p = reuse.Uniform(rows, reads)
		}
		of, by := l.Table, l.Index
		if op.IsSparse(o) {
			of, by = o.Operands[l.Operand], nil
		}
		t := machine.Table{Tables: tables, Row: row, Profile: p}
		if c := l.Numbers.Counted; c != nil && l.Numbers.Level > 0 && l.Numbers.Type.Rank() == 2 && l.Numbers.Type.Format.Levels[0].Dim == 0 && p.Reads == c.Stored {
			t.Longest = c.Longest
		}
		out = append(out, table{of, by, t, nil})
	}
	return out
}

// reads are the tables that a kernel reads, each once for the same numbers.
func (e *Entry) reads(out []table) []table {
	for _, t := range e.tables {
		seen := false
		for i := range out {
			seen = seen || out[i].of == t.of && out[i].by == t.by && t.by != nil
		}
		if !seen {
			out = append(out, t)
		}
	}
	if e.Fused {
		for _, i := range e.Inner {
			out = i.reads(out)
		}
	}
	return out
}

// within are those of ts that e, a kernel, does not compute itself.
func within(e *Entry, ts []table) []table {
	if !e.Fused || len(ts) == 0 {
		return ts
	}
	if e.Op == nil { // of a plan
		return slices.DeleteFunc(slices.Clone(ts), func(t table) bool { return computedBy(e.Inner, t.of) })
	}
	made := map[*ir.Value]bool{}
	for _, r := range e.Op.Regions {
		walkBlocks(r.Blocks, func(*ir.Block) {}, func(p *ir.Op) {
			for _, v := range p.Results {
				made[v] = p.Name != op.Constant
			}
		})
	}
	var out []table
	for _, t := range ts {
		if !made[t.of] {
			out = append(out, t)
		}
	}
	return out
}

// tableTerms are what e's tables add to the terms of its time: again are bytes that come from the memory more than once, and first is how long those take in
// ns that a processor has in its first cache. Long reports whether a table has rows of a line or more.
func (e *Entry) tableTerms(m *machine.Machine, t *TimeTerms, moved int64) (again int64, first float64, long bool) {
	all := within(e, e.reads(nil))
	if len(all) == 0 || m.L2 == 0 && len(m.Caches) == 0 {
		return 0, 0, false
	}
	ts := make([]machine.Table, len(all))
	among := 0.0 // bytes of the tables that are in moved
	for i, x := range all {
		if ts[i] = x.Table; x.segments != nil {
			ts[i].Times = x.segments.Times(m)
		}
		long = long || x.Long()
		among += float64(x.Tables) * float64(x.Profile.By[0].Touched) * float64(x.Row)
	}
	x := m.ReadTables(ts, max(0, moved-int64(among)), t.Threads)
	t.Near, t.Again = int64(math.Round(x.Near)), int64(math.Round(x.Again))
	t.Tables, t.Longest = x.Seconds*1e9, x.Longest*1e9
	return t.Again, x.First * 1e9, long
}

// Rows is what f reads of tables row by row on m: bytes from the caches, of a GPU the level-2 cache, and from the memory beyond the bytes moved. What is
// not known does not count.
func (f *Func) Rows(m *machine.Machine) (near, again int64) {
	if m == nil {
		return 0, 0
	}
	return rowsOf(m, f.Entries)
}

func rowsOf(m *machine.Machine, entries []*Entry) (near, again int64) {
	for _, e := range entries {
		n, a := e.rowBytes(m)
		near, again = near+n, again+a
	}
	return near, again
}

// rows are those of b, counted once for all that call it.
func (b *body) rows(m *machine.Machine) (near, again int64) {
	if x, done := b.read.Load(m); done {
		n := x.([2]int64)
		return n[0], n[1]
	}
	near, again = rowsOf(m, b.entries)
	b.read.Store(m, [2]int64{near, again})
	return near, again
}

func (e *Entry) rowBytes(m *machine.Machine) (near, again int64) {
	switch {
	case !e.Known || e.inside:
		return 0, 0
	case e.callee != nil:
		return e.callee.rows(m)
	case e.parts != nil:
		return rowsOf(m, e.parts)
	case len(e.Inner) > 0 && !e.Fused:
		trips, _ := e.Trips.Int()
		near, again = rowsOf(m, e.Inner)
		return near * trips, again * trips
	}
	if e.Within == nothing || e.tables == nil && !e.Fused {
		return 0, 0
	}
	t, _ := e.terms(m, nil)
	return t.Near, t.Again
}
