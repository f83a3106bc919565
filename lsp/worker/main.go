package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Main is the worker process: it runs the request on the first line of in and
// writes to out. It gives up when in ends. The error is about the pipes only.
func Main(in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no request: %w", err)
	}
	var req Request
	if err := json.Unmarshal(line, &req); err != nil {
		return fmt.Errorf("malformed request: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, r)
		cancel()
	}()
	var mu sync.Mutex
	enc := json.NewEncoder(out)
	var last time.Time
	res := execute(ctx, req, func(p Progress) {
		if now := time.Now(); now.Sub(last) >= 50*time.Millisecond {
			last = now
			mu.Lock()
			defer mu.Unlock()
			_ = enc.Encode(message{Progress: &p})
		}
	})
	mu.Lock()
	defer mu.Unlock()
	return enc.Encode(message{Result: res})
}

// execute runs a request on the reference executor.
func execute(ctx context.Context, req Request, progress func(Progress)) *Result {
	res := &Result{Device: "reference", Results: []Output{}, Ops: []OpTime{}}
	fail := func(d diag.Diagnostic) *Result {
		res.Code, res.Message, res.Start, res.End = d.Code, d.Message, d.Span.Start, d.Span.End
		if d.Help != "" {
			res.Message += ": " + d.Help
		}
		return res
	}
	switch req.Device {
	case "", "auto", "reference":
	default:
		res.Device = req.Device
		res.Message = fmt.Sprintf("there is no device %q; choose auto or reference", req.Device)
		return res
	}
	src := source.New(req.Path, req.Text)
	p := program.Load(src, program.Options{Bind: req.Bind})
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			line, _ := src.Human(d.Span.Start)
			d.Message, d.Help = fmt.Sprintf("line %d: %s", line, d.Message), ""
			return fail(d)
		}
	}
	m, fn := find(p, req.Func)
	if fn == nil {
		res.Message = fmt.Sprintf("there is no function @%s", req.Func)
		return res
	}
	args, err := interp.Inputs(fn, req.Bind, uint64(req.Seed), nil)
	if err != nil {
		return fail(diagnostic(err))
	}
	start := time.Now()
	got, err := interp.Run(ctx, m, fn, args, interp.Options{
		Bind:     req.Bind,
		Progress: func(done, total int, o *ir.Op) { progress(Progress{done, total, lineOf(src, o)}) },
	})
	res.ElapsedNs = time.Since(start).Nanoseconds()
	if err != nil {
		return fail(diagnostic(err))
	}
	for i, t := range got.Outputs {
		res.Results = append(res.Results, Output{resultName(fn, i), t.Type(), Summary(t)})
	}
	res.Ops = times(src, got.Ops)
	res.OK = true
	return res
}

func diagnostic(err error) diag.Diagnostic {
	var e *interp.Error
	if errors.As(err, &e) {
		return e.Diagnostic()
	}
	return diag.Diagnostic{Message: err.Error()}
}

func find(p *program.Program, name string) (*ir.Module, *ir.Func) {
	name = strings.TrimPrefix(name, "@")
	for _, m := range p.Modules {
		if f := m.Func(name); f != nil {
			return m, f
		}
	}
	return nil, nil
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

// resultName is the name of what fn returns, or its number.
func resultName(fn *ir.Func, i int) string {
	if t := fn.Body.Terminator(); t != nil && i < len(t.Operands) && t.Operands[i].Name != "" {
		return t.Operands[i].Name
	}
	return strconv.Itoa(i)
}

// Summary is what a tensor holds in a few words: its only value, or the range
// and the mean.
func Summary(t *tensor.Tensor) string {
	if t.Len() == 0 {
		return "empty"
	}
	num := func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
	if t.Len() == 1 {
		if t.Elem.IsInt() {
			return strconv.FormatInt(t.Integer(0), 10)
		}
		return strconv.FormatFloat(t.Float(0), 'g', 7, 64)
	}
	s := t.Stats()
	var parts []string
	if !math.IsNaN(s.Min) {
		parts = append(parts, num(s.Min)+" … "+num(s.Max), "mean "+num(s.Mean))
	}
	if s.NaNs > 0 {
		parts = append(parts, fmt.Sprintf("%d NaN", s.NaNs))
	}
	if s.Infs > 0 {
		parts = append(parts, fmt.Sprintf("%d infinite", s.Infs))
	}
	return strings.Join(parts, ", ")
}
