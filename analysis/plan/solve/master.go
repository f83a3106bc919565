package solve

import "math"

// A master chooses the weights of the layers: the Lagrange multipliers of the limits, ≥ 0, and of the
// excess terms, in [0, 1]. It maximises the least value over the choices known so far of the sum of the
// weighted layers, as the linear program whose columns are choices (Dantzig and Wolfe, "Decomposition
// principle for linear programs", 1960): the dual of the Lagrangian of Held and Karp (1971). A choice of
// less value at the optimum is the next column. The program has a row for each layer, so that a basis
// is a small matrix, which is inverted for each step.
type master struct {
	rows    int       // 1 + multipliers
	most    []float64 // by row: the largest multiplier, and the price of a unit above 0
	columns [][]float64
	basis   []int // column, or −1−row for what is below 0 in the row, or −1−rows−row for what is above
	inverse [][]float64
	level   []float64 // value of the basic variables
	duals   []float64
}

// newMaster starts from the sums of one choice: cost, then a number for each multiplier.
func newMaster(most []float64, sums []float64) *master {
	t := &master{rows: len(sums), most: most}
	t.columns = append(t.columns, sums)
	t.basis = make([]int, t.rows)
	for r := 1; r < t.rows; r++ {
		t.basis[r] = -1 - r
		if sums[r] > 0 {
			t.basis[r] = -1 - t.rows - r
		}
	}
	t.inverse = make([][]float64, t.rows)
	for r := range t.inverse {
		t.inverse[r] = make([]float64, 2*t.rows)
	}
	t.level = make([]float64, t.rows)
	t.duals = make([]float64, t.rows)
	t.invert()
	return t
}

// entry is the coefficient of a column in a row: row 0 adds up the shares of choices to 1, and the
// others balance a layer with what it is below and above 0.
func (t *master) entry(column, row int) float64 {
	switch {
	case column >= 0 && row == 0:
		return 1
	case column >= 0:
		return t.columns[column][row]
	case column >= -t.rows && row == -1-column:
		return 1
	case column < -t.rows && row == -1-t.rows-column:
		return -1
	}
	return 0
}

func (t *master) price(column int) float64 {
	switch {
	case column >= 0:
		return t.columns[column][0]
	case column < -t.rows:
		return t.most[-1-t.rows-column]
	}
	return 0
}

// invert inverts the basis and prices it. It reports false if the basis is singular.
func (t *master) invert() bool {
	n := t.rows
	a := t.inverse
	for r := range n {
		for c := range n {
			a[r][c] = t.entry(t.basis[c], r)
			a[r][n+c] = 0
		}
		a[r][n+r] = 1
	}
	for c := range n {
		best := c
		for r := c + 1; r < n; r++ {
			if math.Abs(a[r][c]) > math.Abs(a[best][c]) {
				best = r
			}
		}
		a[c], a[best] = a[best], a[c]
		f := a[c][c]
		if f == 0 {
			return false
		}
		for k := range 2 * n {
			a[c][k] /= f
		}
		for r := range n {
			if g := a[r][c]; r != c && g != 0 {
				for k := range 2 * n {
					a[r][k] -= g * a[c][k]
				}
			}
		}
	}
	for r := range n {
		t.level[r] = a[r][n] // the right side is 1 in row 0 and 0 elsewhere
		t.duals[r] = 0
	}
	for r := range n {
		for c := range n {
			t.duals[c] += t.price(t.basis[r]) * a[r][n+c]
		}
	}
	return true
}

// multipliers returns by row the weight of the layer; that of row 0 is 1.
func (t *master) multipliers(w []float64) {
	w[0] = 1
	for r := 1; r < t.rows; r++ {
		w[r] = min(max(-t.duals[r], 0), t.most[r])
	}
}

// add adds the sums of a choice.
func (t *master) add(sums []float64) { t.columns = append(t.columns, sums) }

// optimize moves to the best basis of the columns, as far as rounding allows.
func (t *master) optimize() {
	for range 50 * t.rows {
		enter, best := 0, 0.0
		try := func(column int) {
			reduced, size := t.price(column), math.Abs(t.price(column))
			for r := range t.rows {
				x := t.duals[r] * t.entry(column, r)
				reduced -= x
				size = max(size, math.Abs(x))
			}
			if reduced < -1e-13*size && reduced < best {
				enter, best = column, reduced
			}
		}
		for c := range t.columns {
			try(c)
		}
		for r := 1; r < t.rows; r++ {
			try(-1 - r)
			try(-1 - t.rows - r)
		}
		if best == 0 || !t.exchange(enter) {
			return
		}
	}
}

// exchange brings a column into the basis. It reports false if none can leave.
func (t *master) exchange(enter int) bool {
	leave, least, pivot := -1, math.Inf(1), 0.0
	for r := range t.rows {
		d := 0.0
		for c := range t.rows {
			d += t.inverse[r][t.rows+c] * t.entry(enter, c)
		}
		if d <= 1e-14 {
			continue
		}
		ratio := max(t.level[r], 0) / d
		if ratio < least || (ratio == least && d > pivot) {
			leave, least, pivot = r, ratio, d
		}
	}
	if leave < 0 {
		return false
	}
	old := t.basis[leave]
	t.basis[leave] = enter
	if !t.invert() {
		t.basis[leave] = old
		t.invert()
		return false
	}
	return true
}

// shares calls f for the choices of the optimum, with their shares, which add up to 1.
func (t *master) shares(f func(column int, share float64)) {
	for r, c := range t.basis {
		if c >= 0 && t.level[r] > 0 {
			f(c, t.level[r])
		}
	}
}

// value is the least value of the program with the columns so far.
func (t *master) value() float64 {
	sum := 0.0
	for r, c := range t.basis {
		sum += t.price(c) * t.level[r]
	}
	return sum
}
