package machine

import (
	"testing"

	"dmir/dialect/types"
)

// Workers have all steps of the rest, each once and as many as another, but for one; the tiles that they share and finish are those that times count.
func TestStreamK(t *testing.T) {
	seen := 0
	for sms := 2; sms < 40; sms += 3 {
		m := *ten
		m.SMs = sms
		for tiles := int64(1); tiles < 130; tiles += 2 {
			for steps := int64(1); steps < 60; steps += 7 {
				p := Product{Batch: 1, Rows: 128 * tiles, Cols: 256, Depth: 64 * steps, Elem: types.F16}
				s, ok := m.StreamK(p, Tile{Path: "mma", Rows: 128, Cols: 256, Step: 64, Splits: 1})
				if whole := tiles%int64(sms) == 0; whole && ok || !ok && !whole && tiles > int64(sms) && steps >= leastPart {
					t.Fatalf("%d tiles of %d steps on %d: %t", tiles, steps, sms, ok)
				}
				if !ok {
					continue
				}
				seen++
				if s.Whole*s.Workers+s.Rest != tiles || s.From(0) != 0 || s.From(s.Workers) != s.Rest*s.Steps || s.Whole > 0 && s.Rest <= s.Workers {
					t.Fatalf("%d tiles: %+v", tiles, s)
				}
				sharers, finished := make([]int64, s.Rest), int64(0)
				var parts int64
				for w := range s.Workers {
					from, to := s.From(w), s.From(w+1)
					if n := to - from; n != s.Rest*s.Steps/s.Workers && n != s.Rest*s.Steps/s.Workers+1 {
						t.Fatalf("%+v: worker %d has %d steps", s, w, n)
					}
					if from%s.Steps != 0 {
						parts++
						sharers[from/s.Steps]++
					}
					finished = max(finished, ceil(to, s.Steps)-ceil(from, s.Steps))
				}
				most := int64(0)
				for _, n := range sharers {
					most = max(most, n)
				}
				if parts != s.Parts() || most > s.Sharers() || finished > s.Finished() || s.Whole > 0 && most > 1 {
					t.Fatalf("%+v: %d parts, %d of a tile, %d finished, want %d, %d, %d", s, parts, most, finished, s.Parts(), s.Sharers(), s.Finished())
				}
			}
		}
	}
	if seen < 1000 {
		t.Errorf("%d products share steps", seen)
	}
	for _, x := range []struct {
		name string
		p    Product
		t    Tile
	}{
		{"groups", Product{Batch: 1, Rows: 1664, Cols: 256, Depth: 4096, Elem: types.F16, Groups: 4}, Tile{Path: "mma", Rows: 128, Cols: 256, Step: 64}},
		{"phases", Product{Batch: 4, Rows: 1664, Cols: 256, Depth: 4096, Elem: types.F16, Phases: 4, Channels: 64}, Tile{Path: "mma", Rows: 128, Cols: 256, Step: 64, Phases: true}},
		{"splits", Product{Batch: 1, Rows: 1664, Cols: 256, Depth: 4096, Elem: types.F16}, Tile{Path: "mma", Rows: 128, Cols: 256, Step: 64, Splits: 2}},
		{"vector units", Product{Batch: 1, Rows: 1664, Cols: 256, Depth: 4096, Elem: types.F32}, Tile{Path: "fma", Rows: 128, Cols: 256, Step: 64}},
		{"turns", Product{Batch: 1, Rows: 1664, Cols: 256, Depth: 4096, Elem: types.F16}, Tile{Path: "pingpong", Rows: 128, Cols: 256, Step: 64}},
	} {
		if s, ok := ten.StreamK(x.p, x.t); ok {
			t.Errorf("%s: %+v", x.name, s)
		}
	}
}
