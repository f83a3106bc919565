package microbatch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/partition"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// axis is the axis of the mesh in time.
const axis = "micro"

// batch is a step divided over micro-batches.
type batch struct {
	*partition.Division
	whole  *ir.Func                      // of whole tensors, without shardings; composite ops are expanded in it
	stated map[*ir.Value]*types.Sharding // of values of whole
	place  map[*ir.Op]int                // of ops of whole before it was expanded: in its body, that of the op around them
	shared int64                         // FLOP of contractions that are not of one micro-batch
	divide map[*ir.Value]int             // arguments of whole that are divided: the dimension
}

// root is the op of whole, before it was expanded, that an op of the divided function was made for; nil for those
// that only hand results on.
func (b *batch) root(o *ir.Op) *ir.Op {
	at := b.From[o]
	for at != nil && b.Expanded[at] != nil {
		at = b.Expanded[at]
	}
	return at
}

// shardingOf is what the text states of the whole value v.
func (b *batch) shardingOf(v *ir.Value) *types.Sharding {
	for v != nil {
		if s := b.stated[v]; s != nil {
			return s
		}
		v = b.Renamed[v]
	}
	return nil
}

// candidate is a dimension of an argument along which the batch may lie.
type candidate struct {
	arg, dim int
	size     int64
}

// mostTried bounds how many candidates are divided.
const mostTried = 16

// divide divides f over n micro-batches, or, for one, over as few as there can be.
//
// The batch is found unless k names it: it is the first dimension of the largest argument of data that can be divided so
// that parts of micro-batches meet only in reductions; other arguments follow by propagation. Arguments of data are
// those that are no state; see carried.
func divide(f *ir.Func, n int, k Known) (*batch, *shard.Problem) {
	only, most := k.Data, int64(math.MaxInt64)
	if unknown(f, k) {
		if c := independent(f); c != nil {
			kept := initialized(f)
			if n == 1 {
				return attempt(f, *c, smallestFactor(c.size), kept)
			}
			if !Fits(c.size, int64(n)) {
				return nil, indivisible(f, *c, n)
			}
			return attempt(f, *c, int64(n), kept)
		}
		only = notWeights(f)
	}
	if only != nil {
		most = products(f) / mostShared
	}
	var first *shard.Problem
	for _, kept := range carried(f, k) {
		b, problem := divideBut(f, n, kept, only, most)
		if b != nil {
			return b, nil
		}
		if first == nil {
			first = problem
		}
		if uneven(f, n, kept, only, most) {
			break
		}
	}
	return nil, first
}

// uneven reports whether f has a batch in this reading that n micro-batches do not divide evenly. No less likely reading
// is tried then: it would divide a weight, and each micro-batch would wait for all others.
func uneven(f *ir.Func, n int, kept, only []bool, most int64) bool {
	if n == 1 {
		return false
	}
	b, _ := divideBut(f, 1, kept, only, most)
	return b != nil && b.shared == 0
}

// divideBut is divide where the arguments kept are no data, and, unless it is nil, one of only has samples, which leave most
// FLOP of contractions to be done once.
func divideBut(f *ir.Func, n int, kept, only []bool, most int64) (*batch, *shard.Problem) {
	var first *shard.Problem
	note := func(p *shard.Problem) {
		if first == nil {
			first = p
		}
	}
	tried := 0
	var best *batch
	for _, c := range candidates(f, kept, initialized(f), nil) {
		if only != nil && !only[c.arg] {
			continue
		}
		parts := int64(n)
		if n == 1 {
			parts = smallestFactor(c.size)
		}
		if parts < 2 || !Fits(c.size, parts) {
			note(indivisible(f, c, n))
			continue
		}
		if tried++; tried > mostTried {
			break
		}
		b, problem := attempt(f, c, parts, kept)
		if problem != nil {
			note(problem)
			continue
		}
		// Along a dimension that is no batch, as the features of an input, ops behind the first sum are the same for
		// all micro-batches.
		b.shared = shared(newWriter(f, b, n))
		if b.shared > most {
			note(&shard.Problem{
				At: f.Op, Msg: fmt.Sprintf("most products do not have dimension %d of %s", c.dim, f.Args[c.arg].Name),
				Help: "hand the data to the step as an argument of its own",
			})
			continue
		}
		if best == nil || b.shared < best.shared {
			best = b
		}
		if best.shared == 0 {
			break
		}
	}
	if best != nil {
		return best, nil
	}
	if first == nil {
		first = &shard.Problem{
			At:   f.Op,
			Msg:  fmt.Sprintf("no argument of @%s is a batch: each is state or has no dimensions", f.Name),
			Help: "hand the data to the step as an argument of its own, without dm.init and dm.stddev, whose next value no result is",
		}
	}
	return nil, first
}

// indivisible is the problem of a candidate that n micro-batches do not divide.
func indivisible(f *ir.Func, c candidate, n int) *shard.Problem {
	return &shard.Problem{
		At:   f.Op,
		Msg:  fmt.Sprintf("dimension %d of %s has %d elements: of %d micro-batches, with %d each but for the last, some would have none", c.dim, f.Args[c.arg].Name, c.size, n, Each(c.size, int64(n))),
		Help: "state " + op.MicrobatchesAttr + " as " + choices(c.size),
	}
}

