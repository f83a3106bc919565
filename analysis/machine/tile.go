package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// Tile is the part of a result that a block computes, and how.
type Tile struct {
	Path       string // of the tensor cores; "" for the best one
	Rows, Cols int
	Step       int // of the sum, which it reads at a time
	Splits     int // blocks that share a sum, 1 or more
	// Cluster: these are a cluster, and add their partial sums up on the chip.
	Cluster bool
	Pair    Pair
	// Phases: it is of a phase of a convolution.
	Phases bool
	// StreamK: blocks share the steps of the last waves evenly, where these are not full.
	StreamK bool
}

// Pair is how the two blocks of a cluster lie, as the shape of the cluster in tiles; "": there are no clusters. They share the
// operand of which both need the same part: each reads half of it, and multicasts that to both.
type Pair string

// The pairs.
const (
	PairRows Pair = "2x1" // one below the other: they share the columns' operand
	PairCols Pair = "1x2" // side by side: they share the rows' operand
)

// What stands in the text of a tile behind its sizes and its pair, and at its end.
const (
	phasesMark  = " phases"
	splitMark   = " / "
	clusterMark = " cluster"
	streamKMark = " stream-k"
)

// String is the text of a tile, by which attributes and measurements name it: "mma 128x128x32 / 4", "fma 64x64x16 / 8 cluster",
// "wgmma 128x256x64 2x1 stream-k" or "gather 128x64x64 phases".
func (t Tile) String() string {
	s := fmt.Sprintf("%s %dx%dx%d", t.Path, t.Rows, t.Cols, t.Step)
	if t.Pair != "" {
		s += " " + string(t.Pair)
	}
	if t.Phases {
		s += phasesMark
	}
	if t.Splits > 1 {
		s += splitMark + strconv.Itoa(t.Splits)
	}
	if t.Cluster {
		s += clusterMark
	}
	if t.StreamK {
		s += streamKMark
	}
	return s
}

// ParseTile reads the text that String writes.
func ParseTile(text string) (t Tile, ok bool) {
	text, streamK := strings.CutSuffix(text, streamKMark)
	text, cluster := strings.CutSuffix(text, clusterMark)
	text, splits, split := strings.Cut(text, splitMark)
	text, phases := strings.CutSuffix(text, phasesMark)
	path, block, _ := strings.Cut(text, " ")
	block, pair, _ := strings.Cut(block, " ")
	sizes := strings.Split(block, "x")
	if len(sizes) != 3 || cluster && !split || streamK && split {
		return t, false
	}
	t = Tile{Path: path, Splits: 1, Cluster: cluster, Pair: Pair(pair), Phases: phases, StreamK: streamK}
	if t.Pair != "" && t.Pair != PairRows && t.Pair != PairCols {
		return t, false
	}
	if !split {
		splits = "1"
	}
	for i, to := range []*int{&t.Rows, &t.Cols, &t.Step, &t.Splits} {
		n, err := strconv.Atoi(append(sizes, splits)[i])
		if err != nil || n < 1 {
			return t, false
		}
		*to = n
	}
	return t, true
}
