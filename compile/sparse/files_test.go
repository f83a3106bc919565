package sparse_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

func TestReadMarket(t *testing.T) {
	const general = "%%MatrixMarket matrix coordinate real general\n"
	for _, k := range []struct {
		text string
		elem types.Elem
		want []float64 // of 2 × 3, or of 2 × 2
	}{
		{general + "% a comment\n\n2 3 3\n2 1 1.5\n1 3 -2e0\n%\n 1  1 +4 \r\n", types.F32, []float64{4, 0, -2, 1.5, 0, 0}},
		{"%%matrixmarket MATRIX coordinate integer general\n2 3 1\n2 3 7", types.I32, []float64{0, 0, 0, 0, 0, 7}},
		{"%%MatrixMarket matrix coordinate pattern general\n2 3 2\n2 3\n1 1\n", types.F64, []float64{1, 0, 0, 0, 0, 1}},
		{"%%MatrixMarket matrix coordinate pattern general\n2 3 2\n2 3\n1 1\n", types.I1, []float64{1, 0, 0, 0, 0, 1}},
		{"%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 3\n2 1 5\n", types.F32, []float64{3, 5, 5, 0}},
		{"%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 5\n", types.F32, []float64{0, -5, 5, 0}},
		{"%%MatrixMarket matrix array real general\n2 3\n1\n4\n0\n5\n3\n6\n", types.F32, []float64{1, 0, 3, 4, 5, 6}},
		{"%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n", types.F32, []float64{1, 2, 2, 3}},
		{"%%MatrixMarket matrix array real skew-symmetric\n2 2\n2\n", types.F32, []float64{0, -2, 2, 0}},
		{general + "2 3 0\n", types.F32, []float64{0, 0, 0, 0, 0, 0}},
	} {
		c, err := sparse.ReadMarket(strings.NewReader(k.text), k.elem)
		if err != nil {
			t.Errorf("%q: %v", k.text, err)
			continue
		}
		x := dense(t, c)
		for i, want := range k.want {
			if len(k.want) != x.Len() || x.Float(i) != want {
				t.Errorf("%q: %v, want %v", k.text, x, k.want)
				break
			}
		}
	}
}

func TestReadMarketErrors(t *testing.T) {
	const general = "%%MatrixMarket matrix coordinate real general\n"
	for _, k := range []struct{ text, want string }{
		{"", "line 1: this is no matrix in the Matrix Market format"},
		{"%%MatrixMarket vector coordinate real general\n", "line 1: this is no matrix"},
		{"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 0 1\n", "line 1: its elements are complex"},
		{"%%MatrixMarket matrix coordinate real hermitian\n", `line 1: a matrix is general, symmetric or skew-symmetric, not "hermitian"`},
		{"%%MatrixMarket matrix table real general\n", `line 1: a matrix is coordinate or array, not "table"`},
		{"%%MatrixMarket matrix coordinate quaternion general\n", `line 1: elements are real, integer or pattern, not "quaternion"`},
		{"%%MatrixMarket matrix array pattern general\n", "line 1: an array is no pattern"},
		{general, "line 1: the file ends before the line of sizes"},
		{general + "%\n2 3\n", `line 3: "2 3" is no line of sizes`},
		{general + "2 -3 1\n", `line 2: "-3" is no size`},
		{"%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n", "line 2: a symmetric matrix is square"},
		{general + "2 3 2\n1 1 1\n", "line 3: the file ends after 1 of 2 entries"},
		{general + "2 3 1\n1 1 1\n1 2 1\n", "line 4: there is more than the 1 entries"},
		{general + "2 3 1\n% no\n3 1 1\n", "line 4: (3, 1) is outside of 2 × 3"},
		{general + "2 3 1\n0 1 1\n", "line 3: (0, 1) is outside"},
		{general + "2 3 1\n1 x 1\n", `line 3: "x" is no coordinate`},
		{general + "2 3 1\n1 1 one\n", `line 3: "one" is no number`},
		{general + "2 3 1\n1 1\n", "line 3: an entry has 3 numbers, not 2"},
		{general + "2 3 3\n1 1 1\n% between\n2 2 1\n\n1 1 5\n", "line 7: entry (1, 1) is there twice: it is on line 3 too"},
		{"%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 1\n2 1 1\n1 2 1\n", "line 5: entry (1, 2) is there twice: it is on line 4 too"},
		{"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n", "line 3: the diagonal of a skew-symmetric matrix is 0"},
		{"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1.5\n", `line 3: "1.5" is no integer`},
		{"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", "line 5: the file ends after 3 of 4 entries"},
		{"%%MatrixMarket matrix array real general\n2 2\n1 2\n", "line 3: a line of an array has one element, not 2"},
		{general + "1 1 1\n1 1 " + strings.Repeat("1", 70000), "line 3: the line is longer than 65536 bytes"},
	} {
		_, err := sparse.ReadMarket(strings.NewReader(k.text), types.F32)
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%.80q: %v, want %q", k.text, err, k.want)
		}
	}
	_, err := sparse.ReadMarket(strings.NewReader(general+"2 3 2\n1 1 1\n2 1 1.5\n"), types.I32)
	if err == nil || err.Error() != "line 4: the element (1, 0) is 1.5, which i32 does not hold" {
		t.Error(err)
	}
}

