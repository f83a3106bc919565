package tensor

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"dmir/base/regular"
	"dmir/dialect/types"
)

// Series is an open .npy file with the values of an argument for many steps: an
// array with one more dimension in front, or one whose first dimension is longer.
// Only what is read is in memory.
type Series struct {
	path  string
	file  *os.File
	elem  types.Elem
	shape []int // of a value
	start int64 // of the data in the file
	width int   // bytes of an element
	order binary.ByteOrder
	unit  int // elements of a sample

	// Samples is how many samples the file has, and Batch how many of them a value
	// takes: 1 of an array with one more dimension, else as many as the first
	// dimension is long.
	Samples, Batch int
}

// OpenSeries opens a file as values of the given type, in which -1 stands for any
// size. The file is whole where the array is one such value itself. An array of another type or
// shape is a *MismatchError.
func OpenSeries(path string, elem types.Elem, shape []int) (s *Series, whole bool, err error) {
	f, err := regular.OpenNamed(path)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if s == nil {
			f.Close()
		}
	}()
	h, err := readHeader(f)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", path, err)
	}
	mismatch := &MismatchError{Want: typeText(shape, elem.String()) + " (" + dtypeName(dtypes[elem]) + "), or more of it", Got: typeText(h.Shape, dtypeName(h.Type))}
	width, order, ok := h.layout(elem)
	if !ok {
		return nil, false, fmt.Errorf("%s: %w", path, mismatch)
	}
	if matches(h.Shape, shape) {
		return nil, true, nil
	}
	s = &Series{path: path, file: f, elem: elem, start: h.Size, width: width, order: order}
	switch {
	case len(h.Shape) == len(shape)+1 && matches(h.Shape[1:], shape):
		s.shape, s.Samples, s.Batch = h.Shape[1:], h.Shape[0], 1
	case len(shape) > 0 && len(h.Shape) == len(shape) && shape[0] > 0 && h.Shape[0] >= shape[0] && matches(h.Shape[1:], shape[1:]):
		s.shape, s.Samples, s.Batch = slices.Concat(shape[:1], h.Shape[1:]), h.Shape[0], shape[0]
	default:
		s = nil
		return nil, false, fmt.Errorf("%s: %w", path, mismatch)
	}
	if err := s.check(h); err != nil {
		s = nil
		return nil, false, fmt.Errorf("%s: %w", path, err)
	}
	return s, false, nil
}

// check finds out whether the file has all of the data.
func (s *Series) check(h header) error {
	if h.Fortran && len(h.Shape) > 1 {
		return fmt.Errorf("the array is in Fortran order, which is not read in parts: save it in C order (numpy.ascontiguousarray)")
	}
	if s.Samples <= 0 {
		return fmt.Errorf("the array has no values")
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	n, ok := Count(h.Shape)
	if !info.Mode().IsRegular() {
		return fmt.Errorf("only a regular file is read in parts")
	}
	if !ok || int64(n) > (math.MaxInt64-s.start)/int64(s.width) || info.Size() < s.start+int64(n)*int64(s.width) {
		return fmt.Errorf("the .npy data end early: %s does not fit into %d bytes", typeText(h.Shape, dtypeName(h.Type)), info.Size())
	}
	s.unit = n / s.Samples
	return nil
}

// Steps is how many values the file has.
func (s *Series) Steps() int { return s.Samples / s.Batch }

// Read is the value that consists of these samples, Batch of them.
func (s *Series) Read(samples []int) (*Tensor, error) {
	t := New(s.elem, s.shape...)
	var buf []byte
	for i := 0; i < len(samples); {
		n := 1 // samples that follow one another are read at once
		for i+n < len(samples) && samples[i+n] == samples[i]+n {
			n++
		}
		size := n * s.unit * s.width
		if cap(buf) < size {
			buf = make([]byte, size)
		}
		at := s.start + int64(samples[i])*int64(s.unit)*int64(s.width)
		if _, err := s.file.ReadAt(buf[:size], at); err != nil {
			if err == io.EOF {
				err = fmt.Errorf("the .npy data end early")
			}
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
		decode(t, i*s.unit, (i+n)*s.unit, buf[:size], s.order)
		if err := inRange(t, i*s.unit, buf[:size]); err != nil {
			return nil, err
		}
		i += n
	}
	return t, nil
}

// Close closes the file.
func (s *Series) Close() error { return s.file.Close() }
