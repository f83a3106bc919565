package cuda

import (
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/prelude"
	"dmir/testkit/need"
)

// Operands that are gathered for Hopper's products, in all tiles, whole and with sums that blocks share.
func TestContractionGathers(t *testing.T) {
	t.Parallel()
	need.Long(t)
	c := newCollection(targetOf(t, "sm_90a"))
	for i, p := range gathered {
		for j := range 2 {
			tile := gatherTiles[(i+3*j)%len(gatherTiles)]
			if q := p.of([]string{"f16", "bf16"}[(i+j)%2], tile); c.takes(t, q) {
				c.turn(t, q, 2)
			} else {
				t.Errorf("%s does not take %s", p.name, tile)
			}
		}
		if p.name += "_split"; i < 6 && i != 2 { // shared sums price operands in full, of which strides leave out a part
			c.turn(t, p.of("f16", split(gatherTiles[(i+1)%len(gatherTiles)], 3)), 2)
		}
	}
	c.emulate(t)
}

// The emulator detects mistakes in Hopper's main loops: a missing wait, a slot freed
// too early, an operand read at wrong addresses. One mistake of nine is made in turn.
func TestBulkIsChecked(t *testing.T) {
	t.Parallel()
	need.Long(t)
	made := 0
	check := func(name, header, old, now string, target Target, add func(c *collection)) {
		if made++; !need.Turn(t, made, 9) {
			return
		}
		t.Run(name, func(t *testing.T) {
			p := newCollection(target)
			add(p)
			found := false
			for _, file := range prelude.Files() {
				h := artifact.Header(file)
				if h.Name == header {
					found = strings.Contains(h.Text, old)
					h.Text = strings.Replace(h.Text, old, now, 1)
				}
				p.out.Headers = append(p.out.Headers, h)
			}
			if !found {
				t.Fatalf("%s has no %q", header, old)
			}
			if err := p.run(t); err == nil {
				t.Error("nothing was seen")
			} else {
				t.Log(err)
			}
		})
	}
	for _, c := range []struct{ name, old, now string }{
		{"no thread waits for a product", "products_wait<1>()", "products_wait<2>()"},
		{"a slot is filled while it is read", "barrier_wait(empty, slot, phase ^ 1)", "barrier_wait(full, slot, phase ^ 1)"},
		{"fewer arrivals", "Pair::none ? Tile::warps", "Pair::none ? 1"},
		{"more bytes announced", "int(sizeof(T)));", "int(sizeof(T)) + 16);"},
		{"no products_begin", "products_begin();", ""},
		{"groups of eight lines too near", "r * line + k, 16, 1024)", "r * line + k, 16, 512)"},
		{"panels too near", "8192, 1024)", "4096, 1024)"},
		{"barriers used before they are known", "barriers_ready();", ""},
		{"a consumer does not wait for its turn", "if constexpr (Tile::turns) barrier_wait", "if constexpr (false) barrier_wait"},
		{"it takes the other's steps", "skip(tile + blocks());", ""},
		{"it begins with the other's steps", "if (Tile::turns && group > 0) skip(block());", ""},
		{"a box is stored before it is written", "writes_publish();", ""},
		{"a box is written while it is stored", "stores_wait<1>()", "stores_wait<2>()"},
		{"a block ends before its boxes are stored", "if (lane() == 0) stores_wait<0>();", ""},
		{"rows of a box are exchanged otherwise than by the map", "r / 2 & 3", "r & 3"},
		{"it passes the turn to itself", "barrier_arrive(turns, group ^ 1)", "barrier_arrive(turns, group)"},
	} {
		check(c.name, "gemm_wgmma.cuh", c.old, c.now, withSMs(targetOf(t, "sm_90a"), 1), func(p *collection) {
			p.add(t, long[0].of("f16", wgmmaTiles[3]), true)
			p.add(t, long[1].of("f16", wgmmaTiles[2]), true)
			p.add(t, long[0].of("f16", wgmmaTiles[6]), true)
		})
	}
	for _, c := range []struct{ name, old, now string }{
		{"copies are not published", "writes_publish();\n      sync_warp", "sync_warp"},
		{"published before they have ended", "cp_async_wait<behind>();\n      writes_publish();", "writes_publish();\n      cp_async_wait<behind>();"},
		{"one copy too many is under way", "cp_async_wait<behind>()", "cp_async_wait<behind + 1>()"},
		{"lanes do not wait for each other", "writes_publish();\n      sync_warp();", "writes_publish();"},
		{"a slot is filled while it is read", "barrier_wait(empty, slot, phase ^ 1);", ""},
		{"the last steps are not published", "i < under_way", "i < under_way - 1"},
		{"bytes are announced twice", "bytes > 0 && thread() == 0", "bytes > 0 && thread() < 2"},
		{"chunks without a swizzle", "(line() + i * 16) * 64 + (c ^ (line() & 7)) * 8", "(line() + i * 16) * 64 + c * 8"},
		{"panels in the wrong order", "i * 4096 + (line() + j) * 64", "(own - 1 - i) * 4096 + (line() + j) * 64"},
		{"rows that are not there", "from.valid && x.inside(sum)", "from.valid"},
		{"a part of k that is not there", "Whole || k + behind < end", "true"},
		{"taps of other channels", "tap * Run + step / (K / Run) * 64", "tap * Run"},
		{"a tap that is visited twice", "tap = i32(Order >> tap * 4) & 15;", "tap = i32(Order >> tap / 2 * 8) & 15;"},
	} {
		check(c.name, "gemm_gather.cuh", c.old, c.now, targetOf(t, "sm_90a"), func(p *collection) {
			for i, of := range gathered[:6] {
				if i%5 < 2 {
					p.add(t, of.of("f16", gatherTiles[4-i%5*2]), true)
				}
			}
			p.add(t, gatheredTaps.of("bf16", gatherTiles[4]), true)
		})
	}
	for _, c := range []struct{ name, header, old, now string }{
		{"a phase has the taps of the one before", "gemm.cuh", "begin = a.begin(p.z), end = a.end(p.z), steps", "begin = a.begin(p.z > 0 ? p.z - 1 : 0), end = a.end(p.z > 0 ? p.z - 1 : 0), steps"},
		{"a phase has one step too few", "gemm.cuh", "steps = (end - begin + BK - 1) / BK;", "steps = (end - begin - 1) / BK;"},
		{"a phase's steps begin with those of the first", "gemm.cuh", "p.first += own.from / BK;\n    p.last += own.from / BK;", ""},
		{"a tap too many", "gemm_gather.cuh", "(own.depth - own.from) / A::channels;", "(own.depth - own.from) / A::channels + 1;"},
		{"taps of other channels", "gemm_gather.cuh", "if (++tap == taps) tap = 0, channel += 64;", "if (++tap == taps) tap = 0;"},
		{"it begins at another phase's taps", "gemm_gather.cuh", "const i32 k = from + tap *", "const i32 k = tap *"},
		{"steps that end in another phase's taps", "gemm_gather.cuh", "return A::channels % 64 == 0;", "return true;"},
	} {
		check("phases: "+c.name, c.header, c.old, c.now, targetOf(t, "sm_90a"), func(p *collection) {
			s := spreads[0]
			s.last = true
			p.add(t, s.of().of("f16", gatherTiles[4]), true)
			s.name, s.channels = "gradient of whole steps", 128
			p.add(t, s.of().of("f16", gatherTiles[4]), true)
			p.add(t, s.of().of("bf16", mmaTiles[5]), true)
			s.name, s.window, s.lower, s.upper = "mapped", []int{2, 2}, []int{1, 1}, []int{1, 1}
			p.add(t, s.of().of("f16", wgmmaTiles[3]), true)
		})
	}
	for _, c := range []struct{ name, header, old, now string }{
		{"tiles of no group", "gemm.cuh", "group_part<S, BM, BK>(p, a);\n  }\n  return p;", "}\n  return p;"},
		{"rows behind a group are stored", "gemm_wgmma.cuh", ", n, p.below)", ", n)"},
		{"another tile's rows are copied", "gemm_wgmma.cuh", "const Place p = place_of(tile);\n        if (lane() == 0)", "const Place p = place_of(tile / 2);\n        if (lane() == 0)"},
		{"all lanes copy", "gemm_wgmma.cuh", "if (lane() == 0) ring.load", "if (lane() < 2) ring.load"},
		{"a step that ends in the next group takes its products", "gemm_gather.cuh", " && S::groups != Groups::depth", ""},
		{"a group's sum begins with the first one's", "gemm_gather.cuh", "return from + k_of", "return k_of"},
		{"a group's sum has a step too few", "gemm.cuh", "end > begin ? (end - begin + BK - 1) / BK", "end > begin ? (end - begin) / BK"},
	} {
		check("groups: "+c.name, c.header, c.old, c.now, withSMs(targetOf(t, "sm_90a"), 3), func(p *collection) {
			p.add(t, inGroups[0].of("f16", wgmmaTiles[3]), true)
			p.add(t, inGroups[3].of("bf16", gatherTiles[4]), true)
		})
	}
	for _, c := range []struct{ name, header, old, now string }{
		{"rows that are not rounded", "gemm_mma.cuh", "rounded<T>(to[i]);", ""},
		{"columns that are not rounded", "gemm_mma.cuh", "rounded<T>(r);", ""},
		{"numbers of another k", "gemm_mma.cuh", "k + t + i / rows * 4", "k + t + i / rows * 2"},
		{"numbers of other rows", "gemm_mma.cuh", "i % rows * 8", "i % rows * 4"},
		{"chunks of eight numbers", "gemm_mma.cuh", "k / G::piece + (l >> 4)", "k / 8 + (l >> 4)"},
		{"lines of k lie closer than they were copied", "gemm.cuh", "return l * pitch + r;", "return l * (pitch - 8) + r;"},
		{"half the steps of a line", "gemm_wgmma.cuh", "k += 32 / int(sizeof(T))", "k += 16"},
	} {
		check("tf32: "+c.name, c.header, c.old, c.now, withSMs(targetOf(t, "sm_90a"), 1), func(p *collection) {
			for i, of := range long {
				p.add(t, of.of("tf32", mmaTF32Tiles[4+i]), true)
			}
			p.add(t, long[0].of("tf32", tf32Tiles(wgmmaTiles)[3]), true)
		})
	}
}
