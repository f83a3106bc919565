package sparse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// FileError is what is wrong with a file.
type FileError struct {
	Line int // from 1; 0 where it is no line
	Msg  string
	Help string
}

func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
	}
	return e.Msg
}

// mostLine bounds the length of a line.
const mostLine = 1 << 16

// market reads the lines of a file in the Matrix Market format (Boisvert, Pozo and Remington,
// NISTIR 5935).
type market struct {
	r    *bufio.Reader
	line int
	text []byte   // of the line
	has  [][]byte // its fields

	array, symmetric, skew bool
	field                  string
	rows, cols, entries    int64

	c       *COO
	values  []float64
	whole   []int64 // in place of values, of integers
	jumps   []jump
	mirrors []int // of the elements above the diagonal, those below it
}

// jump is that the entries from one on are on other lines than those before, each on the next line.
type jump struct{ entry, line int }

// ReadMarket reads a matrix in the Matrix Market format, of real numbers, integers or a
// pattern, whose elements are 1, as one with elements of a type (COO.As). Elements that a symmetry
// gives are among its own, and of an array those that are not 0. An error is a *FileError, or
// of reading.
func ReadMarket(r io.Reader, elem types.Elem) (*COO, error) {
	m := &market{r: bufio.NewReaderSize(r, mostLine)}
	if err := m.header(); err != nil {
		return nil, err
	}
	m.c = &COO{Shape: []int{int(m.rows), int(m.cols)}, At: make([][]int64, 2)}
	read := m.coordinates
	if m.array {
		read = m.dense
	}
	if err := read(); err != nil {
		return nil, err
	}
	if more, err := m.next(); err != nil {
		return nil, err
	} else if more {
		return nil, m.wrong("remove it, or correct the number of entries in the line of sizes", "there is more than the %d entries that the header states", m.entries)
	}
	m.mirror()
	if m.integers() {
		m.c.Values = vector(types.I64, m.whole)
	} else {
		m.c.Values = &tensor.Tensor{Elem: types.F64, Shape: []int{len(m.values)}, F64: m.values}
	}
	if err := m.c.distinct(); err != nil {
		at, before := m.lineOf(err.Element), m.lineOf(err.Other)
		return nil, &FileError{max(at, before), fmt.Sprintf("entry (%d, %d) is there twice: it is on line %d too", m.c.At[0][err.Element]+1, m.c.At[1][err.Element]+1, min(at, before)), err.Help}
	}
	c, bad := m.c.As(elem)
	if bad != nil {
		return nil, &FileError{m.lineOf(bad.Element), bad.Msg, bad.Help}
	}
	return c, nil
}

func (m *market) wrong(help, format string, args ...any) *FileError {
	return &FileError{m.line, fmt.Sprintf(format, args...), help}
}

// next reads the next line that is neither empty nor a comment; more is false at the end.
func (m *market) next() (more bool, err error) {
	for {
		text, err := m.r.ReadSlice('\n')
		if len(text) > 0 || err == nil {
			m.line++
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return false, m.wrong("write one entry on a line", "the line is longer than %d bytes", mostLine)
		case err != nil && !errors.Is(err, io.EOF):
			return false, err
		}
		m.text = bytes.TrimSpace(text)
		if len(m.text) > 0 && m.text[0] != '%' {
			m.has = m.has[:0]
			for f := range bytes.FieldsSeq(m.text) {
				m.has = append(m.has, f)
			}
			return true, nil
		}
		if err != nil {
			return false, nil
		}
	}
}

// header reads the first line and the line of sizes.
func (m *market) header() error {
	const form = "a file begins with %%MatrixMarket matrix coordinate real general"
	first, err := m.r.ReadSlice('\n')
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	m.line = 1
	words := strings.Fields(strings.ToLower(string(first)))
	if len(words) != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix" {
		return m.wrong(form, "this is no matrix in the Matrix Market format")
	}
	switch words[2] {
	case "array":
		m.array = true
	case "coordinate":
	default:
		return m.wrong(form, "a matrix is coordinate or array, not %q", words[2])
	}
	switch m.field = words[3]; m.field {
	case "real", "double", "integer":
	case "pattern":
		if m.array {
			return m.wrong(form, "an array is no pattern")
		}
	case "complex":
		return m.wrong("write the real parts, or two files", "its elements are complex, and an argument's are real")
	default:
		return m.wrong(form, "elements are real, integer or pattern, not %q", m.field)
	}
	switch words[4] {
	case "general":
	case "symmetric":
		m.symmetric = true
	case "skew-symmetric":
		m.symmetric, m.skew = true, true
	default:
		return m.wrong(form, "a matrix is general, symmetric or skew-symmetric, not %q", words[4])
	}
	more, err := m.next()
	if err != nil {
		return err
	}
	sizes := "rows, columns and entries"
	want := []*int64{&m.rows, &m.cols, &m.entries}
	if m.array {
		sizes, want = "rows and columns", want[:2]
	}
	if !more {
		return m.wrong("write them in the first line that is no comment", "the file ends before the line of sizes")
	}
	if len(m.has) != len(want) {
		return m.wrong("write its "+sizes, "%q is no line of sizes", m.text)
	}
	for i, f := range m.has {
		if *want[i], err = strconv.ParseInt(string(f), 10, 64); err != nil || *want[i] < 0 || *want[i] > 1<<48 {
			return m.wrong("write its "+sizes, "%q is no size", f)
		}
	}
	if m.symmetric && m.rows != m.cols {
		return m.wrong("", "a symmetric matrix is square, and this one has %d rows and %d columns", m.rows, m.cols)
	}
	if !m.array {
		return nil
	}
	if n, ok := tensor.Count([]int{int(m.rows), int(m.cols)}); ok {
		m.entries = int64(n)
	} else {
		return m.wrong("", "%d × %d elements do not fit into memory", m.rows, m.cols)
	}
	switch n := m.rows; {
	case m.skew:
		m.entries = n * max(n-1, 0) / 2
	case m.symmetric:
		m.entries = n * (n + 1) / 2
	}
	return nil
}

