package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/dialect/ir"
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
	var mu sync.Mutex
	enc := json.NewEncoder(out)
	var last time.Time
	res := execute(fed, req, func(p Progress) {
		if now := time.Now(); p.Note != "" || now.Sub(last) >= 50*time.Millisecond {
			last = now
			mu.Lock()
			defer mu.Unlock()
			_ = enc.Encode(message{Progress: &p})
		}
	})
	if ctx.Err() != nil {
		return context.Cause(ctx) // killed: no word on the function
	}
	mu.Lock()
	defer mu.Unlock()
	return enc.Encode(message{Result: res})
}

// execute runs a request.
func execute(ctx context.Context, req Request, progress func(Progress)) *Result {
	res := &Result{Device: req.Device, Results: []Output{}, Ops: []OpTime{}}
	fail := func(d diag.Diagnostic) *Result {
		res.Code, res.Message, res.Start, res.End = d.Code, d.Message, d.Span.Start, d.Span.End
		if d.Help != "" {
			res.Message += " (" + d.Help + ")"
		}
		return res
	}
	src := source.New(req.Path, req.Text)
	p := program.Load(src, program.Options{Bind: req.Bind})
	broken := func(d diag.Diagnostic) *Result {
		line, _ := src.Human(d.Span.Start)
		// No place: editors show this problem already.
		return fail(diag.Diagnostic{Code: d.Code, Message: fmt.Sprintf("line %d: %s", line, d.Message)})
	}
	m, fn, err := driver.Pick(p, req.Func)
	if err != nil {
		if i := slices.IndexFunc(p.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }); i >= 0 {
			return broken(p.Diags[i]) // the function may be there and be none for that
		}
		return fail(diagnostic(err, src))
	}
	if errs := p.ErrorsOf(m, fn); len(errs) > 0 {
		return broken(errs[0])
	}
	job := driver.Job{Program: p, Module: m, Fn: fn, Seed: uint64(req.Seed), Device: req.Device}
	progress(Progress{Total: 1, Note: "making the inputs"})
	got, err := driver.Run(ctx, job, func(done, total int, o *ir.Op) {
		progress(Progress{Done: done, Total: total, Line: lineOf(src, o)})
	})
	if err != nil {
		return fail(diagnostic(err, src))
	}
	res.Device, res.ElapsedNs = got.Device, got.Elapsed.Nanoseconds()
	progress(Progress{Done: 1, Total: 1, Note: "looking at the results"})
	for _, o := range got.Outputs {
		if ctx.Err() != nil {
			return fail(diagnostic(context.Cause(ctx), src))
		}
		res.Results = append(res.Results, Output{o.Name, o.Type, o.Summary()})
	}
	res.OK, res.Ops = true, times(src, got.Ops)
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
