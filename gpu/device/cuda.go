package device

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"dmir/gpu/artifact"
	"dmir/gpu/cuda"
	"dmir/gpu/nvrtc"
)

// gpu is a GPU behind the driver.
type gpu struct{ d *cuda.Device }

func (g *gpu) Name() string {
	if g.d.Ordinal == 0 {
		return "cuda"
	}
	return fmt.Sprintf("cuda:%d", g.d.Ordinal)
}

func (g *gpu) Title() string { return g.d.Name }
func (g *gpu) Arch() string  { return g.d.Arch() }

// Run loads the program, compiling it first if it has no machine code for this
// GPU, runs it, and unloads it.
func (g *gpu) Run(ctx context.Context, p *artifact.Program, inputs [][]byte, opts Options) (_ *Result, err error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	p = p.For(g.Arch())
	if err := g.d.Fits(p); err != nil { // before compiling for nothing
		return nil, err
	}
	r := &Result{}
	image, ok := p.ImageFor(g.d.Major, g.d.Minor)
	if !ok && len(p.Kernels) > 0 {
		start := time.Now()
		compiled, err := nvrtc.CompileProgram(ctx, p, g.Arch(), nvrtc.Options{LineInfo: true, Jobs: runtime.GOMAXPROCS(0)})
		if err != nil {
			return nil, err
		}
		if !compiled.Cached {
			r.Compile = time.Since(start)
		}
		image = compiled.Image()
	}
	s, err := g.d.Load(p, image)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := s.Close(); err == nil {
			err = closed
		}
	}()
	ctx, cancel := within(ctx, opts)
	defer cancel()
	start := time.Now()
	if r.Outputs, err = s.Run(ctx, inputs); err != nil {
		return nil, err
	}
	r.Elapsed = time.Since(start)
	for i, n := range s.Runs() {
		r.Steps = append(r.Steps, StepResult{Name: p.Steps[i].Name, Runs: n})
	}
	if opts.Runs > 0 {
		t, err := s.Time(ctx, inputs, opts.Runs, opts.Cold)
		if err != nil {
			return nil, err
		}
		r.Elapsed = time.Duration(t.TotalNs)
		for i := range r.Steps {
			r.Steps[i].MeasuredNs = t.StepNs[i]
		}
	}
	return r, nil
}
