package tensor

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"dmir/dialect/types"
)

// Both f8 types have the values and the rounding of ml_dtypes, in literals and in
// execution: to nearest, ties to even, what is too large to infinity or, where there
// is none, NaN. testdata/float8.py wrote the table; gpu/emulator compares the
// conversions of kernels with these.
func TestFloat8(t *testing.T) {
	text, err := os.ReadFile("testdata/float8.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		elem, ok := types.ElemByName(f[0])
		if !ok || len(f) != 4 {
			t.Fatalf("%q", line)
		}
		number, code := f[2], f[3]
		if f[1] == "is" {
			number, code = code, number
		}
		seen[f[0]+f[1]]++
		v, err := strconv.ParseFloat(number, 64)
		bits, err2 := strconv.ParseUint(code, 16, 8)
		if err != nil || err2 != nil {
			t.Fatalf("%q: %v, %v", line, err, err2)
		}
		is := types.FromBits(bits, elem)
		if f[1] == "is" {
			if !sameNumber(is, v) {
				t.Errorf("%s %s is %v, want %v", elem, code, is, v)
			}
			continue
		}
		got := map[string]float64{
			"literal": types.Round(v, elem),
			"bits":    types.FromBits(types.ToBits(v, elem), elem),
			"f64":     float64(Round64(elem, v)),
			"f32":     float64(Round(elem, float32(v))),
		}
		for from, y := range got {
			if !sameNumber(y, is) {
				t.Errorf("%s of %s (%s) is %v, want %v", elem, number, from, y, is)
			}
		}
	}
	if fmt.Sprint(seen) != "map[f8E4M3FNis:256 f8E4M3FNof:770 f8E5M2is:256 f8E5M2of:752]" {
		t.Errorf("the table has %v", seen)
	}
}

// sameNumber holds for equal numbers, zeros of one sign, and two NaNs.
func sameNumber(a, b float64) bool {
	return a != a && b != b || a == b && math.Signbit(a) == math.Signbit(b)
}
