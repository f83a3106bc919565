package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/dialect/types"
)

// The model's choices: large products use large tiles; few tiles are split along k;
// thin products use thin tiles.
func TestTileChoice(t *testing.T) {
	var none machine.Epilogue
	for _, c := range []struct {
		arch                     string
		batch, rows, cols, depth int64
		elem                     types.Elem
		want                     string
		epilogue                 machine.Epilogue
	}{
		{"sm_90a", 1, 8192, 8192, 8192, types.F16, "wgmma 128x256x64 2x1", none},
		{"sm_90a", 1, 4096, 4096, 1024, types.BF16, "wgmma 128x256x64 2x1", none},
		{"sm_90a", 1, 512, 1024, 1024, types.F16, "wgmma 128x64x64", none},
		{"sm_90a", 128, 512, 512, 64, types.F16, "wgmma 128x256x64 2x1", none},
		{"sm_90a", 128, 512, 64, 512, types.F16, "wgmma 128x64x64", none},
		{"sm_90a", 1, 1024, 1024, 4096, types.F16, "wgmma 128x64x64 1x2", none},
		// Residuals, AdamW, dropout with GELU: consumers take turns where a block has several tiles.
		{"sm_90a", 1, 8192, 8192, 1024, types.F16, "pingpong 128x128x64 2x1", machine.Epilogue{Slots: 3, Read: 2, Width: 8}},
		{"sm_90a", 1, 4096, 4096, 2048, types.BF16, "pingpong 128x128x64 2x1", machine.Epilogue{Slots: 70, Read: 12, Written: 12, Width: 8}},
		{"sm_90a", 1, 4096, 4096, 1024, types.F16, "pingpong 128x128x64 2x1", machine.Epilogue{Slots: 50}},
		{"sm_90a", 1, 8192, 8192, 8192, types.F16, "wgmma 128x256x64 2x1", machine.Epilogue{Slots: 3}},
		{"sm_90a", 1, 1024, 4096, 4096, types.F16, "wgmma 128x256x64 2x1", machine.Epilogue{Slots: 30}},
		// Sums that few blocks share are added up on the chip, those of many in memory.
		{"sm_90a", 1, 512, 512, 8192, types.F16, "wgmma 128x128x64 / 8 cluster", none},
		{"sm_90a", 1, 64, 4096, 4096, types.F16, "pingpong 64x128x64 / 4 cluster", none},
		{"sm_90a", 1, 64, 64, 65536, types.F16, "wgmma 128x64x64 / 64", none},
		{"sm_90a", 1, 197, 768, 768, types.F32, "fma 64x64x16 / 8 cluster", none},
		{"sm_100", 1, 256, 256, 1024, types.F16, "mma 64x64x32 / 8 cluster", none},
		// A last wave that few tiles fill is shared by its steps, where sums are long.
		{"sm_90a", 1, 768, 6144, 4096, types.BF16, "wgmma 128x256x64 2x1 stream-k", none},
		{"sm_90a", 1, 512, 10240, 8192, types.BF16, "wgmma 128x256x64 2x1 stream-k", none},
		{"sm_90a", 1, 4096, 14336, 4096, types.BF16, "wgmma 128x256x64 2x1", none},
		{"sm_80", 1, 4096, 1024, 4096, types.F16, "mma 128x256x32 stream-k", none},
		{"sm_80", 1, 8192, 3072, 1024, types.F16, "mma 128x256x32 stream-k", none},
		{"sm_80", 1, 8192, 8192, 8192, types.F16, "mma 128x256x32", none},
		{"sm_80", 1, 4096, 4096, 1024, types.F16, "mma 128x256x32", none},
		{"sm_80", 1, 512, 1024, 1024, types.F16, "mma 64x128x32", none},
		{"sm_80", 1, 1024, 1024, 32768, types.F16, "mma 128x256x32 stream-k", none},
		{"sm_80", 1, 4096, 1, 4096, types.F16, "mma 128x16x64", none},
		{"sm_80", 1, 1, 4096, 4096, types.F16, "mma 16x128x64", none},
		{"sm_80", 1, 64, 64, 65536, types.F16, "mma 64x64x32 / 64", none},
		{"sm_80", 1, 4096, 4096, 1024, types.F32, "fma 128x128x8", none},
		{"sm_80", 1, 256, 256, 256, types.F32, "fma 64x64x16 / 4", none},
		{"sm_80", 1, 256, 256, 16384, types.F64, "fma 128x128x8 / 64", none},
	} {
		p := productShape{batch: c.batch, rows: c.rows, cols: c.cols, depth: c.depth, products: 1, elems: [2]types.Elem{c.elem, c.elem}, sum: c.elem, epilogue: c.epilogue}
		if c.arch == "sm_90a" {
			p.fits = func(Config) bool { return true }
		}
		target := targetOf(t, c.arch)
		all := p.candidates(target)
		if len(all) == 0 {
			t.Errorf("%s: no tile", p.key(c.arch))
			continue
		}
		if got := all[0].String(); got != c.want {
			t.Errorf("%s: %s at %.1f µs, want %q (then %s at %.1f)", p.key(c.arch), got, p.time(all[0], target.Machine)*1e6, c.want, all[1], p.time(all[1], target.Machine)*1e6)
		}
	}
}

