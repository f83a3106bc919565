package machine

import "dmir/dialect/types"

// Segments is an attention to the keys that segments list (dm.segment_attention).
type Segments struct {
	Queries      int64 // of all heads
	Keys         int64 // that a query sees, about
	Rows         int64 // queries of a segment
	Columns      int64 // keys that lie side by side
	Depth, Value int64 // of a key, and of a value
	Weighted     bool  // a score is a weighted sum of the elements of a leaky sum
	Elem         types.Elem
}

// SegmentBlock is the warps of a block that computes such queries.
const SegmentBlock = 8

// Tiled reports whether tensor cores compute s: queries of a segment, and keys side by side, are whole fragments of 16.
func (s Segments) Tiled() bool {
	return !s.Weighted && (s.Elem == types.F16 || s.Elem == types.BF16) && s.Rows > 0 && s.Rows%16 == 0 && s.Columns > 0 && s.Columns%16 == 0 &&
		s.Depth%2 == 0 && s.Value%2 == 0 && max(s.Depth, s.Value) <= 256
}

// TileRows are the queries that a block has then: of one segment, 16 for each warp.
func (s Segments) TileRows() int64 {
	rows := int64(16)
	for rows < 64 && s.Rows%(2*rows) == 0 {
		rows *= 2
	}
	return rows
}

// Lanes are those that read a row together, in vectors of 16 bytes or of what divides it.
func (s Segments) Lanes() int64 {
	lanes := int64(1)
	for lanes < 32 && lanes < max(ceil(s.Depth, s.vector(s.Depth)), ceil(s.Value, s.vector(s.Value))) {
		lanes *= 2
	}
	return lanes
}

// vector is the elements of a vector of rows of n.
func (s Segments) vector(n int64) int64 {
	v := max(1, 16/s.Elem.Bytes())
	for n%v != 0 {
		v /= 2
	}
	return v
}

// SegmentWarps are the warps of m that compute a query of s: several where there are few queries with many keys, as long as a
// block has a few queries of a segment, which read the same keys.
func (m *Machine) SegmentWarps(s Segments) int64 {
	warps, resident := int64(1), int64(max(m.SMs, 1))*32 // warps that hide the latency of loads
	for warps < SegmentBlock && 2*warps*(32/s.Lanes()) <= s.Keys && s.Queries*warps < resident && SegmentBlock/(2*warps) >= min(s.Rows, 4) {
		warps *= 2
	}
	return warps
}

// Times is how often warps of m read a key or a value that a coordinate names from the level-2 cache: once for the queries of a segment that a
// block has.
func (s Segments) Times(m *Machine) float64 {
	if s.Tiled() {
		return float64(s.Rows) / float64(s.TileRows())
	}
	return float64(s.Rows) / float64(max(1, min(s.Rows, SegmentBlock/m.SegmentWarps(s))))
}

// SegmentTime is how long the instructions of the lanes of s take at the rate of multiply-adds, or its products on tensor cores and what lanes do besides, in seconds. Keys and values are read
// meanwhile (ReadTables).
func (m *Machine) SegmentTime(s Segments) float64 {
	const (
		softmax  = 12 // instructions of a lane for a key: its place, the exponential, the sum
		exchange = 4  // a shuffle takes as long as so many of them
	)
	if s.Tiled() { // products, and the softmax by vector units behind them
		padded := 16 * (ceil(s.Depth, 16) + ceil(s.Value, 16))
		scores := float64(s.Queries) * float64(s.Keys)
		return scores * (float64(2*padded)/m.Rate(true, s.Elem, "mma") + softmax/(m.Rate(false, types.F32, "")/2))
	}
	scores, lanes, size := float64(s.Queries)*float64(s.Keys), s.Lanes(), s.Elem.Bytes()
	elements := s.Depth + s.Value
	if s.Weighted {
		elements += 3 * s.Depth // the sum, what it is compared with, and the factor below 0
	}
	work := elements + ceil(s.Depth, s.vector(s.Depth)) + ceil(s.Value, s.vector(s.Value)) + softmax*lanes
	if size < 4 {
		work += s.Depth + s.Value // conversions
	}
	for n := int64(1); n < lanes; n *= 2 {
		work += exchange * lanes
	}
	return scores * float64(work) / (m.Rate(false, summed(s.Elem), "") / 2)
}

// summed is the type in which elements of e are summed.
func summed(e types.Elem) types.Elem {
	if e.Bytes() < 4 {
		return types.F32
	}
	return e
}
