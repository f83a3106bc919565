package artifact

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"

	"dmir/base/atomicfile"
	"dmir/base/local"
	"dmir/base/regular"
)

// A .dmx file is, with numbers in little-endian order:
//
//	"\x89DMX\r\n\x1a\n"   so that a transfer that changes line ends shows
//	uint32                the version of the format
//	uint64                the length of the header
//	the header            the Program as JSON, without the blobs
//	the blobs             one after another: the constants' data, then the images; then those of the variants and the stages
//	32 bytes              SHA-256 of all before
const (
	// Magic is what a .dmx file begins with.
	Magic = "\x89DMX\r\n\x1a\n"
	// FormatVersion is that of the newest files. Of older ones: see old.go.
	FormatVersion = 6
	// Earlier dmirs read what needs no more: programs of one function for all devices, and for one device.
	stagesVersion  = 5
	dividedVersion = 4
	aloneVersion   = 3
	maxHeader      = 256 << 20
)

// header is the header of a file: a program of type P without its blobs. The
// lengths are of the program's blobs and then of those of its variants.
type header[P any] struct {
	Program *P
	Data    []int64 // the constants' data, by buffer; -1: none
	Images  []int64 `json:"Cubins"`     // the images' code, in their order
	Seal    []byte  `json:",omitempty"` // see seal
}

type document = header[Program]

// programs are p, its variants and its stages with theirs, in the order of their blobs; nil where a damaged file
// has none.
func (p *Program) programs() []*Program {
	out := append([]*Program{p}, p.Variants...)
	for _, s := range p.Stages {
		out = append(out, s.Program)
		if s.Program != nil {
			out = append(out, s.Program.Variants...)
		}
	}
	return out
}

// Write writes the program as a .dmx file.
func (p *Program) Write(w io.Writer) error {
	var doc document
	var blobs [][]byte
	lean := func(p *Program) *Program {
		q := *p
		q.Buffers = append([]Buffer(nil), p.Buffers...)
		q.Images = append([]Image(nil), p.Images...)
		q.Variants, q.Object = nil, ""
		for i := range q.Buffers {
			q.Buffers[i].Array = nil // the file has the data
			n := int64(-1)
			if data := q.Buffers[i].Data; data != nil {
				n = int64(len(data))
				blobs = append(blobs, data)
				q.Buffers[i].Data = nil
			}
			doc.Data = append(doc.Data, n)
		}
		for i := range q.Images {
			doc.Images = append(doc.Images, int64(len(q.Images[i].Code)))
			blobs = append(blobs, q.Images[i].Code)
			q.Images[i].Code = nil
		}
		return &q
	}
	withVariants := func(p *Program) *Program {
		q := lean(p)
		for _, v := range p.Variants {
			q.Variants = append(q.Variants, lean(v))
		}
		return q
	}
	doc.Program = withVariants(p)
	doc.Program.Stages = slices.Clone(p.Stages)
	for i, s := range p.Stages {
		doc.Program.Stages[i].Program = withVariants(s.Program)
	}
	if p.Key != nil {
		mac, err := doc.seal(p.Key)
		if err != nil {
			return err
		}
		for _, b := range blobs {
			mac.Write(b)
		}
		doc.Seal = mac.Sum(nil)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	sum := sha256.New()
	to := io.MultiWriter(w, sum)
	head := append([]byte(Magic), make([]byte, 12)...)
	version := uint32(aloneVersion)
	switch {
	case p.exchangesSeveral():
		version = FormatVersion
	case p.Stages != nil:
		version = stagesVersion
	case p.Divided != nil:
		version = dividedVersion
	}
	binary.LittleEndian.PutUint32(head[8:], version)
	binary.LittleEndian.PutUint64(head[12:], uint64(len(text)))
	for _, part := range append([][]byte{head, text}, blobs...) {
		if _, err := to.Write(part); err != nil {
			return err
		}
	}
	_, err = w.Write(sum.Sum(nil))
	return err
}

// seal starts the signature of a program with its header; the blobs follow. It covers
// the canonical encoding of the header's content, not the bytes of the file.
func (d *header[P]) seal(key []byte) (hash.Hash, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var meant header[P]
	if err := json.Unmarshal(text, &meant); err != nil {
		return nil, err
	}
	meant.Seal = nil
	if text, err = json.Marshal(meant); err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "dmir program %d\n", len(text))
	mac.Write(text)
	return mac, nil
}

