package sparse

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Draw stores as many elements of t, whose sizes are numbers, as it has room for, those of
// the pattern p; s is where random numbers are from. The values are 0.
func Draw(t *types.Tensor, p op.Pattern, s tensor.Stream) (*Tensor, error) {
	x, err := draw(t, p, &source{s: s})
	if err != nil {
		return nil, err
	}
	return x, nil
}

func draw(t *types.Tensor, p op.Pattern, s *source) (*Tensor, *Error) {
	l, err := layoutOf(t)
	if err != nil {
		return nil, err
	}
	last := -1 // of the levels whose entries are drawn
	for i, level := range l.levels {
		if level.HasPositions() {
			last = l.chain(i)
		}
	}
	b := &builder{layout: l, count: 1}
	if last >= 0 {
		room, _ := t.Entries()[last].Int()
		if err := b.drawn(last, p, room, s); err != nil {
			return nil, err
		}
	}
	for i := last + 1; i < len(l.levels); i++ {
		b.all(i, s)
	}
	return b.components()
}

// all stores every entry of level i, or of each group as many as it has.
func (b *builder) all(i int, s *source) {
	l := b.levels[i]
	var crd []int64
	if l.Kind == types.StructuredLevel {
		groups := b.size[i] / l.M
		crd = make([]int64, 0, b.count*groups*l.N)
		for range b.count {
			for g := range groups {
				for _, c := range s.distinct(nil, l.M, l.N) {
					crd = append(crd, g*l.M+c)
				}
			}
		}
		b.count = int64(len(crd))
	} else {
		b.count *= b.size[i]
	}
	b.positions, b.indices = append(b.positions, nil), append(b.indices, crd)
}

// drawn stores n entries of the levels up to last. They are drawn as those of a matrix, whose
// rows are the coordinates along the first of their dimensions.
func (b *builder) drawn(last int, p op.Pattern, n int64, s *source) *Error {
	sizes := slices.Clone(b.size[:last+1])
	var outer []int64 // the coordinates that the outermost level has room for
	if first := b.levels[0]; first.HasPositions() && last > 0 && !first.NonUnique {
		if room, _ := b.t.Format.Stored[0].Int(); room < sizes[0] {
			outer, sizes[0] = s.distinct(nil, sizes[0], room), room
		}
	}
	order := make([]int, last+1) // of the levels, as their dimensions and blocks before what is in them
	for i := range order {
		if order[i] = i; b.levels[i].Kind == types.StructuredLevel {
			return problem("store that level as the last one", "no pattern is drawn for level %d, structured, with compressed levels behind it", i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		if d := b.levels[i].Dim - b.levels[j].Dim; d != 0 {
			return d
		}
		return int(b.levels[i].Mod - b.levels[j].Mod)
	})
	rows, cols := int64(1), int64(1)
	row := func(i int) bool { return b.levels[i].Dim == b.levels[order[0]].Dim }
	for _, i := range order {
		of := &cols
		if row(i) {
			of = &rows
		}
		hi, lo := bits.Mul64(uint64(*of), uint64(sizes[i]))
		if *of = int64(lo); hi != 0 || lo > math.MaxInt64 {
			return problem("bind smaller sizes", "no pattern is drawn for %s, whose places are too many to count", b.t)
		}
	}
	if hi, lo := bits.Mul64(uint64(rows), uint64(cols)); hi != 0 || lo > math.MaxInt64/4 {
		return problem("bind smaller sizes", "no pattern is drawn for %s, whose places are too many to count", b.t)
	}
	if n > rows*cols {
		return problem(fmt.Sprintf("bind nnz to %d or less", rows*cols), "%s stores %d entries, but has %d places for them", b.t, n, rows*cols)
	}
	m := &matrix{source: s, rows: rows, cols: cols, row: make([]int64, 0, n), col: make([]int64, 0, n)}
	if err := m.draw(p, n); err != nil {
		return err
	}
	b.at = make([][]int64, last+1)
	for k := len(order) - 1; k >= 0; k-- {
		i := order[k]
		x := m.col
		if row(i) {
			x = m.row
		}
		b.at[i] = make([]int64, n)
		for e, v := range x {
			b.at[i][e], x[e] = v%sizes[i], v/sizes[i]
		}
	}
	for e, c := range b.at[0] {
		if outer != nil {
			b.at[0][e] = outer[c]
		}
	}
	b.node = make([]int64, n)
	b.order = ordered(b.at, b.size[:last+1])
	for i := range last + 1 {
		if err := b.level(i); err != nil {
			return err
		}
	}
	return nil
}

// source is a stream of random numbers.
type source struct {
	s  tensor.Stream
	at uint64
}

// below is a number from 0 on that is less than n.
func (s *source) below(n int64) int64 {
	hi, _ := bits.Mul64(s.s.Bits(s.at), uint64(n))
	s.at++
	return int64(hi)
}

// distinct adds numbers below total to those in have, which rise, until there are n of them: each as
// likely. They rise.
func (s *source) distinct(have []int64, total, n int64) []int64 {
	if n > total/2 { // those that are left out are fewer
		out := s.others(have, total, total-n)
		kept := make([]int64, 0, n)
		for x := range total {
			if len(out) > 0 && out[0] == x {
				out = out[1:]
				continue
			}
			kept = append(kept, x)
		}
		return kept
	}
	for int64(len(have)) < n {
		more := make([]int64, n-int64(len(have)))
		for k := range more {
			more[k] = s.below(total)
		}
		have = merged(have, sorted(more, total))
	}
	return have
}

// others are n numbers below total that are not in have, each as likely.
func (s *source) others(have []int64, total, n int64) []int64 {
	out := s.distinct(nil, total-int64(len(have)), n) // the kth that is free
	i := int64(0)
	for j, k := range out {
		for i < int64(len(have)) && have[i] <= k+i {
			i++
		}
		out[j] = k + i
	}
	return out
}

// sorted are x in order.
func sorted(x []int64, total int64) []int64 {
	p := ordered([][]int64{x}, []int64{total})
	if p == nil {
		return x
	}
	out := make([]int64, len(x))
	for k, i := range p {
		out[k] = x[i]
	}
	return out
}

// merged are the numbers in a or b, which rise, each once.
func merged(a, b []int64) []int64 {
	out := make([]int64, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		var x int64
		if len(b) == 0 || len(a) > 0 && a[0] <= b[0] {
			x, a = a[0], a[1:]
		} else {
			x, b = b[0], b[1:]
		}
		if len(out) == 0 || out[len(out)-1] != x {
			out = append(out, x)
		}
	}
	return out
}
