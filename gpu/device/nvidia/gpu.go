package nvidia

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"dmir/gpu/artifact"
	"dmir/gpu/cuda"
	"dmir/gpu/device"
	"dmir/gpu/nvrtc"
)

// gpu is a GPU, used through the driver.
type gpu struct{ d *cuda.Device }

func (g *gpu) Name() string {
	if g.d.Ordinal == 0 {
		return "cuda"
	}
	return fmt.Sprintf("cuda:%d", g.d.Ordinal)
}

func (g *gpu) Title() string { return g.d.Name }
func (g *gpu) Arch() string  { return g.d.Arch() }

// lostContext is set when a kernel has broken the driver's context of this
// process, or hangs in it.
var lostContext atomic.Bool

var errLost = errors.New("a kernel that failed or hung has broken the driver's context; start the program again")

// Run loads the program, compiling it first if it has no machine code for this
// GPU, runs it, and unloads it. After a kernel that faulted or hung, programs run
// in other processes.
func (g *gpu) Run(ctx context.Context, p *artifact.Program, inputs [][]byte, opts device.Options) (*device.Result, error) {
	run := g.run
	switch {
	case !lostContext.Load():
	case p.Divided != nil: // another process is not connected with the other devices
		return nil, errLost
	default:
		run = g.elsewhere
	}
	r, err := run(ctx, p, inputs, opts)
	var fault *cuda.Fault
	if errors.As(err, &fault) && fault.Step == "" && p.Divided == nil && serves && !inChild {
		err = located(ctx, g.Name(), p, inputs, opts, fault)
	}
	return r, err
}

// elsewhere runs the program in a child process.
func (g *gpu) elsewhere(ctx context.Context, p *artifact.Program, inputs [][]byte, opts device.Options) (*device.Result, error) {
	limited, cancel := within(ctx, opts)
	defer cancel()
	r, err := alone(limited, g.Name(), p, inputs, opts)
	if errors.Is(err, errNoChild) {
		err = errLost
	}
	return r, err
}

func (g *gpu) run(ctx context.Context, p *artifact.Program, inputs [][]byte, opts device.Options) (_ *device.Result, err error) {
	if err := check(p); err != nil {
		return nil, err
	}
	p = p.For(g.Arch())
	r := &device.Result{}
	s, took, err := g.load(ctx, p)
	if err != nil {
		return nil, err
	}
	r.Compile = took
	defer func() {
		if closed := (session{s}).Close(); err == nil {
			err = closed
		}
	}()
	if err := s.Join(ctx, opts.Comm); err != nil {
		return nil, err
	}
	limited, cancel := within(ctx, opts)
	defer cancel()
	start := time.Now()
	run := s.Run
	if opts.OneByOne {
		run = s.RunSteps
	}
	if r.Outputs, err = run(limited, inputs); err != nil {
		return nil, err
	}
	r.Elapsed = time.Since(start)
	for i, n := range s.Runs() {
		r.Steps = append(r.Steps, device.StepResult{Name: p.Steps[i].Name, Runs: n})
	}
	if opts.Runs > 0 {
		t, err := s.Time(limited, inputs, opts.Runs, opts.Cold)
		if err != nil {
			r.Untimed = err.Error()
			return r, ctx.Err() // the results stay unless the run was cancelled
		}
		r.Elapsed = time.Duration(t.TotalNs)
		for i := range r.Steps {
			r.Steps[i].MeasuredNs = t.StepNs[i]
		}
	}
	return r, nil
}

// load loads the program, which it compiles if it has no machine code for this
// GPU; took is the time of that.
func (g *gpu) load(ctx context.Context, p *artifact.Program) (s *cuda.Session, took time.Duration, err error) {
	if err := g.d.Fits(p); err != nil { // before compiling
		return nil, 0, err
	}
	image, ok := g.d.Image(p)
	if !ok && len(p.Kernels) > 0 {
		start := time.Now()
		compiled, err := nvrtc.CompileProgram(ctx, p, g.Arch(), nvrtc.Options{LineInfo: true, Jobs: runtime.GOMAXPROCS(0)})
		if err != nil {
			return nil, 0, err
		}
		if !compiled.Cached {
			took = time.Since(start)
		}
		image = compiled.Image()
	}
	s, err = g.d.Load(p, image)
	return s, took, err
}

// Open loads the program for steps that keep their state in the GPU's memory.
func (g *gpu) Open(ctx context.Context, p *artifact.Program, opts device.Options) (device.Session, error) {
	if lostContext.Load() {
		return nil, errLost
	}
	if err := check(p); err != nil {
		return nil, err
	}
	s, _, err := g.load(ctx, p.For(g.Arch()))
	if err != nil {
		return nil, err
	}
	if err := s.Join(ctx, opts.Comm); err != nil {
		return nil, errors.Join(err, session{s}.Close())
	}
	return session{s}, nil
}

// session is a session of this process.
type session struct{ *cuda.Session }

// Close unloads the program. After a kernel that faulted or hung the driver's
// context is of no use any more.
func (s session) Close() error {
	if s.Lost() {
		lostContext.Store(true)
	}
	return s.Session.Close()
}
