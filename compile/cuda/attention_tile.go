package cuda

import (
	"fmt"
	"slices"

	"dmir/analysis/machine"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// attentionTile is the tiling of a kernel of attention: the rows that a block
// owns and the rows of the other side that it loads at a time.
type attentionTile struct {
	own, other int
	path       Path
	fragments  int // of 16 rows for each warp (mma)
	n          int // 16 rows and columns of a thread (fma)
	stages     int // of the other side (wgmma)
	cluster    int // blocks that share a head (fused)
	gradient   bool
}

// bulk reports whether tensor maps copy its operands, for warpgroup products.
func (t attentionTile) bulk() bool { return t.path == Wgmma || t.path == Fused }

func (t attentionTile) threads() int {
	switch t.path {
	case Wgmma, Fused:
		return (t.consumers() + 1) * 128
	case Mma:
		return t.own / t.fragments / 16 * 32
	}
	return 256
}

// consumers is the number of warpgroups that multiply (wgmma).
func (t attentionTile) consumers() int { return t.own / 64 }

func (t attentionTile) String() string {
	switch t.path {
	case Wgmma:
		if t.gradient {
			return fmt.Sprintf("dm::AttentionGradWgmma<%d, %d>", t.other, t.stages)
		}
		return fmt.Sprintf("dm::AttentionWgmma<%d, %d, %d>", t.consumers(), t.other, t.stages)
	case Fused:
		return fmt.Sprintf("dm::AttentionGradFused<%d, %d, %d>", t.other, t.stages, t.cluster)
	case Mma:
		return fmt.Sprintf("dm::AttentionMma<%d, %d, %d>", t.fragments, t.threads()/32, t.other)
	}
	return fmt.Sprintf("dm::AttentionFma<%d>", t.n)
}

// include is the parts of the prelude that its kernels need.
func (t attentionTile) include() string {
	if t.path == Fused {
		return "hopper.cuh attention.cuh attention_wgmma.cuh attention_grad_fused.cuh"
	}
	parts := "attention.cuh attention_" + string(t.path) + ".cuh"
	if t.path == Wgmma {
		parts = "hopper.cuh " + parts
	}
	if t.gradient {
		parts += " attention_grad_wgmma.cuh"
	}
	return parts
}

// pitch is the length of a row of n elements in shared memory (Lines, DepthLines and Panels
// of the prelude).
func (a *attention) pitch(t attentionTile, n int64) int64 {
	padded := (n + 15) / 16 * 16
	switch {
	case t.bulk():
		return (n + 63) / 64 * 64
	case t.path == Fma:
		return padded + 16/a.sum.Bytes()
	case padded%64 == 0 && !a.tf32:
		return padded
	}
	return padded + 16/a.elem.Bytes()
}

// attentionKind is one of the kernels.
type attentionKind int

const (
	forwardAttention attentionKind = iota
	gradOfQueries
	gradOfKeys
	gradOfMask
)

// shared is the bytes of dynamic shared memory of a kernel.
func (a *attention) shared(kind attentionKind, t attentionTile) int64 {
	d, v := a.pitch(t, a.Depth), a.pitch(t, a.Value)
	own, other := int64(t.own), int64(t.other)
	switch stages := int64(t.stages); t.path {
	case Wgmma:
		if t.gradient {
			return 2*(own+stages*other)*(d+v) + 8*stages*other + 8*(1+2*stages)
		}
		return 2*(own*d+stages*other*(d+v)) + 8*(2+int64(t.consumers())+4*stages)
	case Fused:
		return 2*(own+stages*other)*(d+v) + 4*own*other + 8*stages*other + 8*(3+2*stages)
	case Mma:
		if kind == forwardAttention {
			return a.elem.Bytes() * max(own*d+2*other*(d+v), own*v)
		}
		return a.elem.Bytes()*(own+2*other)*(d+v) + 16*other
	}
	scores := own * (other + 16/a.sum.Bytes())
	switch kind {
	case forwardAttention:
		return a.sum.Bytes() * (own*d + other*(d+v) + scores)
	case gradOfMask:
		return a.sum.Bytes() * 2 * own * (d + v)
	}
	return a.sum.Bytes() * ((own+other)*(d+v) + scores)
}

// separate reports whether dk and dv are computed by two kernels, since the sums of
// both are more than a thread's registers.
func (a *attention) separate() bool { return a.tensorCores() && a.Depth+a.Value > 256 }

// extras counts the values in registers besides the sums and scores.
func (a *attention) extras() (n int) {
	if a.Mask != nil {
		n++
	}
	if a.Dropout > 0 {
		n++
	}
	return n
}

// registers estimates those of a thread: its sums and scores, and addresses.
func (a *attention) registers(kind attentionKind, t attentionTile) int {
	width, sums, scores := int(a.sum.Bytes()/4), ceil(a.Value, 16), 1
	switch kind {
	case gradOfQueries:
		sums, scores = ceil(a.Depth, 16), 2
	case gradOfKeys:
		sums, scores = ceil(a.Depth, 16)+ceil(a.Value, 16), 2
		if a.separate() {
			sums = max(ceil(a.Depth, 16), ceil(a.Value, 16))
		}
	case gradOfMask:
		sums, scores = 0, 3
	}
	more := a.extras() * 42 // addresses and numbers of 64 bits
	if t.path == Mma {
		return t.fragments*(int(sums)*8+scores*t.other/2) + 80 + more
	}
	return t.n*width*(int(sums)+scores*t.n+8) + 56 + more
}

// resident is the intended number of blocks on a multiprocessor.
func (a *attention) resident(kind attentionKind, t attentionTile, m *machine.Machine) int {
	if t.bulk() {
		return 1
	}
	perSM := min(int(m.SharedMemory)/(int(a.shared(kind, t))+1024), 65536/(t.threads()*a.registers(kind, t)), 2048/t.threads())
	return max(1, perSM)
}

// tensorCores reports whether tensor cores support the element type.
func (a *attention) tensorCores() bool {
	return (a.elem == types.F16 || a.elem == types.BF16 || a.tf32) && a.Depth%2 == 0 && a.Value%2 == 0 && max(a.Depth, a.Value) <= 256
}

// tiles are the candidate tiles that fit into m, largest first. Where none for the tensor cores does, numbers of f32
// are not rounded.
func (a *attention) tiles(kind attentionKind, m *machine.Machine) []attentionTile {
	large := func(t attentionTile) bool { return a.shared(kind, t) > m.SharedMemory }
	if a.tensorCores() && kind != gradOfMask {
		if tiles := slices.DeleteFunc(a.mmaTiles(kind), large); len(tiles) > 0 || !a.tf32 {
			return tiles
		}
	}
	return slices.DeleteFunc([]attentionTile{{path: Fma, own: 64, other: 64, n: 4}, {path: Fma, own: 32, other: 32, n: 2}, {path: Fma, own: 16, other: 16, n: 1}}, large)
}

// mmaTiles are the candidates on tensor cores: the registers of a thread grow with the depth.
func (a *attention) mmaTiles(kind attentionKind) []attentionTile {
	// Where the sums take most registers, a step has fewer scores.
	room := 256 - a.registers(kind, attentionTile{path: Mma, fragments: 1})
	each := 2
	if kind == forwardAttention {
		each = 1
		room -= 17 // the state of the softmax: with 64 scores a step beside sums of depth 256 it spills on sm_100
	}
	long := 64
	for long > 16 && each*long/2 > room {
		long /= 2
	}
	var out []attentionTile
	if kind == forwardAttention && max(a.Depth, a.Value) <= 64 && a.extras() == 0 {
		out = append(out, attentionTile{path: Mma, own: 128, other: 64, fragments: 2})
	}
	return append(out, attentionTile{path: Mma, own: 128, other: long, fragments: 1}, attentionTile{path: Mma, own: 64, other: long, fragments: 1}, attentionTile{path: Mma, own: 64, other: 16, fragments: 1})
}

// Attends reports whether m has kernels for o, a dm.attention of any number of
// queries and keys, and for its gradient; in half precision, on tensor cores.
func Attends(o *ir.Op, m *machine.Machine) bool {
	q, v := o.In(0), o.In(2)
	depth, known := q.Shape[q.Rank()-1].Int()
	value, known2 := v.Shape[v.Rank()-1].Int()
	if !known || !known2 || depth < 1 || value < 1 {
		return false
	}
	a := newAttention(kernel.Attention{Op: o, Depth: depth, Value: value, Dropout: op.Float(o, "dropout")}, nil)
	if len(o.Operands) > 3 {
		a.Mask = o.Operands[3]
	}
	if a.elem.Bytes() < 4 && !a.tensorCores() {
		return false
	}
	kinds := []attentionKind{forwardAttention, gradOfQueries, gradOfKeys}
	if a.Mask != nil {
		kinds = append(kinds, gradOfMask)
	}
	for _, kind := range kinds {
		if len(a.tiles(kind, m)) == 0 {
			return false
		}
	}
	return true
}

// wgmmaTile is the tile of an attention on Hopper's warpgroup products: three
// warpgroups that multiply where the queries occupy most multiprocessors and 160
// registers hold a thread's sums, scores and probabilities, else two of 240, and as many
// keys as registers and shared memory have room for. It is false of other element types,
// and where tensor maps cannot copy an operand (box).
func (a *attention) wgmmaTile(m *machine.Machine) (attentionTile, bool) {
	t := attentionTile{path: Wgmma, own: 192, other: int(min(128, ceil(a.Keys, 16)*16)), stages: 2}
	value := int((a.Value + 15) / 16 * 16)
	if !a.tensorCores() || a.tf32 || !a.copied(0, 1, 2) {
		return t, false
	}
	others := 40 + a.extras()*42 // addresses, descriptors, the state of the softmax
	registers := func() int { return value/2 + t.other*3/4 + others }
	if registers() > 168 || a.extras() > 0 || a.Queries <= 128 || 2*a.blocks(forwardAttention, t) <= int64(m.SMs) {
		t.own = 128
	}
	for t.other > 16 && (t.own == 128 && registers() > 224 || a.shared(forwardAttention, t) > m.SharedMemory) {
		t.other -= 16
	}
	return t, a.shared(forwardAttention, t) <= m.SharedMemory
}

// wgmmaGradient is the tile of one kernel of the gradient on warpgroup products, of
// 128 rows, under the same conditions, and where registers leave room for 32 rows of the
// other side.
func (a *attention) wgmmaGradient(kind attentionKind, m *machine.Machine) (attentionTile, bool) {
	t := attentionTile{path: Wgmma, own: 128, other: 128, stages: 2, gradient: true}
	if kind == gradOfMask || !a.tensorCores() || a.tf32 || !a.copied(0, 1, 2, 5) {
		return t, false
	}
	padded := func(n int64) int { return int(n+15) / 16 * 16 }
	sums := padded(a.Depth)
	if kind == gradOfKeys {
		if sums += padded(a.Value); a.separate() {
			sums = max(padded(a.Depth), padded(a.Value))
		}
	}
	// Two sums of scores, and what is multiplied again. With more registers than this ptxas makes products wait for each other.
	for t.other > 16 && (sums/2+t.other*3/2+a.extras()*42 > 208 || a.shared(kind, t) > m.SharedMemory) {
		t.other -= 16
	}
	return t, t.other >= 32 && a.shared(kind, t) <= m.SharedMemory
}

// attentionTile is that of wgmma where there is one, else the first tile that fits
// into shared memory and gives every multiprocessor a block; where there is none the one
// with the most blocks.
func (t Target) attentionTile(a *attention, kind attentionKind) (attentionTile, error) {
	var best attentionTile
	var most int64
	tiles := a.tiles(kind, t.Machine)
	if t.Arch == "sm_90a" {
		of := a.wgmmaTile
		if kind != forwardAttention {
			of = func(m *machine.Machine) (attentionTile, bool) { return a.wgmmaGradient(kind, m) }
		}
		if c, ok := of(t.Machine); ok {
			tiles = []attentionTile{c}
		}
	}
	for _, c := range tiles {
		n := a.blocks(kind, c)
		if n > most {
			best, most = c, n
		}
		if n >= int64(t.Machine.SMs) {
			break
		}
	}
	if most == 0 {
		return best, fmt.Errorf("attention of depths %d and %d does not fit in the shared memory of %s", a.Depth, a.Value, t.Machine.Name)
	}
	if most > 1<<31-1 {
		return best, fmt.Errorf("%d tiles exceed the limit of a launch", most)
	}
	return best, nil
}

func (a *attention) blocks(kind attentionKind, t attentionTile) int64 {
	queries, keys := ceil(a.Queries, int64(t.own)), ceil(a.Keys, int64(t.own))
	if t.path == Fused {
		return a.Heads / a.Group * int64(t.cluster)
	}
	switch kind {
	case gradOfKeys:
		return keys * a.Heads / a.Group
	case gradOfMask:
		n := a.maskHeads()
		if a.MaskShape[len(a.Batch)] > 1 {
			n *= queries
		}
		if a.MaskShape[len(a.Batch)+1] > 1 {
			n *= keys
		}
		return n
	}
	return queries * a.Heads
}

// attentionSplits is the number of blocks that a tile's keys are split over,
// each with at least two steps.
func (t Target) attentionSplits(a *attention, tile attentionTile) int64 {
	idle := int64(t.Machine.SMs) / a.blocks(forwardAttention, tile)
	return max(1, min(16, idle, ceil(a.Keys, int64(tile.other))/2))
}
