package tensor

import (
	"bytes"
	"testing"

	"dmir/dialect/types"
)

// Every element type comes back from its bytes as it was, and has the width of
// its type.
func TestPack(t *testing.T) {
	for _, elem := range []types.Elem{types.F16, types.BF16, types.F32, types.F64, types.F8E4M3FN, types.F8E5M2, types.I1, types.I8, types.I32, types.I64, types.UI8, types.UI64} {
		x := Random(elem, []int{3, 5}, 1, 2)
		b, err := Pack(x)
		if err != nil || int64(len(b)) != 15*elem.Bytes() {
			t.Fatalf("%s: %d bytes, %v", elem, len(b), err)
		}
		y, err := Unpack(b, elem, x.Shape)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := Pack(y); !bytes.Equal(again, b) || MaxDiff(x, y) != 0 {
			t.Errorf("%s does not come back", elem)
		}
		if _, err := Unpack(b[1:], elem, x.Shape); err == nil {
			t.Errorf("%s: a byte too few is accepted", elem)
		}
	}
}
