package job

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.lsp.dev/protocol"

	"dmir/base/escape"
	"dmir/lsp/session"
	"dmir/lsp/worker"
)

// TraceResult is the answer to dmir.traceAgain.
type TraceResult struct {
	OK      bool   `json:"ok"`
	Trace   string `json:"trace"`
	Message string `json:"message"`
	Output  string `json:"output,omitempty"` // the end of what the command wrote, if it failed
}

// TraceAgain runs the command of a trace in a folder. Where the editor says whether a workspace is trusted, that decides;
// where it does not, the person is asked each time.
func (j *Jobs) TraceAgain(ctx context.Context, trace string, command []string, dir string, token protocol.ProgressToken) (any, error) {
	res := TraceResult{Trace: trace}
	line := escape.Terminal(strings.Join(command, " "))
	switch {
	case len(command) == 0:
		res.Message = fmt.Sprintf("%s cannot be traced again: its description names no command; trace it as it was traced first", trace)
	case !j.Trusted():
		res.Message = fmt.Sprintf("%s was not traced: the workspace is not trusted", trace)
	case !j.stated.Load() && !j.agreed(ctx, line, dir):
		res.Message = fmt.Sprintf("%s was not traced", trace)
	}
	if res.Message != "" {
		j.s.Show(protocol.MessageTypeWarning, res.Message)
		return session.Answer(res)
	}
	ctx, left := j.Start(ctx, token)
	if left == nil {
		res.Message = fmt.Sprintf("%s was not traced: %d functions are running already", trace, MaxJobs)
		return session.Answer(res)
	}
	defer left()
	ctx, cancel := context.WithTimeoutCause(ctx, j.opts.Timeout, errTimeout)
	defer cancel()
	bar := j.Begin(ctx, token, "Tracing "+trace)
	said, err := worker.Command(ctx, command, dir)
	bar.End()
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		res.Output = said
		res.Message = fmt.Sprintf("%s was not traced: %s", trace, reason(said, err))
		j.s.Show(protocol.MessageTypeError, res.Message)
	default:
		res.OK, res.Message = true, trace+" is traced"
	}
	return session.Answer(res)
}

// agreed asks the person whether a command may run.
func (j *Jobs) agreed(ctx context.Context, command, dir string) bool {
	const run = "Run"
	var chosen *protocol.MessageActionItem
	err := j.s.Call(ctx, protocol.MethodWindowShowMessageRequest, &protocol.ShowMessageRequestParams{
		Type: protocol.MessageTypeInfo, Message: fmt.Sprintf("Run %s in %s?", command, escape.Terminal(dir)),
		Actions: []protocol.MessageActionItem{{Title: run}, {Title: "Cancel"}},
	}, &chosen)
	return err == nil && chosen != nil && chosen.Title == run
}

// reason is the last line that a command wrote, which for a Python program is its exception, or why it did not run.
func reason(said string, err error) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return escape.Terminal(last)
	}
	return err.Error()
}
