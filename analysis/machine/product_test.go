package machine

import (
	"math"
	"testing"

	"dmir/dialect/types"
)

// ten is a machine on which every term is easy to compute by hand: ten multiprocessors of 1 TFLOP/s each, whose level-2
// cache gives each of them 1 TB/s.
var ten = &Machine{
	Name: "ten", SMs: 10, Bandwidth: 1e12,
	TensorCore:  map[types.Elem]float64{types.F16: 10e12},
	Vector:      map[types.Elem]float64{types.F32: 0.1e12, types.F16: 0.1e12},
	Accelerator: Accelerator{Clock: 1e9, L2Bandwidth: 10e12, MemoryLatency: 500e-9},
}

func TestProductTime(t *testing.T) {
	tile := Tile{Rows: 128, Cols: 256, Step: 64, Splits: 1}
	const block = 2 * 128 * 256 * 1024 / 1e12 // s of a tile's multiplications
	const store = 128 * 256 * 2 / 1e12        // and of storing it
	for _, c := range []struct {
		name          string
		p             Product
		tile          Tile
		compute, tail float64
	}{
		{"one block for each multiprocessor", Product{Batch: 1, Rows: 1280, Cols: 256, Depth: 1024, Elem: types.F16}, tile, block, store},
		{"one block more, which nine wait for", Product{Batch: 1, Rows: 1408, Cols: 256, Depth: 1024, Elem: types.F16}, tile, 1.1 * block, 2*(block+store/2) + store/2 - 1.1*block},
		{"edges are computed whole", Product{Batch: 1, Rows: 1270, Cols: 200, Depth: 1024, Elem: types.F16}, tile, block * 1270 * 200 / (1280 * 256), block + store - block*1270*200/(1280*256)},
		{"a batch", Product{Batch: 10, Rows: 128, Cols: 256, Depth: 1024, Elem: types.F16}, tile, block, store},
		{
			"a sum that two blocks share",
			Product{Batch: 5, Rows: 128, Cols: 256, Depth: 2048, Elem: types.F16},
			Tile{Rows: 128, Cols: 256, Step: 64, Splits: 2},
			block,
			store + 2*4*5*128*256*2/10e12 + ten.Start(),
		},
		{
			"a sum that two blocks of a cluster share: each stores half a tile, and reads as much from the other",
			Product{Batch: 5, Rows: 128, Cols: 256, Depth: 2048, Elem: types.F16},
			Tile{Rows: 128, Cols: 256, Step: 64, Splits: 2, Cluster: true},
			block,
			store/2 + 128*256*4/2/0.5e12 + 2*ten.MemoryLatency,
		},
		{
			"clusters of four, of which ten multiprocessors have two",
			Product{Batch: 3, Rows: 128, Cols: 256, Depth: 4096, Elem: types.F16},
			Tile{Rows: 128, Cols: 256, Step: 64, Splits: 4, Cluster: true},
			1.2 * block,
			2*(block+store/8+128*256*3/0.5e12) + store/8 + 2*ten.MemoryLatency - 1.2*block,
		},
		{
			"ten blocks that share the steps of 13 tiles: each has 21 of them at most, finishes two tiles, and leaves and reads sums of one",
			Product{Batch: 1, Rows: 13 * 128, Cols: 256, Depth: 1024, Elem: types.F16},
			Tile{Path: "mma", Rows: 128, Cols: 256, Step: 64, Splits: 1, StreamK: true},
			1.3 * block,
			21.0/16*block + 2*store/2 + store/2 + 2*128*256*4/1e12 + 3*ten.MemoryLatency + ten.Start() - 1.3*block,
		},
		{
			"with two whole tiles of each before",
			Product{Batch: 1, Rows: 33 * 128, Cols: 256, Depth: 1024, Elem: types.F16},
			Tile{Path: "mma", Rows: 128, Cols: 256, Step: 64, Splits: 1, StreamK: true},
			3.3 * block,
			2*(block+store/2) + 21.0/16*block + 2*store/2 + store/2 + 2*128*256*4/1e12 + 3*ten.MemoryLatency + ten.Start() - 3.3*block,
		},
		{
			"whole waves have nothing to share",
			Product{Batch: 10, Rows: 128, Cols: 256, Depth: 1024, Elem: types.F16},
			Tile{Path: "mma", Rows: 128, Cols: 256, Step: 64, Splits: 1, StreamK: true}, block, store,
		},
	} {
		got := ten.ProductTime(c.p, c.tile)
		if math.Abs(got.Compute/c.compute-1) > 1e-9 || math.Abs(got.Tail/c.tail-1) > 1e-9 {
			t.Errorf("%s: %g + %g, want %g + %g", c.name, got.Compute, got.Tail, c.compute, c.tail)
		}
	}
	slow := *ten
	slow.L2Bandwidth = 0.1e12
	got := slow.ProductTime(Product{Batch: 1, Rows: 1280, Cols: 256, Depth: 1024, Elem: types.F16}, tile)
	if want := 10 * (128 + 256) * 1024 * 2 / 0.1e12; math.Abs(got.L2/want-1) > 1e-9 || got.L2 < got.Compute {
		t.Errorf("tiles from a slow cache: %g, want %g", got.L2, want)
	}
	if c := slow.cluster(); ten.sharing() != 1 || c.sharing() != 2 {
		t.Errorf("blocks share reads of the cache from Hopper on: %g, %g", ten.sharing(), c.sharing())
	}
}

