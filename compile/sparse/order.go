package sparse

import (
	"cmp"
	"slices"
)

// digit is how many bits a pass of the radix sort takes: its counts fit into the cache.
const digit = 11

// few elements are sorted by comparison: the counts of a radix sort cost more.
const few = 1 << digit

// ordered is the order of elements by their coordinates, the first of at first; nil where
// they are in order. Elements with equal coordinates stay as they are. Coordinates are
// within sizes.
func ordered[N int | int64](at [][]int64, sizes []N) []int {
	if len(at) == 0 {
		return nil
	}
	n := len(at[0])
	sorted := true
	for k := 1; k < n && sorted; k++ {
		sorted = compare(at, k-1, k) <= 0
	}
	if sorted {
		return nil
	}
	p := make([]int, n)
	for k := range p {
		p[k] = k
	}
	if n < few {
		slices.SortStableFunc(p, func(i, j int) int { return compare(at, i, j) })
		return p
	}
	to := make([]int, n)
	for i := len(at) - 1; i >= 0; i-- {
		x := at[i]
		for shift := 0; (int64(sizes[i])-1)>>shift > 0; shift += digit {
			var first [few + 1]int
			for _, k := range p {
				first[x[k]>>shift&(few-1)+1]++
			}
			for d := range few {
				first[d+1] += first[d]
			}
			for _, k := range p {
				d := x[k] >> shift & (few - 1)
				to[first[d]] = k
				first[d]++
			}
			p, to = to, p
		}
	}
	return p
}

func compare(at [][]int64, i, j int) int {
	for _, x := range at {
		if c := cmp.Compare(x[i], x[j]); c != 0 {
			return c
		}
	}
	return 0
}
