// Package units writes and reads quantities the way the whole tool shows them:
// SI prefixes, three significant digits, a space, the unit ("16.8 MB",
// "8.59 GFLOP", "12.3 µs"). Counts below a thousand are exact and a formula is
// printed as it is ("2*b*n B"). Rounding is half away from zero and is done on
// integers wherever the quantity is one, so that no digit depends on floating
// point.
package units

import (
	"math"
	"strconv"
	"strings"

	"dmir/dialect/dim"
)

var (
	bytePrefixes = []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	flopPrefixes = []string{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"}
	timePrefixes = []string{"ps", "ns", "µs", "ms", "s"}
	ratePrefixes = []string{"", "k", "M", "G", "T", "P", "E"}
)

// Bytes is a number of bytes: "0 B", "999 B", "16.8 MB".
func Bytes(n int64) string { return integer(n, bytePrefixes) }

// FLOP is a number of floating-point operations: "8.59 GFLOP".
func FLOP(n int64) string { return integer(n, flopPrefixes) }

// DimBytes is Bytes of a number, and the formula with its unit otherwise.
func DimBytes(d dim.Dim) string { return formula(d, bytePrefixes) }

// DimFLOP is FLOP of a number, and the formula with its unit otherwise.
func DimFLOP(d dim.Dim) string { return formula(d, flopPrefixes) }

// Time is a duration in nanoseconds: "12.3 µs", "0 s"; from 1,000 s on whole seconds.
func Time(ns float64) string {
	switch {
	case math.IsNaN(ns) || math.IsInf(ns, 0):
		return "?"
	case ns == 0:
		return "0 s"
	case ns < 0:
		return "-" + Time(-ns)
	}
	m, e := round3(ns)
	e += 3 // in picoseconds
	if e+2 >= 15 {
		return strconv.FormatFloat(ns/1e9, 'f', 0, 64) + " s"
	}
	if e+2 < 0 {
		return "<1 ps"
	}
	return scaled(m, e, timePrefixes)
}

// Intensity is FLOP per byte moved: "42.1 FLOP/B".
func Intensity(flopPerByte float64) string { return float(flopPerByte) + "FLOP/B" }

// Bandwidth is a number of bytes per second: "4.80 TB/s".
func Bandwidth(bytesPerSecond float64) string { return float(bytesPerSecond) + "B/s" }

// Count is a number without a unit: "7.04 G", "12", "0.125".
func Count(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strings.TrimSpace(float(x))
}

// Work is a number of floating-point operations that may be above what FLOP takes: "1.19 ZFLOP".
func Work(flop float64) string { return float(flop) + "FLOP" }

// Rate is a number of floating-point operations per second: "989 TFLOP/s".
func Rate(flopPerSecond float64) string { return float(flopPerSecond) + "FLOP/s" }

// Percent is part of whole in percent with at most three digits: "33.4 %",
// "100 %". It is "0 %" where the whole is 0.
func Percent(part, whole float64) string {
	if whole == 0 || math.IsNaN(part/whole) || math.IsInf(part/whole, 0) {
		return "0 %"
	}
	p := 100 * part / whole
	digits := 1
	if math.Abs(p) >= 99.95 || p == 0 {
		digits = 0
	}
	return strconv.FormatFloat(p, 'f', digits, 64) + " %"
}

func formula(d dim.Dim, prefixes []string) string {
	if d.Overflow() {
		return "over " + integer(math.MaxInt64, prefixes)
	}
	if n, ok := d.Int(); ok {
		return integer(n, prefixes)
	}
	return d.String() + " " + prefixes[0]
}

func integer(n int64, prefixes []string) string {
	sign, u := "", uint64(n)
	if n < 0 {
		sign, u = "-", -u
	}
	if u < 1000 {
		return sign + strconv.FormatUint(u, 10) + " " + prefixes[0]
	}
	pow, e := uint64(10), 1
	for u/pow >= 1000 {
		pow *= 10
		e++
	}
	m := u / pow
	if rest := u % pow; rest >= pow-rest {
		m++
	}
	return sign + scaled(m, e, prefixes)
}

// float prints x with its prefix but without the unit, which follows directly.
func float(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "? "
	case x == 0:
		return "0 "
	case x < 0:
		return "-" + float(-x)
	}
	m, e := round3(x)
	if e < -2 {
		return strconv.FormatFloat(x, 'f', min(-e, 9), 64) + " "
	}
	return scaled(m, e, ratePrefixes)
}

// round3 writes x > 0 as m·10^e with 100 ≤ m ≤ 999.
func round3(x float64) (m uint64, e int) {
	s := strconv.FormatFloat(x, 'e', 2, 64) // d.dde±xx
	m = uint64(s[0]-'0')*100 + uint64(s[2]-'0')*10 + uint64(s[3]-'0')
	e, _ = strconv.Atoi(s[5:])
	return m, e - 2
}

// scaled prints m·10^e, 100 ≤ m ≤ 1000, with the prefix that leaves one to
// three digits before the point.
func scaled(m uint64, e int, prefixes []string) string {
	if m == 1000 {
		m, e = 100, e+1
	}
	group := (e + 2) / 3
	if group >= len(prefixes) {
		group = len(prefixes) - 1
	}
	s := strconv.FormatUint(m, 10)
	switch point := e + 3 - 3*group; {
	case point < 3:
		s = s[:point] + "." + s[point:]
	case point > 3:
		s += "000000000000000000"[:point-3]
	}
	return s + " " + prefixes[group]
}
