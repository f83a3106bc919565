package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/loopback"
	"dmir/lsp/workspace"
)

// follow is how long after an edit what is shown beside the text follows it.
const follow = 200 * time.Millisecond

// live is what is shown beside documents and follows their text: virtual
// documents in the editor and pages in a browser.
type live struct {
	browser loopback.Server

	mu      sync.Mutex
	views   map[string]string       // addresses of virtual documents that were asked for, to the key of the document they show
	kernels map[viewOf]kernelTexts  // what views of CUDA text show
	pages   map[*panelPage]struct{} // in a browser
	timers  map[string]*time.Timer  // by key: an edit waits to be followed
}

// later runs f once nothing has asked for key for a while.
func (l *live) later(key string, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timers == nil {
		l.timers = map[string]*time.Timer{}
	}
	if t := l.timers[key]; t != nil {
		t.Reset(follow)
		return
	}
	l.timers[key] = time.AfterFunc(follow, func() {
		l.mu.Lock()
		delete(l.timers, key)
		l.mu.Unlock()
		f()
	})
}

// shows reports whether anything follows a document.
func (l *live) shows(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.views {
		if k == key {
			return true
		}
	}
	for p := range l.pages {
		if p.key == key {
			return true
		}
	}
	return false
}

// touched hears that a document has changed, or the choices that it is seen
// under.
func (s *server) touched(key string) {
	if s.live.shows(key) {
		s.live.later(key, func() { s.followUp(key) })
	}
}

// followUp brings what shows a document up to date.
func (s *server) followUp(key string) {
	defer s.recovered("following " + key)
	for _, view := range s.live.viewsOf(key) {
		_ = s.client.call(s.ctx, protocol.MethodWorkspaceTextDocumentContentRefresh, &protocol.TextDocumentContentRefreshParams{URI: uri.URI(view)}, nil)
	}
	for _, p := range s.live.pagesOf(key) {
		s.refreshPage(s.ctx, p)
	}
}

// recovered keeps work that no request asked for from ending the server.
func (s *server) recovered(what string) {
	if r := recover(); r != nil {
		s.logPanic(what, r)
	}
}

// viewsOf are the virtual documents that show a document. Each is followed again
// when the editor asks for its text again: one that is closed is forgotten.
func (l *live) viewsOf(key string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for view, k := range l.views {
		if k == key {
			out = append(out, view)
			delete(l.views, view)
		}
	}
	return out
}

// everything calls f with the key of each document that a view shows.
func (l *live) everything(f func(key string)) {
	l.mu.Lock()
	keys := slices.Collect(maps.Values(l.views))
	l.mu.Unlock()
	for _, key := range keys {
		f(key)
	}
}

func (l *live) watchView(view, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.views == nil {
		l.views = map[string]string{}
	}
	l.views[view] = key
}

func (l *live) pagesOf(key string) []*panelPage {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*panelPage
	for p := range l.pages {
		if p.key == key {
			out = append(out, p)
		}
	}
	return out
}

func (l *live) addPage(p *panelPage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pages == nil {
		l.pages = map[*panelPage]struct{}{}
	}
	l.pages[p] = struct{}{}
}

// closed hears that a document is gone, and with it its pages.
func (l *live) closed(key string) {
	for _, p := range l.pagesOf(key) {
		p.handle.Close()
		l.mu.Lock()
		delete(l.pages, p)
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.timers[key]; t != nil {
		t.Stop()
		delete(l.timers, key)
	}
}

// end closes all pages and frees the port.
func (l *live) end() {
	l.browser.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, t := range l.timers {
		t.Stop()
		delete(l.timers, key)
	}
}

// current calls f with the current version of a document, for work that no request
// of the editor asked for; it does nothing where the document is not open.
func (s *server) current(ctx context.Context, key string, f func(place)) {
	if snap := s.docs.Snapshot(key); snap != nil && ctx.Err() == nil {
		if at, err := s.newest(snap); err == nil {
			defer at.letGo()
			f(at)
		}
	}
}

// apartFrom is the size of a text, in bytes, from which what is asked of all of
// it takes long enough for edits to notice that they wait.
const apartFrom = 2 << 20

// newest is the place of a snapshot or, where newer text has been looked at, of
// that: what is asked of a document as a whole is answered all the same.
func (s *server) newest(snap *workspace.Snapshot) (place, error) {
	if snap.Src.Len() > apartFrom {
		snap = s.docs.Apart(snap)
	}
	for range 5 {
		if at, err := held(snap); err == nil {
			return at, nil
		}
		if snap = s.docs.Snapshot(snap.Key); snap == nil {
			break
		}
	}
	return place{}, errContentModified
}
