package sparse

import (
	"slices"

	"dmir/dialect/op"
	"dmir/dialect/reuse"
	"dmir/dialect/types"
)

// maxTable is how many rows a table may have for which reads are counted.
const maxTable = 1 << 28

// Count is what there is to count of t, whose components must be right (Check): its rows, and how tables are read by the coordinates of
// each level. The work is proportional to what is stored and to the sizes of the dimensions.
func (t *Tensor) Count(file string) *op.Counted {
	l, err := layoutOf(t.Type)
	if err != nil {
		return nil
	}
	counts := t.counts(l)
	c := &op.Counted{File: file, Stored: counts[len(counts)-1]}
	for i, level := range l.levels {
		at, _ := l.part(i, types.Coordinates)
		if !level.HasCoordinates() || at < 0 {
			continue
		}
		p, ok := reuse.Count(t.Parts[at].Int[:min(counts[i], int64(t.Parts[at].Len()))], maxTable)
		if ok {
			c.Levels = append(c.Levels, op.CountedLevel{Level: i, Profile: p})
		}
	}
	return c
}

// CountRows adds to c what there is to count of the elements themselves: how many are in a row, how often that changes, and in how many blocks they lie.
func (x *COO) CountRows(c *op.Counted) {
	if len(x.Shape) == 0 || x.Shape[0] == 0 {
		return
	}
	rows := int64(x.Shape[0])
	c.Rows = rows
	if rows > maxTable {
		return
	}
	lengths := make([]int64, rows)
	for _, i := range x.At[0] {
		lengths[i]++
	}
	for i := range lengths[1:] {
		if lengths[i+1] != lengths[i] {
			c.Uneven++
		}
	}
	slices.Sort(lengths)
	c.Median, c.Longest = lengths[rows/2], lengths[rows-1]
	empty, _ := slices.BinarySearch(lengths, 1)
	c.Empty = int64(empty)
	if len(x.Shape) != 2 {
		return
	}
	across := (int64(x.Shape[1]) + op.CountedBlock - 1) / op.CountedBlock
	blocks := make([]int64, x.Len())
	for k := range blocks {
		blocks[k] = x.At[0][k]/op.CountedBlock*across + x.At[1][k]/op.CountedBlock
	}
	slices.Sort(blocks)
	c.Blocks = int64(len(slices.Compact(blocks)))
}