// A tile that gathers shares no reads with other blocks; elements that several taps meet it reads once, where the
// level-1 cache keeps them, and its own memory may be what it waits for.
func TestGatheredProduct(t *testing.T) {
	m := ten.cluster()
	m.Clock = 0
	m.L2Bandwidth = 1e11
	p := Product{Batch: 1, Rows: 2560, Cols: 64, Depth: 576, Elem: types.F16}
	at := func(p Product, path string, rows, cols int) float64 {
		return m.ProductTime(p, Tile{Path: path, Rows: rows, Cols: cols, Step: 64, Splits: 1}).L2
	}
	whole := float64(10*(256+64)*576*2) / m.L2Bandwidth
	window := Window{Taps: 9, Images: 1, Lines: 256, Outputs: 10, Span: 22, Planes: 1}
	near, wide, strided, many, few, turned := p, p, p, p, p, p
	near.Window, wide.Window, strided.Window, many.Window, few.Window = window, window, window, window, window
	strided.Window.Planes, many.Window.Planes, few.Window.Planes = 4, 4, 4
	many.Window.Taps, many.Depth, few.Window.Taps, few.Depth = 49, 49*64, 49, 64
	wide.Window.Span = 400
	turned.Rows, turned.Cols, turned.Turned, turned.Window = p.Cols, p.Rows, true, window
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"neighbours read at once", at(p, "wgmma", 256, 64), whole * 3 / 4},
		{"a pair shares rows", m.ProductTime(p, Tile{Path: "wgmma", Rows: 256, Cols: 64, Step: 64, Pair: PairCols}).L2, whole * 3 / 4 * 192 / 320},
		{"a pair shares columns", m.ProductTime(p, Tile{Path: "pingpong", Rows: 64, Cols: 256, Step: 64, Pair: PairRows}).L2, whole * 3 * 192 / 320},
		{"warps copy for themselves", at(p, "mma", 256, 64), whole},
		{"no window", at(p, "gather", 256, 64), whole},
		{"taps that meet", at(near, "gather", 256, 64), whole * (278.0/9 + 64) / (256 + 64)},
		{"taps that meet, of B", at(turned, "gather", 64, 256), whole * (278.0/9 + 64) / (256 + 64)},
		{"more than the cache keeps", at(wide, "gather", 256, 64), whole},
		{"planes, one at a time", at(strided, "gather", 256, 64), whole * (4*278.0/9 + 64) / (256 + 64)},
		{"more taps than are ordered", at(many, "gather", 256, 64), whole * 49 / 9},
		{"few channels", at(few, "gather", 256, 64), whole / 9 * (4*278.0/49 + 64) / (256 + 64)},
	} {
		if math.Abs(c.got/c.want-1) > 1e-9 {
			t.Errorf("%s: %g, want %g", c.name, c.got, c.want)
		}
	}
	for _, c := range []struct {
		rows, cols int64
		tile       Tile
		want       bool
	}{
		{1024, 1024, Tile{Rows: 128, Cols: 256, Pair: PairRows}, true},
		{1024, 1024, Tile{Rows: 128, Cols: 256, Pair: PairCols}, true},
		{900, 1024, Tile{Rows: 128, Cols: 256, Pair: PairRows}, true},
		{768, 1024, Tile{Rows: 256, Cols: 128, Pair: PairRows}, false}, // three tiles
		{768, 768, Tile{Rows: 128, Cols: 256, Pair: PairCols}, false},
		{1024, 128, Tile{Rows: 128, Cols: 256, Pair: PairRows}, false}, // the second block would load nothing
		{1024, 1024, Tile{Rows: 128, Cols: 64, Pair: PairRows}, false},
		{1024, 1024, Tile{Rows: 64, Cols: 256, Pair: PairCols}, false},
		{1024, 1024, Tile{Rows: 128, Cols: 256, Pair: "2x2"}, false},
	} {
		p := Product{Batch: 1, Rows: c.rows, Cols: c.cols, Depth: 64, Elem: types.F16}
		if got := m.Pairs(p, c.tile); got != c.want {
			t.Errorf("%d x %d in %+v: %t", c.rows, c.cols, c.tile, got)
		}
	}
	odd := *m
	odd.SMs = 11
	if p := (Product{Rows: 1024, Cols: 1024}); ten.Pairs(p, Tile{Rows: 128, Cols: 128, Pair: PairRows}) || odd.Pairs(p, Tile{Rows: 128, Cols: 128, Pair: PairRows}) {
		t.Error("pairs without clusters, or of an odd number of multiprocessors")
	}
	m.L2Bandwidth, m.Clock = 1e15, 1e6
	if got, want := m.ProductTime(near, Tile{Path: "gather", Rows: 256, Cols: 64, Step: 64}).Total(), (3*256+3*64)*576*2/128e6; math.Abs(got/want-1) > 1e-3 {
		t.Errorf("what passes through a block's memory: %g, want %g", got, want)
	}
}

