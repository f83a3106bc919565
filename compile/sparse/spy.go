package sparse

import (
	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Spy is a picture of a pattern: the elements that lie in each cell of a grid.
type Spy struct {
	Down, Across int     // cells
	Counts       []int64 // row by row
	Part         float64 // of the elements that were counted; 1 where all were
}

// SpySide is how many cells of a picture there are at most along a side.
const SpySide = 64

// The elements that are drawn for a picture, and the rows and columns of what is drawn, at most.
const (
	mostDrawn    = 1 << 18
	mostDrawnRow = 1 << 12
)

// rowsAndColumns are the sizes of a tensor as a picture has it: the first dimension down, the others across.
func rowsAndColumns(shape []int64) (rows, columns int64, ok bool) {
	if len(shape) == 0 {
		return 0, 0, false
	}
	rows, columns = shape[0], 1
	if len(shape) == 1 {
		return 1, rows, rows > 0
	}
	for _, n := range shape[1:] {
		if n <= 0 || columns > 1<<62/n {
			return 0, 0, false
		}
		columns *= n
	}
	return rows, columns, rows > 0
}

// newSpy is an empty grid for so many rows and columns. It is about as wide as it is high only where these are.
func newSpy(rows, columns int64) *Spy {
	side := func(n, other int64) int {
		cells := min(n, SpySide)
		if n < other { // no narrower than an eighth
			cells = min(n, max(SpySide/8, SpySide*n/other))
		}
		return int(max(cells, 1))
	}
	s := &Spy{Down: side(rows, columns), Across: side(columns, rows), Part: 1}
	s.Counts = make([]int64, s.Down*s.Across)
	return s
}

func (s *Spy) add(row, column, rows, columns int64) {
	s.Counts[share(row, int64(s.Down), rows)*int64(s.Across)+share(column, int64(s.Across), columns)]++
}

// Spy is a picture of x, nil where its places are too many to count.
func (x *COO) Spy() *Spy {
	shape := make([]int64, len(x.Shape))
	for d, n := range x.Shape {
		shape[d] = int64(n)
	}
	rows, columns, ok := rowsAndColumns(shape)
	if !ok {
		return nil
	}
	s := newSpy(rows, columns)
	for k := range x.Len() {
		row, column := int64(0), x.At[0][k]
		if len(shape) > 1 {
			row, column = column, 0
			for d, n := range shape[1:] {
				column = column*n + x.At[d+1][k]
			}
		}
		s.add(row, column, rows, columns)
	}
	return s
}

// DrawSpy is a picture of the pattern p with as many elements as t, whose sizes are numbers, has room for. Of a large one a smaller matrix of the same
// shape is drawn, so that the work is bounded.
func DrawSpy(t *types.Tensor, p op.Pattern, from tensor.Stream) (*Spy, error) {
	shape, ok := Numbers(t.Shape)
	if !ok {
		return nil, problem("bind it", "a size of %s is no number", t)
	}
	rows, columns, ok := rowsAndColumns(shape)
	room, known := t.Values().Int()
	if !ok || !known {
		return nil, problem("bind smaller sizes", "no picture is drawn of %s", t)
	}
	if room <= mostDrawn {
		x, err := Draw(t, p, from)
		if err != nil {
			return nil, err
		}
		c, err := x.Unpack()
		if err != nil {
			return nil, err
		}
		return c.Spy(), nil
	}
	r, c := min(rows, mostDrawnRow), min(columns, mostDrawnRow)
	count := min(mostDrawn, max(1, r*c/2)) // cells are compared with each other alone
	across := float64(c) / float64(columns)
	if p.Kind == "band" {
		each := float64(room) / float64(rows)
		width := float64(p.Width)
		if p.Width < 0 {
			width = each / 2
		}
		p.Width = max(1, int64(width*across))
		count = min(count, max(1, int64(min(1, each/(2*width+1))*float64(r*p.Width))))
	}
	p.Size = max(1, int64(float64(p.Size)*across))
	m := &matrix{source: &source{s: from}, rows: r, cols: c}
	if err := m.draw(p, count); err != nil {
		return nil, err
	}
	s := newSpy(m.rows, m.cols)
	for k := range m.row {
		s.add(m.row[k], m.col[k], m.rows, m.cols)
	}
	s.Part = float64(count) / float64(room)
	return s, nil
}
