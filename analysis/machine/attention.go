package machine

import "dmir/dialect/types"

// Attention is a scaled dot-product attention, or its gradient.
type Attention struct {
	Heads, Queries, Keys int64 // heads of all samples
	Scores               int64 // that are computed, of all heads: under a causal mask about half
	Depth, Value         int64 // of a key, and of a value
	Elem                 types.Elem
	Gradient             bool
	Tile                 Tile // of queries and keys, where it is decided; of the gradient its path alone
}

// The parts of the tensor cores' rate that attention reaches, by the names of Ceilings.Paths.
const (
	attentionPath = "attention"
	gradientPath  = "attention_grad"
)

// AttentionTime is how long a takes, in seconds, besides what a kernel adds: its products at the rate that attention
// reaches, and the exponentials of its scores on the units for special functions, one after the other in a block, side by side
// from Hopper on. Blocks have 128 queries, those of the gradient 128 keys, and compute whole squares of scores under a causal
// mask; the first bytes of each wave of them come with the latency of the memory. Where a tile is decided, it has so many
// queries, products on its path have that path's part of the rate, and the gradient computes scores and their gradients
// twice, for the keys' side and for the queries'.
func (m *Machine) AttentionTime(a Attention) ProductTime {
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
