package suite

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"dmir/base/atomicfile"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// Case is one program.
type Case struct {
	Name  string
	Class string // cases that are likely to fail together: "wgmma", "attention", …
	// Program is a .dmx file with machine code.
	Program []byte
	Sets    []Set // the first has the seed that tests use
	Probes  []Probe

	made *artifact.Program // of a case that was built by this process
}

// Set is inputs of a case, and what the reference computes from them.
type Set struct {
	Seed   uint64
	Inputs []Input
	Want   []Want // of each result
}

// Input is an argument: its bytes, or how to generate them.
type Input struct {
	Bytes        []byte
	Elem         string
	Shape, Order []int
	Seed, Stream uint64
}

// Want is the expected result: all of its elements, or a sample.
type Want struct {
	Elem   string
	Len    int
	Sample int    // number of elements sampled: those of indices(Len, Sample)
	Bytes  []byte // of those
	// Sum and Squares are over all finite elements, Odd is the number of the
	// others.
	Sum, Squares float64
	Odd          int
	Within
}

// Within is the tolerance of a result; if all fields are zero it must be exact.
type Within struct {
	Most   float64 // largest difference of an element, as tensor.MaxDiff
	Length float64 // length of the difference over that of the result; 0: any
	Scaled bool    // Most is against 1 + the largest element
}

// The elements of a result that a case has at most, a quarter of those that it has all of: of the first set of inputs, and of
// others, since random numbers are most of an archive of cases.
const (
	sampled      = 1 << 13
	sampledAgain = 1 << 10
)

// indices are those of the sampled elements of n: the first and last ones, and
// others that depend only on n.
func indices(n, sample int) []int {
	out := make([]int, 0, sample)
	for i := range sample / 4 {
		out = append(out, i, n-1-i)
	}
	for i := range uint64(sample - len(out)) {
		out = append(out, int(tensor.Bits(uint64(n), 1, i)%uint64(n)))
	}
	return out
}

// inputOf is x in the format of the program's buffer.
func inputOf(x *tensor.Tensor, b *artifact.Buffer, seed, stream uint64) (Input, error) {
	in := Input{Elem: x.Elem.String(), Shape: slices.Clone(x.Shape), Order: b.Order, Seed: seed, Stream: stream}
	raw := tensor.Arrange(tensor.Pack(x), x.Elem, x.Shape, b.Order)
	made, err := in.bytes()
	if err != nil || !bytes.Equal(made, raw) {
		in.Bytes, in.Shape = raw, nil
	}
	return in, nil
}

// bytes are the input's bytes on a device.
func (in *Input) bytes() ([]byte, error) {
	if in.Shape == nil {
		return in.Bytes, nil
	}
	elem, ok := types.ElemByName(in.Elem)
	if !ok {
		return nil, fmt.Errorf("an input of %q", in.Elem)
	}
	raw := tensor.Pack(tensor.Random(elem, in.Shape, in.Seed, in.Stream))
	return tensor.Arrange(raw, elem, in.Shape, in.Order), nil
}

// wantOf is the result x, in the device's order of elements; of a large one a sample.
func wantOf(x *tensor.Tensor, order []int, w Within, sample int) (Want, error) {
	size := int(x.Elem.Bytes())
	raw := tensor.Arrange(tensor.Pack(x), x.Elem, x.Shape, order)
	out := Want{Elem: x.Elem.String(), Len: x.Len(), Within: w}
	out.Sum, out.Squares, out.Odd = sums(x)
	if out.Len <= 4*sample {
		out.Bytes = raw
		return out, nil
	}
	out.Sample = sample
	for _, i := range indices(out.Len, sample) {
		out.Bytes = append(out.Bytes, raw[i*size:(i+1)*size]...)
	}
	return out, nil
}

func sums(x *tensor.Tensor) (sum, squares float64, odd int) {
	for i := range x.Len() {
		v := x.Float(i)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			odd++
			continue
		}
		sum, squares = sum+v, squares+v*v
	}
	return sum, squares, odd
}

