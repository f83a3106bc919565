package sparse

import (
	"fmt"
	"math"
	"math/bits"

	"dmir/dialect/op"
)

// matrix is a pattern that is drawn: the places of its entries, sorted by row and column.
type matrix struct {
	*source
	rows, cols int64
	row, col   []int64
}

// draw draws n entries, at most as many as there are places.
func (m *matrix) draw(p op.Pattern, n int64) *Error {
	if n == 0 {
		return nil
	}
	switch p.Kind {
	case "power_law":
		m.powerLaw(n, p.Exponent)
	case "band":
		return m.band(n, p.Width)
	case "blocks":
		m.blocks(n, p.Size)
	default:
		m.uniform(n)
	}
	return nil
}

func (m *matrix) add(row, col int64) { m.row, m.col = append(m.row, row), append(m.col, col) }

func (m *matrix) uniform(n int64) {
	for _, k := range m.distinct(nil, m.rows*m.cols, n) {
		m.add(k/m.cols, k%m.cols)
	}
}

// powerLaw gives the row of rank k, counted from 1, entries in proportion to
// k^(-1/(exponent-1)), by which the number of rows with d entries falls as d^-exponent
// (Adamic and Huberman, Zipf's law and the Internet, 2002). Which row has which rank is random.
func (m *matrix) powerLaw(n int64, exponent float64) {
	active := min(m.rows, 4*n) // the others would have less than an entry
	at := m.distinct(nil, m.rows, active)
	rank := m.shuffled(active)
	fall := -1 / (exponent - 1)
	sum := 0.0
	for k := range active {
		sum += math.Pow(float64(k+1), fall)
	}
	degree := make([]int64, active) // by place in at
	left, upTo, given := n, 0.0, int64(0)
	for k := range active {
		upTo += math.Pow(float64(k+1), fall)
		due := min(int64(math.Round(float64(n)*upTo/sum))-given, left) // with what was due to rows that are full
		d := min(max(due, 0), m.cols)
		degree[rank[k]] = d
		given, left = given+d, left-d
	}
	for k := int64(0); left > 0; k++ { // rounded away
		d := min(m.cols-degree[rank[k]], left)
		degree[rank[k]] += d
		left -= d
	}
	for k, row := range at {
		for _, col := range m.distinct(nil, m.cols, degree[k]) {
			m.add(row, col)
		}
	}
}

// shuffled are the numbers below n in random order.
func (m *matrix) shuffled(n int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		j := m.below(int64(i) + 1)
		out[i], out[j] = out[j], int64(i)
	}
	return out
}

// band draws entries at most width from the diagonal, as many in each row as its part of the
// band asks for; a width below 0 is the least that has room for them.
func (m *matrix) band(n, width int64) *Error {
	if n < m.rows { // one in rows that are equally far from each other
		for k := range n {
			row := share(m.rows, 2*k+1, 2*n)
			from, to := m.near(row, max(width, 0))
			m.add(row, from+m.below(to-from))
		}
		return nil
	}
	room := func(width int64) (sum int64) {
		for row := range m.rows {
			from, to := m.near(row, width)
			sum += to - from
		}
		return sum
	}
	if width < 0 {
		lo, hi := int64(-1), m.cols // enough room with hi, not with lo
		for hi-lo > 1 {
			if mid := (lo + hi) / 2; room(mid) < n {
				lo = mid
			} else {
				hi = mid
			}
		}
		width = hi
	}
	total := room(width)
	if total < n {
		return problem(fmt.Sprintf("bind nnz to %d or less, or state a larger width", total), "a band of %d on both sides of the diagonal has %d places, and %d entries are stored", width, total, n)
	}
	upTo, given := int64(0), int64(0)
	for row := range m.rows {
		from, to := m.near(row, width)
		upTo += to - from
		due := share(n, upTo, total)
		for _, col := range m.distinct(nil, to-from, due-given) {
			m.add(row, from+col)
		}
		given = due
	}
	return nil
}

// share is n·part/whole, rounded down.
func share(n, part, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(q)
}

// near are the columns of a row that are at most width from the diagonal.
func (m *matrix) near(row, width int64) (from, to int64) {
	center := int64(0)
	if m.rows > 1 {
		center = share(row, m.cols-1, m.rows-1)
	}
	return max(center-width, 0), min(center+width, m.cols-1) + 1
}

// blocks draws dense blocks, of which the last ones in order may have fewer entries.
func (m *matrix) blocks(n, size int64) {
	size = min(size, max(m.rows, m.cols), 1<<20) // whose square is no more than fits
	across := (m.cols + size - 1) / size
	down := (m.rows + size - 1) / size
	shape := func(block int64) (height, width int64) {
		return min(size, m.rows-block/across*size), min(size, m.cols-block%across*size)
	}
	var chosen []int64
	area := int64(0)
	for area < n {
		more := (n - area + size*size - 1) / (size * size)
		chosen = m.distinct(chosen, across*down, int64(len(chosen))+more)
		area = 0
		for _, b := range chosen {
			h, w := shape(b)
			area += h * w
		}
	}
	limit := make([]int64, len(chosen))
	for k := len(chosen) - 1; k >= 0; k-- {
		h, w := shape(chosen[k])
		cut := min(area-n, h*w)
		limit[k] = h*w - cut
		area -= cut
	}
	for first := 0; first < len(chosen); {
		last := first // of the blocks in a row of them
		for last < len(chosen) && chosen[last]/across == chosen[first]/across {
			last++
		}
		height, _ := shape(chosen[first])
		for r := range height {
			for k := first; k < last; k++ {
				_, width := shape(chosen[k])
				for c := range min(width, max(0, limit[k]-r*width)) {
					m.add(chosen[k]/across*size+r, chosen[k]%across*size+c)
				}
			}
		}
		first = last
	}
}
