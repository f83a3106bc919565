package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/syntax/source"
)

// built is a workload as dmir compiled it, with its arguments.
type built struct {
	workload
	device device.Device
	bind   map[string]int64
	module *ir.Module
	fn     *ir.Func
	args   []*tensor.Tensor
	out    *artifact.Program
	in     [][]byte
	took   time.Duration // of the compiler's passes
	steps  []device.StepResult
}

// compile compiles a workload, for m where that is given.
func (o *options) compile(ctx context.Context, d device.Device, m *machine.Machine, w workload, dir string) (*built, error) {
	if err := w.imported(o, dir); err != nil {
		return nil, err
	}
	p := program.Load(source.New(w.name+".dmir", w.text), program.Options{Arrays: tensor.In(w.dir), Target: m, Bind: w.bind})
	if p.HasErrors() {
		return nil, errors.New(p.Diags[0].Message)
	}
	module, fn, err := driver.Pick(p, w.fn)
	if err != nil {
		return nil, err
	}
	given, err := w.given(fn)
	if err != nil {
		return nil, err
	}
	b := &built{workload: w, device: d, bind: p.Bind, module: module, fn: fn}
	if b.args, err = interp.Inputs(ctx, fn, p.Bind, 7, given); err != nil {
		return nil, err
	}
	start := time.Now()
	if b.out, err = driver.Build(ctx, module, fn, driver.BuildOptions{Machine: p.Target, Arch: d.Arch(), Bind: p.Bind}); err != nil {
		return nil, err
	}
	b.took = time.Since(start)
	if b.in, err = driver.Pack(b.out, b.args); err != nil {
		return nil, err
	}
	return b, nil
}

// build is compile, and writes the arguments to the folder that has the workload's name.
func (o *options) build(ctx context.Context, d device.Device, w workload, dir string) (*built, error) {
	b, err := o.compile(ctx, d, nil, w, dir)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(dir, w.name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	for i, a := range b.fn.Args {
		if err := tensor.SaveNPY(filepath.Join(folder, a.Name[1:]+".npy"), b.args[i]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// given are the arguments of a model that come with it.
func (w *workload) given(fn *ir.Func) (map[string]*tensor.Tensor, error) {
	if w.inputs == "" {
		return nil, nil
	}
	z, err := tensor.OpenNPZ(w.inputs)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	given := map[string]*tensor.Tensor{}
	for _, a := range fn.Args {
		t := a.Type.(*types.Tensor)
		var shape []int
		for _, d := range t.Shape {
			n, _ := d.Int()
			shape = append(shape, int(n))
		}
		if given[a.Name[1:]], err = z.Read(a.Name[1:], t.Elem, shape); err != nil {
			return nil, err
		}
	}
	return given, nil
}

// bytes are those of the arguments and results.
func (b *built) bytes() (n int64) {
	for _, i := range b.out.Inputs {
		n += b.out.Buffers[i].Size()
	}
	for _, i := range b.out.Outputs {
		n += b.out.Buffers[i].Size()
	}
	return n
}

// dmir is the contestant that all others are compared with.
type dmir struct {
	*built
}

func (d dmir) results() ([]*tensor.Tensor, error) {
	r, err := d.device.Run(context.Background(), d.out, d.in, device.Options{})
	if err != nil {
		return nil, err
	}
	outs, err := driver.Unpack(d.out, r.Outputs)
	if err != nil {
		return nil, err
	}
	var list []*tensor.Tensor
	for _, o := range outs {
		list = append(list, o.Tensor)
	}
	return list, nil
}

func (d dmir) sample(runs int) (time.Duration, error) {
	r, err := d.device.Run(context.Background(), d.out, d.in, device.Options{Runs: runs})
	if err != nil {
		return 0, err
	}
	if r.Untimed != "" {
		return 0, errors.New(r.Untimed)
	}
	d.built.steps = r.Steps
	return r.Elapsed, nil
}

// threads sets the number of threads of dmir and of all that runs in this process.
func threads(n int) error {
	runtime.GOMAXPROCS(n)
	return os.Setenv("DMIR_THREADS", strconv.Itoa(n))
}

// errSlow reports a run of the reference executor that was ended.
var errSlow = errors.New("it takes too long")

// reference runs the reference executor once.
func (b *built) reference(n int, longest time.Duration) ([]*tensor.Tensor, time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), longest, errSlow)
	defer cancel()
	start := time.Now()
	r, err := interp.Run(ctx, b.module, b.fn, b.args, interp.Options{Bind: b.bind, Threads: n})
	if err != nil {
		return nil, 0, err
	}
	return r.Outputs, time.Since(start), nil
}
