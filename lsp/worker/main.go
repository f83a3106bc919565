package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/planned"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/gpu/device"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Main is the worker process: it runs the request on the first line of in and
// writes to out. It gives up when in ends, and without a result when ctx does.
// The error is about the pipes, or ctx's.
func Main(ctx context.Context, in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no request: %w", err)
	}
	var req Request
	if err := json.Unmarshal(line, &req); err != nil {
		return fmt.Errorf("malformed request: %w", err)
	}
	fed, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, r)
		cancel()
	}()
	replies := &replyWriter{enc: json.NewEncoder(out)}
	res := execute(fed, req, replies.progress)
	if ctx.Err() != nil {
		return context.Cause(ctx) // cancelled: no result
	}
	return replies.result(res)
}

// pace is the least time between two progress messages.
const pace = 50 * time.Millisecond

// replyWriter writes messages. It limits the rate of progress messages, but always
// writes the last one, so that the client has the position of a function that it
// kills.
type replyWriter struct {
	mu    sync.Mutex
	enc   *json.Encoder
	last  time.Time
	held  *Progress // not sent yet
	timer *time.Timer
}

func (t *replyWriter) progress(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wait := pace - time.Since(t.last)
	if p.Note != "" || wait <= 0 {
		t.tell(&p)
		return
	}
	t.held = &p
	if t.timer == nil {
		t.timer = time.AfterFunc(wait, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.timer = nil
			if t.held != nil {
				t.tell(t.held)
			}
		})
	}
}

func (t *replyWriter) tell(p *Progress) {
	t.last, t.held = time.Now(), nil
	_ = t.enc.Encode(message{Progress: p})
}

func (t *replyWriter) result(res *Result) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = nil // nothing follows the result
	return t.enc.Encode(message{Result: res})
}

// task is the current request.
type task struct {
	req      Request
	src      *source.File
	program  *program.Program
	module   *ir.Module
	fn       *ir.Func
	progress func(Progress)
	res      *Result
}

// note reports a step of the work that belongs to no op.
func (t *task) note(what string) { t.progress(Progress{Total: 1, Note: what}) }

// fail makes a problem the result.
func (t *task) fail(d diag.Diagnostic) *Result {
	t.res.Code, t.res.Message, t.res.Start, t.res.End = d.Code, d.Message, d.Span.Start, d.Span.End
	if d.Help != "" {
		t.res.Message += " (" + d.Help + ")"
	}
	return t.res
}

func (t *task) failed(err error) *Result { return t.fail(diagnostic(err, t.src)) }

// execute does what a request asks for.
func execute(ctx context.Context, req Request, progress func(Progress)) *Result {
	src := source.New(req.Path, req.Text)
	t := &task{req: req, src: src, progress: progress, res: &Result{Device: req.Device, Results: []Output{}, Ops: []OpTime{}}}
	t.program = program.Load(src, program.Options{Bind: req.Bind, F32Products: req.F32Products, Target: req.Machine, Arrays: tensor.In(filepath.Dir(req.Path)), Compiled: planned.Figures})
	broken := func(d diag.Diagnostic) *Result {
		line, _ := src.Human(d.Span.Start)
		// No place: editors show this problem already.
		return t.fail(diag.Diagnostic{Code: d.Code, Message: fmt.Sprintf("line %d: %s", line, d.Message)})
	}
	var err error
	if t.module, t.fn, err = driver.Pick(t.program, req.Func); err != nil {
		diags := t.program.Diags
		if i := slices.IndexFunc(diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }); i >= 0 {
			return broken(diags[i]) // the function may be there and be none for that
		}
		return t.failed(err)
	}
	if errs := t.program.ErrorsOf(t.module, t.fn); len(errs) > 0 {
		return broken(errs[0])
	}
	switch req.Kind {
	case "", KindRun:
		return t.run(ctx, req.Device, 0)
	case KindProfile:
		return t.run(ctx, profiler(req.Device), profiledRuns)
	case KindCompile:
		return t.compile(ctx)
	case KindPlan:
		return t.plan(ctx)
	}
	return t.fail(diag.Diagnostic{Message: fmt.Sprintf("there is no request of the kind %q", req.Kind)})
}

// run runs the function on a device; one that can measure does so over runs runs.
func (t *task) run(ctx context.Context, dev string, runs int) *Result {
	t.note("creating the inputs")
	job := driver.Job{Program: t.program, Module: t.module, Fn: t.fn, Seed: uint64(t.req.Seed), Device: dev, Machine: t.program.Target, Runs: runs}
	job.Progress = func(at device.Progress) {
		if at.At > 0 {
			t.progress(Progress{Done: int(at.Done * 1000), Total: 1000, Note: fmt.Sprintf("%s (%d of %d)", at.Step, at.At, at.Of)})
		}
	}
	got, err := driver.Run(ctx, job, func(done, total int, o *ir.Op) {
		t.progress(Progress{Done: done, Total: total, Line: lineOf(t.src, o)})
	})
	if err != nil {
		return t.failed(err)
	}
	res := t.res
	res.Device, res.Title, res.Why, res.ElapsedNs = got.Device, got.Title, got.Why, got.Elapsed.Nanoseconds()
	t.progress(Progress{Done: 1, Total: 1, Note: "reading the results"})
	for _, o := range got.Outputs {
		if ctx.Err() != nil {
			return t.failed(context.Cause(ctx))
		}
		res.Results = append(res.Results, Output{o.Name, o.Type, o.Summary()})
	}
	res.OK, res.Ops = true, times(t.src, got.Ops)
	for _, k := range got.Kernels {
		if k.Decision {
			continue
		}
		runs := float64(max(k.Runs, 1))
		res.Kernels = append(res.Kernels, Kernel{
			Name: k.Name, Class: k.Class, Lines: k.Lines, Runs: k.Runs, PredictedNs: k.PredictedNs, RoofNs: t.roof(k.PredictedNs/runs) * runs, MeasuredNs: k.MeasuredNs,
			ReadBytes: k.ReadBytes, WrittenBytes: k.WrittenBytes, Counted: k.Counted, CountedBytes: k.CountedReadBytes + k.CountedWrittenBytes, Differs: k.Differs,
		})
	}
	res.Foreign = t.foreign(got.Device)
	return res
}

func diagnostic(err error, src *source.File) diag.Diagnostic {
	d, _ := driver.Diagnostic(err, src)
	return d
}

func lineOf(src *source.File, o *ir.Op) int {
	if o == nil || o.Span.Len() == 0 {
		return 0
	}
	return src.Pos(o.Span.Start).Line + 1
}

// times adds up the ops of each line, leaving out what ran inside an op that
// stands on the same line.
func times(src *source.File, ops []interp.Timing) []OpTime {
	byLine := map[int]int{}
	var out []OpTime
	for _, t := range ops {
		line := lineOf(src, t.Op)
		if line == 0 {
			continue
		}
		i, seen := byLine[line]
		if !seen {
			byLine[line] = len(out)
			out = append(out, OpTime{line, t.Ns})
		} else {
			out[i].Ns = max(out[i].Ns, t.Ns)
		}
	}
	return out
}