func readNPZ(t *testing.T, path string, elem types.Elem) (*sparse.COO, error) {
	t.Helper()
	z, err := tensor.OpenNPZ(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return sparse.ReadNPZ(z, elem)
}

// Files that SciPy has written: testdata/scipy_files.py.
func TestReadNPZ(t *testing.T) {
	matrix := []float64{0, 1.5, 0, 0, -2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 4.25, 0, 0, 0, -5, 0, 0}
	cube := make([]float64, 24)
	cube[9], cube[13], cube[23] = 7, 8, 9
	for _, k := range []struct {
		file string
		elem types.Elem
		want []float64
		err  string
	}{
		{"csr.npz", types.F32, matrix, ""},
		{"csc.npz", types.F64, matrix, ""},
		{"coo.npz", types.F16, matrix, ""},
		{"bsr.npz", types.F32, matrix, ""},
		{"unsorted.npz", types.F32, matrix, ""},
		{"cube.npz", types.F32, cube, ""},
		{"dia.npz", types.F32, nil, `its format is "dia"`},
		{"twice.npz", types.F32, nil, "element (0, 1) is there twice"},
		{"csr.npz", types.I32, nil, "the element (0, 1) is 1.5, which i32 does not hold"},
	} {
		c, err := readNPZ(t, filepath.Join("testdata", k.file), k.elem)
		if k.err != "" || err != nil {
			if err == nil || k.err == "" || !strings.Contains(err.Error(), k.err) {
				t.Errorf("%s: %v, want %q", k.file, err, k.err)
			}
			continue
		}
		x := dense(t, c)
		for i, v := range k.want {
			if x.Elem != k.elem || x.Float(i) != v {
				t.Errorf("%s: %v", k.file, x)
				break
			}
		}
	}
}

// What is written is read again, in every format and element type.
func TestNPZRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	path := filepath.Join(t.TempDir(), "x.npz")
	for _, text := range append([]string{"tensor<12x20xbf16, #dm.csr<nnz = 50>>", "tensor<12x20xf32, #dm.bsr<4x5, nnz = 12>>", "tensor<12x20xui64, #dm.dcsr<nnz = [12, 50]>>"}, formats...) {
		ty := typeOf(t, text)
		x, err := sparse.Pack(ty, coo(ty, 30, r))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := x.WriteNPZ(&b); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := readNPZ(t, path, ty.Elem)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want, _ := x.Unpack()
		if d := cmp.Diff(dense(t, want), dense(t, c)); d != "" || c.Len() != want.Len() {
			t.Errorf("%s: %d elements of %d: %s", text, c.Len(), want.Len(), d)
		}
	}
}

