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

// Rows that are read by their numbers begin with a line at random; the others follow it.
func TestByNumber(t *testing.T) {
	m := &Machine{Processor: Processor{Random: 5e9}}
	m.CPU = true
	for row, want := range map[int64]float64{4: 5e9, 64: 5e9, 128: 8e9, 1 << 20: 20e9} {
		if got := m.byNumber(row, 20e9, m.Random); got < 0.99*want || got > 1.01*want {
			t.Errorf("rows of %d bytes: %.3g B/s, want %.3g", row, got, want)
		}
	}
	if got := m.byNumber(64, 20e9, 0); got != 20e9 {
		t.Errorf("%.3g B/s where lines at random were not measured", got)
	}
}
