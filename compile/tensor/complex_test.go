package tensor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"dmir/dialect/types"
)

// npyOf is a .npy file of float32 in the order of bytes, with a header of that type.
func npyOf(descr, fortran, shape string, order binary.AppendByteOrder, numbers ...float32) []byte {
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, fortran, shape)
	dict += strings.Repeat(" ", 63-(10+len(dict))%64) + "\n"
	out := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(dict)))
	out = append(out, dict...)
	for _, v := range numbers {
		out = order.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// The parts of [[1+2i, 3+4i, 5+6i], [7+8i, 9+10i, 11+12i]] in each order of elements and bytes.
func TestPartsOfComplex(t *testing.T) {
	rows := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	columns := []float32{1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12}
	for name, file := range map[string][]byte{
		"rows":       npyOf("<c8", "False", "(2, 3)", binary.LittleEndian, rows...),
		"columns":    npyOf("<c8", "True", "(2, 3)", binary.LittleEndian, columns...),
		"big-endian": npyOf(">c8", "False", "(2, 3)", binary.BigEndian, rows...),
	} {
		for part, want := range [][]float32{{1, 3, 5, 7, 9, 11}, {2, 4, 6, 8, 10, 12}} {
			got, err := readPart(bytes.NewReader(file), types.F32, []int{2, 3}, part, int64(len(file)))
			if err != nil || !slices.Equal(got.F32, want) || !slices.Equal(got.Shape, []int{2, 3}) {
				t.Errorf("part %d of %s: %v, %v", part, name, got, err)
			}
		}
	}
	whole := npyOf("<f4", "False", "(2,)", binary.LittleEndian, 1, 2)
	if got, err := readPart(bytes.NewReader(whole), types.F32, []int{2}, 1, int64(len(whole))); err != nil || !slices.Equal(got.F32, []float32{1, 2}) {
		t.Errorf("an array of real numbers: %v, %v", got, err)
	}
	var wrong *MismatchError
	short := npyOf("<c8", "False", "(2,)", binary.LittleEndian, 1, 2, 3, 4)
	if _, err := readPart(bytes.NewReader(short), types.F64, []int{2}, 0, int64(len(short))); !errors.As(err, &wrong) || !strings.Contains(wrong.Got, "complex64") {
		t.Errorf("complex64 as f64: %v", err)
	}
	if _, err := readPart(bytes.NewReader(short), types.F32, []int{2}, 0, 8); err == nil || errors.As(err, &wrong) {
		t.Errorf("16 bytes in a file of 8: %v", err)
	}
}
