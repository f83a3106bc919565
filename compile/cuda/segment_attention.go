package cuda

import (
	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// maxSegmentChunk is the bytes of values that a block computes, as they are summed: as many as a warp's registers hold beside
// queries and keys.
const maxSegmentChunk = 2048

// segmentShape is how threads divide a dm.segment_attention.
type segmentShape struct {
	lanes, warps int64 // of a team, of a query
	deep, wide   int64 // elements of a vector of q and k, and of v and y
	chunk        int64 // elements of values of a block
	ahead        int64 // keys that a team reads together
}

// segmentShapeOf is that of a: teams as wide as a row in vectors, as many warps for a query as keep teams busy where there are few
// queries, and several keys in flight as far as registers go.
func (t Target) segmentShapeOf(a *kernel.SegmentAttention) segmentShape {
	elem := a.Op.Operands[0].Elem()
	size := max(elem.Bytes(), 4) // of a sum
	vector := func(n int64) int64 { return kernel.GCD(n, 16/elem.Bytes()) }
	of := machine.Segments{Queries: a.Heads * a.Queries, Keys: a.Mean(), Rows: a.Rows, Depth: a.Depth, Value: min(a.Value, maxSegmentChunk/size), Elem: elem}
	s := segmentShape{lanes: of.Lanes(), warps: t.Machine.SegmentWarps(of), deep: vector(a.Depth), wide: vector(a.Value), chunk: min(a.Value, maxSegmentChunk/size)}
	row := ceil(a.Depth, s.lanes*s.deep) * s.deep
	held := (row + ceil(s.chunk, s.lanes*s.wide)*s.wide) * size / 4 // registers of a key and its value
	s.ahead = 4
	room := int64(32)
	if a.Weights != nil { // which are held beside the query
		room -= min(row*size/4, room/2)
	}
	for s.ahead > 1 && (s.ahead*held > room || s.ahead*s.warps*(32/s.lanes) >= 2*a.Mean()) {
		s.ahead /= 2
	}
	return s
}

// shared is the shared memory in which the warps of a query are joined.
func (s segmentShape) shared(sum types.Elem) int64 {
	if s.warps == 1 {
		return 0
	}
	return (16 + machine.SegmentBlock*ceil(s.chunk, s.lanes*s.wide)*s.lanes*s.wide) * sum.Bytes()
}

// segmentTile is how a block of threads computes queries of a segment on tensor cores.
type segmentTile struct {
	queries, keys int64 // of a block, and of a step
	shared        int64 // bytes
}

func (s segmentTile) warps() int64 { return s.queries / 16 }

// segmentTileOf is that of a; ok is false where its segments are no whole fragments, or tensor cores do not have its type.
func (t Target) segmentTileOf(a *kernel.SegmentAttention) (s segmentTile, ok bool) {
	elem := a.Op.Operands[0].Elem()
	of := machine.Segments{Rows: a.Rows, Columns: a.Columns, Depth: a.Depth, Value: a.Value, Elem: elem}
	if a.Weights != nil || !of.Tiled() {
		return s, false
	}
	s.queries, s.keys = of.TileRows(), kernel.GCD(a.Columns, 64)
	lines := attention{elem: elem, sum: types.F32}
	tile := attentionTile{path: Mma}
	d, v := lines.pitch(tile, a.Depth), lines.pitch(tile, a.Value)
	fits := func() bool {
		s.shared = elem.Bytes() * max(s.queries*d+2*s.keys*(d+v), s.queries*v)
		return s.shared <= t.Machine.SharedMemory && (s.keys == 16 || s.keys*max(a.Depth, a.Value) <= 64*128) // and scores and sums the registers
	}
	for !fits() && s.keys%32 == 0 {
		s.keys /= 2
	}
	return s, s.shared <= t.Machine.SharedMemory
}

// segmentAttention has a block for queries of a segment on tensor cores, or a warp, or several, for each query of each head.
func (t Target) segmentAttention(f *kernel.Form) (scheme, error) {
	a, err := kernel.SegmentAttentionOf(f)
	if err != nil {
		return nil, err
	}
	s := t.segmentShapeOf(a)
	ns := namesOf(f.Inputs, f.Outputs, arena)
	sum := types.F32
	if a.Op.Operands[0].Elem() == types.F64 {
		sum = types.F64
	}
	bias, weights, y, lse := cpp(nothing), cpp(nothing), cpp(nothing), cpp(nothing)
	if a.Bias != nil {
		bias = cpp("%s", ns.of[a.Bias])
	}
	if a.Weights != nil {
		weights = cpp("%s", ns.of[a.Weights])
	}
	if a.HasY {
		y = cpp("%s", ns.of[a.Y.Buf])
	}
	if a.HasTotal {
		lse = cpp("%s", ns.of[a.Op.Results[1]])
	}
	operands := cpp("%s, %s, %s, %s, %s, %s, %s, %s, %s", arena,
		ns.of[a.Q.Buf], ns.of[a.K.Buf], ns.of[a.V.Buf], ns.of[a.Op.Operands[3]], ns.of[a.Op.Operands[4]], bias, y, lse)
	l := &launch{
		Launch: assemble.Launch{
			Class: "segment_attention", Block: artifact.Block{Threads: 32 * machine.SegmentBlock, Shared: int(s.shared(sum))},
			Grid: [3]int{int(ceil(a.Heads*a.Queries, machine.SegmentBlock/s.warps)), int(ceil(a.Value, s.chunk)), 1}, Params: ns.params,
		},
		named: ns.of, include: "attention.cuh segment_attention.cuh",
	}
	call := cpp("dm::segment_attention<%s, %s>(%s, %s)", geometry, register(sum), operands, weights)
	if tile, ok := t.segmentTileOf(a); ok {
		l.Block = artifact.Block{Threads: int(tile.warps() * 32), Shared: int(tile.shared)}
		l.Grid = [3]int{int(a.Heads * a.Queries / tile.queries), 1, 1}
		l.include = "attention.cuh segment_attention.cuh attention_mma.cuh segment_attention_mma.cuh"
		call = cpp("dm::segment_attention_mma<%d, %d, %s>(%s)", tile.warps(), tile.keys, geometry, operands)
	}
	l.write = func(t *text) error {
		s.describe(t.before, a)
		t.body.line("DM_ARENA(%s)", def(arena))
		t.body.line("%s", call)
		return nil
	}
	return singleLaunch{l}, nil
}

// describe writes the prelude's struct of the geometry.
func (s segmentShape) describe(u *unit, a *kernel.SegmentAttention) {
	u.enter(closed, "struct %s", geometry)
	u.line("static constexpr dm::i32 heads = %d, group = %d, queries = %d, depth = %d, value = %d, rows = %d, columns = %d", a.Heads, a.Group, a.Queries, a.Depth, a.Value, a.Rows, a.Columns)
	u.line("static constexpr dm::i64 entries = %d, blocks = %d, bias_head = %d", a.Entries, a.Keys/a.Columns, a.BiasHead)
	u.line("static constexpr double scale = %s, slope = %s", hexFloat(a.Scale), hexFloat(a.Slope))
	u.line("static constexpr bool adds = %t", a.Adds)
	if a.Weights != nil {
		u.line("static constexpr double leak = %s", hexFloat(a.Leak))
		u.line("static constexpr dm::i64 weights_head = %d, weights_queries = %d", a.WeightsHead, a.WeightsQueries)
	}
	u.line("static constexpr dm::i32 lanes = %d, warps = %d, deep = %d, wide = %d, chunk = %d, ahead = %d", s.lanes, s.warps, s.deep, s.wide, s.chunk, s.ahead)
	for _, m := range []struct {
		name string
		kernel.Matrices
	}{{"q", a.Q}, {"k", a.K}, {"v", a.V}, {"y", a.Y}} {
		u.line("static constexpr dm::i64 %[1]s_start = %[2]d, %[1]s_head = %[3]d, %[1]s_row = %[4]d", m.name, m.Start, m.Head, m.Row)
	}
	u.leave()
}
