package artifact

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"dmir/internal/whole"
)

// A .dmx file is, with numbers in little-endian order:
//
//	"\x89DMX\r\n\x1a\n"   so that a transfer that changes line ends shows
//	uint32                the version of the format
//	uint64                the length of the header
//	the header            the Program as JSON, without the blobs
//	the blobs             one after another: the constants' data, then the images
//	32 bytes              SHA-256 of all before
const (
	magic         = "\x89DMX\r\n\x1a\n"
	formatVersion = 1
	maxHeader     = 256 << 20
)

// document is the header.
type document struct {
	Program *Program
	Data    []int64 // the lengths of the constants' data, by buffer; -1: none
	Cubins  []int64 // of the images, in their order
}

// Write writes the program as a .dmx file.
func (p *Program) Write(w io.Writer) error {
	lean := *p
	doc := document{Program: &lean}
	lean.Buffers = append([]Buffer(nil), p.Buffers...)
	lean.Images = append([]Image(nil), p.Images...)
	for i := range lean.Buffers {
		n := int64(-1)
		if lean.Buffers[i].Data != nil {
			n = int64(len(lean.Buffers[i].Data))
			lean.Buffers[i].Data = nil
		}
		doc.Data = append(doc.Data, n)
	}
	for i := range lean.Images {
		doc.Cubins = append(doc.Cubins, int64(len(lean.Images[i].Cubin)))
		lean.Images[i].Cubin = nil
	}
	header, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	sum := sha256.New()
	to := io.MultiWriter(w, sum)
	head := append([]byte(magic), make([]byte, 12)...)
	binary.LittleEndian.PutUint32(head[8:], formatVersion)
	binary.LittleEndian.PutUint64(head[12:], uint64(len(header)))
	parts := [][]byte{head, header}
	for i := range p.Buffers {
		parts = append(parts, p.Buffers[i].Data)
	}
	for i := range p.Images {
		parts = append(parts, p.Images[i].Cubin)
	}
	for _, part := range parts {
		if _, err := to.Write(part); err != nil {
			return err
		}
	}
	_, err = w.Write(sum.Sum(nil))
	return err
}

// Read reads a .dmx file and checks the program in it. Whatever the bytes are,
// it gives a program that Check accepts or an error of one line, and holds no
// more memory than a few times what there is to read.
func Read(r io.Reader) (*Program, error) {
	in := &reader{r: bufio.NewReader(r), sum: sha256.New()}
	head, err := in.bytes(int64(len(magic)) + 12)
	if len(head) < len(magic) || string(head[:len(magic)]) != magic {
		return nil, errors.New("is no .dmx file")
	}
	if err != nil {
		return nil, err
	}
	if v := binary.LittleEndian.Uint32(head[8:]); v != formatVersion {
		return nil, fmt.Errorf("has version %d of the .dmx format; this dmir reads version %d: compile it again", v, formatVersion)
	}
	size := binary.LittleEndian.Uint64(head[12:])
	if size > maxHeader {
		return nil, errDamaged
	}
	header, err := in.bytes(int64(size))
	if err != nil {
		return nil, err
	}
	var doc document
	parsed := json.Unmarshal(header, &doc)
	if parsed != nil || doc.Program == nil || len(doc.Data) != len(doc.Program.Buffers) || len(doc.Cubins) != len(doc.Program.Images) {
		return nil, errDamaged
	}
	p := doc.Program
	for i, n := range doc.Data {
		if n < 0 {
			continue
		}
		if p.Buffers[i].Data, err = in.bytes(n); err != nil {
			return nil, err
		}
	}
	for i, n := range doc.Cubins {
		if p.Images[i].Cubin, err = in.bytes(n); err != nil {
			return nil, err
		}
	}
	want := in.sum.Sum(nil)
	got, err := in.bytes(sha256.Size)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(got, want) {
		return nil, errDamaged
	}
	if _, err := in.r.ReadByte(); err != io.EOF {
		return nil, errors.New("goes on after its end: it is damaged, or several files in one")
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("holds a program that cannot be run: %w", firstOf(err))
	}
	return p, nil
}

var errDamaged = errors.New("is damaged: its checksum or its header is wrong")

// firstOf is the first of joined errors.
func firstOf(err error) error {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		return list.Unwrap()[0]
	}
	return err
}

type reader struct {
	r   *bufio.Reader
	sum hash.Hash
}

// bytes reads n bytes. The memory grows with what is there, not with what a
// damaged length promises.
func (r *reader) bytes(n int64) ([]byte, error) {
	if n < 0 {
		return nil, errDamaged
	}
	var b bytes.Buffer
	_, err := io.CopyN(&b, r.r, n)
	r.sum.Write(b.Bytes())
	switch {
	case err == io.EOF:
		return b.Bytes(), errors.New("is truncated")
	case err != nil:
		return b.Bytes(), err
	case n == 0:
		return []byte{}, nil
	}
	return b.Bytes(), nil
}

// WriteFile writes the program to path, in full or not at all.
func (p *Program) WriteFile(path string) error {
	return whole.WriteFile(path, 0o644, p.Write)
}

// ReadFile reads the .dmx file at path. An error that is not the operating
// system's begins with the path.
func ReadFile(path string) (*Program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := Read(f)
	var system *os.PathError
	if err != nil && !errors.As(err, &system) {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return p, err
}
