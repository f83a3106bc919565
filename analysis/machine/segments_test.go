package machine

import (
	"testing"

	"dmir/dialect/reuse"
	"dmir/dialect/types"
)

// Attention to segments takes longer with more scores and longer rows, and less where queries share keys; few queries have several warps.
func TestSegmentTime(t *testing.T) {
	m, _ := Lookup("h100")
	base := Segments{Queries: 1 << 16, Keys: 64, Rows: 1, Depth: 64, Value: 64, Elem: types.F32}
	of := func(change func(s *Segments)) float64 {
		s := base
		change(&s)
		reads := reuse.Uniform(1<<16, s.Queries/s.Rows*s.Keys)
		keys := Table{Tables: 1, Row: (s.Depth + s.Value) * s.Elem.Bytes(), Times: s.Times(m), Profile: reads}
		return max(m.SegmentTime(s), m.ReadTables([]Table{keys}, 0, 0).Seconds)
	}
	own := of(func(*Segments) {})
	if more := of(func(s *Segments) { s.Keys *= 2 }); more < 1.9*own || more > 2.1*own {
		t.Errorf("twice as many keys take %g, and %g before", more, own)
	}
	if longer := of(func(s *Segments) { s.Depth, s.Value = 128, 128 }); longer < 1.5*own {
		t.Errorf("rows of twice the length take %g, and %g before", longer, own)
	}
	if shared := of(func(s *Segments) { s.Rows = 32 }); shared >= own {
		t.Errorf("queries that share keys take %g, and %g alone", shared, own)
	}
	if half := of(func(s *Segments) { s.Elem = types.F16 }); half >= own {
		t.Errorf("half precision takes %g, and f32 %g", half, own)
	}
	for _, c := range []struct{ queries, keys, rows, warps int64 }{{1 << 16, 64, 1, 1}, {64, 4096, 1, 8}, {64, 4096, 32, 2}, {64, 8, 1, 4}, {64, 2, 1, 1}} {
		if w := m.SegmentWarps(Segments{Queries: c.queries, Keys: c.keys, Rows: c.rows, Depth: 64, Value: 64, Elem: types.F32}); w != c.warps {
			t.Errorf("%d queries with %d keys have %d warps each, want %d", c.queries, c.keys, w, c.warps)
		}
	}
}

// Queries and keys in whole fragments are multiplied by tensor cores, and queries of a segment read keys together.
func TestSegmentTiles(t *testing.T) {
	m, _ := Lookup("h200")
	s := Segments{Queries: 65536, Keys: 512, Rows: 128, Columns: 32, Depth: 64, Value: 64, Elem: types.F16}
	alone := s
	alone.Columns = 8
	if a, b := m.SegmentTime(s), m.SegmentTime(alone); !s.Tiled() || alone.Tiled() || 4*a > b {
		t.Errorf("%.3g s on tensor cores, %.3g s without", a, b)
	}
	for rows, want := range map[int64]int64{16: 16, 32: 32, 48: 16, 64: 64, 128: 64} {
		if s.Rows = rows; s.TileRows() != want || s.Times(m) != float64(rows)/float64(want) {
			t.Errorf("%d rows: %d of a block, keys read %g times", rows, s.TileRows(), s.Times(m))
		}
	}
	for _, none := range []Segments{{Rows: 16, Columns: 16, Depth: 16, Value: 16, Elem: types.F32}, {Rows: 16, Columns: 16, Depth: 17, Value: 16, Elem: types.F16}, {Rows: 24, Columns: 16, Depth: 16, Value: 16, Elem: types.F16}, {Rows: 16, Columns: 16, Depth: 16, Value: 264, Elem: types.BF16}} {
		if none.Tiled() {
			t.Errorf("%+v has no tiles", none)
		}
	}
}
