package kernel

import (
	"math/rand/v2"
	"testing"
)

// Whatever is simplified, an index has the value that its definition gives it:
// reshapes of reshapes, to and fro, at every element.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		factors := []int64{2, 3, 4, 2, 5}
		r.Shuffle(len(factors), func(i, j int) { factors[i], factors[j] = factors[j], factors[i] })
		shape := func() []int64 { // the factors, in random groups
			var out []int64
			for _, f := range factors {
				if len(out) > 0 && r.IntN(2) == 0 {
					out[len(out)-1] *= f
				} else {
					out = append(out, f)
				}
				if r.IntN(6) == 0 {
					out = append(out, 1)
				}
			}
			return out
		}
		s := newSpace()
		v := []int64{1, 1, 2, 4}[r.IntN(4)]
		lane := s.Loop("lane", v)
		step, x := s.wide("i", Product(factors), v, lane)
		from := shape()
		idx := s.Unlinear(x, from)
		type reshape struct{ from, to []int64 }
		var done []reshape
		for range r.IntN(4) {
			r.Shuffle(len(factors), func(i, j int) { factors[i], factors[j] = factors[j], factors[i] })
			to := shape()
			idx = s.Unlinear(Linear(idx, from), to)
			done = append(done, reshape{from, to})
			from = to
		}
		for range 8 {
			at := map[*Atom]int64{lane: r.Int64N(v)}
			n := at[lane]
			if step != nil {
				at[step] = r.Int64N(Product(factors) / v)
				n += at[step] * v
			}
			for d := len(from) - 1; d >= 0; d-- {
				if got := idx[d].Value(at); got != n%from[d] {
					t.Fatalf("%v: dimension %d of %v is %d, want %d", done, d, from, got, n%from[d])
				}
				n /= from[d]
			}
			if lo, hi := Linear(idx, from).Bounds(); lo < 0 || hi >= Product(factors) {
				t.Fatalf("%v: bounds %d and %d", done, lo, hi)
			}
		}
	}
}

// A value that is reshaped and read back is read where it was.
func TestIndexRejoins(t *testing.T) {
	s := newSpace()
	i := s.Loop("i", 24*64)
	there := s.Unlinear(IndexOf(i), []int64{4, 6, 64})
	if got := Linear(s.Unlinear(Linear(there, []int64{4, 6, 64}), []int64{8, 3, 64}), []int64{8, 3, 64}); !got.Equal(IndexOf(i)) {
		t.Errorf("%+v is not the number of the element", got)
	}
}

// Along the longest run of an operand whose dimensions are in another order, its place
// grows by one, and the run has the dimensions that follow each other in both.
func TestLongestRun(t *testing.T) {
	for _, c := range []struct {
		from, order []int64 // dimension d of the result is order[d] of the operand
		stride, n   int64
	}{
		{[]int64{6, 4}, []int64{1, 0}, 6, 4},
		{[]int64{2, 8, 3, 5}, []int64{0, 2, 3, 1}, 8, 15},
		{[]int64{2, 3, 5, 8}, []int64{0, 3, 1, 2}, 15, 8},
		{[]int64{2, 6, 4, 8}, []int64{0, 2, 3, 1}, 6, 32},
		{[]int64{4, 5, 6}, []int64{2, 1, 0}, 20, 6},
		{[]int64{4, 5, 6}, []int64{0, 1, 2}, 1, 120},
	} {
		s := newSpace()
		to := make([]int64, len(c.from))
		for d, k := range c.order {
			to[d] = c.from[k]
		}
		i := s.Loop("i", Product(to))
		idx, at := s.Unlinear(IndexOf(i), to), make([]Index, len(to))
		for d, k := range c.order {
			at[k] = idx[d]
		}
		x := Linear(at, c.from)
		stride, n := x.LongestRunOf(i)
		if stride != c.stride || n != c.n {
			t.Errorf("%v of %v: a run of %d by %d, want %d by %d", c.order, c.from, n, stride, c.n, c.stride)
		}
		for k := range i.Max + 1 - stride {
			if k/stride%n < n-1 && x.Value(map[*Atom]int64{i: k + stride}) != x.Value(map[*Atom]int64{i: k})+1 {
				t.Errorf("%v of %v: no run at %d", c.order, c.from, k)
			}
		}
	}
}