// Fits reports whether each of n micro-batches has some of size rows, where all but the last one have equally many (Each).
func Fits(size, n int64) bool { return dim.Shared(size, n) }

// Each is how many of size rows a micro-batch has, of n; the last one may have fewer, and is padded.
func Each(size, n int64) int64 { return dim.Share(size, n) }

func smallestFactor(n int64) int64 {
	for k := int64(2); k*k <= n; k++ {
		if n%k == 0 {
			return k
		}
	}
	return n
}

// choices are numbers of micro-batches that n rows make, as text.
func choices(n int64) string {
	var list []string
	for k := int64(1); k <= min(n, mostMicrobatches); k++ {
		if Fits(n, k) {
			list = append(list, fmt.Sprint(k))
		}
	}
	if len(list) > 12 {
		list = append(list[:12], "another divisor of "+fmt.Sprint(n))
	}
	if k := len(list) - 1; k > 0 {
		return strings.Join(list[:k], ", ") + " or " + list[k]
	}
	return list[0]
}

// shared is the FLOP of the contractions that w does once for all micro-batches.
func shared(w *writer) int64 {
	sum := int64(0)
	for _, o := range w.ops {
		if d := op.Of(o); !w.micro[o] && d.Family == op.Contraction && d.FLOP != nil {
			n, _ := d.FLOP(o).Int()
			sum += n
		}
	}
	return sum
}

// Known is what is known of the arguments of a step besides what it states, by their numbers.
type Known struct {
	Updated []bool // that gradients are taken of, or that what is computed of gradients goes into: they are no data
	Data    []bool // that have samples; nil: they are found
}

// carried are readings of f, the likeliest first: the arguments that are no data. Those whose next value a result is
// are none, and where the function states no state, those that are known to be updated and that it initializes; where none
// is known to be updated, also those of a result's type, as weights that are returned or whose gradients are, unless nothing is
// left.
func carried(f *ir.Func, k Known) [][]bool {
	kept := make([]bool, len(f.Args))
	copy(kept, k.Updated)
	if k.Data != nil {
		for i, is := range Carried(f) {
			kept[i] = (kept[i] || is) && !k.Data[i]
		}
		return [][]bool{kept}
	}
	if markState(f, kept) {
		return [][]bool{kept}
	}
	given := initialized(f)
	for i, is := range given {
		kept[i] = kept[i] || is
	}
	if slices.Contains(k.Updated, true) {
		return [][]bool{kept}
	}
	returned := slices.Clone(kept)
	for _, r := range f.Results {
		for i, a := range f.Args {
			t := a.Tensor()
			returned[i] = returned[i] || t != nil && t.Rank() > 0 && types.Equal(plain(t), plain(r))
		}
	}
	switch {
	case len(candidates(f, returned, given, nil)) == 0:
		return [][]bool{kept}
	case slices.Contains(kept, true):
		return [][]bool{returned, kept}
	}
	return [][]bool{returned}
}

// Carried are the arguments of f that it states to be no data: those whose next value a result is, and those that it initializes.
func Carried(f *ir.Func) []bool {
	kept := initialized(f)
	markState(f, kept)
	return kept
}

// markState sets the arguments of f whose next value a result is, and reports whether there are any.
func markState(f *ir.Func, kept []bool) (some bool) {
	for _, i := range op.State(f.Op) {
		if i >= 0 && i < len(kept) {
			kept[i], some = true, true
		}
	}
	return some
}

// initialized are the arguments that f gives values, as weights that a step does not change.
func initialized(f *ir.Func) []bool {
	given := make([]bool, len(f.Args))
	attrs, _ := f.Op.Attr("arg_attrs").(types.Array)
	for i := range min(len(given), len(attrs)) {
		own, _ := attrs[i].(types.Dict)
		given[i] = slices.ContainsFunc(own, func(a types.Named) bool { return a.Name == op.StddevAttr || a.Name == op.InitAttr })
	}
	return given
}

func plain(t types.Type) types.Type {
	x, ok := t.(*types.Tensor)
	if !ok {
		return t
	}
	return x.With(x.Shape...)
}

// candidates are the dimensions of the arguments that are no state: those that are not given first, then those that are not
// behind, the largest first.
func candidates(f *ir.Func, kept, given []bool, behind []int) []candidate {
	bytes := func(i int) int64 {
		n, _ := f.Args[i].Tensor().Bytes().Int()
		return n
	}
	var order []int
	for i, a := range f.Args {
		if !kept[i] && a.Tensor() != nil {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, k int) int {
		if given[i] != given[k] {
			return map[bool]int{true: 1, false: -1}[given[i]]
		}
		if behind != nil && behind[i] != behind[k] {
			return cmp.Compare(behind[i], behind[k])
		}
		return cmp.Compare(bytes(k), bytes(i))
	})
	var out []candidate
	for _, i := range order {
		for d, size := range f.Args[i].Tensor().Shape {
			if n, ok := size.Int(); ok && n > 1 {
				out = append(out, candidate{i, d, n})
			}
		}
	}
	return out
}

