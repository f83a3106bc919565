package units

import (
	"math"
	"testing"

	"dmir/dialect/dim"
)

func TestBytes(t *testing.T) {
	cases := []struct {
		n    int64
		want string
	}{
		{0, "0 B"},
		{1, "1 B"},
		{999, "999 B"},
		{1000, "1.00 kB"},
		{1004, "1.00 kB"},
		{1005, "1.01 kB"}, // half goes up, exactly
		{9994, "9.99 kB"},
		{9995, "10.0 kB"},
		{99_949, "99.9 kB"},
		{99_950, "100 kB"},
		{999_499, "999 kB"},
		{999_500, "1.00 MB"},
		{999_600, "1.00 MB"},
		{16_777_216, "16.8 MB"},
		{50_331_648, "50.3 MB"},
		{117_440_512, "117 MB"},
		{1_200_000_000, "1.20 GB"},
		{math.MaxInt64, "9.22 EB"},
		{math.MinInt64, "-9.22 EB"},
		{-1, "-1 B"},
		{-999_600, "-1.00 MB"},
	}
	for _, c := range cases {
		if got := Bytes(c.n); got != c.want {
			t.Errorf("Bytes(%d) = %q, want %q", c.n, got, c.want)
		}
	}
}

func TestFLOP(t *testing.T) {
	for n, want := range map[int64]string{0: "0 FLOP", 512: "512 FLOP", 34_359_738_368: "34.4 GFLOP", 8_589_934_592: "8.59 GFLOP", 16_777_216: "16.8 MFLOP"} {
		if got := FLOP(n); got != want {
			t.Errorf("FLOP(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestTime(t *testing.T) {
	cases := []struct {
		ns   float64
		want string
	}{
		{0, "0 s"},
		{0.0004, "<1 ps"},
		{0.5, "500 ps"},
		{0.9996, "1.00 ns"},
		{1, "1.00 ns"},
		{999.4, "999 ns"},
		{999.6, "1.00 µs"},
		{12_345, "12.3 µs"},
		{34_741.9, "34.7 µs"},
		{1e6, "1.00 ms"},
		{6.71e6, "6.71 ms"},
		{999_600_000, "1.00 s"},
		{59e9, "59.0 s"},
		{3600e9, "3600 s"},
		{-12_345, "-12.3 µs"},
		{math.NaN(), "?"},
		{math.Inf(1), "?"},
	}
	for _, c := range cases {
		if got := Time(c.ns); got != c.want {
			t.Errorf("Time(%v) = %q, want %q", c.ns, got, c.want)
		}
		if got, err := Parse(c.want, "s"); c.ns >= 0.5 && (err != nil || math.Abs(got*1e9/c.ns-1) > 0.005) && !math.IsInf(c.ns, 0) {
			t.Errorf("Parse(%q) = %v, %v; want %v ns", c.want, got, err, c.ns)
		}
	}
}

func TestRatesAndShares(t *testing.T) {
	cases := []struct{ got, want string }{
		{Intensity(292.57), "293 FLOP/B"},
		{Intensity(0.25), "0.250 FLOP/B"},
		{Intensity(0), "0 FLOP/B"},
		{Intensity(42.1), "42.1 FLOP/B"},
		{Intensity(12345), "12.3 kFLOP/B"},
		{Bandwidth(4.8e12), "4.80 TB/s"},
		{Rate(989e12), "989 TFLOP/s"},
		{Count(7_038_000_000), "7.04 G"},
		{Count(64), "64"},
		{Count(1024), "1.02 k"},
		{Count(0.125), "0.125"},
		{Percent(1, 3), "33.3 %"},
		{Percent(0, 3), "0 %"},
		{Percent(3, 3), "100 %"},
		{Percent(9996, 10000), "100 %"},
		{Percent(1, 0), "0 %"},
		{Percent(-1, 4), "-25.0 %"},
	}
	for _, c := range cases {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestFormulas(t *testing.T) {
	b, n := dim.Sym("b"), dim.Sym("n")
	cases := []struct{ got, want string }{
		{DimBytes(b.Mul(n).Scale(2)), "2*b*n B"},
		{DimFLOP(n.Mul(n).Add(dim.Const(3))), "n^2 + 3 FLOP"},
		{DimBytes(dim.Const(16_777_216)), "16.8 MB"},
		{DimBytes(dim.Const(math.MaxInt64).Add(dim.Const(1))), "over 9.22 EB"},
	}
	for _, c := range cases {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	good := []struct {
		text, unit string
		want       float64
	}{
		{"4.8 TB/s", "B/s", 4.8e12},
		{"989 TFLOP/s", "FLOP/s", 989e12},
		{"227 KiB", "B", 227 * 1024},
		{"1.2GB", "B", 1.2e9},
		{"4096 B", "B", 4096},
		{"1_000 kB", "B", 1e6},
		{"500 ns", "s", 500e-9},
		{"2 µs", "s", 2e-6},
		{"2 us", "s", 2e-6},
		{"4.8e12 B/s", "B/s", 4.8e12},
		{" 3 GB ", "B", 3e9},
	}
	for _, c := range good {
		got, err := Parse(c.text, c.unit)
		if err != nil || math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("Parse(%q, %q) = %v, %v; want %v", c.text, c.unit, got, err, c.want)
		}
	}
	for _, text := range []string{"", "GB", "3 GX", "3 XB", "x3 GB", "3 GB 4", "1e999 B", "--3 B", "3 GB/s", "70", "0"} {
		if x, err := Parse(text, "B"); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, x)
		}
	}
	if _, err := Parse(" 50", "s"); err == nil || err.Error() != `" 50" has no unit; write "50 ms", "50 µs", "50 ns", "50 s"` {
		t.Errorf("a number without its unit: %v", err)
	}
	for _, text := range []string{"-1 B", "20 EB"} {
		if x, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %v, want an error", text, x)
		}
	}
}
