package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/compile/kernel"
	"dmir/testkit/need"
)

// spread is a convolution whose image has zeros between its elements.
type spread struct {
	name                             string
	images, channels, features       int // channels and features of a group
	groups                           int
	in, window                       []int
	between, stride, dilation, lower []int // lhs_dilation, window_strides, rhs_dilation, padding in front
	upper                            []int
	last                             bool   // channels last, of images, filters and results
	after                            string // ops on %0, of type TY, that make %y; %b is of type TB
	sums                             bool   // of the features of y
}

func ones(s []int, n int) []int {
	if s == nil {
		return slices.Repeat([]int{1}, n)
	}
	return s
}

func (s spread) of() productCase {
	n := len(s.in)
	s.groups = max(s.groups, 1)
	s.stride, s.dilation = ones(s.stride, n), ones(s.dilation, n)
	x, w, y := []int{s.images, s.groups * s.channels}, []int{s.groups * s.features, s.channels}, []int{s.images, s.groups * s.features}
	var padding []string
	for d := range n {
		padded := (s.in[d]-1)*s.between[d] + 1 + s.lower[d] + s.upper[d]
		x, w = append(x, s.in[d]), append(w, s.window[d])
		y = append(y, (padded-(s.window[d]-1)*s.dilation[d]-1)/s.stride[d]+1)
		padding = append(padding, fmt.Sprintf("[%d, %d]", s.lower[d], s.upper[d]))
	}
	list := func(v []int) string { return strings.ReplaceAll(fmt.Sprint(v), " ", ", ") }
	order := ""
	if s.last {
		dims := []int{0}
		for d := range n {
			dims = append(dims, 2+d)
		}
		order = fmt.Sprintf(", #dm.at<order = %s>", list(append(dims, 1)))
	}
	typed := func(v []int, order string) string {
		return "tensor<" + strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", "x"), "[]") + "xELEM" + order + ">"
	}
	tx, tw, ty := typed(x, order), typed(w, order), typed(y, order)
	name := "%y"
	if s.after != "" {
		name = "%0"
	}
	p := productCase{name: s.name, args: "%x: " + tx + ", %w: " + tw, out: "%y : " + ty}
	p.body = fmt.Sprintf("%s = dm.convolution %%x, %%w, lhs_dilation = %s, window_strides = %s, rhs_dilation = %s, padding = [%s], feature_group_count = %d : (%s, %s) -> %s",
		name, list(s.between), list(s.stride), list(s.dilation), strings.Join(padding, ", "), s.groups, tx, tw, ty)
	if s.after != "" {
		p.args += ", %r: " + ty + ", %b: tensor<" + fmt.Sprint(y[1]) + strings.Repeat("x1", n) + "xELEM>"
		p.body += "\n" + strings.NewReplacer("TY", ty, "TB", "tensor<"+fmt.Sprint(y[1])+strings.Repeat("x1", n)+"xELEM>").Replace(s.after)
	}
	if s.sums {
		p.body += fmt.Sprintf("\n%%s = dm.reduce %%y, kind = add, dims = [0, 2, 3] : (%s) -> tensor<%dxELEM>", ty, y[1])
		p.out = fmt.Sprintf("%%y, %%s : %s, tensor<%dxELEM>", ty, y[1])
	}
	return p
}

// The gradients of strided convolutions, transposed ones, and what is odd: outputs that phases share unevenly, paddings of their own on
// both sides, windows that the distance does not divide, phases without taps, dilated windows, strides, groups, one to three dimensions,
// and what follows.
var spreads = []spread{
	{name: "gradient", images: 2, channels: 40, features: 24, in: []int{5, 4}, window: []int{3, 3}, between: []int{2, 2}, lower: []int{1, 1}, upper: []int{2, 2}},
	{name: "uneven", images: 2, channels: 16, features: 9, in: []int{5, 4}, window: []int{4, 3}, between: []int{2, 3}, lower: []int{2, 0}, upper: []int{1, 3}},
	{name: "one tap", images: 2, channels: 24, features: 16, in: []int{6, 5}, window: []int{1, 1}, between: []int{2, 2}, lower: []int{0, 0}, upper: []int{1, 0}},
	{name: "line", images: 3, channels: 12, features: 20, in: []int{11}, window: []int{5}, between: []int{3}, lower: []int{4}, upper: []int{1}},
	{name: "space", images: 1, channels: 8, features: 8, in: []int{3, 4, 3}, window: []int{3, 2, 3}, between: []int{2, 2, 1}, lower: []int{1, 0, 1}, upper: []int{2, 1, 1}},
	{name: "dilated", images: 2, channels: 8, features: 12, in: []int{5, 6}, window: []int{3, 3}, between: []int{4, 2}, dilation: []int{2, 2}, lower: []int{3, 2}, upper: []int{2, 3}},
	{name: "strided", images: 2, channels: 8, features: 12, in: []int{6, 7}, window: []int{3, 4}, between: []int{4, 3}, stride: []int{2, 2}, dilation: []int{2, 2}, lower: []int{2, 3}, upper: []int{2, 0}},
	{name: "groups", images: 2, channels: 16, features: 24, groups: 3, in: []int{5, 4}, window: []int{3, 3}, between: []int{2, 2}, lower: []int{1, 1}, upper: []int{1, 2}},
	{
		name: "followed", images: 2, channels: 16, features: 24, in: []int{5, 5}, window: []int{4, 4}, between: []int{2, 2}, lower: []int{2, 2}, upper: []int{1, 1},
		after: "%1 = dm.add %0, %b : (TY, TB) -> TY\n%2 = dm.relu %1 : TY\n%y = dm.mul %2, %r : TY",
	},
	{name: "summed", images: 2, channels: 16, features: 24, in: []int{5, 4}, window: []int{4, 3}, between: []int{2, 2}, lower: []int{2, 1}, upper: []int{1, 1}, sums: true},
}