// attempt divides f along the dimension of an argument.
func attempt(f *ir.Func, c candidate, n int64, kept []bool) (*batch, *shard.Problem) {
	b := &batch{whole: f.Clone(), stated: map[*ir.Value]*types.Sharding{}, place: map[*ir.Op]int{}, divide: map[*ir.Value]int{}}
	for i, o := range b.whole.Body.Ops {
		ir.Walk([]*ir.Op{o}, func(inner *ir.Op) bool {
			b.place[inner] = i
			return true
		})
	}
	b.strip()
	arg := b.whole.Args[c.arg]
	t := *arg.Tensor()
	t.At.Shard = &types.Sharding{Mesh: types.SymbolOf(axis), Dims: make([]types.Split, t.Rank())}
	t.At.Shard.Dims[c.dim].Axes = []types.Axis{{Name: axis}}
	arg.Type = &t
	on := &mesh.Mesh{Name: axis, Axes: []mesh.Axis{{Name: axis, Size: int(n)}}}
	m := &ir.Module{Ops: []*ir.Op{on.Op()}}
	values, problem := shard.Propagate(m, b.whole)
	if problem != nil {
		return nil, problem
	}
	for i, a := range b.whole.Args {
		l, _ := values.Of(a)
		for d, over := range l.Dims {
			if len(over) == 0 {
				continue
			}
			size, _ := a.Tensor().Shape[d].Int()
			switch {
			case kept[i]:
				return nil, &shard.Problem{
					At: f.Op,
					Msg: fmt.Sprintf("a batch along dimension %d of %s goes through %s, which the step keeps from step to step or initializes",
						c.dim, f.Args[c.arg].Name, f.Args[i].Name),
					Help: "micro-batches are cut along a dimension that only data has",
				}
			case !Fits(size, n):
				return nil, indivisible(f, candidate{i, d, size}, int(n))
			}
			b.divide[a] = d
		}
	}
	if b.Division, problem = partition.Follow(values, b.whole, true); problem != nil {
		return nil, problem
	}
	return b, b.meets(f.Args[c.arg], c.dim)
}

// strip takes the shardings of the whole function away and keeps them for the micro-batches.
func (b *batch) strip() {
	op.ShardingsInTypes(b.whole)
	plain := func(v *ir.Value) {
		if t := v.Tensor(); t != nil && t.At.Shard != nil {
			b.stated[v] = t.At.Shard
			r := *t
			r.At.Shard = nil
			v.Type = &r
		}
	}
	for _, a := range b.whole.Args {
		plain(a)
	}
	ir.WalkValues(b.whole.Body.Ops, plain)
	for i, t := range b.whole.Results {
		if x, ok := t.(*types.Tensor); ok && x.At.Shard != nil {
			r := *x
			r.At.Shard = nil
			b.whole.Results[i] = &r
		}
	}
}

// meets is the problem where micro-batches meet in anything but a reduction of all.
func (b *batch) meets(arg *ir.Value, d int) *shard.Problem {
	var bad *ir.Op
	var inside bool
	ir.Walk(b.Func.Body.Ops, func(o *ir.Op) bool {
		def := op.Of(o)
		loop := o.Parent != b.Func.Body
		if bad == nil && def.Is(op.Collective) && (o.Name != op.AllReduce || loop) {
			bad, inside = o, loop && o.Name == op.AllReduce
		}
		return true
	})
	if bad == nil {
		return nil
	}
	at := bad
	for at.Parent != b.Func.Body {
		at = at.Parent.Region.Op
	}
	at = b.root(at)
	value := b.Of[bad.Operands[0]]
	for value != nil && value.Name == "" && b.Renamed[value] != nil {
		value = b.Renamed[value]
	}
	name := "its operand"
	if value != nil && value.Name != "" {
		name = value.Name
	}
	who := ""
	if at != nil {
		who = "for " + at.Name + ", "
	}
	if inside {
		return &shard.Problem{
			At:   at,
			Msg:  fmt.Sprintf("%swhat the micro-batches of %s have of %s is reduced inside of a loop", who, arg.Name, name),
			Help: "reduce over the batch after the loop, or do without " + op.MicrobatchesAttr,
		}
	}
	return &shard.Problem{
		At:   at,
		Msg:  fmt.Sprintf("%sthe whole batch of %s is needed at once (dimension %d of %s has the samples)", who, name, d, arg.Name),
		Help: "only sums, products and extremes over the batch are accumulated: keep its dimension out of such ops, or do without " + op.MicrobatchesAttr,
	}
}

// groups is over how many devices the text divides the batch, 1 where none, or where micro-batches cannot be rows of
// each of them.
func groups(m *ir.Module, f *ir.Func, b *batch) int64 {
	values, problem := shard.Propagate(m, f)
	if values == nil || problem != nil {
		return 1
	}
	most := int64(1)
	for i, a := range f.Args {
		if d, ok := b.divide[b.whole.Args[i]]; ok {
			l, _ := values.Of(a)
			most = max(most, int64(values.Grid.Count(l.Dims[d])))
		}
	}
	return most
}