// check returns the error of a result, if any; raw are its bytes.
func (w *Want) check(raw []byte) error {
	elem, ok := types.ElemByName(w.Elem)
	if !ok {
		return fmt.Errorf("elements of %q", w.Elem)
	}
	size := int(elem.Bytes())
	if len(raw) != w.Len*size {
		return fmt.Errorf("%d bytes, not %d", len(raw), w.Len*size)
	}
	all, err := tensor.Unpack(raw, elem, []int{w.Len})
	if err != nil {
		return err
	}
	got, at := all, func(i int) int { return i }
	if w.Sample > 0 {
		list := indices(w.Len, w.Sample)
		var kept []byte
		for _, i := range list {
			kept = append(kept, raw[i*size:(i+1)*size]...)
		}
		if got, err = tensor.Unpack(kept, elem, []int{len(list)}); err != nil {
			return err
		}
		at = func(i int) int { return list[i] }
	}
	want, err := tensor.Unpack(w.Bytes, elem, []int{got.Len()})
	if err != nil {
		return err
	}
	top := 0.0
	if w.Scaled {
		for i := range want.Len() {
			if v := math.Abs(want.Float(i)); !math.IsInf(v, 0) {
				top = max(top, v)
			}
		}
	}
	var difference, length float64
	worst, bad, wrong := -1, 0.0, 0
	for i := range want.Len() {
		g, v := got.Float(i), want.Float(i)
		if g == v || g != g && v != v {
			length += v * v
			continue
		}
		d := math.Abs(g-v) / (1 + math.Abs(v))
		if w.Scaled {
			d = math.Abs(g-v) / (1 + top)
		}
		if !(d <= w.Most) {
			if wrong++; worst < 0 || !(d <= bad) {
				worst, bad = i, d
			}
		}
		difference, length = difference+(g-v)*(g-v), length+v*v
	}
	if worst >= 0 {
		return fmt.Errorf("%d of %d elements differ by more than %.2g: element %d is %v, want %v", wrong, want.Len(), w.Most, at(worst), got.Float(worst), want.Float(worst))
	}
	if w.Length > 0 && difference > 0 && !(math.Sqrt(difference/length) <= w.Length) {
		return fmt.Errorf("the difference has %.2g of the result's length, more than %.2g", math.Sqrt(difference/length), w.Length)
	}
	if w.Sample == 0 {
		return nil
	}
	// Of the others: the number of NaNs and infinities, and the sums.
	sum, squares, odd := sums(all)
	most := w.Most
	if w.Scaled {
		most *= 1 + top
	}
	slack := most * (float64(w.Len) + math.Sqrt(squares*float64(w.Len)))
	if odd != w.Odd || !(math.Abs(sum-w.Sum) <= slack) || !(math.Abs(squares-w.Squares) <= 3*slack*(1+math.Sqrt(squares/float64(w.Len)))) {
		return fmt.Errorf("the sampled elements agree, others do not: sums %g and %g of squares, %d that are no numbers; want %g, %g, %d", sum, squares, odd, w.Sum, w.Squares, w.Odd)
	}
	return nil
}

// extension of the files of cases.
const extension = ".case"

// Write writes the case to the folder of its class in dir, uncompressed: many cases
// are compressed together.
func (c *Case) Write(dir string) error {
	dir = filepath.Join(dir, c.Class)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, c.Name+extension), 0o644, func(w io.Writer) error {
		return gob.NewEncoder(w).Encode(c)
	})
}

// Read reads a case.
func Read(path string) (*Case, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var c Case
	if err := gob.NewDecoder(bufio.NewReader(f)).Decode(&c); err != nil {
		return nil, fmt.Errorf("%s is no case: %w", path, err)
	}
	return &c, nil
}

// program is the case's program. One that was read from a file is untrusted.
func (c *Case) program() (*artifact.Program, error) {
	if c.made != nil {
		return c.made, nil
	}
	return artifact.Read(bytes.NewReader(c.Program))
}