// Consumers that share a tile compute the epilogue behind the products, those that take turns beside them.
func TestEpilogue(t *testing.T) {
	const area = 128 * 128
	const block, store = 2 * area * 2048 / 1e12, area * 2 / 1e12
	const issue = area * 39 / (128 * 1e9)             // of two warps of a scheduler
	const move = area * 40 / 1e11                     // the multiprocessor's part of the bandwidth
	const rounds = float64(area) / (256 * 8) * 500e-9 // loads that wait for each other
	for _, c := range []struct {
		name  string
		e     Epilogue
		path  string
		rows  int64
		total float64
	}{
		{"none", Epilogue{}, "wgmma", 1280, block + store},
		{"few instructions, beside the stores", Epilogue{Slots: 0.01}, "wgmma", 1280, block + store},
		{"instructions", Epilogue{Slots: 39}, "wgmma", 2560, 2*(block+issue) + store/2},
		{"instructions of half the warps", Epilogue{Slots: 39}, "pingpong", 2560, 2*block + 2*issue},
		{"more of them than the products take", Epilogue{Slots: 390}, "pingpong", 2560, 2*(block+20*issue)/2 + 20*issue},
		{"bytes", Epilogue{Read: 16, Written: 24, Width: 8}, "wgmma", 2560, 2*(block+move) + store/2},
		{"bytes of one tile", Epilogue{Read: 16, Written: 24, Width: 16}, "pingpong", 1280, block + move},
		{"loads that wait", Epilogue{Read: 2, Width: 8}, "wgmma", 1280, block + rounds + store/2},
		{"half the loads", Epilogue{Read: 2, Width: 8}, "pingpong", 2560, 2*block + 2*rounds},
		{"blocks that share a multiprocessor", Epilogue{Slots: 39}, "mma", 1280, block + store},
	} {
		p := Product{Batch: 1, Rows: c.rows, Cols: 128, Depth: 2048, Elem: types.F16, Epilogue: c.e}
		tile := Tile{Path: c.path, Rows: 128, Cols: 128, Step: 64, Splits: 1}
		m := *ten
		m.TensorCore = map[types.Elem]float64{types.F16: 10e12 / tile.efficiency()}
		if got := m.ProductTime(p, tile).Total(); math.Abs(got/c.total-1) > 1e-9 {
			t.Errorf("%s: %g, want %g", c.name, got, c.total)
		}
	}
	p := Product{Batch: 1, Rows: 1280, Cols: 128, Depth: 2048, Elem: types.F16, Epilogue: Epilogue{Slots: 39}}
	tile := Tile{Path: "wgmma", Rows: 128, Cols: 128, Step: 64, Splits: 2}
	if got, want := ten.Exposed(p, tile), float64(area)*39/(128*1e9); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("the kernel that adds sums up has the epilogue: %g, want %g", got, want)
	}
}

