package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/protocol"

	"dmir/analysis/units"
	"dmir/lsp/feature"
	"dmir/lsp/worker"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// runResult is the answer to dmir.run.
type runResult struct {
	OK        bool            `json:"ok"`
	Func      string          `json:"func"`
	Device    string          `json:"device"`
	ElapsedNs int64           `json:"elapsed_ns"`
	Message   string          `json:"message"`
	Results   []worker.Output `json:"results"`
}

// maxRuns bounds the worker processes at one time.
const maxRuns = 4

// errTimeout ends a run that takes too long.
var errTimeout = errors.New("it took too long")

// runCommand runs a function in a worker process.
func (s *server) runCommand(ctx context.Context, p place, args commandArgs, token protocol.ProgressToken) (any, error) {
	res := runResult{Func: args.Func, Device: p.Settings.Device, Results: []worker.Output{}}
	refuse := func(format string, a ...any) (any, error) {
		res.Message = fmt.Sprintf(format, a...)
		return answer(res)
	}
	switch {
	case !s.trusted.Load():
		return refuse("@%s was not run: the workspace is not trusted", args.Func)
	case args.Func == "":
		return refuse("dmir.run needs the name of a function")
	}
	ctx, done := s.runs.start(ctx, token)
	if done == nil {
		return refuse("@%s was not run: %d functions are running already", args.Func, maxRuns)
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.RunTimeout, errTimeout)
	defer cancel()

	req := worker.Request{Path: p.Src.Path, Text: p.Src.Text(), Func: args.Func, Device: p.Settings.Device, Seed: p.Settings.Seed, Bind: p.Program().Bind}
	if args.Device != nil {
		req.Device = *args.Device
	}
	if args.Seed != nil {
		req.Seed = *args.Seed
	}
	bar := s.beginProgress(ctx, token, "Running @"+args.Func)
	head := headOf(p, args.Func)
	p.letGo() // the text may change while it runs
	got, err := worker.Run(ctx, s.workerCommand(), req, func(w worker.Progress) { bar.report(w) })
	bar.end()
	s.client.flush(ctx)
	if err != nil {
		return s.runFailed(ctx, p, head, args, res, err)
	}
	res.OK, res.Device, res.ElapsedNs, res.Results = got.OK, got.Device, got.ElapsedNs, got.Results
	if !got.OK {
		return s.report(p, res, got.Code, got.Message, placeOf(p, got.Start, got.End))
	}
	res.Message = fmt.Sprintf("@%s ran in %s on %s", args.Func, units.Time(float64(got.ElapsedNs)), got.Device)
	s.measured(p, args.Func, got)
	s.client.show(protocol.MessageTypeInfo, announcement(res))
	return answer(res)
}

// workerCommand is this very program as a worker, unless told otherwise.
func (s *server) workerCommand() []string {
	if len(s.opts.Worker) > 0 {
		return s.opts.Worker
	}
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{exe, "worker"}
}

// runFailed tells cancellation, which is the person's wish, from the rest.
func (s *server) runFailed(ctx context.Context, p place, head source.Span, args commandArgs, res runResult, err error) (any, error) {
	switch {
	case errors.Is(err, errTimeout):
		msg := fmt.Sprintf("@%s was stopped after %s", args.Func, s.opts.RunTimeout)
		return s.report(p, res, worker.CodeTimeout, msg, head)
	case ctx.Err() != nil:
		return nil, protocol.ErrRequestCancelled
	}
	return s.report(p, res, worker.CodeDied, fmt.Sprintf("@%s did not finish: %v", args.Func, err), head)
}

// report answers with a failure, and shows it at its place, if it has one,
// until the text changes.
func (s *server) report(p place, res runResult, code, msg string, at source.Span) (any, error) {
	if at.Len() > 0 {
		s.docs.SetRun(p.Snapshot, nil, []diag.Diagnostic{{Code: code, Severity: diag.Error, Message: msg, Span: at}})
	}
	res.OK, res.Message = false, msg
	return answer(res)
}

// placeOf is a worker's place, if it lies in the text.
func placeOf(p place, start, end int) source.Span {
	if 0 <= start && start < end && end <= p.Src.Len() {
		return source.Span{Start: start, End: end}
	}
	return source.Span{}
}

func headOf(p place, fn string) source.Span {
	if f := p.Program().Func(fn); f != nil {
		return f.Func.Op.Head
	}
	return source.Span{}
}

