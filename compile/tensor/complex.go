package tensor

import (
	"io"
	"slices"
	"strings"

	"dmir/dialect/types"
)

// LoadPart is LoadNPY for the real (0) or the imaginary (1) parts of an array of complex
// numbers; an array of real numbers is read as it is.
func LoadPart(path string, elem types.Elem, shape []int, part int) (*Tensor, error) {
	return loadNPY(path, func(r io.Reader, size int64) (*Tensor, error) { return readPart(r, elem, shape, part, size) })
}

// halves are NumPy's types of the parts, by those of complex numbers.
var halves = map[string]string{"c8": "f4", "c16": "f8"}

func readPart(r io.Reader, elem types.Elem, shape []int, part int, size int64) (*Tensor, error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	kind := strings.TrimLeft(h.Type, "<>|=")
	half := halves[kind]
	if half == "" || half != dtypes[elem][1:] || !matches(h.Shape, shape) {
		return h.read(r, elem, shape, size)
	}
	pairs := h // in Fortran's order the parts are the first dimension, which lies together
	pairs.Type = strings.TrimSuffix(h.Type, kind) + half
	fortran := h.Fortran && len(h.Shape) > 0
	if pairs.Shape = append(slices.Clone(h.Shape), 2); fortran {
		pairs.Shape = append([]int{2}, h.Shape...)
	}
	both, err := pairs.read(r, elem, pairs.Shape, size)
	if err != nil {
		return nil, err
	}
	t := New(elem, h.Shape...)
	for i := range t.Len() {
		from := 2*i + part
		if fortran {
			from = part*t.Len() + i
		}
		if t.Kind() == KindF64 {
			t.F64[i] = both.F64[from]
		} else {
			t.F32[i] = both.F32[from]
		}
	}
	return t, nil
}
