package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.lsp.dev/protocol"

	"dmir/lsp/worker"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// runResult is the answer to dmir.run and dmir.profile.
type runResult struct {
	OK        bool            `json:"ok"`
	Func      string          `json:"func"`
	Device    string          `json:"device"`
	ElapsedNs int64           `json:"elapsed_ns"`
	Message   string          `json:"message"`
	Results   []worker.Output `json:"results"`
	Kernels   []worker.Kernel `json:"kernels,omitempty"` // on a device
}

// maxRuns bounds the runs at one time.
const maxRuns = 4

// errTimeout ends a run that takes too long.
var errTimeout = errors.New("it took too long")

// doing are the words for what is done with a function, by kind of request.
var doing = map[string]struct{ title, past string }{
	worker.KindRun:     {"Running", "run"},
	worker.KindProfile: {"Profiling", "profiled"},
	worker.KindCompile: {"Compiling", "compiled"},
}

// admitted is a context for work on a function that a command asks for, and what
// ends it; or why there is none.
func (s *server) admitted(ctx context.Context, kind, fn string, token protocol.ProgressToken) (_ context.Context, done func(), refusal string) {
	past := doing[kind].past
	switch {
	case !s.trusted.Load():
		return nil, nil, fmt.Sprintf("@%s was not %s: the workspace is not trusted", fn, past)
	case fn == "":
		return nil, nil, fmt.Sprintf("only a function can be %s: its name is missing", past)
	}
	ctx, left := s.runs.start(ctx, token, maxRuns)
	if left == nil {
		return nil, nil, fmt.Sprintf("@%s was not %s: %d functions are running already", fn, past, maxRuns)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.RunTimeout, errTimeout)
	return ctx, func() { cancel(); left() }, ""
}

// request is what a worker needs to know of a function of a document.
func request(p place, kind, fn string) worker.Request {
	prog := p.Program()
	return worker.Request{Kind: kind, Path: p.Src.Path, Text: p.Src.Text(), Func: fn, Device: p.Settings.Device, Seed: p.Settings.Seed, Bind: prog.Bind, Machine: prog.Target}
}

// runCommand runs a function in a worker process, or profiles it there.
func (s *server) runCommand(ctx context.Context, p place, kind string, args commandArgs, token protocol.ProgressToken) (any, error) {
	res := runResult{Func: args.Func, Device: p.Settings.Device, Results: []worker.Output{}}
	ctx, done, refusal := s.admitted(ctx, kind, args.Func, token)
	if done == nil {
		res.Message = refusal
		return answer(res)
	}
	defer done()
	req := request(p, kind, args.Func)
	if args.Device != nil {
		req.Device = *args.Device
	}
	if args.Seed != nil {
		req.Seed = *args.Seed
	}
	bar := s.beginProgress(ctx, token, doing[kind].title+" @"+args.Func)
	head := headOf(p, args.Func)
	p.letGo() // the text may change while it runs
	var reached int
	got, err := worker.Run(ctx, s.workerCommand(), req, func(w worker.Progress) {
		reached = w.Line
		bar.report(w)
	})
	bar.end()
	s.client.flush(ctx)
	if err != nil {
		code, msg, err := s.workFailed(ctx, kind, args.Func, err)
		if err != nil {
			return nil, err
		}
		if d, ok := atKernel(p.Src, code, msg, []int{reached}); ok && code == worker.CodeTimeout {
			head, msg = d.Span, fmt.Sprintf("%s, in line %d", msg, reached)
		}
		return s.report(p, res, code, msg, head)
	}
	res.OK, res.Device, res.ElapsedNs, res.Results, res.Kernels = got.OK, got.Device, got.ElapsedNs, got.Results, got.Kernels
	if !got.OK {
		return s.report(p, res, got.Code, got.Message, placeOf(p, got.Start, got.End))
	}
	res.Message = runMessage(kind, args.Func, got)
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

// workFailed says why a worker has no result; cancellation, which is the
// person's wish, is an error of the protocol.
func (s *server) workFailed(ctx context.Context, kind, fn string, err error) (code, msg string, _ error) {
	switch {
	case errors.Is(err, errTimeout):
		return worker.CodeTimeout, fmt.Sprintf("@%s was stopped after %s", fn, s.opts.RunTimeout), nil
	case ctx.Err() != nil:
		return "", "", protocol.ErrRequestCancelled
	}
	if kind == worker.KindCompile {
		return worker.CodeDied, fmt.Sprintf("@%s was not compiled: %v", fn, err), nil
	}
	return worker.CodeDied, fmt.Sprintf("@%s did not finish: %v", fn, err), nil
}

// report answers with a failure, and shows it at its place, if it has one,
// until the text changes.
func (s *server) report(p place, res runResult, code, msg string, at source.Span) (any, error) {
	s.place(p, code, msg, at)
	res.OK, res.Message = false, msg
	return answer(res)
}

// place shows a failure where it belongs, if it belongs to a place, until the
// text changes.
func (s *server) place(p place, code, msg string, at source.Span) {
	if at.Len() > 0 {
		s.docs.SetRun(p.Snapshot, nil, []diag.Diagnostic{{Code: code, Severity: diag.Error, Message: msg, Span: at}})
	}
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

// announcement is the message of a run: how long, and the results while they fit.
func announcement(res runResult) string {
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

// progressBar is a work-done progress in the editor; nil shows nothing.
type progressBar struct {
	s     *server
	token protocol.ProgressToken
	last  uint32
	sent  time.Time
	ended atomic.Bool
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
	b.send(&protocol.WorkDoneProgressBegin{Kind: "begin", Title: title, Cancellable: &yes, Percentage: &zero}, false)
	return b
}

func (b *progressBar) report(w worker.Progress) {
	if b == nil || b.ended.Load() || w.Total <= 0 || w.Note == "" && time.Since(b.sent) < 50*time.Millisecond {
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
	b.send(r, true)
}

func (b *progressBar) end() {
	if b != nil && !b.ended.Swap(true) {
		b.send(&protocol.WorkDoneProgressEnd{Kind: "end"}, false)
	}
}

// send sends a step of the bar; a later report supersedes one that waits.
func (b *progressBar) send(value any, report bool) {
	raw, err := protocol.Marshal(value)
	if err != nil {
		return
	}
	c, params := b.s.client, &protocol.ProgressParams{Token: b.token, Value: raw}
	if !report {
		c.notify(protocol.MethodProgress, params)
		return
	}
	c.supersede(b, func() { _ = c.conn.Notify(c.ctx, protocol.MethodProgress, params) })
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

// start admits a run; done is nil where there are most already.
func (r *runs) start(ctx context.Context, token protocol.ProgressToken, most int) (_ context.Context, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.active) >= most || r.closed {
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
