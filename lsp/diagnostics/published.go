package diagnostics

import (
	"context"
	"encoding/hex"
	"hash/fnv"
	"slices"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/lsp/workspace"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// published are the newest diagnostics of each open document, for editors that
// pull them.
type published struct {
	mu      sync.Mutex
	docs    map[string]*finding // by the document's key
	views   map[string][]lines  // around what is in view of a document, by its key
	waiting chan struct{}       // closed at the next change; nil if no call waits
	files   int                 // counts what happened to files on disk
	configs int                 // counts the edits of dmir.toml files that are open
}

// finding is what is known of one text of a document.
type finding struct {
	snap     *workspace.Snapshot // its text alone
	diags    []diag.Diagnostic
	failed   bool         // the analysis broke down
	answered *source.File // the text that an answer was given for
}

// put records the diagnostics of a text. It reports whether an editor was sent
// other diagnostics of the same text.
func (p *published) put(snap *workspace.Snapshot, ds []diag.Diagnostic) (stale bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.docs == nil {
		p.docs = map[string]*finding{}
	}
	f := &finding{snap: snap, diags: ds}
	if was := p.docs[snap.Key]; was != nil {
		f.answered = was.answered
		stale = was.answered == snap.Src && !sameDiagnostics(was.diags, ds)
	}
	p.docs[snap.Key] = f
	p.wake()
	return stale
}

// sameDiagnostics reports whether two lists are equal except for the edits of their
// fixes.
func sameDiagnostics(a, b []diag.Diagnostic) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Code != b[i].Code || a[i].Span != b[i].Span || a[i].Message != b[i].Message || len(a[i].Fixes) != len(b[i].Fixes) || len(a[i].Related) != len(b[i].Related) {
			return false
		}
	}
	return true
}

// answer records the text whose diagnostics an editor was sent. It reports whether
// other diagnostics of that text were found while the answer was made, which put
// could not know.
func (p *published) answer(told *finding) (stale bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.docs[told.snap.Key]
	if f == nil || f.snap == nil {
		return false
	}
	f.answered = told.snap.Src
	return f.snap.Src == told.snap.Src && !sameDiagnostics(f.diags, told.diags)
}

// look records all lines of a document that are in view. It reports whether they
// decide about what is shown.
func (p *published) look(key string, views []lines) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var near []lines
	known := true
	for _, view := range views {
		near = append(near, view.around())
		known = known && slices.ContainsFunc(p.views[key], func(l lines) bool { return l.holds(view) })
	}
	if known {
		return false
	}
	if p.views == nil {
		p.views = map[string][]lines{}
	}
	p.views[key] = near
	f := p.docs[key]
	return f != nil && len(f.diags) > 2*most
}

// near returns the lines around what is in view of a document.
func (p *published) near(key string) []lines {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.views[key]
}

// newest returns what is known of the newest text of an open document.
func (p *published) newest(key string) (f *finding, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f = p.docs[key]
	return f, f != nil && f.snap != nil
}

// fail records that the analysis of a document panicked.
func (p *published) fail(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.docs == nil {
		p.docs = map[string]*finding{}
	}
	p.docs[key] = &finding{failed: true}
	p.wake()
}

// forget drops a closed document's state.
func (p *published) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.docs, key)
	delete(p.views, key)
	p.files++ // what is on disk counts again
	p.wake()
}

// filesChanged records that files on disk have changed.
func (p *published) filesChanged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files++
	p.wake()
}

// configChanged records that a dmir.toml was opened, edited or closed.
func (p *published) configChanged() {
	p.mu.Lock()
	p.configs++
	p.mu.Unlock()
	p.filesChanged()
}

// configVersion counts the edits of dmir.toml files.
func (p *published) configVersion() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.configs
}

// onDisk counts the changes to files.
func (p *published) onDisk() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.files
}

func (p *published) wake() {
	if p.waiting != nil {
		close(p.waiting)
		p.waiting = nil
	}
}

// changed is closed at the next change.
func (p *published) changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next()
}

func (p *published) next() <-chan struct{} {
	if p.waiting == nil {
		p.waiting = make(chan struct{})
	}
	return p.waiting
}

// errMoved reports that a document has changed since it was asked about; the
// editor asks again.
var errMoved = func() error {
	err := jsonrpc2.NewError(jsonrpc2.Code(protocol.LSPErrorCodesServerCancelled), "the document has changed")
	err.Data = jsonrpc2.RawMessage(`{"retriggerRequest":true}`)
	return err
}()

// of returns the diagnostics of the text of snap, and waits for them if needed;
// current returns the newest snapshot of the document. It does not wait for a text
// that has been replaced.
func (p *published) of(ctx context.Context, snap *workspace.Snapshot, current func() *workspace.Snapshot) (*finding, error) {
	for {
		p.mu.Lock()
		f, next := p.docs[snap.Key], p.next()
		p.mu.Unlock()
		switch {
		case f != nil && f.snap != nil && f.snap.Src == snap.Src:
			return f, nil
		case current() == nil || current().Src != snap.Src:
			return nil, errMoved
		case f != nil && f.failed:
			return nil, jsonrpc2.NewError(jsonrpc2.InternalError, "the analysis of the document failed")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-next:
		}
	}
}

// resultID returns a hash of a list of diagnostics.
func resultID(ds []protocol.Diagnostic) (string, error) {
	h := fnv.New128a()
	for i := range ds {
		raw, err := protocol.Marshal(&ds[i])
		if err != nil {
			return "", err
		}
		_, _ = h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
