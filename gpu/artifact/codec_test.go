package artifact_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
)

// fromFile leaves out what a program does not have from its file.
var fromFile = cmpopts.IgnoreFields(artifact.Program{}, "Foreign", "Key")

// full is the program of the tests with machine code and headers.
func full() *artifact.Program {
	p := artifacttest.Program()
	p.Images = []artifact.Image{{Arch: "sm_80", Code: []byte("code")}, {Arch: "sm_90a", Code: bytes.Repeat([]byte{7}, 5000)}}
	p.Headers = []artifact.Header{{Name: "dm.cuh", Text: "#pragma once\n"}}
	p.Results = []string{"out", "sum"}
	two := 2.0
	p.Defaults = []artifact.Default{{Stddev: &two}}
	v := artifacttest.Program()
	v.Kernels[0].Arch = "sm_90a"
	v.Images = []artifact.Image{{Arch: "sm_90a", Code: []byte("more code")}}
	p.Variants = []*artifact.Program{v}
	return p
}

func encoded(t testing.TB, p *artifact.Program) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	p := full()
	before := full()
	data := encoded(t, p)
	if d := cmp.Diff(before, p); d != "" {
		t.Errorf("writing changed the program:\n%s", d)
	}
	got, err := artifact.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p, got, fromFile); d != "" {
		t.Error(d)
	}
	if again := encoded(t, got); !bytes.Equal(again, data) {
		t.Error("what was read is written otherwise")
	}
	path := filepath.Join(t.TempDir(), "layer.dmx")
	if err := p.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	if got, err = artifact.ReadFile(path); err != nil || cmp.Diff(p, got, fromFile) != "" {
		t.Errorf("from a file: %v", err)
	}
}

// A truncated file, or one with any byte changed, is an error of one line.
func TestDamage(t *testing.T) {
	data := encoded(t, full())
	refused := func(what string, b []byte) {
		t.Helper()
		p, err := artifact.Read(bytes.NewReader(b))
		if err == nil || p != nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v", what, p, err)
		}
	}
	for n := 0; n < len(data); n += 1 + n/50 {
		refused("truncated", data[:n])
	}
	for i := 0; i < len(data); i += 1 + i/50 {
		b := bytes.Clone(data)
		b[i] ^= 0x41
		refused("a flipped bit", b)
	}
	refused("something after", append(bytes.Clone(data), 0))
	for what, c := range map[string]struct{ text, want string }{
		"another file": {"func.func @f() { return }", "is not a .dmx file"},
		"nothing":      {"", "is not a .dmx file"},
		"line ends":    {strings.Replace(string(data), "\r\n", "\n", 1), "is not a .dmx file"},
		"the future":   {string(data[:8]) + "\x07" + string(data[9:]), "version 7 of the .dmx format; this dmir reads versions 1 to 6"},
		"huge":         {string(data[:12]) + "\xff\xff\xff\xff\xff\xff\xff\x7f" + string(data[20:]), "is damaged"},
		"half":         {string(data[:len(data)/2]), "is truncated"},
	} {
		if _, err := artifact.Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	path := filepath.Join(t.TempDir(), "a.dmx")
	if err := os.WriteFile(path, data[:100], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := artifact.ReadFile(path); err == nil || err.Error() != path+" is truncated" {
		t.Errorf("error %v", err)
	}
}

// An undamaged file may hold an invalid program.
func TestReadChecks(t *testing.T) {
	p := full()
	p.Buffers[3].Offset = 1 << 40
	if _, err := artifact.Read(bytes.NewReader(encoded(t, p))); err == nil || !strings.Contains(err.Error(), "cannot be run: buffer y") {
		t.Errorf("error %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(encoded(f, full()))
	f.Add(encoded(f, &artifact.Program{}))
	f.Add(encoded(f, artifacttest.Loop()))
	f.Add(encoded(f, artifacttest.InStages()))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := artifact.Read(bytes.NewReader(data))
		if (p == nil) != (err != nil) {
			t.Fatalf("%v, %v", p, err)
		}
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("several lines: %q", err)
			}
			return
		}
		if _, err := artifact.Read(bytes.NewReader(encoded(t, p))); err != nil {
			t.Errorf("what was read cannot be written and read again: %v", err)
		}
	})
}

// FuzzCheck changes the header of a program, since a fuzzer cannot pass the checksum.
func FuzzCheck(f *testing.F) {
	f.Add(int64(4096), 3, 2, 4, 1, 0)
	f.Fuzz(func(t *testing.T, offset int64, last, wait, buffer, stream, grid int) {
		p := artifacttest.Program()
		p.Buffers[3].Offset, p.Buffers[3].Last = offset, last
		p.Steps[4].Waits = []int{wait}
		p.Steps[3].Launch.Args[0].Buffer, p.Steps[2].Stream, p.Steps[1].Launch.Grid[0] = buffer, stream, grid
		_ = p.Check() // any result, but no panic
	})
}

// FuzzDecisions changes the fields of decisions.
func FuzzDecisions(f *testing.F) {
	f.Add(2, 1, 3, 4, 3, 6, int64(3))
	f.Add(7, 2, 0, 2, 1, 9, int64(0))
	f.Fuzz(func(t *testing.T, step, first, second, buffer, from, to int, trips int64) {
		p := artifacttest.Loop()
		s := &p.Steps[uint(step)%uint(len(p.Steps))]
		s.Decision = artifact.Decision{On: buffer, Parts: [2]int{first, second}, Trips: trips, TripsKnown: true}
		b := &p.Buffers[uint(buffer)%uint(len(p.Buffers))]
		b.First, b.Last = from, to
		if p.Check() != nil {
			return
		}
		p.Times()
		p.Predicted()
		rounds := 0
		_, err := p.Walk(func(from, to int) error {
			if from >= to || from < 0 || to > len(p.Steps) {
				t.Errorf("steps %d to %d", from, to)
			}
			return nil
		}, func(int) (bool, error) { rounds++; return rounds < 20, nil })
		if err != nil {
			t.Error(err)
		}
	})
}

