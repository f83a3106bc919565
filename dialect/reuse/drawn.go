package reuse

import "math"

// formula is a profile of reads for whose lines it is known how likely one was not among the last t, and how many are read at all.
func formula(reads int64, touched func(grain int64) float64, missing func(grain int64, t float64) float64) Profile {
	p := Profile{Reads: reads}
	for g, grain := range Grains {
		l := &p.By[g]
		l.Touched = min(int64(math.Round(touched(grain))), reads)
		for k := 0; math.Ldexp(1, k) < float64(reads); k++ {
			left := min(int64(math.Round(float64(reads)*missing(grain, math.Ldexp(1, k)))), reads)
			if left <= l.Touched {
				break
			}
			l.Later = append(l.Later, left)
		}
	}
	return p
}

// lines are those of so many rows.
func lines(rows, grain int64) float64 { return math.Ceil(float64(rows) / float64(grain)) }

// Uniform is reads of which each is of any of so many rows.
func Uniform(rows, reads int64) Profile {
	return formula(reads, func(grain int64) float64 {
		n := lines(rows, grain)
		return n * -math.Expm1(float64(reads)*math.Log1p(-1/n))
	}, func(grain int64, t float64) float64 {
		return math.Exp(t * math.Log1p(-1/lines(rows, grain)))
	})
}

// InOrder is reads of rows one after the other, of which each is repeated at once.
func InOrder(rows, reads int64) Profile {
	touched := func(grain int64) float64 { return lines(min(rows, reads), grain) }
	return formula(reads, touched, func(grain int64, _ float64) float64 { return touched(grain) / float64(max(reads, 1)) })
}

// Band is the reads of a matrix with so many rows that stores elements at most width columns from the diagonal; a width below 0
// is the least that has room for them.
func Band(rows, columns, reads, width int64) Profile {
	each := float64(reads) / float64(max(rows, 1)) // of a row
	across := min(float64(2*width+1), float64(columns))
	if width < 0 || across < each {
		across = max(1, math.Ceil(each))
	}
	filled := min(1, each/across)
	return formula(reads, func(grain int64) float64 {
		// A column is next to as many rows as the band is wide.
		return lines(columns, grain) * -math.Expm1(float64(grain)*across*float64(rows)/float64(columns)*math.Log1p(-min(filled, 1-1e-9)))
	}, func(grain int64, t float64) float64 {
		if each <= 0 {
			return 1
		}
		first := float64(grain) // in a row, the reads of one line follow each other
		if t < each {
			return 1 / max(1, min(first, first*filled))
		}
		// In every further row the line is read again if the row stores one of its columns.
		passed := math.Floor(t / each)
		return math.Exp(passed*float64(grain)*math.Log1p(-min(filled, 1-1e-9))) / max(1, first*filled)
	})
}

// Blocks is the reads of a matrix with so many columns that stores dense blocks with sides of size.
func Blocks(rows, columns, reads, size int64) Profile {
	size = max(1, min(size, rows, columns))
	blocks := max(1, float64(reads)/float64(size*size))
	down, across := math.Ceil(float64(rows)/float64(size)), math.Ceil(float64(columns)/float64(size))
	each := max(1, blocks/down) // in a row of blocks
	again := 1 / float64(size)  // of the reads, those of the first row of a block
	return formula(reads, func(grain int64) float64 {
		n := max(1, math.Ceil(float64(size)/float64(grain)))
		return min(lines(columns, grain), n*across*-math.Expm1(blocks*math.Log1p(-1/max(across, 1+1e-9))))
	}, func(grain int64, t float64) float64 {
		line := 1 / math.Min(float64(grain), float64(size))
		if t < each*float64(size) {
			return line
		}
		passed := math.Floor(t/(each*float64(size*size))) + 1
		return line * again * math.Exp(passed*each*math.Log1p(-1/max(across, 1+1e-9)))
	})
}
