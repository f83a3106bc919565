package tensor

import (
	"math"
	"math/bits"
	"runtime"
	"sync"

	"dmir/dialect/random"
	"dmir/dialect/types"
)

// Bits is 64 random bits for position i of stream number stream of seed. It is
// a pure function of its arguments (counter-based: the finaliser of SplitMix64,
// Steele, Lea and Flood, OOPSLA 2014, over a key of seed and stream), so that
// results depend neither on the order in which elements are computed nor on the
// number of threads.
func Bits(seed, stream, i uint64) uint64 { return NewStream(seed, stream).Bits(i) }

// Stream is one stream of one seed, for loops over its positions.
type Stream uint64

// NewStream is stream number stream of seed.
func NewStream(seed, stream uint64) Stream { return Stream(mix(seed + random.Golden*(stream+1))) }

// SeedOf is the seed of a step.
func SeedOf(seed, step uint64) uint64 { return Bits(seed, random.Step, step) }

// Bits is the 64 random bits at position i.
func (s Stream) Bits(i uint64) uint64 { return mix(uint64(s) + random.Golden*(i+1)) }

// Half is 32 random bits for position i: two positions share Bits of i/2, of
// which the even one has the lower half.
func (s Stream) Half(i uint64) uint32 { return uint32(s.Bits(i/2) >> (i % 2 * 32)) }

// Uniform32 is a number in [0, 1) with 24 random bits.
func (s Stream) Uniform32(i uint64) float32 { return float32(s.Half(i)>>8) * 0x1p-24 }

// Threshold is the t such that position i is kept if Half(i) >= t, with
// probability 1 - rate, to a multiple of 2^-32.
func Threshold(rate float64) uint64 { return uint64(math.Ceil(rate * 0x1p32)) }

// Keep sets keep to 1 for each kept position from first on, else to 0.
func (s Stream) Keep(keep []uint8, first, threshold uint64) {
	one := func(half uint64) uint8 {
		// The borrow of a subtraction, because a branch on noise is slow.
		_, dropped := bits.Sub64(half, threshold, 0)
		return 1 - uint8(dropped)
	}
	if first%2 == 1 && len(keep) > 0 {
		keep[0] = one(uint64(s.Half(first)))
		keep, first = keep[1:], first+1
	}
	for ; len(keep) >= 2; keep, first = keep[2:], first+2 {
		b := s.Bits(first / 2)
		keep[0], keep[1] = one(b&(1<<32-1)), one(b>>32)
	}
	if len(keep) > 0 {
		keep[0] = one(uint64(s.Half(first)))
	}
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * random.MixFirst
	z = (z ^ z>>27) * random.MixSecond
	return z ^ z>>31
}

// Uniform is a number in [0, 1) with 53 random bits.
func Uniform(seed, stream, i uint64) float64 {
	return float64(Bits(seed, stream, i)>>11) * 0x1p-53
}

// Normal is a standard normal number (Box and Muller, 1958): elements 2k and
// 2k+1 are the cosine and the sine of one pair of uniform numbers.
func Normal(seed, stream, i uint64) float64 {
	cos, sin := NewStream(seed, stream).normals(i &^ 1)
	if i&1 == 1 {
		return sin
	}
	return cos
}

// normals are the standard normal numbers at positions k, which is even, and k+1.
func (s Stream) normals(k uint64) (cos, sin float64) {
	r := math.Sqrt(-2 * math.Log(1-float64(s.Bits(k)>>11)*0x1p-53))
	sin, cos = math.Sincos(2 * math.Pi * (float64(s.Bits(k|1)>>11) * 0x1p-53))
	return r * cos, r * sin
}

// eachNormal calls set with the standard normal number at each position of [lo, hi).
func (s Stream) eachNormal(lo, hi int, set func(i int, v float64)) {
	for i := lo &^ 1; i < hi; i += 2 {
		cos, sin := s.normals(uint64(i))
		if i >= lo {
			set(i, cos)
		}
		if i+1 < hi {
			set(i+1, sin)
		}
	}
}

// Random is a tensor of pseudo-random elements: standard normal for
// floating-point types; 0 … 9 for integers, which are valid indices of small
// tables, wrapped in an i4; 0 or 1 with equal probability for i1. The same seed, stream and shape
// give the same tensor everywhere.
func Random(elem types.Elem, shape []int, seed, stream uint64) *Tensor {
	t := New(elem, shape...)
	s := NewStream(seed, stream)
	parallel(t.Len(), 1<<14, func(lo, hi int) { s.Fill(t, lo, hi) })
	return t
}

// Fill sets elements [lo, hi) of t to those of [Random].
func (s Stream) Fill(t *Tensor, lo, hi int) {
	switch t.Kind() {
	case KindF32:
		s.eachNormal(lo, hi, func(i int, v float64) { t.F32[i] = Round64(t.Elem, v) })
	case KindF64:
		s.eachNormal(lo, hi, func(i int, v float64) { t.F64[i] = v })
	case KindInt:
		for i := lo; i < hi; i++ {
			t.Int[i] = Wrap(t.Elem, int64(float64(s.Bits(uint64(i))>>11)*0x1p-53*10))
		}
	case KindBool:
		for i := lo; i < hi; i++ {
			t.Bool[i] = uint8(s.Bits(uint64(i)) >> 63)
		}
	}
}

// parallel calls f for parts of [0, n), none smaller than grain but the last,
// on all cores.
func parallel(n, grain int, f func(lo, hi int)) {
	workers := min(runtime.GOMAXPROCS(0), (n+grain-1)/grain)
	if workers <= 1 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { f(n*w/workers, n*(w+1)/workers) })
	}
	wg.Wait()
}
