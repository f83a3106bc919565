package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"go.lsp.dev/protocol"

	"dmir/lsp/session"
	"dmir/lsp/worker"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// RunResult is the answer to dmir.run and dmir.profile.
type RunResult struct {
	OK        bool            `json:"ok"`
	Func      string          `json:"func"`
	Device    string          `json:"device"`
	ElapsedNs int64           `json:"elapsed_ns"`
	Message   string          `json:"message"`
	Results   []worker.Output `json:"results"`
	Kernels   []worker.Kernel `json:"kernels,omitempty"` // on a device
}

// Args are the arguments of the commands on a function.
type Args struct {
	URI    string  `json:"uri"`
	Func   string  `json:"func"`
	Device *string `json:"device"`
	Seed   *int64  `json:"seed"`
}

// MaxJobs bounds the jobs under way at one time.
const MaxJobs = 4

// errTimeout ends a run that takes too long.
var errTimeout = errors.New("it took too long")

// doing are the verbs for kinds of requests.
var doing = map[string]struct{ title, past string }{
	worker.KindRun:     {"Running", "run"},
	worker.KindProfile: {"Profiling", "profiled"},
	worker.KindCompile: {"Compiling", "compiled"},
	worker.KindPlan:    {"Planning", "planned"},
}

// admitted returns a context for the work of a command on a function and the
// function that ends it, or the reason why it may not run.
func (j *Jobs) admitted(ctx context.Context, kind, fn string, token protocol.ProgressToken) (_ context.Context, done func(), refusal string) {
	past := doing[kind].past
	switch {
	case !j.Trusted() && kind != worker.KindPlan: // which runs nothing
		return nil, nil, fmt.Sprintf("@%s was not %s: the workspace is not trusted", fn, past)
	case fn == "":
		return nil, nil, fmt.Sprintf("only a function can be %s: its name is missing", past)
	}
	ctx, left := j.runs.start(ctx, token, MaxJobs)
	if left == nil {
		return nil, nil, fmt.Sprintf("@%s was not %s: %d functions are running already", fn, past, MaxJobs)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, j.opts.Timeout, errTimeout)
	return ctx, func() { cancel(); left() }, ""
}

// request is the worker's request for a function of a document.
func request(p session.Place, kind, fn string) worker.Request {
	prog := p.Program()
	return worker.Request{Kind: kind, Path: p.Src.Path, Text: p.Src.Text(), Func: fn, Device: p.Settings.Device, Seed: p.Settings.Seed, Bind: prog.Bind, F32Products: prog.F32Products, Machine: prog.Target}
}

// Run runs a function in a worker process, or profiles it there.
func (j *Jobs) Run(ctx context.Context, p session.Place, kind string, args Args, token protocol.ProgressToken) (any, error) {
	res := RunResult{Func: args.Func, Device: p.Settings.Device, Results: []worker.Output{}}
	ctx, done, refusal := j.admitted(ctx, kind, args.Func, token)
	if done == nil {
		res.Message = refusal
		return session.Answer(res)
	}
	defer done()
	req := request(p, kind, args.Func)
	if args.Device != nil {
		req.Device = *args.Device
	}
	if args.Seed != nil {
		req.Seed = *args.Seed
	}
	bar := j.Begin(ctx, token, doing[kind].title+" @"+args.Func)
	head := headOf(p, args.Func)
	p.Release() // the text may change while it runs
	var reached int
	got, err := worker.Run(ctx, j.workerCommand(), req, func(w worker.Progress) {
		reached = w.Line
		bar.Report(w)
	})
	bar.End()
	j.s.Flush(ctx)
	if err != nil {
		code, msg, err := j.Failure(ctx, kind, args.Func, err)
		if err != nil {
			return nil, err
		}
		if d, ok := atKernel(p.Src, code, msg, []int{reached}); ok && code == worker.CodeTimeout {
			head, msg = d.Span, fmt.Sprintf("%s, in line %d", msg, reached)
		}
		return j.report(p, res, code, msg, head)
	}
	res.OK, res.Device, res.ElapsedNs, res.Results, res.Kernels = got.OK, got.Device, got.ElapsedNs, got.Results, got.Kernels
	if !got.OK {
		return j.report(p, res, got.Code, got.Message, placeOf(p, got.Start, got.End))
	}
	res.Message = runMessage(kind, args.Func, got)
	j.measured(p, args.Func, got)
	j.s.Show(protocol.MessageTypeInfo, announcement(res))
	return session.Answer(res)
}

// workerCommand returns the command line of a worker process.
func (j *Jobs) workerCommand() []string {
	if len(j.opts.Worker) > 0 {
		return j.opts.Worker
	}
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{exe, "worker"}
}

// Failure explains why a worker has no result; cancellation, which is the
// person's wish, is an error of the protocol.
func (j *Jobs) Failure(ctx context.Context, kind, fn string, err error) (code, msg string, _ error) {
	switch {
	case errors.Is(err, errTimeout):
		return worker.CodeTimeout, fmt.Sprintf("@%s was stopped after %s", fn, j.opts.Timeout), nil
	case ctx.Err() != nil:
		return "", "", protocol.ErrRequestCancelled
	}
	if kind == worker.KindCompile || kind == worker.KindPlan {
		return worker.CodeDied, fmt.Sprintf("@%s was not %s: %v", fn, doing[kind].past, err), nil
	}
	return worker.CodeDied, fmt.Sprintf("@%s did not finish: %v", fn, err), nil
}

// report answers with a failure, and shows it at its session.Place, if it has one,
// until the text changes.
func (j *Jobs) report(p session.Place, res RunResult, code, msg string, at source.Span) (any, error) {
	j.mark(p, code, msg, at)
	res.OK, res.Message = false, msg
	return session.Answer(res)
}

// mark shows a failure where it belongs, if it belongs to a session.Place, until the
// text changes.
func (j *Jobs) mark(p session.Place, code, msg string, at source.Span) {
	if at.Len() > 0 {
		j.s.Docs.SetRun(p.Snapshot, nil, []diag.Diagnostic{{Code: code, Severity: diag.Error, Message: msg, Span: at}})
	}
}

// placeOf is a worker's session.Place, if it lies in the text.
func placeOf(p session.Place, start, end int) source.Span {
	if 0 <= start && start < end && end <= p.Src.Len() {
		return source.Span{Start: start, End: end}
	}
	return source.Span{}
}

func headOf(p session.Place, fn string) source.Span {
	if f := p.Program().Func(fn); f != nil {
		return f.Func.Op.Head
	}
	return source.Span{}
}

// announcement is the message of a run: how long, and the results while they fit.
func announcement(res RunResult) string {
	const most = 300
	msg := res.Message
	for i, r := range res.Results {
		name := r.Name
		if _, err := strconv.Atoi(name); err == nil { // %1 alone would read as a number
			name = "%" + name
		}
		next := fmt.Sprintf("; %s = %s", name, r.Summary)
		if len(msg)+len(next) > most {
			return msg + fmt.Sprintf("; and %d more", len(res.Results)-i)
		}
		msg += next
	}
	return msg
}