// Archives whose arrays do not go together.
func TestReadNPZErrors(t *testing.T) {
	ints := func(v ...int64) *tensor.Tensor { return tensor.FromInts(types.I32, []int{len(v)}, v) }
	floats := func(shape ...int) *tensor.Tensor { return tensor.New(types.F64, shape...) }
	path := filepath.Join(t.TempDir(), "x.npz")
	for _, k := range []struct {
		format string
		arrays map[string]*tensor.Tensor
		want   string
	}{
		{"", nil, "it has no array format"},
		{"csr", map[string]*tensor.Tensor{"data": floats(2)}, "it has no array shape"},
		{"csr", map[string]*tensor.Tensor{"shape": ints(2, 3)}, `no array "data"`},
		{"csr", map[string]*tensor.Tensor{"shape": floats(2)}, "its array shape is tensor<2xf64>, no list of integers"},
		{"csr", map[string]*tensor.Tensor{"shape": ints(2, -3)}, "its shape is [2 -3]"},
		{"csr", map[string]*tensor.Tensor{"shape": ints()}, "its shape has no dimensions"},
		{"csr", map[string]*tensor.Tensor{"shape": ints(2, 3), "data": floats(2)}, "it has no array indices"},
		{"csr", map[string]*tensor.Tensor{"shape": ints(2, 3), "data": floats(2), "indices": ints(0, 1)}, "it has no array indptr"},
		{"csr", map[string]*tensor.Tensor{"shape": ints(2, 3), "data": floats(2), "indices": ints(0, 1), "indptr": ints(0, 2)}, "indptr has 2 positions for 2 segments"},
		{"csr", map[string]*tensor.Tensor{"shape": ints(2, 3), "data": floats(2), "indices": ints(0, 1), "indptr": ints(1, 1, 2)}, "indptr[0] is 1, not 0"},
		{"csr", map[string]*tensor.Tensor{"shape": ints(2, 3), "data": floats(2), "indices": ints(0, 1), "indptr": ints(0, 2, 1)}, "indptr[2] is 1, behind 2"},
		{"csr", map[string]*tensor.Tensor{"shape": ints(2, 3), "data": floats(2), "indices": ints(0, 1), "indptr": ints(0, 1, 3)}, "indptr[2] is 3, but there are 2 indices"},
		{"csr", map[string]*tensor.Tensor{"shape": ints(2, 3), "data": floats(1), "indices": ints(0, 1), "indptr": ints(0, 1, 2)}, "data is tensor<1xf64>, and indptr ends at 2"},
		{"csr", map[string]*tensor.Tensor{"shape": ints(2, 3), "data": floats(2), "indices": ints(0, 3), "indptr": ints(0, 1, 2)}, "(1, 3) is outside of the shape [2 3]"},
		{"csr", map[string]*tensor.Tensor{"shape": ints(2, 3), "data": floats(2), "indices": ints(0, 0), "indptr": ints(0, 2, 2)}, "element (0, 0) is there twice"},
		{"csr", map[string]*tensor.Tensor{"shape": ints(2, 3, 4), "data": floats(2), "indices": ints(0, 0)}, "no shape [2 3 4]"},
		{"bsr", map[string]*tensor.Tensor{"shape": ints(2, 3), "data": floats(1, 2, 2), "indices": ints(0)}, "are no blocks of a matrix"},
		{"bsr", map[string]*tensor.Tensor{"shape": ints(2, 4), "data": floats(1, 2, 2), "indices": ints(2), "indptr": ints(0, 1)}, "indices[0] is 2, outside of the 2 blocks of a row"},
		{"bsr", map[string]*tensor.Tensor{"shape": ints(2, 4), "data": floats(0, 2, 2), "indices": ints(1), "indptr": ints(0, 1)}, "indptr ends at 1"},
		{"coo", map[string]*tensor.Tensor{"shape": ints(2, 4), "data": floats(2), "row": ints(1), "col": ints(1)}, "there are 1 coordinates along a dimension, and data is tensor<2xf64>"},
		{"coo", map[string]*tensor.Tensor{"shape": ints(2), "data": floats(2), "row": ints(1), "col": ints(1)}, "row and col are of a matrix"},
		{"coo", map[string]*tensor.Tensor{"shape": ints(2), "data": floats(2), "coords": ints(1, 2).Reshape(2, 1)}, "coords has 2 rows"},
		{"tensor<2x3xf32, #dm.dcsr<nnz = 2>>", map[string]*tensor.Tensor{"values": floats(2)}, `no array "positions0"`},
		{"tensor<2x3xf32>", nil, "is no sparse tensor"},
		{"tensor<2x?xf32, #dm.dcsr<nnz = 2>>", nil, "has sizes that are no numbers"},
	} {
		var b bytes.Buffer
		w := tensor.NewWriter(&b)
		if k.format != "" {
			if err := w.Text("format", k.format); err != nil {
				t.Fatal(err)
			}
		}
		for name, x := range k.arrays {
			if err := w.Array(name, x); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readNPZ(t, path, types.F32); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q", k.format, err, k.want)
		}
	}
}