// headerOf reads a header. mac is its signature with key; nil without a key.
func headerOf[P any](text, key []byte) (d *header[P], mac hash.Hash, err error) {
	d = &header[P]{}
	if err := json.Unmarshal(text, d); err != nil || d.Program == nil {
		return nil, nil, errDamaged
	}
	if key != nil {
		if mac, err = d.seal(key); err != nil {
			return nil, nil, errDamaged
		}
	}
	return d, mac, nil
}

// Read reads a .dmx file and checks the program in it. For any
// bytes it returns a program that Check accepts or an error of one line, and uses
// memory of at most a few times the size of the file. The program is Foreign.
func Read(r io.Reader) (*Program, error) { return ReadSigned(r, nil) }

// ReadSigned is Read; a program that was signed with key is not Foreign. With a
// nil key every program is Foreign.
func ReadSigned(r io.Reader, key []byte) (*Program, error) {
	in := &reader{r: bufio.NewReader(r), sum: sha256.New()}
	head, err := in.bytes(int64(len(Magic)) + 12)
	if len(head) < len(Magic) || string(head[:len(Magic)]) != Magic {
		return nil, errors.New("is not a .dmx file")
	}
	if err != nil {
		return nil, err
	}
	version := binary.LittleEndian.Uint32(head[8:])
	if version < 1 || version > FormatVersion {
		return nil, fmt.Errorf("has version %d of the .dmx format; this dmir reads versions 1 to %d: update dmir, or compile it again", version, FormatVersion)
	}
	size := binary.LittleEndian.Uint64(head[12:])
	if size > maxHeader {
		return nil, errDamaged
	}
	text, err := in.bytes(int64(size))
	if err != nil {
		return nil, err
	}
	var doc *document
	var mac hash.Hash
	if version >= aloneVersion {
		doc, mac, err = headerOf[Program](text, key)
	} else {
		doc, mac, err = oldHeader(text, key)
	}
	if err != nil {
		return nil, err
	}
	if !fits(doc) {
		return nil, errDamaged
	}
	p := doc.Program
	in.mac = mac
	for _, q := range p.programs() {
		q.Foreign = true
		for i := range q.Buffers {
			n := doc.Data[0]
			doc.Data = doc.Data[1:]
			if n < 0 {
				continue
			}
			if q.Buffers[i].Data, err = in.bytes(n); err != nil {
				return nil, err
			}
		}
		for i := range q.Images {
			n := doc.Images[0]
			doc.Images = doc.Images[1:]
			if q.Images[i].Code, err = in.bytes(n); err != nil {
				return nil, err
			}
		}
	}
	if key != nil && hmac.Equal(in.mac.Sum(nil), doc.Seal) {
		p.Trust()
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
		return nil, errors.New("has data after its end: it is damaged, or several files were concatenated")
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("holds a program that cannot be run: %w", firstOf(err))
	}
	for _, q := range p.programs() {
		if err := q.contained(); err != nil {
			return nil, fmt.Errorf("holds code that is not self-contained: %w", err)
		}
	}
	return p, nil
}

// fits reports whether there is a length for each blob.
func fits(d *document) bool {
	buffers, images := 0, 0
	for _, q := range d.Program.programs() {
		if q == nil {
			return false
		}
		buffers += len(q.Buffers)
		images += len(q.Images)
	}
	return len(d.Data) == buffers && len(d.Images) == images
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
	mac hash.Hash // of the blobs; nil before they begin
}

// bytes reads n bytes. The memory grows with the bytes read, not with the
// length in a damaged header.
func (r *reader) bytes(n int64) ([]byte, error) {
	if n < 0 {
		return nil, errDamaged
	}
	var b bytes.Buffer
	_, err := io.CopyN(&b, r.r, n)
	r.sum.Write(b.Bytes())
	if r.mac != nil {
		r.mac.Write(b.Bytes())
	}
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
	return atomicfile.WriteFile(path, 0o644, p.Write)
}

// Trust marks a program as one of this user's, after the user confirmed it.
func (p *Program) Trust() {
	for _, q := range p.programs() {
		q.Foreign = false
	}
}

// ReadFile reads the .dmx file at path; one that this user has compiled here is
// not Foreign. An error that is not the operating system's begins with the path.
func ReadFile(path string) (*Program, error) {
	f, err := regular.OpenNamed(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	key, err := local.Key(false)
	if err != nil {
		key = nil // without one all programs are foreign
	}
	p, err := ReadSigned(f, key)
	var system *os.PathError
	if err != nil && !errors.As(err, &system) {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return p, err
}