// cluster is m as a machine whose blocks form clusters.
func (m Machine) cluster() *Machine {
	m.Arch = "sm_90a"
	return &m
}

// The best tile takes no longer than any other one, more work takes longer, and a product of one row runs on the vector
// units where that is faster.
func TestBestProduct(t *testing.T) {
	for _, m := range All() {
		if m.CPU {
			continue
		}
		last := 0.0
		for n := int64(64); n <= 8192; n *= 2 {
			p := Product{Batch: 1, Rows: n, Cols: n, Depth: n, Elem: types.F16}
			best := m.BestProduct(p)
			if best.Total() <= last {
				t.Errorf("%s: %d takes %g s, half of it %g", m.Name, n, best.Total(), last)
			}
			last = best.Total()
			for _, tile := range tiles {
				tile.Step, tile.Splits = 64, 1
				if x := m.ProductTime(p, tile); x.Total() < best.Total()*(1-1e-9) {
					t.Errorf("%s, %d: tile %+v takes %g s, the best one %g", m.Name, n, tile, x.Total(), best.Total())
				}
			}
		}
		row := Product{Batch: 512, Rows: 1, Cols: 1, Depth: 64, Elem: types.F16}
		if got, want := m.BestProduct(row).Total(), row.FLOP()/m.Rate(false, types.F16, ""); got > want*(1+1e-9) {
			t.Errorf("%s: products of one row take %g s, on the vector units %g", m.Name, got, want)
		}
	}
}

func TestAttentionTime(t *testing.T) {
	m := *ten
	m.Ceilings.Paths = map[string]float64{attentionPath: 0.5}
	a := Attention{Heads: 10, Queries: 128, Keys: 128, Scores: 10 * 128 * 128, Depth: 64, Value: 64, Elem: types.F16}
	products, exps := 10*128*128*256/5e12, 10*128*128/160e9
	if got, want := m.AttentionTime(a).Total(), products+exps+m.Fill(); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("one after the other: %g, want %g", got, want)
	}
	if got, want := m.cluster().AttentionTime(a).Total(), max(products, exps)+m.Fill(); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("side by side: %g, want %g", got, want)
	}
	a.Heads, a.Scores = 11, 11*128*128
	if got, want := m.AttentionTime(a).Total(), 2*(products+exps)+m.Fill(); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("a second wave: %g, want %g", got, want)
	}
	m.Ceilings.Paths["mma"] = 0.5
	a.Heads, a.Scores = 10, 10*128*128
	a.Tile = Tile{Path: "wgmma", Rows: 64}
	if got, want := m.AttentionTime(a).Total(), products+exps+2*m.Fill(); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("tiles of 64 queries: %g, want %g", got, want)
	}
	a.Tile = Tile{Path: "mma", Rows: 128}
	if got, want := m.AttentionTime(a).Total(), 2*products+exps+m.Fill(); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("on a path of half the rate: %g, want %g", got, want)
	}
	a.Gradient, a.Tile = true, Tile{}
	five := m.AttentionTime(a).Compute - exps
	a.Tile.Path = "wgmma"
	if got, want := m.AttentionTime(a).Compute-exps, five*7/5; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("a gradient of two kernels: %g, want %g", got, want)
	}
	one := Attention{Heads: 10, Queries: 1, Keys: 1 << 20, Scores: 10 << 20, Depth: 64, Value: 64, Elem: types.F16}
	if got := m.AttentionTime(one); got.Tail != 0 {
		t.Errorf("one query is divided along the keys, and waits for nothing: %g", got.Tail)
	}
}

