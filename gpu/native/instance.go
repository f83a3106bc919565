package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"dmir/gpu/artifact"
	"dmir/gpu/collective"
	"dmir/gpu/device"
)

// instance is a program in memory, ready to run any number of times. It is used by one
// goroutine at a time and must be closed.
type instance struct {
	lib  *library
	p    *artifact.Program
	at   uintptr
	comm collective.Comm // nil of a program for one device
	pins runtime.Pinner  // of the memory that is bound
	once runtime.Pinner  // of the memory that is bound for one run
	lost bool            // a kernel failed, or still runs
	// ended is closed when the memory is free.
	ended chan struct{}
}

// Threads is the number of threads that programs run on.
func Threads() int {
	if n, err := strconv.Atoi(os.Getenv("DMIR_THREADS")); err == nil && n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

func newInstance(lib *library, p *artifact.Program, comm collective.Comm) (*instance, error) {
	var text [256]byte
	at := lib.Create(int32(min(Threads(), 1<<12)), &text[0], uintptr(len(text)))
	if at == 0 {
		end := bytes.IndexByte(text[:], 0)
		return nil, &MemoryError{string(text[:end])}
	}
	n := &instance{lib: lib, p: p, comm: comm, at: at, ended: make(chan struct{})}
	return n, n.constants()
}

// constants binds the constants where they are, but of objects that have them inside.
func (n *instance) constants() error {
	for i := range n.p.Buffers {
		b := &n.p.Buffers[i]
		if b.Kind != artifact.Constant || len(b.Data) == 0 || n.lib.BindConstant == nil {
			continue
		}
		data := b.Data
		if size, _ := artifact.ElemBytes(b.Elem); uintptr(unsafe.Pointer(&data[0]))%uintptr(max(size, 1)) != 0 {
			data = append(make([]byte, 0, len(data)), data...) // which is aligned to any element
		}
		if n.lib.BindConstant(n.at, int32(i), pinned(&n.pins, data)) != statusOK {
			err := errors.New(n.lib.Error(n.at))
			n.Close()
			return err
		}
	}
	return nil
}

// Close frees the instance; one that still runs frees itself when that ends.
func (n *instance) Close() error {
	if !n.lost {
		n.lost = true
		n.free()
	}
	return nil
}

func (n *instance) free() {
	n.lib.Destroy(n.at)
	n.pins.Unpin()
	n.once.Unpin()
	close(n.ended)
}

// pinned is the address of data, which does not move until it is unpinned.
func pinned(pins *runtime.Pinner, data []byte) unsafe.Pointer {
	if len(data) == 0 {
		return nil
	}
	pins.Pin(&data[0])
	return unsafe.Pointer(&data[0])
}

// input binds an input, output a result, until the instance is closed.
func (n *instance) input(i int, data []byte) {
	n.lib.BindInput(n.at, int32(i), pinned(&n.pins, data))
}

func (n *instance) output(i int, data []byte) {
	n.lib.BindOutput(n.at, int32(i), pinned(&n.pins, data))
}

// state gives an input the value that the next run copies.
func (n *instance) state(i int, data []byte) {
	n.lib.BindInput(n.at, int32(i), pinned(&n.once, data))
}

// usable reports why the instance cannot run.
func (n *instance) usable(ctx context.Context) error {
	if n.lost {
		return errors.New("the program is no longer loaded: it was closed, or an earlier run failed")
	}
	return ctx.Err()
}

// run runs the program once. If ctx ends first, so does the run before its next step;
// the instance can only be closed then, as after a *Fault.
func (n *instance) run(ctx context.Context, progress func(device.Progress)) error {
	if err := n.usable(ctx); err != nil {
		return err
	}
	leave, exchanged := n.join(ctx)
	defer leave()
	ended := func(s int32) error {
		if err := exchanged(); err != nil && s == statusCancelled {
			return err
		}
		return n.status(s)
	}
	if ctx.Done() == nil && progress == nil {
		return ended(n.lib.Run(n.at))
	}
	done := make(chan int32, 1)
	go func() { done <- n.lib.Run(n.at) }()
	tick, stop := n.ticks(progress)
	defer stop()
	for {
		select {
		case s := <-done:
			return ended(s)
		case <-tick:
			progress(n.progress())
		case <-ctx.Done():
			n.lost = true
			n.lib.Cancel(n.at)
			go func() {
				<-done
				n.free()
			}()
			return ctx.Err()
		}
	}
}

// ticks is a channel with the times to report progress at.
func (n *instance) ticks(progress func(device.Progress)) (tick <-chan time.Time, stop func()) {
	if progress == nil {
		return nil, func() {}
	}
	t := time.NewTicker(time.Second / 2)
	return t.C, t.Stop
}

// status is the error of a run.
func (n *instance) status(s int32) error {
	switch s {
	case statusOK:
		n.once.Unpin()
		return nil
	case statusCancelled:
		return context.Canceled
	case statusFaulted:
		defer n.Close()
		f := &Fault{File: n.p.File, Text: n.lib.Error(n.at)}
		if at := int(n.lib.At(n.at)); at >= 0 && at < len(n.p.Steps) {
			step := &n.p.Steps[at]
			f.Step, f.Lines = step.Name, n.p.LinesOf(step)
			if k := n.p.KernelOf(step); k != nil {
				f.Kernel = k.Name
			}
		}
		return f
	}
	return errors.New(n.lib.Error(n.at))
}

// progress is how far the run is, by the predicted times.
func (n *instance) progress() device.Progress {
	at := int(n.lib.At(n.at))
	out := device.Progress{At: at + 1, Of: len(n.p.Steps), Expected: expected(n.p, len(n.p.Steps))}
	if at >= 0 && at < len(n.p.Steps) {
		out.Step = n.p.Steps[at].Name
	}
	if out.Expected > 0 {
		out.Done = float64(expected(n.p, max(at, 0))) / float64(out.Expected)
	}
	return out
}

// expected is the predicted time of the first steps.
func expected(p *artifact.Program, steps int) time.Duration {
	ns := 0.0
	for i, times := range p.Times()[:steps] {
		ns += p.Steps[i].TimeNs * float64(times)
	}
	return time.Duration(min(ns, 1<<62))
}

// checkInputs checks the sizes of inputs; nil ones are allowed if they may be missing.
func checkInputs(p *artifact.Program, inputs [][]byte, missing bool) error {
	if len(inputs) != len(p.Inputs) {
		return fmt.Errorf("@%s takes %d inputs, not %d", p.Name, len(p.Inputs), len(inputs))
	}
	for i, b := range p.Inputs {
		if buf := &p.Buffers[b]; int64(len(inputs[i])) != buf.Size() && !(missing && inputs[i] == nil) {
			return fmt.Errorf("input %s has %d bytes, not %d", buf.Name, len(inputs[i]), buf.Size())
		}
	}
	return nil
}