// entry goes to the line of entry k.
func (m *market) entry(k int) error {
	more, err := m.next()
	if err != nil {
		return err
	}
	if !more {
		return m.wrong("get the file again: it may be cut off", "the file ends after %d of %d entries", k, m.entries)
	}
	return nil
}

// keep adds the entry of this line, with its value already among the values.
func (m *market) keep(row, col int64) {
	k := len(m.c.At[0])
	if n := len(m.jumps); n == 0 || m.line-m.jumps[n-1].line != k-m.jumps[n-1].entry {
		m.jumps = append(m.jumps, jump{k, m.line})
	}
	m.c.At[0], m.c.At[1] = append(m.c.At[0], row), append(m.c.At[1], col)
}

// lineOf is the line of an element.
func (m *market) lineOf(element int) int {
	if own := len(m.c.At[0]) - len(m.mirrors); element >= own {
		element = m.mirrors[element-own]
	}
	i, exact := slices.BinarySearchFunc(m.jumps, element, func(j jump, e int) int { return j.entry - e })
	if !exact {
		i--
	}
	return m.jumps[i].line + element - m.jumps[i].entry
}

func (m *market) coordinates() error {
	fields := 3
	if m.field == "pattern" {
		fields = 2
	}
	for k := range int(m.entries) {
		if err := m.entry(k); err != nil {
			return err
		}
		if len(m.has) != fields {
			return m.wrong("", "an entry has %d numbers, not %d: %q", fields, len(m.has), m.text)
		}
		var at [2]int64
		for d, size := range [2]int64{m.rows, m.cols} {
			x, err := strconv.ParseInt(string(m.has[d]), 10, 64)
			if err != nil {
				return m.wrong("", "%q is no coordinate", m.has[d])
			}
			if x < 1 || x > size {
				return m.wrong("coordinates count from 1; correct the sizes or the entry", "(%s, %s) is outside of %d × %d", m.has[0], m.has[1], m.rows, m.cols)
			}
			at[d] = x - 1
		}
		if m.skew && at[0] == at[1] {
			return m.wrong("leave it out", "the diagonal of a skew-symmetric matrix is 0 and not stated")
		}
		number := []byte("1")
		if m.field != "pattern" {
			number = m.has[2]
		}
		if _, err := m.value(number, true); err != nil {
			return err
		}
		m.keep(at[0], at[1])
	}
	return nil
}

// dense reads an array, column by column; of a symmetric one each column from the diagonal on,
// or from behind it.
func (m *market) dense() error {
	k := 0
	for col := range m.cols {
		first := int64(0)
		if m.symmetric {
			first = col
		}
		if m.skew {
			first++
		}
		for row := first; row < m.rows; row++ {
			if err := m.entry(k); err != nil {
				return err
			}
			if len(m.has) != 1 {
				return m.wrong("", "a line of an array has one element, not %d: %q", len(m.has), m.text)
			}
			kept, err := m.value(m.has[0], false)
			if err != nil {
				return err
			}
			if kept {
				m.keep(row, col)
			}
			k++
		}
	}
	return nil
}

// value adds a number to the values; zeros too, or none.
func (m *market) value(text []byte, zeros bool) (kept bool, err error) {
	if m.integers() {
		v, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return false, m.wrong("", "%q is no integer of 64 bits", text)
		}
		if v == 0 && !zeros {
			return false, nil
		}
		m.whole = append(m.whole, v)
		return true, nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return false, m.wrong("", "%q is no number of 64 bits", text)
	}
	if v == 0 && !zeros {
		return false, nil
	}
	m.values = append(m.values, v)
	return true, nil
}

func (m *market) integers() bool { return m.field == "integer" || m.field == "pattern" }

// mirror adds the elements on the other side of the diagonal of a symmetric matrix.
func (m *market) mirror() {
	if !m.symmetric {
		return
	}
	for k := range m.c.At[0] {
		if m.c.At[0][k] != m.c.At[1][k] {
			m.mirrors = append(m.mirrors, k)
		}
	}
	for _, k := range m.mirrors {
		m.c.At[0], m.c.At[1] = append(m.c.At[0], m.c.At[1][k]), append(m.c.At[1], m.c.At[0][k])
		sign := int64(1)
		if m.skew {
			sign = -1
		}
		if m.integers() {
			m.whole = append(m.whole, sign*m.whole[k])
		} else {
			m.values = append(m.values, float64(sign)*m.values[k])
		}
	}
}

// As is c with elements of another type: real numbers are rounded, and integers must be ones of
// the type. An error names the first element that is none.
func (c *COO) As(elem types.Elem) (*COO, *Error) {
	if c.Values.Elem == elem {
		return c, nil
	}
	out := *c
	out.Values = tensor.New(elem, c.Len())
	for k := range c.Len() {
		v := c.Values.Float(k)
		switch {
		case elem.IsFloat():
			out.Values.SetFloat(k, v)
		case types.Holds(elem, v):
			if out.Values.SetFloat(k, v); c.Values.Kind() == tensor.KindInt { // exact beyond 2^53
				out.Values.SetInt(k, c.Values.Int[k])
			}
		default:
			e := problem("declare the argument with elements that hold it", "the element %s is %v, which %s does not hold", c.Place(k), v, elem)
			e.Element = k
			return nil, e
		}
	}
	return &out, nil
}
