package interp

import (
	"math"
	"math/rand/v2"
	"testing"
)

// What powers of float32 numbers are without math.Pow is what they are with it, bit for bit.
func TestPow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	bits := []uint32{0, 1, 0x80000000, 0x80000001, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x00800000}
	for range 20_000 {
		bits = append(bits, r.Uint32())
	}
	for _, b := range bits {
		x := float64(math.Float32frombits(b))
		for _, y := range []float64{-2, -1, 0, 0.5, 1, 2, 3, 4} {
			got, want := pow(x, y), math.Pow(x, y)
			if math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Fatalf("%v to the power of %v is %v, want %v", x, y, got, want)
			}
		}
	}
}
