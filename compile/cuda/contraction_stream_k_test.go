package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/gpu/artifact"
	"dmir/gpu/prelude"
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

// sharedSteps are products whose workers share steps on so few multiprocessors: one tile for all, and whole tiles before the rest, of blocks and of pairs.
func sharedSteps(t *testing.T) *collection {
	t.Helper()
	pair := streamWide
	pair.Pair = machine.PairRows
	c := newCollection(withSMs(targetOf(t, "sm_90a"), 4))
	c.add(t, stepsOf(streamWgmma, "mk,nk->mn", 1, 1, 32).of("f16", streamed(streamWgmma)), true)
	c.add(t, stepsOf(streamWgmma, "mk,nk->mn", 3, 3, 8).of("bf16", streamed(streamWgmma)), true)
	c.add(t, stepsOf(pair, "mk,nk->mn", 2, 3, 6).of("f16", streamed(pair)), true)
	return c
}

// Steps that are launched again give the same results: the flags are cleared before they are awaited. Else the first block that sets one finds it set.
func TestStreamKAgain(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for _, clears := range []bool{true, false} {
		c := sharedSteps(t)
		for _, s := range slices.Clone(c.out.Steps) {
			if clears || !strings.HasSuffix(s.Name, "_clear") {
				c.out.Steps = append(c.out.Steps, s)
			}
		}
		if err := c.run(t); (err == nil) != clears || !clears && !strings.Contains(err.Error(), "the flag is set before a block sets it") {
			t.Errorf("with flags cleared again %t: %v", clears, err)
		}
	}
}

// Mistakes in the order of what blocks leave for each other, and in how steps are shared, are found by the emulator or by other numbers.
func TestStreamKMistakes(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for i, x := range []struct{ old, new, want string }{
		{"if (i < n) flags", "if (i < n - 1) flags", "uninitialised"},
		{"post(shares.flags, block() * Warps + warp);", "", "deadlock"},
		{"post(shares.flags, block() * Warps + warp);", "post(shares.flags, block() * Warps + (warp ^ 1));", "race"},
		{"await(shares.flags, other * Warps + warp);", "", "race"},
		{"await(shares.flags, other * Warps + warp);", "if (n == part() + 1) await(shares.flags, other * Warps + warp);", "race"},
		{"await(shares.flags, other * Warps + warp);", "await(shares.flags, other * Warps + (warp ^ 1));", "race"},
		{"await(shares.flags, other * Warps + warp);", "await(shares.flags, block() * Warps + warp);", "bounds"},
		{"return workers - 1 - worker();", "return worker();", "deadlock"},
		{"place_of(other, warp, i)", "place_of(other ^ 1, warp, i)", ""},
		{"from(n) < after", "from(n + 1) < after", "differs"},
		{"sum(i + j) += v[j];", "sum(i + j) = v[j];", "differs"},
		{"last = first + left;", "last = first + (left + 1) / 2;", ""},
		{"turn += last - first;", "turn += last - first + 1;", "the flag is set before"},
		{"(i / 4 * Warps + warp) * 128", "(i / 4 * Warps + warp / 2) * 128", "race"},
		{"i32 turn = -whole;", "i32 turn = 0;", ""},
	} {
		if !need.Turn(t, i, 4) {
			continue
		}
		c := sharedSteps(t)
		c.out.Headers = prelude.Files()
		at := slices.IndexFunc(c.out.Headers, func(f prelude.File) bool { return f.Name == "gemm_stream_k.cuh" })
		text := c.out.Headers[at].Text
		c.out.Headers = slices.Clone(c.out.Headers)
		if c.out.Headers[at].Text = strings.Replace(text, x.old, x.new, 1); c.out.Headers[at].Text == text {
			t.Errorf("the prelude has no %s", x.old)
		}
		if err := c.run(t); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s for %s: %v", x.new, x.old, err)
		}
	}
}

// Kernels of the tiles that the model chooses have registers for all sums and for those that others have left, on every architecture.
func TestStreamKRegisters(t *testing.T) {
	t.Parallel()
	need.Long(t)
	bulk := slices.Clone(byteTiles[1:2])
	for _, c := range paired(wgmmaTiles[:2]) {
		if c.Pair != "" {
			bulk = append(bulk, c)
		}
	}
	for i, x := range []struct {
		arch  string
		tiles []Config
	}{{"sm_90a", bulk[1:3]}, {"sm_80", mmaTiles[:2]}, {"sm_90a", append(bulk[:1:1], bulk[3:]...)}, {"sm_90a", tf32Tiles(wgmmaTiles[:1])}, {"sm_100", mmaTiles[1:2]}, {"sm_80", mmaTF32Tiles[:1]}} {
		if !need.Turn(t, i, 6) {
			continue
		}
		c := newCollection(targetOf(t, x.arch))
		for _, tile := range x.tiles {
			elem, eq := "bf16", []string{"mk,nk->mn", "mk,kn->mn"}[len(c.cases)%2]
			switch {
			case tile.TF32:
				elem, eq = "tf32", "mk,nk->mn"
			case tile.bytes():
				elem, eq = "f8E4M3FN", "mk,nk->mn"
			}
			p := stepsOf(tile, eq, 6, 24, 64).of(elem, streamed(tile))
			if tile.bytes() {
				p.out, p.body = strings.Replace(p.out, elem, "bf16", 1), p.body[:strings.LastIndex(p.body, elem)]+"bf16>"
			}
			c.add(t, p, false)
		}
		c.compile(t, x.arch)
	}
}
