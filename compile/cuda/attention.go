package cuda

import (
	"fmt"
	"math"
	"strings"

	"dmir/analysis/machine"
	"dmir/compile/kernel"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// attention is the geometry of a dm.attention or dm.attention_grad.
type attention struct {
	o             *ir.Op
	elem, sum     types.Elem // of the operands; of what is computed
	heads, group  int64      // over the whole batch; that share a key head
	queries, keys int64
	depth, value  int64
	scale         float64
	batch         []int64   // the dimensions of the heads
	mask          *ir.Value // nil: none
	maskShape     []int64   // as long as batch, queries and keys together
}

// attentionOf reads o, whose mask is operand number mask.
func attentionOf(o *ir.Op, mask int) (*attention, error) {
	var shapes [3][]int64
	for i := range shapes {
		s, ok := kernel.ShapeOf(o.Operands[i])
		if !ok || len(s) < 2 {
			return nil, fmt.Errorf("%s of a shape that is not known", o.Name)
		}
		shapes[i] = s
	}
	q, k, v := shapes[0], shapes[1], shapes[2]
	n := len(q)
	a := &attention{
		o: o, elem: kernel.ElemOf(o.Operands[0]), sum: types.F32, heads: 1, group: 1,
		queries: q[n-2], keys: k[n-2], depth: q[n-1], value: v[n-1], batch: q[:n-2],
	}
	if a.elem == types.F64 {
		a.sum = types.F64
	}
	a.scale = 1 / math.Sqrt(float64(a.depth))
	if op.Attr(o, "scale") != nil {
		a.scale = op.Float(o, "scale")
	}
	if math.IsInf(a.scale, 0) || math.IsNaN(a.scale) {
		return nil, fmt.Errorf("attention with the scale %g", a.scale)
	}
	keyHeads := int64(1)
	for d := range n - 2 {
		a.heads *= q[d]
		keyHeads *= k[d]
	}
	if keyHeads > 0 {
		a.group = a.heads / keyHeads
	}
	for _, n := range []int64{a.heads, a.queries, a.keys, a.depth, a.value} {
		if n < 1 || n > 1<<30 {
			return nil, fmt.Errorf("attention with a dimension of %d", n)
		}
	}
	if len(o.Operands) > mask {
		a.mask = o.Operands[mask]
		s, _ := kernel.ShapeOf(a.mask)
		for range n - len(s) {
			a.maskShape = append(a.maskShape, 1)
		}
		a.maskShape = append(a.maskShape, s...)
	}
	return a, nil
}

// dropout is the rate; 0 for none.
func (a *attention) dropout() float64 { return max(op.Float(a.o, "dropout"), 0) }

// describe is the prelude's struct of the geometry, called name.
func (a *attention) describe(name string) string {
	var threshold uint64
	keep, rate := 1.0, a.dropout()
	if rate > 0 {
		threshold, keep = tensor.Threshold(rate), 1/(1-rate)
	}
	var row, col, size int64
	at := "0"
	if m := a.maskShape; m != nil {
		n := len(m)
		if size = m[n-2] * m[n-1]; m[n-1] > 1 {
			col = 1
		}
		if m[n-2] > 1 {
			row = m[n-1]
		}
		at = a.parts("head", a.batch, m, func(d int) int64 { return within(m[:n-2], d) * size })
	}
	var b strings.Builder
	fmt.Fprintf(&b, "struct %s {\n", name)
	fmt.Fprintf(&b, "  static constexpr dm::i32 heads = %d, group = %d, queries = %d, keys = %d, depth = %d, value = %d;\n", a.heads, a.group, a.queries, a.keys, a.depth, a.value)
	fmt.Fprintf(&b, "  static constexpr bool causal = %t;\n", op.Bool(a.o, "causal"))
	fmt.Fprintf(&b, "  static constexpr double scale = %s, keep = %s;\n", double(a.scale), double(keep))
	fmt.Fprintf(&b, "  static constexpr dm::u64 seed = %dull, threshold = %dull;\n", uint64(op.Int(a.o, "seed")), threshold)
	fmt.Fprintf(&b, "  static constexpr dm::i64 mask_row = %d, mask_col = %d;\n", row, col)
	fmt.Fprintf(&b, "  DM_FN static dm::i64 mask_at(dm::i32 head) { return %s; }\n", at)
	if a.maskShape != nil {
		fmt.Fprintf(&b, "  static constexpr dm::i32 mask_repeats = %d;\n", a.heads/a.maskHeads())
		fmt.Fprintf(&b, "  DM_FN static dm::i32 mask_head(dm::i32 matrix, dm::i32 repeat) { return %s; }\n", a.maskHead())
	}
	b.WriteString("};\n")
	return b.String()
}

// double is a number in C++, in hexadecimal so that it is exact.
func double(v float64) string { return fmt.Sprintf("%x", v) }

// within is the number of elements of a row-major shape behind dimension d.
func within(shape []int64, d int) int64 {
	n := int64(1)
	for _, k := range shape[d+1:] {
		n *= k
	}
	return n
}

// parts sums the indices into which a row-major number falls, each times a step;
// dimensions in which a mask has size 1 count nothing.
func (a *attention) parts(number string, shape, mask []int64, step func(d int) int64) string {
	var terms []string
	for d, n := range shape {
		if n == 1 || mask[d] == 1 {
			continue
		}
		x := number
		if in := within(shape, d); in > 1 {
			x = fmt.Sprintf("%s / %d", x, in)
		}
		if d > 0 {
			x = fmt.Sprintf("%s %% %d", x, n)
		}
		terms = append(terms, fmt.Sprintf("dm::i64(%s) * %d", x, step(d)))
	}
	if terms == nil {
		return "0"
	}
	return strings.Join(terms, " + ")
}

// maskHeads is the number of matrices of the mask.
func (a *attention) maskHeads() int64 {
	n := int64(1)
	for d := range a.batch {
		n *= a.maskShape[d]
	}
	return n
}

// maskHead is the head that is number `repeat` of those that share `matrix`.
func (a *attention) maskHead() string {
	var kept, rest []int64
	keep, drop := make([]int64, len(a.batch)), make([]int64, len(a.batch))
	for d, n := range a.batch {
		k, r := n, int64(1)
		if a.maskShape[d] == 1 {
			k, r = 1, n
		}
		kept, rest = append(kept, k), append(rest, r)
		keep[d], drop[d] = k, r
	}
	step := func(d int) int64 { return within(a.batch, d) }
	return "dm::i32(" + a.parts("matrix", kept, keep, step) + " + " + a.parts("repeat", rest, drop, step) + ")"
}

// attentionTile is how a kernel of attention is cut: the rows that a block owns
// and the rows of the other side that it takes at a time.
type attentionTile struct {
	own, other int
	fragments  int // of 16 rows for each warp, on tensor cores
	n          int // 16 rows and columns of a thread, on vector units; 0: tensor cores
}

func (t attentionTile) tensor() bool { return t.n == 0 }

func (t attentionTile) threads() int {
	if t.tensor() {
		return t.own / t.fragments / 16 * 32
	}
	return 256
}

func (t attentionTile) String() string {
	if t.tensor() {
		return fmt.Sprintf("dm::AttentionMma<%d, %d, %d>", t.fragments, t.threads()/32, t.other)
	}
	return fmt.Sprintf("dm::AttentionFma<%d>", t.n)
}

// path is the end of the names of the prelude's functions and of its file.
func (t attentionTile) path() string {
	if t.tensor() {
		return "mma"
	}
	return "fma"
}

// pitch is the length of a row of n elements in shared memory (Lines and Wide of
// the prelude).
func (t attentionTile) pitch(n int64, sum types.Elem) int64 {
	padded := (n + 15) / 16 * 16
	switch {
	case !t.tensor():
		return padded + 16/sum.Bytes()
	case padded%64 == 0:
		return padded
	}
	return padded + 8
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
	d, v := t.pitch(a.depth, a.sum), t.pitch(a.value, a.sum)
	own, other := int64(t.own), int64(t.other)
	if t.tensor() {
		if kind == forwardAttention {
			return 2 * max(own*d+2*other*(d+v), own*v)
		}
		return 2*(own+2*other)*(d+v) + 16*other
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

// apart reports whether dk and dv are computed by two kernels, since the sums of
// both are more than a thread's registers.
func (a *attention) apart() bool { return a.tensorCores() && a.depth+a.value > 256 }

// extras counts what takes registers beside the sums and scores.
func (a *attention) extras() (n int) {
	if a.mask != nil {
		n++
	}
	if a.dropout() > 0 {
		n++
	}
	return n
}

// registers of a thread, about: its sums and scores, and addresses.
func (a *attention) registers(kind attentionKind, t attentionTile) int {
	width, sums, scores := int(a.sum.Bytes()/4), ceil(a.value, 16), 1
	switch kind {
	case gradOfQueries:
		sums, scores = ceil(a.depth, 16), 2
	case gradOfKeys:
		sums, scores = ceil(a.depth, 16)+ceil(a.value, 16), 2
		if a.apart() {
			sums = max(ceil(a.depth, 16), ceil(a.value, 16))
		}
	case gradOfMask:
		sums, scores = 0, 3
	}
	more := a.extras() * 42 // addresses and numbers of 64 bits
	if t.tensor() {
		return t.fragments*(int(sums)*8+scores*t.other/2) + 80 + more
	}
	return t.n*width*(int(sums)+scores*t.n+8) + 56 + more
}

// resident is how many blocks are to share a multiprocessor.
func (a *attention) resident(kind attentionKind, t attentionTile, m *machine.Machine) int {
	perSM := min(int(m.SharedMemory)/(int(a.shared(kind, t))+1024), 65536/(t.threads()*a.registers(kind, t)), 2048/t.threads())
	return max(1, perSM)
}

// tensorCores reports whether tensor cores take the elements.
func (a *attention) tensorCores() bool {
	return (a.elem == types.F16 || a.elem == types.BF16) && a.depth%2 == 0 && a.value%2 == 0 && max(a.depth, a.value) <= 256
}

// attentionTiles are the tiles to choose from, the largest first: what a thread
// holds grows with the depth.
func (a *attention) tiles(kind attentionKind) []attentionTile {
	if !a.tensorCores() || kind == gradOfMask {
		return []attentionTile{{own: 64, other: 64, n: 4}, {own: 32, other: 32, n: 2}, {own: 16, other: 16, n: 1}}
	}
	// Where a thread's sums leave little room it takes fewer scores at a time.
	room := 256 - a.registers(kind, attentionTile{fragments: 1})
	each := 2
	if kind == forwardAttention {
		each = 1
	}
	long := 64
	for long > 16 && each*long/2 > room {
		long /= 2
	}
	var out []attentionTile
	if kind == forwardAttention && max(a.depth, a.value) <= 64 && a.extras() == 0 {
		out = append(out, attentionTile{own: 128, other: 64, fragments: 2})
	}
	return append(out, attentionTile{own: 128, other: long, fragments: 1}, attentionTile{own: 64, other: long, fragments: 1}, attentionTile{own: 64, other: 16, fragments: 1})
}

// tile is the first tile that fits into shared memory and gives every
// multiprocessor a block; where there is none the one with the most blocks.
func (g *generator) attentionTile(a *attention, kind attentionKind) (attentionTile, error) {
	var best attentionTile
	var most int64
	for _, t := range a.tiles(kind) {
		if a.shared(kind, t) > g.target.Machine.SharedMemory {
			continue
		}
		n := a.blocks(kind, t)
		if n > most {
			best, most = t, n
		}
		if n >= int64(g.target.Machine.SMs) {
			break
		}
	}
	if most == 0 {
		return best, fmt.Errorf("attention of depths %d and %d does not fit into the shared memory of %s", a.depth, a.value, g.target.Machine.Name)
	}
	if most > 1<<31-1 {
		return best, fmt.Errorf("%d tiles are more than a launch takes", most)
	}
	return best, nil
}

func (a *attention) blocks(kind attentionKind, t attentionTile) int64 {
	queries, keys := ceil(a.queries, int64(t.own)), ceil(a.keys, int64(t.own))
	switch kind {
	case gradOfKeys:
		return keys * a.heads / a.group
	case gradOfMask:
		n := a.maskHeads()
		if a.maskShape[len(a.batch)] > 1 {
			n *= queries
		}
		if a.maskShape[len(a.batch)+1] > 1 {
			n *= keys
		}
		return n
	}
	return queries * a.heads
}

// attentionLaunch is a launch of one kernel, which takes those of the parameters
// that its body names.
func (g *generator) attentionLaunch(a *attention, kind attentionKind, name string, ns *names, body func(t attentionTile) string) (launch, error) {
	t, err := g.attentionTile(a, kind)
	if err != nil {
		return launch{}, err
	}
	l := launch{
		name: name, class: "attention", threads: t.threads(), shared: int(a.shared(kind, t)), grid: [3]int{int(a.blocks(kind, t)), 1, 1},
		blocks: a.resident(kind, t, g.target.Machine),
		before: a.describe("@_S"), include: "attention.cuh attention_" + t.path() + ".cuh", body: "  DM_ARENA(arena);\n  " + body(t),
	}
	for _, p := range ns.params {
		if mentions(l.body, p.name) {
			l.params = append(l.params, p)
		}
	}
	return l, nil
}

func attentionNames(f *kernel.Form) *names {
	ns := newNames()
	ns.taken["arena"] = true
	for _, v := range f.Inputs {
		ns.add(v, artifact.In)
	}
	for _, v := range f.Outputs {
		ns.add(v, artifact.Out)
	}
	return ns
}

// nameOf is the parameter for result i of o, or the prelude's Nothing.
func (n *names) nameOf(o *ir.Op, i int) string {
	if i < len(o.Results) {
		if s, ok := n.of[o.Results[i]]; ok {
			return s
		}
	}
	return "dm::Nothing{}"
}

// maskName is the parameter for the mask.
func (a *attention) maskName(ns *names) string {
	if a.mask == nil {
		return "dm::Nothing{}"
	}
	return ns.of[a.mask]
}

// attention is one kernel: a block for each tile of queries of each head.
func (g *generator) attention(f *kernel.Form, name string) ([]launch, error) {
	o := f.Main
	a, err := attentionOf(o, 3)
	if err != nil {
		return nil, err
	}
	ns := attentionNames(f)
	l, err := g.attentionLaunch(a, forwardAttention, name, ns, func(t attentionTile) string {
		types := fmt.Sprintf("%s, @_S", t)
		if !t.tensor() {
			types += ", " + register(a.sum)
		}
		return fmt.Sprintf("dm::attention_%s<%s>(arena, %s, %s, %s, %s, %s, %s);\n", t.path(), types,
			ns.of[o.Operands[0]], ns.of[o.Operands[1]], ns.of[o.Operands[2]], a.maskName(ns), ns.nameOf(o, 0), ns.nameOf(o, 1))
	})
	if err != nil {
		return nil, err
	}
	if a.mask != nil && op.Bool(o, "causal") {
		l.differs = "the mask of keys that no query of a tile sees is not read"
	}
	return []launch{l}, nil
}
