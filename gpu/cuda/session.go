package cuda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"dmir/gpu/artifact"
	"dmir/gpu/collective"
)

// Session is a program in a device's memory, ready to run any number of times.
// It is used by one goroutine at a time and must be closed. A kernel that breaks
// the device's context breaks all sessions on that device.
type Session struct {
	d *Device
	p *artifact.Program
	a *api

	ctx       handle
	modules   []handle
	functions []handle
	base      deviceVA
	streams   []handle
	events    []handle
	maps      mapTable
	image     artifact.Image
	course    []*act    // what the host does in a run; nil before the first
	runs      []int64   // how often each step ran in the last run
	flag      []byte    // host memory that predicates are copied to
	steps     *stepping // nil before the first step; see Step
	team      *team     // the devices that run the program with this one; nil: none
	staged    deviceVA  // where state is that carry moves in two parts; 0: nowhere
	lost      bool      // a kernel broke the context or still runs, so no memory can be freed
}

// Load loads a program onto the device: its machine code (an image of the program,
// or one compiled for it), the one allocation, the constants.
func (d *Device) Load(p *artifact.Program, image artifact.Image) (*Session, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := d.Fits(p); err != nil {
		return nil, err
	}
	s := &Session{d: d, p: p, a: d.api, image: image}
	if err := s.with(s.load); err != nil {
		err = clearer(err, d, p.Workspace)
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// with runs f on its own thread with the session's context as the current one, which
// is state of the thread.
func (s *Session) with(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if s.ctx == 0 {
		if err := s.a.check("cuDevicePrimaryCtxRetain", s.a.CtxRetain(&s.ctx, s.d.id)); err != nil {
			return err
		}
	}
	if err := s.a.check("cuCtxSetCurrent", s.a.CtxSet(s.ctx)); err != nil {
		return err
	}
	defer s.a.CtxSet(0)
	return f()
}

// function is the kernel called name, the i-th of the program: one of the only module, or of its own.
func (s *Session) function(name string, i int) (f handle, err error) {
	if len(s.modules) != 1 && len(s.modules) != len(s.p.Kernels) {
		return 0, fmt.Errorf("@%s has machine code in %d parts for %d kernels", s.p.Name, len(s.modules), len(s.p.Kernels))
	}
	return f, s.a.check("cuModuleGetFunction "+name, s.a.ModuleFunc(&f, s.modules[min(i, len(s.modules)-1)], name))
}

func (s *Session) load() error {
	if image := s.image.Code; len(image) > 0 {
		parts, ok := artifact.Parts(image)
		if !ok {
			return fmt.Errorf("@%s has damaged machine code for %s", s.p.Name, s.d.Arch())
		}
		for _, code := range parts {
			if len(code) == 0 {
				continue
			}
			var m handle
			if err := s.a.check("cuModuleLoadData", s.a.ModuleLoad(&m, &code[0])); err != nil {
				return err
			}
			s.modules = append(s.modules, m)
		}
	} else if len(s.p.Kernels) > 0 {
		return fmt.Errorf("@%s has no machine code for %s", s.p.Name, s.d.Arch())
	}
	for i, k := range s.p.Kernels {
		f, err := s.function(k.Name, i)
		if err != nil {
			return err
		}
		if k.Block.Shared > 48<<10 { // the default limit; more needs an attribute
			if err := s.a.check("cuFuncSetAttribute "+k.Name, s.a.FuncSet(f, functionMaxDynamicShared, int32(k.Block.Shared))); err != nil {
				return err
			}
		}
		if k.Block.Cluster > 8 {
			if err := s.a.check("cuFuncSetAttribute "+k.Name, s.a.FuncSet(f, functionNonPortableCluster, 1)); err != nil {
				return err
			}
		}
		s.functions = append(s.functions, f)
	}
	if err := s.a.check("cuMemAlloc", s.a.MemAlloc(&s.base, uint64(max(s.p.Workspace, artifact.Alignment)))); err != nil {
		return err
	}
	if s.base%artifact.Alignment != 0 {
		return fmt.Errorf("cuMemAlloc gave an address that is not a multiple of %d", artifact.Alignment)
	}
	streams := 1
	for _, step := range s.p.Steps {
		streams = max(streams, step.Stream+1)
	}
	for range streams {
		var h handle
		if err := s.a.check("cuStreamCreate", s.a.StreamCreate(&h, streamNonBlocking)); err != nil {
			return err
		}
		s.streams = append(s.streams, h)
	}
	for i := range s.p.Buffers {
		if b := &s.p.Buffers[i]; b.Kind == artifact.Constant {
			if err := s.copyIn(b, b.Data); err != nil {
				return err
			}
		}
	}
	var err error
	s.maps, err = s.encodeMaps()
	return err
}

func (s *Session) address(b *artifact.Buffer) deviceVA { return s.base + deviceVA(b.Offset) }

// copyIn copies to the device in the order of the first stream. The driver has
// copied data when the call returns, since it is not page-locked memory.
func (s *Session) copyIn(b *artifact.Buffer, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	return s.a.check("cuMemcpyHtoD", s.a.CopyIn(s.address(b), &data[0], uint64(len(data)), s.streams[0]))
}

// Runs is how often each step ran in the last run of the program.
func (s *Session) Runs() []int64 { return s.runs }

// Run copies the inputs to the device, runs the steps, and copies the
// results back: bytes in the order of their buffers' dimensions. If a kernel
// faults, the error is a *Fault and the session can only be closed. If ctx is
// cancelled first, the kernels continue, since a device cannot be stopped; then too
// the session can only be closed.
func (s *Session) Run(ctx context.Context, inputs [][]byte) (outputs [][]byte, err error) {
	return s.run(ctx, inputs, func() error {
		if err := s.prepare(); err != nil {
			return err
		}
		return s.play(ctx)
	})
}

// run is Run with the function that executes the steps as a parameter.
func (s *Session) run(ctx context.Context, inputs [][]byte, steps func() error) (outputs [][]byte, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if err := s.checkInputs(inputs); err != nil {
		return nil, err
	}
	err = s.with(func() error {
		if err := s.give(inputs, nil); err != nil {
			return err
		}
		if err := steps(); err != nil {
			return err
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
		for _, b := range s.p.Outputs {
			out, err := s.copyOut(&s.p.Buffers[b])
			if err != nil {
				return err
			}
			outputs = append(outputs, out)
		}
		return s.wait(ctx)
	})
	if err != nil {
		return nil, s.failed(err)
	}
	return outputs, nil
}

// copyOut enqueues the copy of a buffer to host memory, which is there after wait.
func (s *Session) copyOut(buf *artifact.Buffer) ([]byte, error) {
	out := make([]byte, buf.Size())
	if len(out) == 0 {
		return out, nil
	}
	return out, s.a.check("cuMemcpyDtoH", s.a.CopyOut(&out[0], s.address(buf), uint64(len(out)), s.streams[0]))
}

// failed is the error of a run, a *Fault if a kernel faulted.
func (s *Session) failed(err error) error {
	var named *Fault
	if isFault(err) && !errors.As(err, &named) {
		return s.fault(err)
	}
	return err
}

// give copies inputs to the device: all, or those marked in only.
func (s *Session) give(inputs [][]byte, only []bool) error {
	for i, b := range s.p.Inputs {
		if only == nil || only[i] {
			if err := s.copyIn(&s.p.Buffers[b], inputs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// replay launches a graph and waits for it.
func (s *Session) replay(ctx context.Context, exec handle) error {
	if err := s.a.check("cuGraphLaunch", s.a.GraphLaunch(exec, s.streams[0])); err != nil {
		return err
	}
	return s.wait(ctx)
}

// Lost reports whether a kernel broke the device's context or still runs. Then this
// process cannot use the device any more.
func (s *Session) Lost() bool { return s.lost }

func (s *Session) usable(ctx context.Context) error {
	if s.lost || s.ctx == 0 {
		return errors.New("the program is no longer loaded: it was closed, or an earlier run failed")
	}
	if s.team == nil {
		if err := collective.Fits(nil, s.p); err != nil {
			return err
		}
	} else {
		s.team.ctx = ctx
	}
	return ctx.Err()
}

func (s *Session) checkInputs(inputs [][]byte) error {
	if len(inputs) != len(s.p.Inputs) {
		return fmt.Errorf("@%s takes %d inputs, not %d", s.p.Name, len(s.p.Inputs), len(inputs))
	}
	for i, b := range s.p.Inputs {
		if buf := &s.p.Buffers[b]; int64(len(inputs[i])) != buf.Size() {
			return fmt.Errorf("input %s has %d bytes, not %d", buf.Name, buf.Size(), len(inputs[i]))
		}
	}
	return nil
}

// wait waits for all enqueued work. It polls so that ctx can cancel it: at first
// without a pause, since a run may take microseconds.
func (s *Session) wait(ctx context.Context) error {
	pause := time.Duration(0)
	for n := 0; ; n++ {
		q := s.a.StreamQuery(s.streams[0])
		if q != notReady {
			return s.a.check("cuStreamSynchronize", q)
		}
		if ctx.Err() != nil {
			s.lost = true
			return errors.Join(ctx.Err(), s.abandon())
		}
		if n > 1000 {
			if err := s.failing(); err != nil {
				return err
			}
			pause = min(pause+time.Microsecond, time.Millisecond)
			time.Sleep(pause)
		}
	}
}

// Close frees what the session holds. A session whose kernels still run, or
// that broke the context, is left to the end of the process.
func (s *Session) Close() error {
	if s.ctx == 0 || s.lost {
		return nil
	}
	var errs []error
	free := func(call string, st status) {
		if err := s.a.check(call, st); err != nil {
			errs = append(errs, err)
		}
	}
	err := s.with(func() error {
		if err := s.disconnect(); err != nil {
			errs = append(errs, err)
		}
		for _, g := range graphs(s.course) {
			if g.exec != 0 {
				free("cuGraphExecDestroy", s.a.ExecFree(g.exec))
			}
		}
		for _, e := range s.events {
			free("cuEventDestroy", s.a.EventFree(e))
		}
		for _, h := range s.streams {
			free("cuStreamDestroy", s.a.StreamFree(h))
		}
		if s.staged != 0 {
			free("cuMemFree", s.a.MemFree(s.staged))
		}
		if s.base != 0 {
			free("cuMemFree", s.a.MemFree(s.base))
		}
		for _, m := range s.modules {
			free("cuModuleUnload", s.a.ModuleUnload(m))
		}
		return nil
	})
	free("cuDevicePrimaryCtxRelease", s.a.CtxRelease(s.d.id))
	s.ctx = 0
	return errors.Join(append(errs, err)...)
}

// event creates an event that lives until Close.
func (s *Session) event(flags uint32) (handle, error) {
	var e handle
	if err := s.a.check("cuEventCreate", s.a.EventCreate(&e, flags)); err != nil {
		return 0, err
	}
	s.events = append(s.events, e)
	return e, nil
}
