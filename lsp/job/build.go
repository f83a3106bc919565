package job

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"math"
	"slices"
	"sync"

	"go.lsp.dev/protocol"

	"dmir/lsp/session"
	"dmir/lsp/worker"
)

// builds caches the functions compiled last: all views of one function are made from
// one build. A build runs once, in a worker process, for all calls that wait for it,
// and is stopped when none does.
type builds struct {
	mu   sync.Mutex
	made []*build // the last requested one at the end
}

// keptBuilds bounds how many builds are remembered.
const keptBuilds = 8

// build is a function that is or was being compiled.
type build struct {
	key     [sha256.Size]byte
	cancel  context.CancelFunc
	waiting int

	done chan struct{} // closed when res and err are set
	res  *worker.Result
	err  error
}

// build is the result of a request of KindCompile. progress may be nil; it is
// called while a build that this call has begun is under way. The error is
// ctx's, or of the process.
func (j *Jobs) build(ctx context.Context, req worker.Request, progress func(worker.Progress)) (*worker.Result, error) {
	b := j.builds.join(req, func(ctx context.Context, b *build) { j.make(ctx, b, req, progress) })
	defer j.builds.leave(b)
	select {
	case <-b.done:
		return b.res, b.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// make runs the worker; it counts as a run, so that it ends with the trust and
// with the session.
func (j *Jobs) make(ctx context.Context, b *build, req worker.Request, progress func(worker.Progress)) {
	defer close(b.done)
	stop := context.AfterFunc(j.s.Context(), b.cancel)
	defer stop()
	ctx, left := j.runs.start(ctx, nil, math.MaxInt)
	if left == nil {
		b.err = context.Canceled
		return
	}
	defer left()
	ctx, cancel := context.WithTimeoutCause(ctx, j.opts.Timeout, errTimeout)
	defer cancel()
	b.res, b.err = worker.Run(ctx, j.workerCommand(), req, progress)
}

// join finds the build for a request, or begins it.
func (l *builds) join(req worker.Request, begin func(context.Context, *build)) *build {
	key := keyOf(req)
	keys := [][sha256.Size]byte{key}
	if !req.Code { // one with machine code will do
		req.Code = true
		keys = append(keys, keyOf(req))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, b := range slices.Backward(l.made) {
		if slices.Contains(keys, b.key) && !b.failed() {
			l.made = append(slices.Delete(l.made, i, i+1), b)
			b.waiting++
			return b
		}
	}
	b := &build{key: key, waiting: 1, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	l.made = append(l.made, b)
	if len(l.made) > keptBuilds {
		if i := slices.IndexFunc(l.made, (*build).over); i >= 0 {
			l.made = slices.Delete(l.made, i, i+1)
		}
	}
	go begin(ctx, b)
	return b
}

// leave stops a build that no call waits for.
func (l *builds) leave(b *build) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.waiting--; b.waiting == 0 && !b.over() {
		b.cancel()
		l.made = slices.DeleteFunc(l.made, func(o *build) bool { return o == b })
	}
}

func (b *build) over() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// failed reports whether the process came to no result: another try may.
func (b *build) failed() bool { return b.over() && b.err != nil }

func keyOf(req worker.Request) [sha256.Size]byte {
	raw, err := json.Marshal(req)
	if err != nil { // a machine of no finite speed, which the request reports
		raw = []byte(req.Text)
	}
	return sha256.Sum256(raw)
}

// BuildOf builds a function of the newest text of a document, once more when the
// text changes meanwhile.
func (j *Jobs) BuildOf(ctx context.Context, document, fn string, code bool, progress func(worker.Progress)) (*worker.Result, error) {
	for {
		var req worker.Request
		var newer <-chan struct{}
		_, err := j.s.OnPlace(document, func(_ context.Context, p session.Place) (any, error) {
			req, newer = request(p, worker.KindCompile, fn), p.Newer()
			return nil, nil
		})(ctx)
		if err != nil {
			return nil, err
		}
		req.Code = code
		req.Device, req.Seed = "", 0 // of no concern
		try, cancel := context.WithCancel(ctx)
		stop := make(chan struct{})
		go func() {
			select {
			case <-newer:
				cancel()
			case <-stop:
			}
		}()
		res, err := j.build(try, req, progress)
		stale := try.Err() != nil && ctx.Err() == nil
		close(stop)
		cancel()
		if !stale {
			return res, err
		}
		if err := pause(ctx, session.Follow); err != nil {
			return nil, err
		}
	}
}

// CompileResult is the answer to dmir.compile.
type CompileResult struct {
	OK        bool            `json:"ok"`
	Func      string          `json:"func"`
	Message   string          `json:"message"`
	Arch      string          `json:"arch,omitempty"`
	Compiler  string          `json:"compiler,omitempty"`
	ElapsedNs int64           `json:"elapsed_ns"`
	Kernels   []worker.Kernel `json:"kernels"`

	AsWrittenBytes int64 `json:"as_written_bytes"`
	MovedBytes     int64 `json:"moved_bytes"`
	MinimumBytes   int64 `json:"minimum_bytes"`
	WorkspaceBytes int64 `json:"workspace_bytes"`
}

// Compile compiles a function to machine code, as far as there is a
// compiler, and reports the result.
func (j *Jobs) Compile(ctx context.Context, p session.Place, args Args, token protocol.ProgressToken) (any, error) {
	res := CompileResult{Func: args.Func, Kernels: []worker.Kernel{}}
	ctx, done, refusal := j.admitted(ctx, worker.KindCompile, args.Func, token)
	if done == nil {
		res.Message = refusal
		return session.Answer(res)
	}
	defer done()
	req := request(p, worker.KindCompile, args.Func)
	req.Code, req.Device, req.Seed = true, "", 0
	head, target := headOf(p, args.Func), p.Program().Target.Name
	bar := j.Begin(ctx, token, doing[worker.KindCompile].title+" @"+args.Func)
	p.Release()
	got, err := j.build(ctx, req, func(w worker.Progress) { bar.Report(w) })
	bar.End()
	j.s.Flush(ctx)
	if err != nil {
		code, msg, err := j.Failure(ctx, worker.KindCompile, args.Func, err)
		if err != nil {
			return nil, err
		}
		j.mark(p, code, msg, head)
		res.Message = msg
		return session.Answer(res)
	}
	if !got.OK || got.Build == nil {
		j.mark(p, got.Code, got.Message, placeOf(p, got.Start, got.End))
		res.Message = got.Message
		return session.Answer(res)
	}
	b := got.Build
	res.OK, res.Arch, res.Compiler, res.ElapsedNs, res.Kernels = true, b.Arch, b.Compiler, got.ElapsedNs, got.Kernels
	res.AsWrittenBytes, res.MovedBytes, res.MinimumBytes, res.WorkspaceBytes = b.AsWrittenBytes, b.MovedBytes, b.MinimumBytes, b.WorkspaceBytes
	res.Message = compileMessage(args.Func, target, got)
	j.s.Docs.SetRun(p.Snapshot, p.Measured, append(differencesOf(p), spills(p.Src, got.Kernels)...))
	j.s.Show(protocol.MessageTypeInfo, res.Message)
	return session.Answer(res)
}