// Convolutions of images with zeros between their elements multiply none of them, in every form.
func TestContractionPhases(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for _, arch := range []string{"sm_80", "sm_90a"} {
		c := newCollection(targetOf(t, arch))
		if arch == "sm_90a" { // pairs of blocks, of one phase each
			s := spread{name: "pair", images: 1, channels: 64, features: 256, in: []int{8, 10}, window: []int{1, 1}, between: []int{2, 2}, lower: []int{0, 0}, upper: []int{1, 1}}
			tile := wgmmaTiles[2]
			tile.Pair = machine.PairRows
			c.turn(t, s.of().of("f16", tile), 3)
		}
		for i, s := range spreads {
			for _, s.last = range []bool{false, true} {
				p := s.of()
				if s.last {
					p.name += " last"
				}
				if arch == "sm_80" {
					c.turn(t, p.of("f16", mmaTiles[3+i%5]), 3)
					c.turn(t, p.of("f32", fmaTiles[i%len(fmaTiles)]), 3)
					if !s.sums && s.stride == nil { // shared sums price operands in full, of which strides leave out a part
						p := p
						p.name += " split"
						c.turn(t, p.of("bf16", split(mmaTiles[5], 3)), 3)
					}
					c.turn(t, p.of("tf32", mmaTF32Tiles[3+i%5]), 3)
					continue
				}
				c.turn(t, p.of("bf16", Config{}), 3)
				for _, tile := range []Config{gatherTiles[i%len(gatherTiles)], wgmmaTiles[i%len(wgmmaTiles)], wgmmaTiles[4+i%4]} {
					if q := p.of("f16", tile); s.last && c.takes(t, q) {
						c.turn(t, q, 3)
						if q := q; !s.sums {
							q.name, q.tile.Splits, q.tile.Cluster = q.name+" cluster", 2, true
							c.turn(t, q, 3)
						}
					}
				}
			}
		}
		c.emulate(t)
	}
}

// The kernels of phases hold the protocols and do not spill.
func TestContractionPhasesCompile(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for arch, tiles := range map[string][]Config{
		"sm_80": {mmaTiles[2], fmaTiles[0], mmaTF32Tiles[3]}, "sm_90a": {gatherTiles[0], wgmmaTiles[0], wgmmaTiles[4]}, "sm_100": {mmaTiles[0], fmaTiles[1]},
	} {
		c := newCollection(targetOf(t, arch))
		for _, tile := range tiles {
			s := spreads[0]
			if tile.Path.bulk() {
				s = spreads[2]
			}
			s.last = true // a filter whose taps lie side by side is copied first: package layout
			elem := "f16"
			switch {
			case tile.TF32:
				elem = "tf32"
			case tile.Path == Fma:
				elem = "f32"
			}
			c.add(t, s.of().of(elem, tile), false)
		}
		c.compile(t, arch)
	}
}

// Kernels multiply what the cost model counts: the products of phases are those of the op with elements, however far apart these are.
func TestContractionPhasesMultiplyNoZeros(t *testing.T) {
	t.Parallel()
	var before int64
	for distance := 2; distance <= 5; distance++ {
		// An output for each element and tap: of each phase there are as many as elements.
		s := spread{
			name: "far", images: 2, channels: 8, features: 8, in: []int{6, 6}, window: []int{4, 4}, between: []int{distance, distance}, lower: []int{3, 3}, upper: []int{distance - 1, distance - 1},
		}
		products := multiplied(t, tiledOf(t, s.of().of("f16", Config{})))
		if before > 0 && products > before*49/36 {
			t.Errorf("with elements %d apart a kernel computes %d products, %d before", distance, products, before)
		}
		before = max(before, products)
	}
	for _, s := range spreads {
		p := s.of().of("f16", Config{})
		tiled := tiledOf(t, p)
		m := module(t, p)
		var e cost.Entry
		for _, x := range cost.Function(m.Funcs[0], m, nil).Entries {
			if x.Op == tiled.Main() || x.Op.Name == tiled.Main().Name {
				e = *x
			}
		}
		model, _ := e.Phases()
		mine := shapeOf(tiled).product()
		mine.Elem = model.Elem
		if tiled.Turned() != model.Turned {
			model.Rows, model.Cols, model.Turned = model.Cols, model.Rows, tiled.Turned()
		}
		if mine != model {
			t.Errorf("%s: the kernel is\n%+v, the cost model has\n%+v", s.name, mine, model)
		}
		if n := multiplied(t, tiled); float64(n) != mine.FLOP()/2 {
			t.Errorf("%s: the kernel computes %d products, the cost model has %g FLOP", s.name, n, mine.FLOP())
		}
	}
}

// multiplied is how many products a kernel of phases computes, without what tiles pad.
func multiplied(t *testing.T, tiled *kernel.Tiled) (n int64) {
	t.Helper()
	f := tiled.PhasePart()
	if f == nil {
		t.Fatal("there are no phases")
	}
	for z := range tiled.Batch {
		of := map[*kernel.Atom]int64{f.Z: z}
		n += (f.End.Value(of) - f.Begin.Value(of)) * tiled.Rows * tiled.Cols
	}
	return n
}