// A fused gradient takes the steps of all rounds of its clusters, also those that a block sees no query of; sums of queries
// that the level-2 cache does not hold are moved in each round.
func TestFusedGradient(t *testing.T) {
	m := *ten
	m.L2, m.L2Bandwidth = 1<<30, 1e15
	a := Attention{
		Heads: 10, KeyHeads: 5, Queries: 256, Keys: 512, Scores: 10 * 256 * 512, Depth: 64, Value: 64, Elem: types.F16, Gradient: true,
		Tile: Tile{Path: FusedPath, Rows: 128, Cols: 64, Splits: 2},
	}
	compute := func(a Attention) float64 {
		return max(2*float64(a.Scores)*5*64/10e12, float64(a.Scores)/160e9)
	}
	if got, want := m.AttentionTime(a).Total(), compute(a)+2*m.Fill(); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("two rounds on all multiprocessors: %g, want %g", got, want)
	}
	a.KeyHeads = 0
	if got, want := m.AttentionTime(a).Total(), compute(a)+2*2*m.Fill(); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("two waves of heads of their own: %g, want %g", got, want)
	}
	a.Queries = 512
	whole := a
	whole.Scores = 10 * 512 * 512
	a.Scores = 10 * 512 * 513 / 2
	// 8 and 4 tiles of queries for the two rounds, where whole squares have 16.
	if got, want := m.AttentionTime(a).Total(), compute(whole)*12/16+4*m.Fill(); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("under a causal mask: %g, want %g", got, want)
	}
	m.L2Bandwidth = 1e9
	if got, want := m.AttentionTime(whole).L2, 10*2*2*512.0*(2*128+8*64)/1e9; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("from the level-2 cache: %g, want %g", got, want)
	}
	m.L2, m.L2Bandwidth = 640<<10, 1e15
	held := 5 * 512 * 512.0
	if got, want := m.AttentionTime(whole).L2, 10*2*512.0*768*(1-float64(m.L2)/held)/(0.8*m.Reach()); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("what the level-2 cache does not hold: %g, want %g", got, want)
	}
}

// Every machine has every constant, and what is assumed says after which machine.
func TestConstants(t *testing.T) {
	for _, m := range All() {
		if m.CPU {
			continue
		}
		for key, x := range map[string]float64{
			keyClock: m.Clock, KeyLaunch: m.Launch, KeyStream: m.Stream, KeyMemoryLatency: m.MemoryLatency, KeyL2Bandwidth: m.L2Bandwidth,
			KeyBandwidth: m.Ceilings.Bandwidth, "ceilings.vector.f32": m.Ceilings.Vector[types.F32], "ceilings.tensor_core.f16": m.Ceilings.TensorCore[types.F16],
			"ceilings.paths.attention": m.Ceilings.Paths[attentionPath], "ceilings.paths.attention_grad": m.Ceilings.Paths[gradientPath],
		} {
			if x <= 0 {
				t.Errorf("%s has no %s", m.Name, key)
			}
		}
		for key, after := range m.Assumed {
			if _, ok := Lookup(after); !ok {
				t.Errorf("%s: %s is assumed after %q, which is no machine", m.Name, key, after)
			}
		}
	}
	m, err := Parse("mine", []byte("bandwidth = \"1 TB/s\"\n[vector]\nf32 = \"10 TFLOP/s\"\n"))
	h100, _ := Lookup("h100")
	if err != nil || m.Launch != h100.Launch || m.Assumed[KeyLaunch] != "h100" || math.Abs(m.Reach()/(1e12*3/3.35)-1) > 1e-9 || m.Assumed[KeyBandwidth] != "h100" {
		t.Errorf("a machine without constants takes those of the h100: %+v, %v", m, err)
	}
	m, err = Parse("mine", []byte("base = \"b200\"\nlaunch_latency = \"1 µs\"\n"))
	if err != nil || m.Launch != 1e-6 || m.Gap() != 1e-6 || m.Assumed[KeyLaunch] != "" || m.Assumed[KeyStream] != "h100" {
		t.Errorf("a constant that the file names is not assumed: %+v, %v", m, err)
	}
	m, err = Parse("mine", []byte("base = \"h100\"\ndependent_latency = \"250 ns\"\n"))
	if err != nil || math.Abs(m.Gap()-250e-9) > 1e-15 || m.Start() != m.Gap()+m.Fill() || m.Serial().Gap() != m.Launch || m.Launch != h100.Launch {
		t.Errorf("kernels that start early: %+v, %v", m, err)
	}
}
