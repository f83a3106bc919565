package machine

import (
	"cmp"

	"dmir/dialect/reuse"
)

// Table is rows that a kernel reads by their numbers: the dense operand of a product with a sparse one, or what a gather takes rows of.
type Table struct {
	Tables  int64   // that are read by the same numbers, one after the other: of heads
	Row     int64   // bytes
	Times   float64 // how often warps read it at about the same time from the level-2 cache; 0: once
	Longest int64   // reads of the longest row of a sparse matrix, which one block or thread computes; 0: not known
	Profile reuse.Profile
}

// The lines that a read of a part of one brings: a sector of the level-2 cache of a GPU, and a line of a processor.
const (
	sector        = 32
	processorLine = 64
)

// Long reports whether a row of t is a line of a processor or more.
func (t *Table) Long() bool { return t.Row >= processorLine }

// line is the bytes of a line, and the rows that are in one, at least 1.
func (m *Machine) line(row int64) (bytes, rows int64) {
	bytes = sector
	if m.CPU {
		bytes = processorLine
	}
	return bytes, max(1, bytes/max(row, 1))
}

// each is the bytes of the lines that a read brings, and the number of the grain by which these are counted.
func (m *Machine) each(t *Table) (bytes float64, grain int) {
	line, rows := m.line(t.Row)
	return float64(max(line, (t.Row+line-1)/line*line)), reuse.GrainOf(rows)
}

// warp is the logarithm of how many reads next to each other bring a line together, where rows are shorter than it: of the lanes of a
// warp, and about as many are what a processor's first cache has beside all else.
const warp = 5

// Near is the bytes that reads of t bring from the caches behind the first one: a row for each that is not of the row before.
func (m *Machine) Near(t *Table) float64 {
	bytes, grain := m.each(t)
	k := 0
	if _, rows := m.line(t.Row); rows > 1 {
		k = warp
	}
	return float64(t.Tables) * t.Profile.Apart(grain, k) * bytes * cmp.Or(t.Times, 1)
}

// Again is the bytes of t that miss a cache of so many bytes beyond the first read of each line; beside is what else a read brings into
// that cache, bytes that are not read again.
func (m *Machine) Again(t *Table, cache int64, beside float64) float64 {
	bytes, grain := m.each(t)
	misses := t.Profile.Misses(grain, float64(cache)/bytes, beside/bytes)
	return float64(t.Tables) * max(0, misses-float64(t.Profile.By[grain].Touched)) * bytes
}

// Tables is what reads of tables add to the moves of a kernel.
type Tables struct {
	Near    float64 // bytes from the caches: of a GPU the level-2 cache
	Again   float64 // bytes from the memory besides the first read of each line
	Seconds float64 // of Near, or on a processor of what its caches give behind the first one
	First   float64 // seconds of what comes from the first one of a processor, which are part of computing
	Longest float64 // seconds of the longest row alone
}

// ReadTables is that of ts on some threads of m, where a kernel moves so many bytes besides them.
func (m *Machine) ReadTables(ts []Table, beside int64, threads int) (out Tables) {
	for i := range ts {
		t := &ts[i]
		each := float64(beside) / max(1, float64(t.Tables)*float64(t.Profile.Reads))
		near := m.Near(t)
		out.Near += near
		switch {
		case len(m.Caches) > 0:
			first, again, seconds := m.fromCaches(t, each, threads)
			out.Again += again
			out.First += first
			out.Seconds += seconds
			out.Longest += seconds * m.share(threads) * float64(t.Longest) / max(1, float64(t.Profile.Reads))
		case m.L2 > 0:
			share := m.L2 / int64(len(ts))
			out.Again += m.Again(t, share, each)
		}
	}
	if m.L2Bandwidth > 0 {
		out.Seconds = out.Near / m.L2Bandwidth
		for i := range ts {
			out.Longest += float64(ts[i].Longest*ts[i].Row) * float64(max(m.SMs, 1)) / m.L2Bandwidth // from that of one multiprocessor
		}
	}
	return out
}

// share is how many threads of a processor work at the same time.
func (m *Machine) share(threads int) float64 {
	if threads == 0 {
		threads = m.SMs
	}
	return float64(max(threads, 1))
}

// source is where lines of tables come from: a cache, or the memory.
type source struct{ read, random, rows float64 }

func (m *Machine) sources() (all []source) {
	for _, c := range m.Caches {
		all = append(all, source{cmp.Or(c.Read, c.Bandwidth), c.Random, c.RandomRows})
	}
	return append(all, source{cmp.Or(m.Read, m.Reach()), m.Random, m.RandomRows})
}

// fromCaches is how long a processor takes to read a line of each row of t from its first cache, the bytes that come from the memory again, and how long
// it waits for rows, each of which comes from the smallest cache that has it. The bytes of first reads are among those that the kernel moves; where they are
// at random, they take longer.
func (m *Machine) fromCaches(t *Table, beside float64, threads int) (issue, again, seconds float64) {
	part := 1.0
	if m.SMs > 0 && threads > 0 {
		part = min(1, float64(threads)/float64(m.SMs))
	}
	each, grain := m.each(t)
	tables, touched := float64(t.Tables), float64(t.Profile.By[grain].Touched)
	random, all := t.random(grain), m.sources()
	took := func(s source, rows float64) float64 {
		return rows * each * (random/m.byNumber(t.Row, s) + (1-random)/s.read)
	}
	left := m.Near(t) / each // rows, of all tables; those that are read again at once are in registers
	if r := all[0].random; r > 0 {
		issue = tables * t.Profile.Apart(0, 0) * processorLine / r / part
	}
	for i, c := range m.Caches {
		missed := min(left, tables*t.Profile.Misses(grain, float64(c.Size)/each, beside/each))
		if i > 0 { // what the first one has is part of computing
			seconds += took(all[i], left-missed) / part
		}
		left = missed
	}
	again = max(0, left-tables*touched)
	seconds += took(all[len(m.Caches)], again)
	first := all[m.level(tables*touched*each)]
	seconds += max(0, took(first, min(left, tables*touched))-min(left, tables*touched)*each/first.read)
	return issue, again * each, seconds
}

// level is the number of the smallest cache that holds so many bytes, of all cores together; that of the memory is one more.
func (m *Machine) level(bytes float64) int {
	i := 0
	for i < len(m.Caches) && bytes > float64(m.Caches[i].holds(m)) {
		i++
	}
	return i
}

// random is which part of the reads of rows, in lines of so many, is of a row whose neighbours are not read at about the same time: processors
// foresee the others.
func (t *Table) random(grain int) float64 {
	last := len(reuse.Grains) - 1
	if grain > 0 || t.Profile.Reads == 0 {
		return 1
	}
	n := float64(reuse.Grains[last])
	rows, lines := t.Profile.Apart(0, warp), t.Profile.Apart(last, warp)
	if rows == 0 {
		return 0
	}
	return min(1, max(0, (lines/rows-1/n)/(1-1/n)))
}

// byNumber is the bandwidth of rows of so many bytes that are read by their numbers: their first lines at that of lines at random, the others as those
// of rows of four lines.
func (m *Machine) byNumber(row int64, s source) float64 {
	const four = 4
	bytes, _ := m.line(row)
	first := 1 / cmp.Or(s.random, s.read)
	other := 1 / s.read
	if s.rows > 0 {
		other = max(0, four/s.rows-first) / (four - 1)
	}
	lines := max(1, float64(row)/float64(bytes))
	return lines / (first + (lines-1)*other)
}
