package main

import (
	"runtime"
	"sync"
	"time"
	"unsafe"

	"dmir/compile/tensor"
	"dmir/gpu/dylib"
)

// memcpy is the C library's copy, which writes large blocks past the caches, as Go's own
// does not; Go's copy where there is none.
var memcpy = sync.OnceValue(func() func(to, from []byte) {
	path := "libc.so.6"
	if runtime.GOOS == "darwin" {
		path = "/usr/lib/libSystem.B.dylib"
	}
	var f func(to, from unsafe.Pointer, n uintptr) uintptr
	if lib, err := dylib.Open(path); err != nil || lib.Bind("memcpy", &f) != nil {
		return func(to, from []byte) { copy(to, from) }
	}
	return func(to, from []byte) {
		f(unsafe.Pointer(unsafe.SliceData(to)), unsafe.Pointer(unsafe.SliceData(from)), uintptr(len(from)))
	}
})

// copying copies as many bytes as a program's arguments and results have, half of them
// read and half written, on some threads.
type copying struct {
	from, to []byte
	threads  int
}

func newCopying(bytes int64, threads int) *copying {
	c := &copying{make([]byte, bytes/2), make([]byte, bytes/2), threads}
	for i := range c.from {
		c.from[i] = byte(i)
	}
	return c
}

func (c *copying) once() {
	var wait sync.WaitGroup
	part := (len(c.from) + c.threads - 1) / c.threads
	for i := range c.threads {
		wait.Go(func() {
			first, last := min(i*part, len(c.from)), min((i+1)*part, len(c.from))
			memcpy()(c.to[first:last], c.from[first:last])
		})
	}
	wait.Wait()
}

func (c *copying) results() ([]*tensor.Tensor, error) { return nil, nil }

func (c *copying) sample(runs int) (time.Duration, error) { return timed(runs, c.once), nil }
