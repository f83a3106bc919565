package cli

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"dmir/gpu/collective"
)

// rank is this process as one of several that a launcher has started to run a program together.
// What it writes to standard error waits until it is known which of them reports: a failure
// that all have is reported once.
type rank struct {
	launch collective.Launch
	to     io.Writer
	mu     sync.Mutex
	text   bytes.Buffer
}

// rankOf is the rank that this process runs a program as; nil: it is alone.
func rankOf(args []string) *rank {
	l, ok := collective.Launched()
	if !ok || l.Size == 1 || len(args) == 0 || args[0] != "run" {
		return nil
	}
	return &rank{launch: l}
}

// hold is what is written in place of to until settle.
func (r *rank) hold(to io.Writer) io.Writer {
	r.to = to
	return r
}

// Write keeps b.
func (r *rank) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

// refusal is how long the ranks of a run that fails before it begins may take to find out
// whether they have the same reason.
const refusal = time.Minute

// settle writes what was held, on the rank that reports, and is the exit status.
func (r *rank) settle(ctx context.Context, status int, err error) int {
	if r == nil {
		return status
	}
	if status != exitOK && !endedElsewhere(err) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusal)
		defer cancel()
		if other := collective.Refuse(ctx, r.launch, r.text.String()); other != nil {
			err = other
		}
	}
	if reports := !endedElsewhere(err) && (status != exitOK || r.launch.Rank == 0); reports {
		if _, err := r.to.Write(r.text.Bytes()); err != nil {
			status = exitFailed
		}
	}
	collective.Hold(err)
	return status
}