// measured attaches the times to the text and has the editor show them.
func (s *server) measured(p place, fn string, got *worker.Result) {
	m := &feature.Times{Func: fn, Device: got.Device, Ns: got.ElapsedNs, Ops: map[int]int64{}}
	for _, o := range got.Ops {
		m.Ops[o.Line] = o.Ns
	}
	if s.docs.SetRun(p.Snapshot, m, nil) {
		s.refresh()
	}
}

// announcement is the message of a run: how long, and the results while they fit.
func announcement(res runResult) string {
	const most = 300
	msg := res.Message
	for i, r := range res.Results {
		next := fmt.Sprintf("; %s = %s", r.Name, r.Summary)
		if len(msg)+len(next) > most {
			return msg + fmt.Sprintf("; and %d more", len(res.Results)-i)
		}
		msg += next
	}
	return msg
}

// progressBar is a work-done progress in the editor; nil shows nothing.
type progressBar struct {
	s     *server
	token protocol.ProgressToken
	last  uint32
	sent  time.Time
}

// beginProgress uses the token that came with the call, or one that the editor
// accepts.
func (s *server) beginProgress(ctx context.Context, token protocol.ProgressToken, title string) *progressBar {
	if token == nil {
		if !s.features.progress {
			return nil
		}
		token = protocol.String(fmt.Sprintf("dmir-run-%d", time.Now().UnixNano()))
		s.runs.name(ctx, token)
		if s.client.call(ctx, protocol.MethodWindowWorkDoneProgressCreate, &protocol.WorkDoneProgressCreateParams{Token: token}, nil) != nil {
			return nil
		}
	}
	b := &progressBar{s: s, token: token}
	yes, zero := true, uint32(0)
	b.send(&protocol.WorkDoneProgressBegin{Kind: "begin", Title: title, Cancellable: &yes, Percentage: &zero})
	return b
}

func (b *progressBar) report(w worker.Progress) {
	if b == nil || w.Total <= 0 || w.Note == "" && time.Since(b.sent) < 50*time.Millisecond {
		return
	}
	b.sent = time.Now()
	percent := max(b.last, uint32(min(max(float64(w.Done)/float64(w.Total), 0), 1)*100))
	b.last = percent
	r := &protocol.WorkDoneProgressReport{Kind: "report", Percentage: &percent}
	switch message := fmt.Sprintf("line %d", w.Line); {
	case w.Note != "":
		r.Message = &w.Note
	case w.Line > 0:
		r.Message = &message
	}
	b.send(r)
}

func (b *progressBar) end() {
	if b != nil {
		b.send(&protocol.WorkDoneProgressEnd{Kind: "end"})
	}
}

func (b *progressBar) send(value any) {
	raw, err := protocol.Marshal(value)
	if err == nil {
		b.s.client.notify(protocol.MethodProgress, &protocol.ProgressParams{Token: b.token, Value: raw})
	}
}

// runs are the runs under way.
type runs struct {
	mu     sync.Mutex
	active map[*oneRun]bool
	all    sync.WaitGroup
	closed bool
}

type oneRun struct {
	token  protocol.ProgressToken
	cancel context.CancelFunc
}

type runKey struct{}

// start admits a run; done is nil where there are too many.
func (r *runs) start(ctx context.Context, token protocol.ProgressToken) (_ context.Context, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.active) >= maxRuns || r.closed {
		return ctx, nil
	}
	if r.active == nil {
		r.active = map[*oneRun]bool{}
	}
	one := &oneRun{token: cloneToken(token)}
	ctx, one.cancel = context.WithCancel(context.WithValue(ctx, runKey{}, one))
	r.active[one] = true
	r.all.Add(1)
	return ctx, func() {
		one.cancel()
		r.mu.Lock()
		delete(r.active, one)
		r.mu.Unlock()
		r.all.Done()
	}
}

// name gives the run of ctx the token under which the editor may cancel it.
func (r *runs) name(ctx context.Context, token protocol.ProgressToken) {
	if one, ok := ctx.Value(runKey{}).(*oneRun); ok {
		r.mu.Lock()
		one.token = token
		r.mu.Unlock()
	}
}

// stop cancels all runs.
func (r *runs) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range r.active {
		one.cancel()
	}
}

// wait cancels all runs, admits no more, and returns when they are gone.
func (r *runs) wait() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.all.Wait()
}

func cloneToken(t protocol.ProgressToken) protocol.ProgressToken {
	if str, ok := t.(protocol.String); ok {
		return protocol.String(strings.Clone(string(str)))
	}
	return t
}

// progressCancel cancels the run behind a progress that the person closed.
func progressCancel(s *server, p *protocol.WorkDoneProgressCancelParams) error {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	for one := range s.runs.active {
		if one.token != nil && one.token == p.Token {
			one.cancel()
		}
	}
	return nil
}