func FuzzReadMarket(f *testing.F) {
	for _, s := range []string{
		"%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 1\n2 3 -1.5\n",
		"%%MatrixMarket matrix coordinate pattern symmetric\n% c\n3 3 2\n1 1\n3 2\n",
		"%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n",
		"%%MatrixMarket matrix coordinate real general\n2 3 99999999999999\n1 1 1\n",
		"%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 2 1\n\n2 1 1\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := sparse.ReadMarket(bytes.NewReader(data), types.F32)
		var bad *sparse.FileError
		if (c == nil) == (err == nil) || err != nil && (!errors.As(err, &bad) || bad.Line == 0) {
			t.Fatalf("got %v and %v", c, err)
		}
		packs(t, c)
	})
}

// packs checks that what a reader accepts is stored.
func packs(t *testing.T, c *sparse.COO) {
	if c == nil || len(c.Shape) != 2 {
		return
	}
	ty := sparse.Shaped(typeOf(t, "tensor<1x1xf32, #dm.coo>"), c.Shape, []int64{int64(c.Len())})
	x, err := sparse.Pack(ty, c)
	if err != nil {
		var bad *sparse.Error
		if !errors.As(err, &bad) || !strings.Contains(bad.Help, "crdWidth") {
			t.Fatal(err)
		}
		return
	}
	if err := x.Check(); err != nil {
		t.Fatal(err)
	}
}

// The arrays of an archive, whose bytes are their numbers: those of a compressed matrix, and of
// coordinates.
func FuzzReadNPZ(f *testing.F) {
	f.Add("csr", []byte{2, 3}, []byte{0, 2, 3}, []byte{0, 2, 1}, uint8(3), uint8(0))
	f.Add("csc", []byte{3, 2}, []byte{0, 2, 3}, []byte{0, 2, 1}, uint8(3), uint8(0))
	f.Add("bsr", []byte{4, 6}, []byte{0, 1, 2}, []byte{0, 1}, uint8(2), uint8(3))
	f.Add("coo", []byte{4, 6}, []byte{0, 1, 2}, []byte{0, 1, 5}, uint8(3), uint8(0))
	f.Add("tensor<2x3xf32, #dm.dcsr<nnz = 2>>", []byte{2, 3}, []byte{0, 2}, []byte{0, 1}, uint8(2), uint8(0))
	path := filepath.Join(f.TempDir(), "x.npz")
	f.Fuzz(func(t *testing.T, format string, shape, first, second []byte, n, block uint8) {
		ints := func(b []byte) *tensor.Tensor {
			x := tensor.New(types.I32, len(b))
			for i, v := range b {
				x.Int[i] = int64(int8(v))
			}
			return x
		}
		data := tensor.New(types.F32, int(n))
		if block > 0 {
			data = tensor.New(types.F32, int(n), 2, int(block))
		}
		var b bytes.Buffer
		w := tensor.NewWriter(&b)
		err := w.Text("format", format)
		for _, a := range []struct {
			name string
			x    *tensor.Tensor
		}{
			{"shape", ints(shape)},
			{"data", data},
			{"indptr", ints(first)},
			{"indices", ints(second)},
			{"row", ints(first)},
			{"col", ints(second)},
			{"positions0", ints(first)},
			{"coordinates0", ints(second)},
			{"positions1", ints(first)},
			{"coordinates1", ints(second)},
			{"values", data},
		} {
			err = errors.Join(err, w.Array(a.name, a.x))
		}
		if err = errors.Join(err, w.Close(), os.WriteFile(path, b.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
		z, err := tensor.OpenNPZ(path)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		c, err := sparse.ReadNPZ(z, types.F32)
		if (c == nil) == (err == nil) {
			t.Fatalf("got %v and %v", c, err)
		}
		packs(t, c)
	})
}
