package artifact

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"dmir/base/parallel"
)

// Kept is a program for this machine's cache: without the texts that it was compiled from, where
// there is an object, and without the data of arrays in files, which are read again.
type Kept struct {
	Program *Program
	Notes   json.RawMessage `json:",omitempty"` // what else is known of it
}

// Keep writes p, which is for one architecture and has no images.
func (p *Program) Keep(w io.Writer, notes any) (err error) {
	for _, q := range p.programs() {
		if len(q.Images) > 0 || len(q.Variants) > 0 {
			return errors.New("a program with machine code keeps itself")
		}
	}
	var data [][]byte
	lean := func(p *Program) *Program {
		q := *p
		if q.Object != "" {
			q.Source, q.Headers = "", nil
			q.Kernels = append([]Kernel(nil), p.Kernels...)
			for i := range q.Kernels {
				q.Kernels[i].First, q.Kernels[i].Last = 0, 0
			}
		}
		q.Buffers = append([]Buffer(nil), p.Buffers...)
		for i := range q.Buffers {
			b := &q.Buffers[i]
			if b.Array == nil && b.Kind == Constant {
				data = append(data, b.Data)
			}
			b.Data = nil
		}
		return &q
	}
	k := Kept{Program: lean(p)}
	k.Program.Stages = append([]Stage(nil), p.Stages...)
	for i, s := range p.Stages {
		k.Program.Stages[i].Program = lean(s.Program)
	}
	if k.Notes, err = json.Marshal(notes); err != nil {
		return err
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	for _, part := range append([][]byte{fmt.Appendf(nil, "%d\n", len(text)), text}, data...) {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// ReadKept is the program that Keep wrote to r. read gives the data of arrays in files.
func ReadKept(r io.Reader, notes any, read func(b *Buffer) ([]byte, error)) (*Program, error) {
	in := bufio.NewReader(r)
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, errDamaged
	}
	size, err := strconv.ParseInt(strings.TrimSuffix(line, "\n"), 10, 64)
	if err != nil || size < 0 || size > maxHeader {
		return nil, errDamaged
	}
	var k Kept
	text, err := io.ReadAll(io.LimitReader(in, size))
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err != nil || k.Program == nil {
		return nil, errDamaged
	}
	p := k.Program
	var arrays []*Buffer
	for _, q := range p.programs() {
		if q == nil {
			return nil, errDamaged
		}
		for i := range q.Buffers {
			b := &q.Buffers[i]
			switch {
			case b.Kind != Constant:
				continue
			case b.Array != nil:
				arrays = append(arrays, b)
			case b.Size() < 0 || b.Size() > q.Workspace:
				err = errDamaged
			default:
				b.Data = make([]byte, b.Size())
				_, err = io.ReadFull(in, b.Data)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	failed := make([]error, len(arrays))
	parallel.Each(runtime.GOMAXPROCS(0), len(arrays), func(i int) { arrays[i].Data, failed[i] = read(arrays[i]) })
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(k.Notes, notes); err != nil {
		return nil, errDamaged
	}
	return p, p.Check()
}
