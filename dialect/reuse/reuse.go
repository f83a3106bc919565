// Package reuse says how often a table whose rows are read by number is read from further away than a
// cache: it holds how long ago each row was read before, and by that how many rows there are among so many
// reads one after the other. The average of these over all windows follows from the times between two reads of one
// row (Denning, The Working Set Model for Program Behavior, 1968; Xiang et al., HOTL, ASPLOS 2013), and the reads
// that miss a cache are those whose row was not in the longest window that fits it.
package reuse

import (
	"math"
	"math/bits"
)

// Grains are the numbers of neighbouring rows that lie in one line of a cache, for which a profile is kept: rows as long as a line, and
// elements of vectors.
var Grains = [...]int64{1, 8, 16}

// Profile is the reads of a table, one after the other.
type Profile struct {
	Reads int64
	By    [len(Grains)]Lines
}

// Lines are the reads of lines of so many rows.
type Lines struct {
	Touched int64 // that are read at all
	// Later are, for k from 0, the reads of lines that were not among the last 2^k reads, the first ones with them. It ends where
	// only those are left.
	Later []int64
}

// Count is the profile of reads of the rows numbered at, from 0 on. Numbers below 0 count as 0. It takes memory for as many rows
// as the largest number says; ok is false where that is more than limit.
func Count(at []int64, limit int64) (p Profile, ok bool) {
	rows := int64(0)
	for _, x := range at {
		rows = max(rows, x+1)
	}
	if rows > limit {
		return p, false
	}
	p.Reads = int64(len(at))
	last := make([]int64, rows)
	for g, grain := range Grains {
		clear(last)
		var between [65]int64 // reads by the bits of the time since the line was read
		l := &p.By[g]
		for i, x := range at {
			line := max(x, 0) / grain
			switch t := int64(i) + 1 - last[line]; {
			case last[line] == 0:
				l.Touched++
			case t > 1:
				between[log2(t-1)+1]++
			}
			last[line] = int64(i) + 1
		}
		left := l.Touched
		for k := len(between) - 1; k > 0; k-- {
			left += between[k]
			if left > l.Touched {
				l.Later = append(l.Later, left)
			}
		}
		for i, j := 0, len(l.Later)-1; i < j; i, j = i+1, j-1 {
			l.Later[i], l.Later[j] = l.Later[j], l.Later[i]
		}
	}
	return p, true
}

// log2 is the logarithm of n, 1 or more, rounded down.
func log2(n int64) int { return bits.Len64(uint64(n)) - 1 }

// missing is the part of the reads whose line was not among the last t, at t = 0 and at t = 2^k.
func (l *Lines) missing(reads int64, k int) float64 {
	switch {
	case reads == 0:
		return 0
	case k < 0:
		return 1
	case k < len(l.Later):
		return float64(l.Later[k]) / float64(reads)
	}
	return float64(l.Touched) / float64(reads)
}

// Misses is how many reads of lines of so many rows miss a cache of lines that holds those of the last reads as long as each of these
// brings, besides its own line, so much of one that is not read again.
func (p *Profile) Misses(grain int, lines, beside float64) float64 {
	l := &p.By[grain]
	if float64(l.Touched)+beside*float64(p.Reads) <= lines {
		return float64(l.Touched)
	}
	within, from, m := 0.0, 0.0, 1.0 // different lines among so many reads, and the part that misses then
	for k := 0; from < float64(p.Reads); k++ {
		to, next := math.Ldexp(1, k), l.missing(p.Reads, k)
		grown := min(within+(to-from)*(m+next)/2, float64(l.Touched))
		if full := grown + beside*to; full >= lines {
			have := within + beside*from
			part := 0.0
			if full > have {
				part = max(0, lines-have) / (full - have)
			}
			return max(float64(l.Touched), float64(p.Reads)*(m+(next-m)*part))
		}
		within, from, m = grown, to, next
	}
	return float64(l.Touched)
}

// Apart is how many reads are of a line that was not among the last 2^k.
func (p *Profile) Apart(grain, k int) float64 {
	return float64(p.Reads) * p.By[grain].missing(p.Reads, k)
}

// GrainOf is the number of the grain next to so many rows in a line.
func GrainOf(rows int64) int {
	best := 0
	for g, n := range Grains {
		if near := math.Abs(math.Log2(float64(n) / float64(max(rows, 1)))); near < math.Abs(math.Log2(float64(Grains[best])/float64(max(rows, 1)))) {
			best = g
		}
	}
	return best
}
