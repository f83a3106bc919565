package calibrate

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"dmir/base/local"
	"dmir/gpu/dylib"
)

//go:embed c/bench.c
var source []byte

// The jobs of bench.c.
const (
	empty = iota
	fill
	copied
	read
	gathered
	gatheredRows
	fma32
	fma64
	add32
	add64
)

// chains is the number of independent vectors that arithmetic is done on in bench.c.
const chains = 16

// bench times jobs on the threads that kernels run on.
type bench interface {
	// time is the seconds that a job takes which moves bytes in each of its repeats.
	time(job int, bytes, repeats int64) float64
	threads() int
	vector() int64 // bytes
}

// library is bench.c, open.
type library struct {
	Start   func(threads int32, bytes int64) uintptr                 `c:"calibrate_start"`
	Stop    func(b uintptr)                                          `c:"calibrate_stop"`
	Threads func(b uintptr) int32                                    `c:"calibrate_threads"`
	Vector  func() int32                                             `c:"calibrate_vector"`
	Time    func(b uintptr, job int32, bytes, repeats int64) float64 `c:"calibrate_time"`
}

// build compiles and opens bench.c.
func build(ctx context.Context, h Host) (*library, error) {
	work, err := local.NewWork()
	if err != nil {
		return nil, err
	}
	defer work.Remove() // the process has the library mapped
	file, object := filepath.Join(work.Dir, "bench.c"), filepath.Join(work.Dir, "bench.so")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return nil, err
	}
	args := []string{"-shared", "-fvisibility=default", "-o", object, file, "-lpthread"}
	if runtime.GOARCH == "amd64" {
		args = append(args, "-mprefer-vector-width=512") // as kernels have it
	}
	if err := h.Compile(ctx, work.Dir, args...); err != nil {
		return nil, err
	}
	opened, err := dylib.Open(object)
	if err != nil {
		return nil, err
	}
	lib := &library{}
	return lib, opened.BindAll(lib)
}

// host is the bench of this machine's processor.
type host struct {
	*library
	at uintptr
}

// start gives the bench memory for working sets of so many bytes.
func (l *library) start(threads int, bytes int64) (*host, error) {
	at := l.Start(int32(threads), bytes)
	if at == 0 {
		return nil, fmt.Errorf("the measurement needs %d MB of memory, and there are not as many", bytes>>20)
	}
	return &host{l, at}, nil
}

func (h *host) stop() { h.Stop(h.at) }

func (h *host) time(job int, bytes, repeats int64) float64 {
	return h.Time(h.at, int32(job), bytes, repeats)
}

func (h *host) threads() int  { return int(h.Threads(h.at)) }
func (h *host) vector() int64 { return int64(h.Vector()) }
