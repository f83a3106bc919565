package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"dmir/compile/tensor"
)

// contestant computes a row.
type contestant interface {
	// results computes the row once; nil: results that are not the row's.
	results() ([]*tensor.Tensor, error)
	// sample is the median time of some runs, after one that is not timed.
	sample(runs int) (time.Duration, error)
}

// entry is a contestant of a row, under the name of its column.
type entry struct {
	name string
	contestant
	times []time.Duration
}

// pause lets the threads of a contestant go to sleep before the next one runs.
const pause = 60 * time.Millisecond

// entries are the contestants of a row, dmir first.
func (b *built) entries(with *peers, threads int, folder string) (list []*entry, err error) {
	add := func(name string, c contestant) { list = append(list, &entry{name: name, contestant: c}) }
	add("dmir", dmir{b})
	if b.gemm != nil && with.blas != nil {
		c, err := b.blas(with.blas, threads)
		if err != nil {
			return nil, err
		}
		add("OpenBLAS", c)
	}
	for _, kind := range b.torch {
		if with.torch == nil {
			break
		}
		name := "torch"
		if kind != b.torch[0] {
			name = "torch sdpa"
		}
		add(name, &prepared{with.torch, b, kind, folder, threads})
	}
	if b.onnx != "" && with.onnx != nil {
		add("onnxruntime", &prepared{with.onnx, b, b.onnx, folder, threads})
	}
	if b.bound {
		add("copy", newCopying(b.bytes(), threads))
	}
	return list, nil
}

// row measures one row with a number of threads.
func (o *options) row(ctx context.Context, b *built, with *peers, n int, folder string) *row {
	r := &row{Name: b.name, Threads: n, Bytes: b.bytes(), CompileMs: ms(b.took), Others: map[string]*times{}, Without: map[string]string{}}
	for _, s := range b.out.Steps {
		r.FLOP += s.FLOP
	}
	if err := o.contest(ctx, b, with, r, folder); err != nil {
		r.Error = err.Error()
	}
	o.progress.Print(r.line())
	if o.steps {
		for i, s := range b.steps {
			step := &b.out.Steps[i]
			o.progress.Printf("    %-50s %10.3f ms %8.2f GFLOP/s %7.2f GB/s", s.Name, s.MeasuredNs/1e6, float64(step.FLOP)/s.MeasuredNs, float64(step.ReadBytes+step.WrittenBytes)/s.MeasuredNs)
		}
	}
	return r
}

func (o *options) contest(ctx context.Context, b *built, with *peers, r *row, folder string) (err error) {
	if err := threads(r.Threads); err != nil {
		return err
	}
	list, err := b.entries(with, r.Threads, folder)
	if err != nil {
		return err
	}
	for _, p := range []*python{with.torch, with.onnx} {
		if p != nil {
			defer func() { err = errors.Join(err, p.drop()) }()
		}
	}
	want, err := list[0].results()
	if err != nil {
		return err
	}
	able := list[:1]
	for _, e := range list[1:] {
		got, err := e.results()
		if err != nil {
			r.Without[e.name] = err.Error()
			continue
		}
		if err := b.agree(got, want); err != nil {
			return fmt.Errorf("%s and dmir: %w", e.name, err)
		}
		able = append(able, e)
	}
	list = able
	if o.slowest > 0 {
		got, took, err := b.reference(r.Threads, o.slowest)
		switch {
		case err == nil:
			if err := b.agree(got, want); err != nil {
				return fmt.Errorf("the reference executor and dmir: %w", err)
			}
			r.Others["reference"] = summary([]time.Duration{took})
		case !errors.Is(err, errSlow):
			return fmt.Errorf("the reference executor: %w", err)
		}
	}
	if err := o.alternate(ctx, list); err != nil {
		return err
	}
	r.Ours = *summary(list[0].times)
	for _, e := range list[1:] {
		r.Others[e.name] = summary(e.times)
	}
	for name, t := range r.Others {
		if t.RatioOfBest = t.BestMs / r.Ours.BestMs; name != "reference" {
			t.RatioOfMedian = t.MedianMs / r.Ours.MedianMs
		}
	}
	return nil
}

// alternate takes samples of all contestants in turns, in another order each time.
func (o *options) alternate(ctx context.Context, list []*entry) error {
	first, err := list[0].sample(1)
	if err != nil {
		return err
	}
	runs := int(min(max(20*time.Millisecond/max(first, 1), 1), 99)) | 1
	start := time.Now()
	for round := 0; round < o.rounds && (round < 3 || time.Since(start) < o.budget); round++ {
		for i := range list {
			if err := ctx.Err(); err != nil {
				return err
			}
			e := list[(i+round)%len(list)]
			time.Sleep(pause)
			t, err := e.sample(runs)
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			e.times = append(e.times, t)
		}
	}
	return nil
}

// agree compares results of a row. A gradient may be 0 by cancellation, so that the
// largest root mean square of the results counts as well.
func (b *built) agree(got, want []*tensor.Tensor) error {
	if got == nil {
		return nil
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d results and %d", len(got), len(want))
	}
	var scale float64
	for _, x := range want {
		scale = max(scale, rms(x.Len(), x.Float))
	}
	tolerance := max(b.largest, 1e-4)
	for i, x := range got {
		y := want[i]
		if !slices.Equal(x.Shape, y.Shape) {
			return fmt.Errorf("result %d has the shapes %v and %v", i, x.Shape, y.Shape)
		}
		off := rms(x.Len(), func(i int) float64 { return x.Float(i) - y.Float(i) })
		if of := max(rms(y.Len(), y.Float), scale/20); !(off <= tolerance*of) {
			return fmt.Errorf("result %d differs by %.2g of its root mean square %.3g", i, off/of, of)
		}
	}
	return nil
}

// rms is the root mean square of n elements.
func rms(n int, at func(i int) float64) float64 {
	var sum float64
	for i := range n {
		sum += at(i) * at(i)
	}
	return math.Sqrt(sum / float64(max(n, 1)))
}

func median(list []time.Duration) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

func summary(list []time.Duration) *times {
	return &times{BestMs: ms(slices.Min(list)), MedianMs: ms(median(list)), Samples: len(list)}
}

// timed runs f once, and then some times, whose median it returns.
func timed(runs int, f func()) time.Duration {
	f()
	times := make([]time.Duration, runs)
	for i := range times {
		start := time.Now()
		f()
		times[i] = time.Since(start)
	}
	return median(times)
}
