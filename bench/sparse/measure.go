package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/syntax/source"
)

// contest is a row that was compiled, with what its contestants compute it of.
type contest struct {
	m       *matrix
	w       *row
	out     *artifact.Program
	in      [][]byte
	want    *tensor.Tensor
	folder  string  // of the peers' files
	predict float64 // ms, of all threads; 0: the processor is not calibrated
	threads int     // that it is for
}

// compiled is a row of m as it was compiled, and the arguments of its function. Nothing has run.
func compiled(ctx context.Context, d device.Device, m *matrix, w *row) (c *contest, fn *ir.Func, args []*tensor.Tensor, err error) {
	own := *m
	own.mean = w.mean
	m = &own
	local := machine.Host()
	p := program.Load(source.New("row.dmir", w.text), program.Options{Target: local})
	if p.HasErrors() {
		return nil, nil, nil, errors.New(p.Diags[0].Message)
	}
	module, fn, err := driver.Pick(p, "")
	if err != nil {
		return nil, nil, nil, err
	}
	given, err := m.given(w, p)
	if err != nil {
		return nil, nil, nil, err
	}
	if args, err = interp.Inputs(ctx, fn, p.Bind, 7, given); err != nil {
		return nil, nil, nil, err
	}
	c = &contest{m: m, w: w, threads: local.SMs}
	if c.out, err = driver.Build(ctx, module, fn, driver.BuildOptions{Machine: p.Target, Arch: d.Arch(), Bind: p.Bind}); err != nil {
		return nil, nil, nil, err
	}
	if local.Grain > 0 {
		for _, s := range c.out.Steps {
			c.predict += s.TimeNs / 1e6
		}
	}
	return c, fn, args, nil
}

func prepare(ctx context.Context, d device.Device, m *matrix, w *row) (*contest, error) {
	c, fn, args, err := compiled(ctx, d, m, w)
	if err != nil {
		return nil, err
	}
	m = c.m
	if c.in, err = driver.Pack(c.out, args); err != nil {
		return nil, err
	}
	if c.want, err = results(ctx, d, c.out, c.in); err != nil {
		return nil, err
	}
	if c.folder, err = os.MkdirTemp("", "bench-sparse-"); err != nil {
		return nil, err
	}
	flat, _ := flatten.Func(fn)
	files := m.files()
	for i, a := range flat.Args {
		files[a.Name[1:]] = args[i]
	}
	for name, x := range files {
		if err := tensor.SaveNPY(filepath.Join(c.folder, name+".npy"), x); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

func (c *contest) close() error { return os.RemoveAll(c.folder) }

// limits are of the samples of a contestant: at most rounds, and no more behind the fewest once a row took so long.
type limits struct {
	rounds int
	budget time.Duration
	steps  bool // log the times of the best sample's steps beside those predicted
}

const fewestRounds = 3

// measure measures a row with a number of threads.
func (c *contest) measure(ctx context.Context, d device.Device, peers []*python, threads int, l limits) (*figures, error) {
	runtime.GOMAXPROCS(threads)
	if err := os.Setenv("DMIR_THREADS", strconv.Itoa(threads)); err != nil {
		return nil, err
	}
	f := &figures{Matrix: c.m.name, Row: c.w.name, Stored: c.m.stored(), Threads: threads, Ratio: map[string]float64{}, Without: map[string]string{}}
	if threads == c.threads {
		f.Predict = c.predict
	}
	var able []*python
	for _, q := range peers {
		if _, err := q.ask(map[string]any{"do": "prepare", "kind": c.w.name, "folder": c.folder, "threads": threads}); err != nil {
			f.Without[q.name] = err.Error()
			continue
		}
		got, err := tensor.LoadNPY(filepath.Join(c.folder, q.name+".npy"), types.F32, c.want.Shape)
		if err != nil {
			return nil, err
		}
		if err := agree(got, c.want); err != nil {
			return nil, fmt.Errorf("%s: %w", q.name, err)
		}
		able = append(able, q)
	}
	var best []device.StepResult
	runs, ours, times := 1, []time.Duration{}, map[string][]time.Duration{}
	for begun, round := time.Now(), 0; round <= fewestRounds || round <= l.rounds && time.Since(begun) < l.budget; round++ {
		r, err := d.Run(ctx, c.out, c.in, device.Options{Runs: runs})
		if err != nil {
			return nil, err
		}
		if round == 0 { // which also says how many runs a sample takes
			runs = int(min(max(20*time.Millisecond/max(r.Elapsed, 1), 1), 99)) | 1
			continue
		}
		if ours = append(ours, r.Elapsed); r.Elapsed == slices.Min(ours) {
			best = r.Steps
		}
		for _, q := range able {
			time.Sleep(30 * time.Millisecond) // for the threads of the one before
			t, err := q.ask(map[string]any{"do": "sample", "runs": runs})
			if err != nil {
				return nil, err
			}
			times[q.name] = append(times[q.name], t)
		}
	}
	for i, s := range best {
		if l.steps {
			log.Printf("  %-40s %9.3f ms, predicted %9.3f ms", s.Name, s.MeasuredNs/1e6, c.out.Steps[i].TimeNs/1e6)
		}
	}
	own := slices.Min(ours)
	f.Ms = own.Seconds() * 1e3
	for name, ts := range times {
		f.Ratio[name] = math.Round(100*slices.Min(ts).Seconds()/own.Seconds()) / 100
	}
	return f, nil
}

// results are the dense tensor of the first run, or the values of the sparse one.
func results(ctx context.Context, d device.Device, out *artifact.Program, in [][]byte) (*tensor.Tensor, error) {
	r, err := d.Run(ctx, out, in, device.Options{})
	if err != nil {
		return nil, err
	}
	all, err := driver.Unpack(out, r.Outputs)
	if err != nil {
		return nil, err
	}
	for i := len(all) - 1; i > 0; i-- {
		if x := all[i].Tensor; x.Elem == types.F32 && len(x.Shape) > 0 { // behind it are what checks compare
			return x, nil
		}
	}
	return all[0].Tensor, nil
}

// agree compares results that were summed in another order.
func agree(got, want *tensor.Tensor) error {
	var sum, off float64
	for i, v := range want.F32 {
		sum += float64(v) * float64(v)
		off = max(off, math.Abs(float64(v-got.F32[i])))
	}
	if scale := math.Sqrt(sum / float64(max(len(want.F32), 1))); off > 1e-3*scale {
		return fmt.Errorf("an element differs by %g, and the root mean square is %g", off, scale)
	}
	return nil
}
