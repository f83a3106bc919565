package kernel

import (
	"math/rand/v2"
	"testing"
)

// value is x where the variables have the values of at.
func value(x Index, at map[*Atom]int64) int64 {
	n := x.C
	for _, t := range x.Terms {
		var v int64
		switch a := t.Atom; a.Kind {
		case Var:
			v = at[a]
		case Div:
			v = value(a.X, at) / a.N
		case Mod:
			v = value(a.X, at) % a.N
		case Within:
			v = value(a.X, at)
		}
		n += t.Coef * v
	}
	return n
}

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
				if got := value(idx[d], at); got != n%from[d] {
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
		t.Errorf("%s is not the number of the element", got.key())
	}
}
