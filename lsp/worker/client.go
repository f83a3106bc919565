package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"dmir/base/local"
	"dmir/base/sandbox"
)

// Bounds on what a worker may write.
const (
	maxLine   = 32 << 20
	maxOutput = 48 << 20
	keptError = 8 << 10
)

// ErrDied reports that the worker ended without a result.
var ErrDied = errors.New("the worker process died")

// Run starts command, has it run req, and waits for the result. The process
// and what it started are killed when ctx ends, and when it writes what no
// worker writes or far too much. progress is called from another goroutine
// than Run's, one call at a time, never after Run has returned.
//
// The error is ctx's, or one that wraps ErrDied; a function that failed is a
// Result with OK false.
func Run(ctx context.Context, command []string, req Request, progress func(Progress)) (*Result, error) {
	if len(command) == 0 {
		return nil, errors.New("no worker command")
	}
	line, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	isolate(cmd)
	cmd.Cancel = func() error { return kill(cmd) }
	cmd.WaitDelay = 2 * time.Second

	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stderr := &tail{max: keptError}
	cmd.Stderr = stderr
	out := &reader{progress: progress, stop: stop, done: func() {
		_ = in.Close()
		time.AfterFunc(cmd.WaitDelay, func() { stop(nil) }) // it has nothing left to do
	}}
	cmd.Stdout = out
	if err := sandbox.Start(cmd, reach()); err != nil {
		return nil, fmt.Errorf("cannot start the worker: %w", err)
	}
	// The pipe stays open while the worker runs: its end ends the worker. A
	// write that fails adds nothing to the way in which the process ends.
	go func() { _, _ = in.Write(append(line, '\n')) }()
	err = cmd.Wait()
	_ = in.Close()
	if out.result != nil {
		return out.result, nil
	}
	switch cause := context.Cause(ctx); {
	case cause != nil && !errors.Is(cause, ErrDied):
		return nil, cause
	case cause != nil:
		return nil, withStderr(cause, stderr)
	case err == nil:
		return nil, withStderr(fmt.Errorf("%w: it ended without a result", ErrDied), stderr)
	}
	return nil, withStderr(fmt.Errorf("%w: %w", ErrDied, err), stderr)
}

// reach is what the worker, and what it compiles and runs, may change: caches, temporary files and
// devices, and none of the user's files.
func reach() sandbox.Policy {
	p := sandbox.Policy{Read: []string{"/"}, Write: []string{os.TempDir(), "/dev", "/proc"}, Network: true}
	if dir, err := local.CacheDir(""); err == nil && os.MkdirAll(dir, 0o755) == nil {
		p.Write = append(p.Write, dir)
	}
	return p
}

// withStderr adds the last line that the process complained with.
func withStderr(err error, t *tail) error {
	text := strings.TrimSpace(string(t.buf))
	if i := strings.Index(text, "\n\ngoroutine "); i >= 0 {
		text = text[:i] // a crash: its message, not its stacks
	}
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	if text == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, text)
}

// reader takes the worker's lines as they come.
type reader struct {
	progress func(Progress)
	stop     context.CancelCauseFunc
	done     func()

	line   []byte
	total  int
	result *Result
}

// Write implements io.Writer for the process's standard output.
func (r *reader) Write(p []byte) (int, error) {
	if r.result != nil {
		return len(p), nil // whatever follows the result
	}
	r.total += len(p)
	if r.total > maxOutput {
		return 0, r.fail("it wrote more than %d MB", maxOutput>>20)
	}
	for rest := p; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte("\n"))
		r.line = append(r.line, part...)
		if len(r.line) > maxLine {
			return 0, r.fail("it wrote a line of more than %d MB", maxLine>>20)
		}
		if !whole {
			break
		}
		if err := r.take(); err != nil {
			return 0, err
		}
		if r.result != nil {
			break
		}
		rest = after
	}
	return len(p), nil
}

func (r *reader) fail(format string, args ...any) error {
	err := fmt.Errorf("%w: "+format, append([]any{ErrDied}, args...)...)
	r.stop(err)
	return err
}

func (r *reader) take() error {
	defer func() { r.line = r.line[:0] }()
	if len(bytes.TrimSpace(r.line)) == 0 {
		return nil
	}
	var m message
	if err := json.Unmarshal(r.line, &m); err != nil {
		return r.fail("it wrote an invalid message: %.60q", r.line)
	}
	switch {
	case m.Result != nil:
		r.result = m.Result
		r.done()
	case m.Progress != nil && r.progress != nil:
		r.progress(*m.Progress)
	}
	return nil
}

// tail keeps the last bytes written to it.
type tail struct {
	buf []byte
	max int
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}
