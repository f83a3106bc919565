package cuda

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/gpu/artifact"
	"dmir/testkit/need"
)

func streamed(c Config) Config {
	c.StreamK = true
	return c
}

// stepsOf is a product of so many tiles, whose last rows and columns end inside of one, and of so many steps.
func stepsOf(tile Config, eq string, down, across, steps int) productCase {
	of := map[byte]int{'b': 2, 'm': down*tile.BM - 24, 'n': across*tile.BN - 8, 'k': steps*tile.BK - max(8, tile.BK/8)}
	shape := func(l string) string {
		var dims []string
		for i := range l {
			dims = append(dims, fmt.Sprint(of[l[i]]))
		}
		return "tensor<" + strings.Join(dims, "x") + "xELEM>"
	}
	from, to, _ := strings.Cut(eq, "->")
	x, w, _ := strings.Cut(from, ",")
	return productCase{
		name: fmt.Sprintf("stream_%s_%dx%dx%d", strings.NewReplacer(",", "_").Replace(from), down, across, steps), args: "%x: " + shape(x) + ", %w: " + shape(w),
		body: fmt.Sprintf("%%y = dm.einsum %q %%x, %%w : (%s, %s) -> %s", eq, shape(x), shape(w), shape(to)), out: "%y : " + shape(to),
	}
}

var (
	streamWgmma = Config{Path: Wgmma, BM: 128, BN: 64, BK: 64, Stages: 8}
	streamWide  = Config{Path: Wgmma, BM: 128, BN: 128, BK: 64, Stages: 6}
	streamMma   = Config{Path: Mma, BM: 128, BN: 256, BK: 32, WM: 64, WN: 64, Stages: 3}
)

// Workers that share the steps of the last tiles: one tile for all of them, fewer tiles than workers, more, and whole waves before them; both
// paths, pairs, batches, two products, operands of 8 bits and of TF32, epilogues that threads and the copy engine store, and reductions.
func TestContractionStreamK(t *testing.T) {
	t.Parallel()
	need.Long(t)
	rows, cols := streamWide, streamWide
	rows.Pair, cols.Pair = machine.PairRows, machine.PairCols
	gates := stepsOf(streamWide, "mk,nk->mn", 1, 1, 12)
	gates.name, gates.args = "stream gated", "%x: tensor<104x760xELEM>, %w: tensor<760x120xELEM>, %v: tensor<760x120xELEM>"
	gates.body = `%0 = dm.einsum "mk,kn->mn" %x, %w : (tensor<104x760xELEM>, tensor<760x120xELEM>) -> tensor<104x120xELEM>
%1 = dm.einsum "mk,kn->mn" %x, %v : (tensor<104x760xELEM>, tensor<760x120xELEM>) -> tensor<104x120xELEM>
%2 = dm.silu %0 : tensor<104x120xELEM>
%y = dm.mul %2, %1 : tensor<104x120xELEM>`
	gates.out = "%y : tensor<104x120xELEM>"
	sums := productCase{
		name: "stream sums", args: "%x: tensor<232x776xELEM>, %w: tensor<120x776xELEM>",
		body: `%y = dm.einsum "mk,nk->mn" %x, %w : (tensor<232x776xELEM>, tensor<120x776xELEM>) -> tensor<232x120xELEM>
%s = dm.reduce %y, kind = max, dims = [1] : (tensor<232x120xELEM>) -> tensor<232xELEM>
%b = dm.reduce %y, kind = max, dims = [0] : (tensor<232x120xELEM>) -> tensor<120xELEM>`, out: "%y, %s, %b : tensor<232x120xELEM>, tensor<232xELEM>, tensor<120xELEM>",
	}
	bytes := Config{Path: Wgmma, BM: 128, BN: 64, BK: 128, Stages: 8}
	narrow := stepsOf(bytes, "mk,nk->mn", 1, 2, 12)
	narrow.out, narrow.body = strings.ReplaceAll(narrow.out, "ELEM", "bf16"), strings.Replace(narrow.body, "-> tensor<104x120xELEM>", "-> tensor<104x120xbf16>", 1)
	tf32 := tf32Tiles([]Config{streamWgmma, streamMma})
	for i, x := range []struct {
		arch  string
		sms   int
		cases []productCase
	}{
		{"sm_90a", 3, []productCase{
			stepsOf(streamWgmma, "mk,nk->mn", 1, 1, 24).of("f16", streamed(streamWgmma)),
			stepsOf(streamWgmma, "mk,kn->nm", 1, 2, 12).of("bf16", streamed(streamWgmma)),
			stepsOf(streamWgmma, "km,kn->mn", 2, 2, 9).of("f16", streamed(streamWgmma)),
			stepsOf(streamWgmma, "mk,kn->mn", 7, 1, 8).of("bf16", streamed(streamWgmma)),
			stepsOf(streamWgmma, "bmk,bnk->bmn", 1, 2, 9).of("f16", streamed(streamWgmma)),
			narrow.of("f8E4M3FN", streamed(bytes)),
			stepsOf(tf32[0], "mk,nk->mn", 1, 2, 12).of("tf32", streamed(tf32[0])),
			gates.of("f16", streamed(streamWide)),
			sums.of("bf16", streamed(streamWide)),
		}},
		{"sm_90a", 4, []productCase{
			stepsOf(rows, "mk,nk->mn", 2, 3, 8).of("f16", streamed(rows)),
			stepsOf(cols, "km,nk->mn", 1, 2, 16).of("bf16", streamed(cols)),
			stepsOf(cols, "mk,kn->mn", 5, 2, 8).of("f16", streamed(cols)),
		}},
		{"sm_80", 3, []productCase{
			stepsOf(streamMma, "mk,nk->mn", 1, 1, 24).of("f16", streamed(streamMma)),
			stepsOf(streamMma, "mk,kn->nm", 2, 1, 12).of("bf16", streamed(streamMma)),
			stepsOf(streamMma, "km,kn->mn", 4, 1, 8).of("f16", streamed(streamMma)),
			stepsOf(streamMma, "mk,kn->mn", 7, 1, 8).of("bf16", streamed(streamMma)),
			stepsOf(tf32[1], "km,nk->mn", 1, 2, 12).of("tf32", streamed(tf32[1])),
			sums.of("f16", streamed(streamMma)),
		}},
		{"sm_100", 2, []productCase{
			stepsOf(streamMma, "mk,nk->mn", 3, 1, 8).of("f16", streamed(streamMma)),
		}},
	} {
		c := newCollection(withSMs(targetOf(t, x.arch), x.sms))
		for _, p := range x.cases {
			c.add(t, p, true)
		}
		c.emulate(t)
		if need.Turn(t, i, 4) {
			c.compile(t, x.arch)
		}
		for i := range c.out.Steps {
			s := &c.out.Steps[i]
			if k := c.out.KernelOf(s); !strings.Contains(s.Name, "_clear") && s.Kind == artifact.StepLaunch && k.Block.Threads > 128 && k.Arch != "" && s.Launch.Grid[0] != x.sms {
				t.Errorf("%s: %d blocks on %d multiprocessors", s.Name, s.Launch.Grid[0], x.sms)
			}
		}
	}
}
