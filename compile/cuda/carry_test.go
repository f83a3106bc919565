package cuda

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"dmir/compile/kernel"
	"dmir/compile/suite"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/testkit/need"
)

// record records each case for the device suite, if that is requested.
func (c *collection) record(t *testing.T) bool {
	t.Helper()
	if _, _, ok := suite.Recording(); !ok {
		return false
	}
	for _, p := range c.cases {
		one := newCollection(Target{Arch: c.target.Arch, Machine: c.target.Machine})
		one.add(t, p, true)
		one.keep(t, p, nil)
	}
	return true
}

// keep records the collection of one case.
func (c *collection) keep(t *testing.T, p productCase, probes func(*artifact.Program) ([]suite.Probe, error)) {
	t.Helper()
	s := c.source(t, p, probes)
	if s.Class = "row"; !p.rows {
		s.Class = pathOf(c.out)
	}
	s.Again = func(seed uint64) (args, want []*tensor.Tensor, err error) {
		other := newCollection(c.target)
		other.seed = seed
		other.add(t, p, true)
		return other.in, other.results(), nil
	}
	suite.Record(t, 7, s)
}

// source is the source of a case of the device suite.
func (c *collection) source(t *testing.T, p productCase, probes func(*artifact.Program) ([]suite.Probe, error)) suite.Source {
	c.finish(t)
	for i := range c.out.Buffers { // all alive all the time
		c.out.Buffers[i].Last = len(c.out.Steps)
	}
	want := c.results()
	return suite.Source{
		Name: p.name, Args: c.in, Want: want, Probes: probes,
		Build: func(string) (*artifact.Program, error) { return c.out, nil },
		Within: func(i int) suite.Within {
			return suite.Within{Most: c.within(i, want[i])}
		},
	}
}

// results are the expected results as they lie on a device.
func (c *collection) results() (want []*tensor.Tensor) {
	for i, w := range c.want {
		want = append(want, placed(w, c.order[i], false))
	}
	return want
}

// within is the greatest error of output i.
func (c *collection) within(i int, want *tensor.Tensor) float64 {
	ok := tolerance(want.Elem, c.deep[i]) * float64(c.steps[i])
	if c.bytes[i] { // 13 bits behind the point of the largest summand, of four instructions for each step
		ok += 0x1p-11
	}
	if c.relative[i] || c.bytes[i] {
		var most float64
		for k := range want.Len() {
			if x := math.Abs(want.Float(k)); !math.IsNaN(x) {
				most = max(most, x)
			}
		}
		ok *= most
	}
	return ok
}

// tolerance for sums of n products: the result's rounding, and f32's on the way.
func tolerance(elem types.Elem, n int64) float64 {
	grow := 4 + float64(n)/2 // sums of n terms are of size √n and rounded n times
	switch elem {
	case types.F64:
		return grow * 0x1p-50
	case types.F32:
		return grow * 0x1p-22
	case types.F16:
		return 0x1p-10 + grow*0x1p-22
	case types.BF16:
		return 0x1p-7 + grow*0x1p-22
	case types.F8E4M3FN:
		return 0x1p-3
	case types.F8E5M2:
		return 0x1p-2
	}
	return 0
}

// pathOf is the main loop of the program's contraction.
func pathOf(p *artifact.Program) string {
	if strings.Contains(p.Source, "gemm_gather.cuh") {
		return "gather"
	}
	if strings.Contains(p.Source, "PingpongTile<") {
		return string(Pingpong)
	}
	for _, path := range []string{"wgmma", "mma", "fma"} {
		if strings.Contains(p.Source, "gemm_"+path+"<") {
			return path
		}
	}
	return "contraction"
}

// Cases are of the class of their main loop.
func TestPathOf(t *testing.T) {
	for tile, want := range map[Config]string{wgmmaTiles[3]: "wgmma", wgmmaTiles[4]: "pingpong", gatherTiles[4]: "gather", mmaTiles[5]: "mma", fmaTiles[1]: "fma"} {
		p, elem := orders[0], "f16"
		switch want {
		case "fma":
			elem = "f32"
		case "gather":
			p = gathered[0]
		}
		c := newCollection(targetOf(t, "sm_90a"))
		c.add(t, p.of(elem, tile), false)
		c.finish(t)
		if got := pathOf(c.out); got != want {
			t.Errorf("%s is %s", tile, got)
		}
	}
}

// everyProduct are all tiles with all orders of the operands and types that
// Hopper's tensor cores take, whole and with sums that blocks share; all operands that are gathered in all tiles; every tile of
// the other paths; and reductions in every tile that supports them.
func everyProduct() []productCase {
	var out []productCase
	for i, p := range orders {
		odd := strings.HasSuffix(p.name, "odd")
		for _, tile := range wgmmaTiles {
			if odd {
				break // strides that are no multiple of 16 bytes
			}
			for _, elem := range []string{"f16", "bf16"} {
				out = append(out, p.of(elem, tile))
			}
		}
		for j, tile := range mmaTiles {
			out = append(out, p.of([]string{"f16", "bf16"}[(i+j)%2], tile))
		}
		for j, tile := range fmaTiles {
			out = append(out, p.of([]string{"f32", "f64", "i32", "i8"}[(i+j)%4], tile))
		}
	}
	for i, p := range append(gathered[:len(gathered):len(gathered)], gatheredTaps) {
		for j, tile := range gatherTiles {
			if elem := []string{"f16", "bf16"}[(i+j)%2]; tile.BN >= 128 || !strings.HasPrefix(p.name, "gated") {
				out = append(out, p.of(elem, tile))
			}
		}
	}
	for i, p := range long {
		p.name += "_split"
		for j, tile := range wgmmaTiles {
			out = append(out, p.of("f16", split(tile, 3)), p.of("bf16", split(tile, 2+(i+j)%3)))
		}
		for j, tile := range mmaTiles {
			out = append(out, p.of([]string{"f16", "bf16"}[(i+j)%2], split(tile, 4)))
		}
		for j, tile := range fmaTiles {
			out = append(out, p.of([]string{"f32", "f64", "i64"}[(i+j)%3], split(tile, 2)))
		}
	}
	return out
}

