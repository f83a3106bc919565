package suite

import (
	"fmt"
	"strings"

	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// Probe is a product of which one operand is the identity and the elements of
// the other are numbered, once by their rows and once by their columns: each
// element of the result identifies the element that was copied there, so that a
// wrong layout shows as a permutation.
type Probe struct {
	Operand    string // whose elements are numbered
	Rows, Cols int    // of the result
	Valid      int    // rows that are not zero; 0: all
	Result     Want   // used for its element type
	Order      []int  // of the result's dimensions in memory
	ByRow      []Input
	ByColumn   []Input
}

// numbered is a matrix whose elements are their row's or their column's number.
// They are exact: at most 256 in bf16.
func numbered(elem types.Elem, rows, cols int, byRow bool) *tensor.Tensor {
	t := tensor.New(elem, rows, cols)
	for i := range rows {
		for j := range cols {
			v := j
			if byRow {
				v = i
			}
			t.SetFloat(i*cols+j, float64(v))
		}
	}
	return t
}

func identity(elem types.Elem, rows, cols int) *tensor.Tensor {
	t := tensor.New(elem, rows, cols)
	for i := range min(rows, cols) {
		t.SetFloat(i*cols+i, 1)
	}
	return t
}

func transposed(t *tensor.Tensor) *tensor.Tensor {
	rows, cols := t.Shape[0], t.Shape[1]
	out := tensor.New(t.Elem, cols, rows)
	for i := range rows {
		for j := range cols {
			out.SetFloat(j*rows+i, t.Float(i*cols+j))
		}
	}
	return out
}

// ProbesOf are the probes of a program that computes y = x·w of matrices m × k
// and k × n, k = n, each stored as in the equation: "km" is x transposed.
func ProbesOf(p *artifact.Program, elem types.Elem, x, w, y string, m, n int) ([]Probe, error) {
	k := n
	store := func(t *tensor.Tensor, letters string) *tensor.Tensor {
		if letters == "km" || letters == "nk" || letters == "nm" {
			return transposed(t)
		}
		return t
	}
	pair := func(a, b *tensor.Tensor) ([]Input, error) {
		var out []Input
		for i, t := range []*tensor.Tensor{store(a, x), store(b, w)} {
			in, err := inputOf(t, &p.Buffers[p.Inputs[i]], 0, 0)
			if err != nil {
				return nil, err
			}
			out = append(out, in)
		}
		return out, nil
	}
	var order []int
	if y == "nm" {
		order = []int{1, 0}
	}
	var out []Probe
	for _, operand := range []string{"x", "w"} {
		probe := Probe{Operand: operand, Rows: m, Cols: n, Result: Want{Elem: elem.String(), Len: m * n}, Order: order}
		for _, byRow := range []bool{true, false} {
			a, b := numbered(elem, m, k, byRow), identity(elem, k, n)
			if operand == "w" {
				a, b = identity(elem, m, k), numbered(elem, k, n, byRow)
				probe.Valid = min(m, k)
			}
			in, err := pair(a, b)
			if err != nil {
				return nil, err
			}
			if byRow {
				probe.ByRow = in
			} else {
				probe.ByColumn = in
			}
		}
		out = append(out, probe)
	}
	return out, nil
}

// landed lists the misplaced elements, given the results of both runs; empty:
// none.
func (p *Probe) landed(byRow, byColumn []byte) (string, error) {
	elem, ok := types.ElemByName(p.Result.Elem)
	if !ok {
		return "", fmt.Errorf("elements of %q", p.Result.Elem)
	}
	shape := []int{p.Rows, p.Cols}
	var got [2]*tensor.Tensor
	for i, raw := range [][]byte{byRow, byColumn} {
		if int64(len(raw)) != int64(p.Rows*p.Cols)*elem.Bytes() {
			return "", fmt.Errorf("%d bytes for %d × %d elements", len(raw), p.Rows, p.Cols)
		}
		t, err := tensor.Unpack(tensor.Unarrange(raw, elem, shape, p.Order), elem, shape)
		if err != nil {
			return "", err
		}
		got[i] = t
	}
	type place struct{ row, col float64 }
	valid := p.Rows
	if p.Valid > 0 {
		valid = p.Valid
	}
	wrong := 0
	var first []string
	moved := map[place]int{} // count by displacement
	for i := range p.Rows {
		for j := range p.Cols {
			at := i*p.Cols + j
			from := place{got[0].Float(at), got[1].Float(at)}
			want := place{float64(i), float64(j)}
			if i >= valid {
				want = place{}
			}
			if from == want {
				continue
			}
			wrong++
			moved[place{from.row - want.row, from.col - want.col}]++
			if len(first) < 12 {
				first = append(first, fmt.Sprintf("[%d,%d] holds %s[%g,%g]", i, j, p.Operand, from.row, from.col))
			}
		}
	}
	if wrong == 0 {
		return "", nil
	}
	common, most := place{}, 0
	for by, n := range moved {
		if n > most || n == most && (by.row < common.row || by.row == common.row && by.col < common.col) {
			common, most = by, n
		}
	}
	return fmt.Sprintf("%s: %d of %d elements landed elsewhere, %d of them from %+g rows and %+g columns away: %s",
		p.Operand, wrong, p.Rows*p.Cols, most, common.row, common.col, strings.Join(first, ", ")), nil
}