// use does with a program that was read what devices and exports do, and verifies
// what Read guarantees.
func use(t *testing.T, p *artifact.Program) {
	t.Helper()
	for i, o := range p.Outputs {
		v := p.ResultView(i)
		seen := artifact.Buffer{Shape: v.Shape}
		n, ok := seen.Len()
		if have, _ := p.Buffers[o].Len(); !ok || n != have {
			t.Errorf("output %d: %v of the buffer %v", i, v.Shape, p.Buffers[o].Shape)
		}
		if v.Order != nil && len(v.Order) != len(v.Shape) {
			t.Errorf("output %d: the order %v of %v", i, v.Order, v.Shape)
		}
		p.Result(i)
	}
	p.Overwritten()
	p.Times()
	p.Predicted()
	p.Stretches()
	rounds := 0
	if _, err := p.Walk(func(int, int) error { return nil }, func(int) (bool, error) { rounds++; return rounds < 20, nil }); err != nil {
		t.Error(err)
	}
}

// A file with a valid checksum may hold anything: Read returns an error of one line
// or a program that can be used.
func TestHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	programs := []*artifact.Program{full(), viewed(), artifacttest.Loop(), artifacttest.Program()}
	old, _ := artifacttest.Version2()
	accepted := 0
	for n := range 1240 {
		file := artifacttest.Mutated(programs[n%len(programs)], r)
		if n >= 1200 {
			file = artifacttest.MutatedFile(old, r)
		}
		p, err := artifact.Read(bytes.NewReader(file))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("several lines: %q", err)
			}
			continue
		}
		accepted++
		use(t, p)
	}
	if accepted < 20 || accepted > 1000 {
		t.Errorf("%d of 1240 were accepted: the mutations are too many or too few", accepted)
	}
}

// viewed is a program whose first result is viewed as a column-major matrix.
func viewed() *artifact.Program {
	p := artifacttest.Program()
	p.Views = []*artifact.View{{Shape: []int64{10, 100}, Order: []int{1, 0}}}
	return p
}

// FuzzHeader passes any header with the right checksum to Read.
func FuzzHeader(f *testing.F) {
	old, _ := artifacttest.Version2()
	files := [][]byte{old}
	for _, p := range []*artifact.Program{full(), viewed(), artifacttest.Loop(), artifacttest.Divided()} {
		files = append(files, encoded(f, p))
	}
	for _, file := range files {
		size := binary.LittleEndian.Uint64(file[12:])
		f.Add(file[8], file[20:20+size], file[20+size:len(file)-sha256.Size])
	}
	f.Fuzz(func(t *testing.T, version byte, header, blobs []byte) {
		if p, err := artifact.Read(bytes.NewReader(artifacttest.Sealed(version, header, blobs))); err == nil {
			use(t, p)
		}
	})
}

// A file of an older version is read, signed or not, and written as one of this
// version; a newer one is an error of one line.
func TestVersions(t *testing.T) {
	file, key := artifacttest.Version2()
	p, err := artifact.ReadSigned(bytes.NewReader(file), key)
	if err != nil || p.Foreign {
		t.Fatalf("foreign: %v, %v", p != nil, err)
	}
	var steps []string
	for i := range p.Steps {
		s := &p.Steps[i]
		steps = append(steps, fmt.Sprint(s.Name, " ", s.Kind, " ", s.Launch.Grid, s.Launch.Args, s.Move, s.Decision.On, s.Decision.Parts, s.Decision.Trips))
	}
	golden := []string{
		"i_from_zero copy [0 0 0] [] {4 2} 0 [0 0] 0",
		"v_from_x copy [0 0 0] [] {5 0} 0 [0 0] 0",
		"while_i loop [0 0 0] [] {0 0} 8 [1 4] 3",
		"more launch [1 1 1] [{4 <nil>} {1 <nil>} {8 <nil>}] {0 0} 0 [0 0] 0",
		"next launch [1 1 1] [{4 <nil>} {9 <nil>}] {0 0} 0 [0 0] 0",
		"b_kernel launch [1 1 1] [{5 <nil>} {3 <nil>} {10 <nil>}] {0 0} 0 [0 0] 0",
		"i_from_next copy [0 0 0] [] {4 9} 0 [0 0] 0",
		"v_from_b copy [0 0 0] [] {5 10} 0 [0 0] 0",
		"y launch [1 1 1] [{5 <nil>} {6 <nil>} {7 <nil>}] {0 0} 0 [0 0] 0",
	}
	if d := cmp.Diff(golden, steps); d != "" {
		t.Error(d)
	}
	if q, err := artifact.Read(bytes.NewReader(file)); err != nil || !q.Foreign {
		t.Errorf("without the key: %v", err)
	}
	key[0]++
	if q, err := artifact.ReadSigned(bytes.NewReader(file), key); err != nil || !q.Foreign {
		t.Errorf("with another key: %v", err)
	}
	again, err := artifact.Read(bytes.NewReader(encoded(t, p)))
	if err != nil || cmp.Diff(p, again, fromFile) != "" {
		t.Errorf("written again: %v", err)
	}
	newer := bytes.Clone(encoded(t, p))
	newer[8] = 7
	if _, err := artifact.Read(bytes.NewReader(newer)); err == nil || err.Error() != "has version 7 of the .dmx format; this dmir reads versions 1 to 6: update dmir, or compile it again" {
		t.Errorf("a newer version: %v", err)
	}
}
