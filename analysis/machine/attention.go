package machine

import "dmir/dialect/types"

// Attention is a scaled dot-product attention, or its gradient.
type Attention struct {
	Heads, Queries, Keys int64 // heads of all samples
	KeyHeads             int64 // of keys and values; 0: as many
	Scores               int64 // that are computed, of all heads: under a causal mask about half
	Depth, Value         int64 // of a key, and of a value
	Elem                 types.Elem
	Gradient             bool
	Tile                 Tile // of queries and keys, where it is decided; of the gradient its path alone, if it is not fused
}

// The parts of the tensor cores' rate that attention reaches, by the names of Ceilings.Paths.
const (
	attentionPath = "attention"
	gradientPath  = "attention_grad"
	// FusedPath is that of a gradient which computes its five products in one kernel.
	FusedPath = "fused"
)

// AttentionTime is how long a takes, in seconds, besides what a kernel adds: its products at the rate that attention
// reaches, and the exponentials of its scores on the units for special functions, one after the other in a block, side by side
// from Hopper on. Blocks have 128 queries, those of the gradient 128 keys, and compute whole squares of scores under a causal
// mask; the first bytes of each wave of them come with the latency of the memory. Where a tile is decided, it has so many
// queries, products on its path have that path's part of the rate, and the gradient computes scores and their gradients
// twice, for the keys' side and for the queries', unless it is fused.
func (m *Machine) AttentionTime(a Attention) ProductTime {
	if a.Tile.Path == FusedPath {
		return m.fusedGradient(a)
	}
	scores := float64(a.Scores)
	flop := 2 * scores * float64(a.Depth+a.Value)
	path, along := attentionPath, a.Queries
	if a.Gradient {
		flop = 2 * scores * float64(3*a.Depth+2*a.Value)
		if a.Tile.Path != "" {
			flop += 2 * scores * float64(a.Depth+a.Value)
		}
		path, along = gradientPath, a.Keys
	}
	rate := m.Rate(true, a.Elem, path)
	if part, ok := m.Ceilings.Paths[a.Tile.Path]; ok {
		rate *= part
	}
	t := ProductTime{Compute: flop / rate}
	if r := m.SpecialRate(); r > 0 {
		if special := scores / r; m.generation() >= hopper {
			t.Compute = max(t.Compute, special)
		} else {
			t.Compute += special
		}
	}
	side := int64(128)
	if !a.Gradient && a.Tile.Rows > 0 {
		side = int64(a.Tile.Rows)
	}
	if m.SMs == 0 || m.L2Bandwidth == 0 || along < side {
		return t // few queries are divided along the keys
	}
	t.Blocks = a.Heads * ceil(along, side)
	sms := float64(m.SMs)
	if all := float64(a.Queries) * float64(a.Keys) * float64(a.Heads); scores == all {
		t.Tail = t.Compute * (float64(ceil(t.Blocks, int64(m.SMs)))*sms/float64(t.Blocks) - 1)
	} else {
		longest := float64(side) * float64(max(a.Queries, a.Keys)) // scores of a block; the longest ones run first
		diagonal := float64(a.Heads*along) * float64(side) / 2
		t.Tail = t.Compute * (max(0, longest*sms/scores-1) + diagonal/scores)
	}
	t.Tail += m.Fill() * float64(t.Blocks/int64(m.SMs))
	return t
}

// mixed is the part of memory's rate that reads and writes of the same lines reach.
const mixed = 0.8

// fusedGradient is the time of a gradient whose blocks, in clusters of Tile.Splits for each head of the keys, have tiles of
// Tile.Rows keys in rounds, and in a round take the same steps of Tile.Cols queries, those that some block of the cluster
// sees; a round begins with the keys' way from memory. In a step a block reads queries and their gradients and adds to the sums of the queries, in the level-2 cache; what
// the heads that are computed together have of these beyond its size is moved to and from memory in each round.
func (m *Machine) fusedGradient(a Attention) ProductTime {
	cluster, rows, cols := int64(max(1, a.Tile.Splits)), int64(a.Tile.Rows), int64(a.Tile.Cols)
	heads := a.Heads
	if a.KeyHeads > 0 {
		heads = a.KeyHeads
	}
	rate := m.Rate(true, a.Elem, gradientPath)
	if part, ok := m.Ceilings.Paths[FusedPath]; ok {
		rate *= part
	}
	scores := float64(a.Scores)
	flop := func(scores float64) float64 { return 2 * scores * float64(3*a.Depth+2*a.Value) }
	t := ProductTime{Compute: flop(scores) / rate, Blocks: heads * cluster}
	if r := m.SpecialRate(); r > 0 {
		t.Compute = max(t.Compute, scores/r)
	}
	if m.SMs == 0 || m.L2Bandwidth == 0 {
		return t
	}
	queries, rounds := ceil(a.Queries, cols), ceil(a.Keys, rows*cluster)
	steps := queries * rounds
	if shift := a.Keys - a.Queries; shift >= 0 && scores < float64(a.Heads)*float64(a.Queries)*float64(a.Keys) {
		// Round r leaves out (r·rows·cluster - shift) / cols tiles, from round `first` on.
		first := min(rounds, ceil(shift, rows*cluster))
		steps -= rows * cluster / cols * (first + rounds - 1) * (rounds - first) / 2
		steps += ceil(shift, cols) * (rounds - first)
	}
	group := a.Heads / heads
	steps *= group
	running := max(1, int64(m.SMs)/cluster) * cluster
	waves := ceil(t.Blocks, running)
	all := float64(waves*steps) * float64(m.SMs)
	t.Tail = max(0, t.Compute*(all*float64(rows*cols)/scores-1)) + m.Fill()*float64(waves*rounds)
	moved := float64(2*(a.Depth+a.Value)) + float64(8*a.Depth) // of a query in a round
	t.L2 = float64(steps*cols*t.Blocks) * moved / m.L2Bandwidth
	if held := float64(min(t.Blocks, running)/cluster*group*a.Queries) * (moved - float64(4*a.Depth)); held > float64(m.L2) {
		t.L2 = max(t.L2, float64(steps*cols*heads)*moved*(1-float64(m.L2)/held)/(mixed*m.Reach()))
	}
	return t
}