// The device suite has every product; here a few of them run.
func TestEveryProduct(t *testing.T) {
	need.Long(t)
	all := everyProduct()
	if _, _, ok := suite.Recording(); !ok {
		var few []productCase
		for i := 0; i < len(all); i += 23 {
			few = append(few, all[i])
		}
		all = few
	}
	c := newCollection(targetOf(t, "sm_90a"))
	for _, p := range all {
		c.add(t, p, true)
	}
	c.emulate(t)
}

// Reductions with every tile that supports them.
func TestEveryReduction(t *testing.T) {
	c := newCollection(targetOf(t, "sm_90a"))
	_, _, all := suite.Recording()
	for i, p := range reducing {
		for j, tile := range append(append([]Config{}, wgmmaTiles...), mmaTiles...) {
			q := p.of([]string{"f16", "bf16"}[(i+j)%2], tile)
			if (all || (i+j)%11 == 0) && c.takes(t, q) {
				c.add(t, q, true)
			}
		}
	}
	if len(c.cases) < 4 {
		t.Errorf("%d reductions", len(c.cases))
	}
	c.emulate(t)
}

// tiledOf is the product of a case.
func tiledOf(t *testing.T, p productCase) *kernel.Tiled {
	t.Helper()
	fn := module(t, p).Funcs[0]
	f, err := kernel.Of(fn.Body.Ops[:len(fn.Body.Ops)-1], fn.Body.Terminator().Operands)
	if err != nil {
		t.Fatal(err)
	}
	tiled, _, err := targetOf(t, "sm_90a").tiled(f)
	if err != nil {
		t.Fatal(err)
	}
	return tiled
}

// takes reports whether the tile of a case computes it.
func (c *collection) takes(t *testing.T, p productCase) bool {
	t.Helper()
	tiled := tiledOf(t, p)
	of := c.target
	of.Tiles = NewChoices()
	of.Tiles.Set(tiled, of.Arch, p.tile)
	_, ok := of.Tiles.Find(tiled, of)
	return ok
}

// probed are products of matrices of one tile, whose probes show where each element
// of each operand is used.
func probed(tile Config, elem, x, w, y string) productCase {
	of := map[byte]int{'m': min(tile.BM, 256), 'n': tile.BN, 'k': tile.BN}
	shape := func(letters string) string {
		return fmt.Sprintf("tensor<%dx%dx%s>", of[letters[0]], of[letters[1]], elem)
	}
	p := productCase{
		name: strings.Join([]string{"probe", x, w, y}, "_"), args: "%x: " + shape(x) + ", %w: " + shape(w), out: "%y : " + shape(y),
		body: fmt.Sprintf("%%y = dm.einsum %q %%x, %%w : (%s, %s) -> %s", x+","+w+"->"+y, shape(x), shape(w), shape(y)),
	}
	return p.of(elem, tile)
}

// Every order of the operands in every tile uses each element at its place. The
// emulator runs a few; the device suite has them all.
func TestProbes(t *testing.T) {
	need.Long(t)
	_, _, all := suite.Recording()
	n := 0
	for i, tile := range append(append([]Config{}, wgmmaTiles...), mmaTiles...) {
		for j, eq := range []string{"mk,nk->mn", "mk,kn->mn", "km,nk->mn", "km,kn->mn"} {
			for k, elem := range []string{"f16", "bf16"} {
				if !all && (tile.BN > 64 || tile.BM > 128 || (i+j+k)%6 > 0) {
					continue
				}
				p := probed(tile, elem, eq[:2], eq[3:5], eq[7:])
				e, _ := types.ElemByName(elem)
				c := newCollection(targetOf(t, "sm_90a"))
				c.add(t, p, true)
				probes := func(out *artifact.Program) ([]suite.Probe, error) {
					return suite.ProbesOf(out, e, eq[:2], eq[3:5], eq[7:], min(tile.BM, 256), tile.BN)
				}
				n++
				if all {
					c.keep(t, p, probes)
					continue
				}
				made, err := suite.Make(c.source(t, p, probes), 7, "")
				if err != nil {
					t.Fatal(err)
				}
				d, _, err := device.Find("emulator")
				need.OK(t, err)
				if r := made.Run(t.Context(), d, 10*time.Minute); r.Outcome != suite.Passed {
					t.Errorf("%s: %s, %s", p.name, r.Outcome, r.Why)
				}
			}
		}
	}
	if n == 0 {
		t.Error("nothing was probed")
	}
}
