package page

import (
	"maps"
	"slices"
	"sync"
	"time"

	"dmir/analysis/report"
	"dmir/lsp/loopback"
	"dmir/lsp/session"
)

// followers are what is shown beside documents and follows their text: virtual
// documents in the editor and pages in a browser.
type followers struct {
	browser loopback.Server

	mu      sync.Mutex
	views   map[string]string            // addresses of requested virtual documents, to the key of the document they show
	kernels map[session.View]kernelTexts // what views of CUDA text show
	pages   map[*panelPage]struct{}      // in a browser
	timers  map[string]*time.Timer       // by key: an edit waits to be followed
	good    []goodPanel                  // the last ones that were shown of text without an error, oldest first
}

// shownPanel is a panel of a document.
type shownPanel struct{ key, kind, function string }

type goodPanel struct {
	shownPanel
	data report.Data
}

// maxGood is how many panels have data to fall back on.
const maxGood = 8

func (l *followers) lastGood(panel shownPanel) (report.Data, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.good {
		if g.shownPanel == panel {
			return g.data, true
		}
	}
	return report.Data{}, false
}

func (l *followers) keepGood(panel shownPanel, data report.Data) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.good = slices.DeleteFunc(l.good, func(g goodPanel) bool { return g.shownPanel == panel })
	l.good = append(l.good, goodPanel{panel, data})
	if len(l.good) > maxGood {
		l.good = slices.Delete(l.good, 0, 1)
	}
}

// later runs f when key was not requested for a while.
func (l *followers) later(key string, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timers == nil {
		l.timers = map[string]*time.Timer{}
	}
	if t := l.timers[key]; t != nil {
		t.Reset(session.Follow)
		return
	}
	l.timers[key] = time.AfterFunc(session.Follow, func() {
		l.mu.Lock()
		delete(l.timers, key)
		l.mu.Unlock()
		f()
	})
}

// shows reports whether anything follows a document.
func (l *followers) shows(key string) bool {
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

// viewsOf removes and returns the virtual documents that show a document. One is
// followed again when the editor asks for its text again, which it does not after it
// was closed.
func (l *followers) viewsOf(key string) []string {
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
func (l *followers) everything(f func(key string)) {
	l.mu.Lock()
	keys := slices.Collect(maps.Values(l.views))
	l.mu.Unlock()
	for _, key := range keys {
		f(key)
	}
}

func (l *followers) watchView(view, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.views == nil {
		l.views = map[string]string{}
	}
	l.views[view] = key
}

func (l *followers) pagesOf(key string) []*panelPage {
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

func (l *followers) addPage(p *panelPage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pages == nil {
		l.pages = map[*panelPage]struct{}{}
	}
	l.pages[p] = struct{}{}
}

// closed closes the pages of a document.
func (l *followers) closed(key string) {
	for _, p := range l.pagesOf(key) {
		p.handle.Close()
		l.mu.Lock()
		delete(l.pages, p)
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.good = slices.DeleteFunc(l.good, func(g goodPanel) bool { return g.key == key })
	if t := l.timers[key]; t != nil {
		t.Stop()
		delete(l.timers, key)
	}
}

// end closes all pages and frees the port.
func (l *followers) end() {
	l.browser.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, t := range l.timers {
		t.Stop()
		delete(l.timers, key)
	}
}
