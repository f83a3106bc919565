package units

import (
	"math"
	"testing"
	"unicode/utf8"
)

// The short forms fit their columns and round as the long ones do.
func TestShort(t *testing.T) {
	for _, c := range []struct {
		n    int64
		want string
	}{
		{0, "0B"},
		{999, "999B"},
		{1000, "1.0kB"},
		{1049, "1.0kB"},
		{1050, "1.1kB"}, // half goes up, exactly
		{9949, "9.9kB"},
		{9950, "10kB"},
		{10_500, "11kB"},
		{999_499, "999kB"},
		{999_500, "1.0MB"},
		{50_331_648, "50MB"},
		{999_499_999_999_999_999, "999PB"},
		{999_500_000_000_000_000, "1.0EB"},
		{math.MaxInt64, "9.2EB"},
	} {
		if got := ShortBytes(c.n); got != c.want || len(got) > ShortBytesWidth {
			t.Errorf("%d: %q, want %q", c.n, got, c.want)
		}
	}
	for _, c := range []struct {
		ns   float64
		want string
	}{
		{0, "0s"},
		{1e-9, "<1ps"},
		{34_700, "34.7µs"},
		{999_999, "1.00ms"},
		{99_999e9, "99999s"},
		{5e16, "5e+07s"},
		{math.NaN(), "?"},
	} {
		if got := ShortTime(c.ns); got != c.want || utf8.RuneCountInString(got) > ShortTimeWidth {
			t.Errorf("%g: %q, want %q", c.ns, got, c.want)
		}
	}
}
