package machine

import (
	"testing"

	"dmir/dialect/reuse"
)

// Rows of a table come from the level-2 cache as often as they are read, and from the memory again where that does not hold them
// until then; short rows bring a sector each.
func TestTables(t *testing.T) {
	m, _ := Lookup("h100") // 50 MiB of level-2 cache
	read := func(rows, row, reads int64, times float64) Tables {
		return m.ReadTables([]Table{{Tables: 1, Row: row, Times: times, Profile: reuse.Uniform(rows, reads)}}, 0, 0)
	}
	const reads = 1 << 22
	small, large := read(1<<16, 256, reads, 0), read(1<<20, 256, reads, 0)
	if small.Again != 0 || small.Near < 255*reads || small.Near > 256*reads || small.Seconds != small.Near/m.L2Bandwidth {
		t.Errorf("a table of 16 MiB: %+v", small)
	}
	// 268 MB of which a fifth is in the cache: the other reads miss, but for the first ones of the 2^20 rows.
	if part := large.Again / (reads * 256); part < 0.5 || part > 0.62 {
		t.Errorf("of a table of 268 MB %.2f of the reads come from the memory again", part)
	}
	if twice := read(1<<16, 256, reads, 2); twice.Near != 2*small.Near || twice.Again != 0 {
		t.Errorf("rows that two warps read: %+v", twice)
	}
	if short := read(1<<22, 4, reads, 0); short.Near < 31*reads || short.Near > 32*reads {
		t.Errorf("elements of a vector bring %g bytes for %d reads", short.Near, reads)
	}
	order := m.ReadTables([]Table{{Tables: 1, Row: 256, Profile: reuse.InOrder(1<<10, reads)}}, 0, 0)
	if order.Near != 256<<10 || order.Again != 0 {
		t.Errorf("rows in order: %+v", order)
	}
	long := m.ReadTables([]Table{{Tables: 1, Row: 256, Longest: 1 << 18, Profile: reuse.Uniform(1<<16, reads)}}, 0, 0)
	if long.Longest < 2*long.Seconds || long.Seconds != small.Seconds {
		t.Errorf("a sixteenth of all reads in one row: %+v", long)
	}
	if two := m.ReadTables([]Table{{Tables: 3, Row: 256, Profile: reuse.Uniform(1<<16, reads)}, {Tables: 1, Row: 256, Profile: reuse.Uniform(1<<16, reads)}}, 0, 0); two.Near != 4*small.Near {
		t.Errorf("four tables: %+v", two)
	}
}

// On a processor rows come from the cache that holds them, and caches of cores are not shared.
func TestTablesOfProcessors(t *testing.T) {
	m := &Machine{CPU: true, SMs: 2, Bandwidth: 1e10, Processor: Processor{Caches: []Cache{
		{Name: "L1", Size: 32 << 10, PerCore: true, Bandwidth: 4e11}, {Name: "L2", Size: 1 << 20, PerCore: true, Bandwidth: 2e11}, {Name: "L3", Size: 16 << 20, Bandwidth: 1e11},
	}}}
	read := func(rows int64) Tables {
		return m.ReadTables([]Table{{Tables: 1, Row: 64, Profile: reuse.Uniform(rows, 1<<22)}}, 0, 0)
	}
	first, second, third, none := read(1<<8), read(1<<13), read(1<<16), read(1<<20)
	if first.Seconds != 0 || second.Seconds <= 0 || third.Seconds <= second.Seconds || third.Again != 0 || none.Again <= 0 || none.Again > none.Near {
		t.Errorf("tables of 16 KB, 512 KB, 4 MB and 64 MB: %+v, %+v, %+v, %+v", first, second, third, none)
	}
}

// Rows that are read by their numbers begin with a line at random; the others follow it as in rows of four lines.
func TestByNumber(t *testing.T) {
	m := &Machine{CPU: true}
	for _, c := range []struct {
		row          int64
		random, rows float64
		want         float64
	}{
		{4, 5e9, 0, 5e9}, {64, 5e9, 0, 5e9}, {128, 5e9, 0, 8e9}, {1 << 20, 5e9, 0, 20e9}, {64, 0, 0, 20e9}, // lines at random were not measured
		{64, 5e9, 8e9, 5e9}, {256, 5e9, 8e9, 8e9}, {1 << 20, 5e9, 8e9, 10e9},
	} {
		if got := m.byNumber(c.row, source{20e9, c.random, c.rows}); got < 0.99*c.want || got > 1.01*c.want {
			t.Errorf("rows of %d bytes, %g and %g at random: %.3g B/s, want %.3g", c.row, c.random, c.rows, got, c.want)
		}
	}
}

// Rows that are at random are waited for longer than those whose neighbours are read at about the same time, and all take a line of the first cache each.
func TestRandomRows(t *testing.T) {
	m := &Machine{CPU: true, SMs: 2, Bandwidth: 1e10, Processor: Processor{Caches: []Cache{
		{Name: "L1", Size: 32 << 10, PerCore: true, Bandwidth: 4e11, Random: 4e11}, {Name: "L2", Size: 1 << 20, PerCore: true, Bandwidth: 2e11, Random: 1e11}, {Name: "L3", Size: 64 << 20, Bandwidth: 1e11, Random: 2e10},
	}}}
	const rows, reads = 1 << 16, 1 << 20
	read := func(p reuse.Profile, threads int) Tables {
		return m.ReadTables([]Table{{Tables: 1, Row: 256, Profile: p}}, 0, threads)
	}
	uniform, blocks := read(reuse.Uniform(rows, reads), 0), read(reuse.Blocks(rows, rows, reads, 32), 0)
	if want := float64(reads) * 64 / 4e11; uniform.First < 0.99*want || uniform.First > want {
		t.Errorf("%d reads take %g s in the first cache, want %g", reads, uniform.First, want)
	}
	if uniform.Seconds < 4*blocks.Seconds || blocks.Seconds <= 0 {
		t.Errorf("rows at random take %g s, those of blocks %g s", uniform.Seconds, blocks.Seconds)
	}
	if r := (&Table{Row: 256, Profile: reuse.Uniform(rows, reads)}).random(0); r < 0.99 {
		t.Errorf("%g of uniform reads are at random", r)
	}
	if r := (&Table{Row: 256, Profile: reuse.InOrder(rows, reads)}).random(0); r > 0.01 {
		t.Errorf("%g of reads in order are at random", r)
	}
	if one := read(reuse.Uniform(rows, reads), 1); one.Again != 0 || one.Seconds < 1.9*uniform.Seconds || one.Seconds > 2.1*uniform.Seconds {
		t.Errorf("on one thread %+v, on two %+v: both read the table of 16 MiB from the cache that they share", one, uniform)
	}
}
