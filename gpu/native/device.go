package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dmir/gpu/artifact"
	"dmir/gpu/collective"
	"dmir/gpu/device"
)

// errHost reports a processor that no program is compiled for.
var errHost = errors.New("programs run on processors with SSE4.2 (x86-64-v2) and on 64-bit ARM, and this machine has neither")

// Kinds are the kinds of devices of this package: "cpu".
func Kinds() []device.Kind {
	return []device.Kind{{
		Name: "cpu",
		Host: true,
		Find: func() ([]device.Device, error) {
			if !supported {
				return nil, errWindows
			}
			if _, ok := Host(); !ok {
				return nil, errHost
			}
			return []device.Device{processor{}}, nil
		},
		Ready: func() error {
			_, err := Find(context.Background())
			return err
		},
		Why: func([]device.Device) string {
			c, err := Find(context.Background())
			if err != nil {
				return "this machine's CPU"
			}
			return "this machine's CPU, compiled by " + c.Version
		},
	}}
}

// processor is the CPU.
type processor struct{}

func (processor) Name() string { return "cpu" }

func (processor) Title() string {
	threads := "1 thread"
	if n := Threads(); n > 1 {
		threads = fmt.Sprintf("%d threads", n)
	}
	return fmt.Sprintf("%s (%s)", model(), threads)
}

func (processor) Arch() string {
	arch, _ := Host()
	return arch
}

// prepare checks p and loads it.
func prepare(ctx context.Context, p *artifact.Program, comm collective.Comm) (n *instance, took time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if err := check(p); err != nil {
		return nil, 0, err
	}
	if err := collective.Fits(comm, p); err != nil {
		return nil, 0, err
	}
	lib, _, took, err := load(ctx, p)
	if err != nil {
		return nil, 0, err
	}
	n, err = newInstance(lib, p, comm)
	return n, took, err
}

// Prepare compiles p and opens it, and names the object.
func (d processor) Prepare(ctx context.Context, p *artifact.Program) (object string, took time.Duration, err error) {
	if err := check(p); err != nil {
		return "", 0, err
	}
	_, object, took, err = load(ctx, p)
	return object, took, err
}

// Toolchain is clang, with all that it prints about itself.
func (d processor) Toolchain(ctx context.Context) (string, error) {
	c, err := Find(ctx)
	if err != nil {
		return "", err
	}
	return c.Path + "\x00" + c.banner, nil
}

// check reports why p cannot run on a processor.
func check(p *artifact.Program) error {
	if p.Target != artifact.LLVM {
		return fmt.Errorf("@%s was compiled for the target %q, and the CPU runs programs for %s", p.Name, p.Target, artifact.LLVM)
	}
	if err := p.Check(); err != nil {
		return err
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if k := p.KernelOf(s); k != nil && (s.Launch.Grid[1] != 1 || s.Launch.Grid[2] != 1 || k.Block.Threads != 1 || k.Scratch < 0) {
			return fmt.Errorf("step %s is a launch for a GPU, of %v blocks of %d threads", s.Name, s.Launch.Grid, k.Block.Threads)
		}
	}
	return nil
}

// Run runs the program in this process. Inputs are used where they are; they must not
// change until Run returns.
func (d processor) Run(ctx context.Context, p *artifact.Program, inputs [][]byte, opts device.Options) (*device.Result, error) {
	p = p.For(d.Arch())
	if err := checkInputs(p, inputs, false); err != nil {
		return nil, err
	}
	if opts.Progress != nil {
		opts.Progress(device.Progress{Of: len(p.Steps), Expected: expected(p, len(p.Steps))})
	}
	n, took, err := prepare(ctx, p, opts.Comm)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	if opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opts.Timeout)
		defer cancel()
	}
	r := &device.Result{Compile: took}
	for i, data := range inputs {
		n.input(i, data)
	}
	for i, b := range p.Outputs {
		r.Outputs = append(r.Outputs, make([]byte, p.Buffers[b].Size()))
		n.output(i, r.Outputs[i])
	}
	if opts.Runs > 0 {
		for _, data := range slices.Concat(inputs, r.Outputs) {
			hugePages(data)
		}
	}
	if err := n.run(ctx, opts.Progress); err != nil {
		return nil, err
	}
	r.Elapsed = time.Duration(n.lib.Time(n.at))
	for i := range p.Steps {
		r.Steps = append(r.Steps, device.StepResult{Name: p.Steps[i].Name, Runs: n.lib.StepRuns(n.at, int32(i)), MeasuredNs: n.lib.StepTime(n.at, int32(i))})
	}
	if opts.Runs > 0 {
		if err := n.measure(ctx, inputs, opts, r); err != nil {
			r.Untimed = err.Error()
			return r, ctx.Err()
		}
	}
	return r, nil
}

// measure runs the program for its times, and puts their medians into r.
func (n *instance) measure(ctx context.Context, inputs [][]byte, opts device.Options, r *device.Result) error {
	total := make([]float64, opts.Runs)
	steps := make([][]float64, len(r.Steps))
	for i := range steps {
		steps[i] = make([]float64, opts.Runs)
	}
	for k := range opts.Runs {
		for i, data := range inputs {
			if slices.Contains(n.p.State, i) { // it holds the state of the run before
				n.state(i, data)
			}
		}
		if opts.Cold {
			n.lib.Flush(n.at)
		}
		if err := n.run(ctx, nil); err != nil {
			return err
		}
		total[k] = n.lib.Time(n.at)
		for i := range steps {
			steps[i][k] = n.lib.StepTime(n.at, int32(i))
		}
	}
	r.Elapsed = time.Duration(median(total))
	for i := range steps {
		r.Steps[i].MeasuredNs = median(steps[i])
	}
	return nil
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
