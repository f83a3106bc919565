package job

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.lsp.dev/protocol"

	"dmir/lsp/connection"
	"dmir/lsp/worker"
)

// Bar is a work-done progress in the editor; nil shows nothing.
type Bar struct {
	conn  *connection.Conn
	token protocol.ProgressToken
	last  uint32
	sent  time.Time
	ended atomic.Bool
}

// Begin begins a progress under the token that came with a call or, without one,
// under a new one. It returns nil if the editor shows none.
func (j *Jobs) Begin(ctx context.Context, token protocol.ProgressToken, title string) *Bar {
	if token == nil {
		if !j.s.Features.Progress {
			return nil
		}
		token = protocol.String(fmt.Sprintf("dmir-run-%d", time.Now().UnixNano()))
		j.runs.name(ctx, token)
		if j.s.Call(ctx, protocol.MethodWindowWorkDoneProgressCreate, &protocol.WorkDoneProgressCreateParams{Token: token}, nil) != nil {
			return nil
		}
	}
	b := &Bar{conn: j.s.Conn, token: token}
	yes, zero := true, uint32(0)
	b.send(&protocol.WorkDoneProgressBegin{Kind: "begin", Title: title, Cancellable: &yes, Percentage: &zero}, false)
	return b
}

// Report shows how far a worker is.
func (b *Bar) Report(w worker.Progress) {
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

// End ends the progress.
func (b *Bar) End() {
	if b != nil && !b.ended.Swap(true) {
		b.send(&protocol.WorkDoneProgressEnd{Kind: "end"}, false)
	}
}

// send sends a step of the bar; a later report supersedes one that waits.
func (b *Bar) send(value any, report bool) {
	raw, err := protocol.Marshal(value)
	if err != nil {
		return
	}
	params := &protocol.ProgressParams{Token: b.token, Value: raw}
	if report {
		b.conn.Supersede(b, protocol.MethodProgress, func() any { return params })
		return
	}
	b.conn.Notify(protocol.MethodProgress, params)
}

// Step shows how many of the files are done.
func (b *Bar) Step(done, total int, path string) {
	if b == nil || total == 0 {
		return
	}
	percent := uint32(100 * done / total)
	if percent == b.last && done < total {
		return
	}
	b.last = percent
	message := fmt.Sprintf("%d of %d: %s", done, total, path)
	b.send(&protocol.WorkDoneProgressReport{Kind: "report", Percentage: &percent, Message: &message}, true)
}
