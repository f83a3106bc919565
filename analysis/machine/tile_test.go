package machine_test

import (
	"testing"

	"dmir/analysis/machine"
)

// The text of a tile has its path and sizes, and may have how blocks form pairs, and how many share a sum, in a cluster or not; it is
// written as it is read.
func TestParseTile(t *testing.T) {
	for text, want := range map[string]machine.Tile{
		"mma 128x64x32":                 {Path: "mma", Rows: 128, Cols: 64, Step: 32, Splits: 1},
		"mma 128x64x32 / 4":             {Path: "mma", Rows: 128, Cols: 64, Step: 32, Splits: 4},
		"fma 64x64x16 / 8 cluster":      {Path: "fma", Rows: 64, Cols: 64, Step: 16, Splits: 8, Cluster: true},
		"fma 64x64x16 cluster":          {},
		"wgmma 128x256x64 2x1":          {Path: "wgmma", Rows: 128, Cols: 256, Step: 64, Splits: 1, Pair: machine.PairRows},
		"pingpong 128x64x64 1x2 / 8":    {Path: "pingpong", Rows: 128, Cols: 64, Step: 64, Splits: 8, Pair: machine.PairCols},
		"wgmma 128x256x64 2x1 stream-k": {Path: "wgmma", Rows: 128, Cols: 256, Step: 64, Splits: 1, Pair: machine.PairRows, StreamK: true},
		"mma 128x256x32 stream-k":       {Path: "mma", Rows: 128, Cols: 256, Step: 32, Splits: 1, StreamK: true},
		"mma 128x256x32 / 2 stream-k":   {},
		"gather 128x64x64 phases / 3":   {Path: "gather", Rows: 128, Cols: 64, Step: 64, Splits: 3, Phases: true},
		"wgmma 128x256x64 2x2":          {},
		"mma 128x64x32 / 0":             {},
		"mma 128x0x32":                  {},
		"wgmma 128x256":                 {},
		"wgmma":                         {},
	} {
		got, ok := machine.ParseTile(text)
		if ok != (want.Rows > 0) || ok && got != want {
			t.Errorf("%q: %+v, %t", text, got, ok)
		}
		if ok && got.String() != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
}
