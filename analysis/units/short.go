package units

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The widths of the short forms, in characters.
const (
	ShortTimeWidth  = 6
	ShortBytesWidth = 5
)

// ShortTime is Time for a narrow column, without a space: "34.7µs".
func ShortTime(ns float64) string {
	s := strings.ReplaceAll(Time(ns), " ", "")
	if utf8.RuneCountInString(s) > ShortTimeWidth { // a day and more
		return fmt.Sprintf("%.0es", ns/1e9)
	}
	return s
}

// ShortBytes is Bytes, of a number that is not negative, for a narrow column, without
// a space: two digits, or three before the unit: "5.2kB", "50MB", "503MB".
func ShortBytes(n int64) string {
	u := uint64(n)
	if u < 1000 {
		return strconv.FormatUint(u, 10) + bytePrefixes[0]
	}
	unit, group := uint64(1000), 1
	for (u+unit/2)/unit >= 1000 {
		unit *= 1000
		group++
	}
	if tenths := (u + unit/20) / (unit / 10); tenths < 100 {
		return fmt.Sprintf("%d.%d%s", tenths/10, tenths%10, bytePrefixes[group])
	}
	return strconv.FormatUint((u+unit/2)/unit, 10) + bytePrefixes[group]
}
