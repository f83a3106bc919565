package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var decimal = map[string]float64{
	"": 1, "p": 1e-12, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3,
	"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50,
}

// Parse reads a quantity such as "4.8 TB/s", "989 TFLOP/s", "227 KiB" or
// "500 ns" in the base unit given ("B/s", "FLOP/s", "B", "s"). Underscores may
// group digits. The unit is never left out.
func Parse(text, unit string) (float64, error) {
	s := strings.TrimSpace(text)
	end := strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && r != '.' && r != '_' && r != '+' && r != '-'
	})
	// An exponent belongs to the number: "4.8e12 B/s".
	if end > 0 && (s[end] == 'e' || s[end] == 'E') && end+1 < len(s) && strings.ContainsRune("+-0123456789", rune(s[end+1])) {
		end++
		for end < len(s) && strings.IndexByte("+-0123456789", s[end]) >= 0 {
			end++
		}
	}
	number, suffix := s, ""
	if end >= 0 && end < len(s) {
		number, suffix = s[:end], strings.TrimSpace(s[end:])
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(number, "_", ""), 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, fmt.Errorf("%q is not a quantity in %s; write for example %q", text, unit, example[unit])
	}
	if suffix == "" {
		return 0, Unitless(text, unit)
	}
	prefix, ok := strings.CutSuffix(suffix, unit)
	scale, known := decimal[prefix]
	if !ok || !known {
		return 0, fmt.Errorf("%q is not a quantity in %s; write for example %q", text, unit, example[unit])
	}
	return x * scale, nil
}

// Unitless is the error of a number without its unit, which names those that it may have.
func Unitless(text, unit string) error {
	var with []string
	for _, prefix := range usual[unit] {
		with = append(with, strconv.Quote(strings.TrimSpace(text)+" "+prefix+unit))
	}
	return fmt.Errorf("%q has no unit; write %s", text, strings.Join(with, ", "))
}

// usual are the prefixes of a unit that people mostly mean.
var usual = map[string][]string{"B": {"G", "M", "k", ""}, "B/s": {"T", "G"}, "FLOP/s": {"T", "G"}, "s": {"m", "µ", "n", ""}, "Hz": {"G", "M"}}

// ParseBytes reads a non-negative number of bytes: "1.2 GB", "227 KiB", "4096 B".
func ParseBytes(text string) (int64, error) {
	x, err := Parse(text, "B")
	switch {
	case err != nil:
		return 0, err
	case x < 0:
		return 0, fmt.Errorf("%q is negative; a size in bytes is 0 or more", text)
	case x >= math.MaxInt64:
		return 0, fmt.Errorf("%q is more bytes than 64 bits count", text)
	}
	return int64(math.Round(x)), nil
}

var example = map[string]string{
	"B":      "1.2 GB",
	"B/s":    "4.8 TB/s",
	"FLOP/s": "989 TFLOP/s",
	"s":      "500 ns",
	"Hz":     "1.755 GHz",
}