// Convolutions with channels last gather their image on Hopper, where that is faster than mma.sync; those of one tap are products.
func TestConvolutionTileChoice(t *testing.T) {
	for _, c := range []struct {
		images, in, out, size, taps, stride int
		want                                string
	}{
		{256, 64, 64, 56, 3, 1, "gather 256x64x64"},
		{256, 128, 128, 28, 3, 1, "gather 256x128x64"},
		{256, 256, 256, 14, 3, 1, "gather 256x128x64"},
		{32, 256, 256, 14, 3, 1, "gather 128x128x64"},
		{256, 256, 256, 28, 3, 2, "gather 256x128x64"},
		{256, 256, 512, 56, 1, 2, "gather 128x256x64"},
		{256, 64, 256, 56, 1, 1, "wgmma 128x256x64 2x1"},
		{1, 8, 16, 12, 3, 1, "mma 64x64x32"},
		{256, 3, 64, 224, 7, 2, "mma 128x64x32"}, // three channels are no 16 bytes
	} {
		at := func(shape ...int) string {
			return "tensor<" + strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]") + "xf16, #dm.at<order = [0, 2, 3, 1]>>"
		}
		pad := c.taps / 2
		to := (c.size+2*pad-c.taps)/c.stride + 1
		x, w, y := at(c.images, c.in, c.size, c.size), at(c.out, c.in, c.taps, c.taps), at(c.images, c.out, to, to)
		tiled := tiledOf(t, productCase{
			name: "choice", args: "%x: " + x + ", %w: " + w, out: "%y : " + y,
			body: fmt.Sprintf("%%y = dm.convolution %%x, %%w, window_strides = [%[1]d, %[1]d], padding = [[%[2]d, %[2]d], [%[2]d, %[2]d]] : (%[3]s, %[4]s) -> %[5]s", c.stride, pad, x, w, y),
		})
		if got := Candidates(tiled, targetOf(t, "sm_90a"))[0].String(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// Choices round-trip through a file; tiles that cannot compute a product are skipped.
func TestChoices(t *testing.T) {
	tiled := tiledOf(t, orders[2].of("f16", Config{}))
	path := filepath.Join(t.TempDir(), "tiles.json")
	none, err := ReadChoices(path)
	if err != nil {
		t.Fatal(err)
	}
	target := targetOf(t, "sm_90a")
	if c, ok := none.Find(tiled, target); ok {
		t.Errorf("no file, but %s", c)
	}
	for _, c := range []struct {
		tile Config
		ok   bool
	}{
		{wgmmaTiles[2], true},
		{split(mmaTiles[1], 2), true},
		{fmaTiles[0], true},
		{Config{Path: Mma, BM: 96, BN: 96, BK: 32, WM: 48, WN: 48, Stages: 3}, false},
		{Config{Path: "tcgen05", BM: 128, BN: 128, BK: 64}, false},
		{split(mmaTiles[1], 1000), false},
		{clustered(mmaTiles[5], 4), true},
		{clustered(mmaTiles[5], 16), false},
		{clustered(pairedTiles[0], 2), false},
		{pairedTiles[0], false},        // one tile of rows
		{streamed(mmaTiles[0]), false}, // few steps
		{byteTiles[0], false},
	} {
		none.Set(tiled, "sm_90a", c.tile)
		if err := none.Write(path); err != nil {
			t.Fatal(err)
		}
		read, err := ReadChoices(path)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := read.Find(tiled, target)
		if ok != c.ok || ok && got != c.tile {
			t.Errorf("%+v: read %+v, %t", c.tile, got, ok)
		}
		if _, ok := read.Find(tiled, targetOf(t, "sm_80")); ok {
			t.Errorf("%s was measured on another architecture", c.tile)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadChoices(path); err == nil {
		t.Error("half a file was read")
	}
}
