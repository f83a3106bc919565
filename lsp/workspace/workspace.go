// Package workspace holds the documents that an editor has open, as immutable
// snapshots, with the settings and the configuration that apply to them, and
// reports errors in them after every edit. It does not use the protocol.
package workspace

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dmir/analysis/machine"
	"dmir/base/regular"
	"dmir/lsp/feature"
	"dmir/lsp/history"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// maxFile is the size in bytes of the largest file that is read from disk.
const maxFile = 256 << 20

// Workspace is the set of open documents.
type Workspace struct {
	ctx     context.Context
	pause   time.Duration
	publish func(*Snapshot, []diag.Diagnostic)
	failed  func(uri string, problem any)
	costed  func()
	configs configs

	pressure pressure

	enc     atomic.Int32
	mu      sync.Mutex
	choices choices
	docs    map[string]*document
	running sync.WaitGroup
}

// Options are the callbacks and delays of a Workspace.
type Options struct {
	// Pause is how long after an edit the deep diagnostics begin.
	Pause time.Duration
	// Publish is called with the diagnostics of a snapshot; all of them, every time.
	// For one document it is called in the order of its versions, and never
	// after Close. It must not call the workspace.
	Publish func(*Snapshot, []diag.Diagnostic)
	// PublishConfig is called with the problems of a dmir.toml, and when it has none
	// any more.
	PublishConfig func(ConfigFile)
	// Costed is called when the cost of functions that are divided over devices, which is not
	// computed with each edit, is there after a pause.
	Costed func()
	// Failed is called when the analysis of a document panicked.
	Failed func(uri string, problem any)
}

// New is an empty workspace whose background work ends with ctx.
func New(ctx context.Context, o Options) *Workspace {
	go warm()
	return &Workspace{
		ctx: ctx, pause: o.Pause, publish: o.Publish, failed: o.Failed, costed: o.Costed,
		pressure: pressure{ceiling(), inUse},
		configs:  configs{report: o.PublishConfig}, choices: choices{general: Defaults()}, docs: map[string]*document{},
	}
}

// document is what the workspace keeps of an open file. Its fields are
// guarded by Workspace.mu.
type document struct {
	snap *Snapshot
	deep []diag.Diagnostic // the last findings of lint, moved along with the text
	log  history.Log       // the code actions that were applied

	kick   chan struct{} // an edit waits for diagnosis
	stop   context.CancelFunc
	cancel context.CancelFunc // of the deep diagnosis under way
}

// SetEncoding sets the unit of columns; before the first document is opened.
func (w *Workspace) SetEncoding(enc source.Encoding) {
	w.enc.Store(int32(enc))
}

// Encoding is the unit of columns.
func (w *Workspace) Encoding() source.Encoding { return source.Encoding(w.enc.Load()) }

// Address names a document.
type Address struct {
	Key  string // the same for all spellings of one address
	URI  string // as the editor spells it
	Path string // on disk and in messages
	Base string // path whose dmir.toml and folder apply, for a document made from another; "" for Path
}

func (a Address) base() string {
	if a.Base != "" {
		return a.Base
	}
	return a.Path
}

// Open takes in a document. Opening one that is open replaces its text.
func (w *Workspace) Open(a Address, version int32, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.docs[a.Key]; old != nil {
		old.close()
	}
	d := &document{kick: make(chan struct{}, 1)}
	d.snap = newSnapshot(a, version, source.New(a.Path, text), w.Encoding(), w.choices.of(a), &w.configs)
	w.docs[a.Key] = d
	ctx, stop := context.WithCancel(w.ctx)
	d.stop = stop
	w.running.Add(1)
	go w.diagnose(ctx, d)
	d.touch()
}

// Change applies the edits of one version, in order.
func (w *Workspace) Change(key string, version int32, edits []Edit) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.docs[key]
	if d == nil {
		return fmt.Errorf("%s is not open", key)
	}
	old := d.snap.Src
	src, steps := apply(old, edits, w.Encoding())
	before := old
	for _, s := range steps {
		d.log.Change(before, s.Start, s.End, s.src)
		before = s.src
	}
	d.snap = d.snap.edited(version, src, steps)
	d.deep = shift(d.deep, old, steps)
	d.touch()
	return nil
}

// Offer remembers the edits of a code action that the editor was given for a text, so
// that the history of the document has it once it is applied.
func (w *Workspace) Offer(s *Snapshot, title string, edits []diag.Edit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.docs[s.Key]; d != nil && d.snap.Src == s.Src {
		d.log.Offer(s.Src, title, edits)
	}
}

// History calls look with the current version of an open document and the code actions
// that were applied to it. look must not call the workspace. It returns false if the
// document is not open.
func (w *Workspace) History(key string, look func(*Snapshot, *history.Log)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.docs[key]
	if d != nil {
		look(d.snap, &d.log)
	}
	return d != nil
}

// Close forgets a document, calling closed where it was open; nothing is
// published for it afterwards.
func (w *Workspace) Close(key string, closed func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.docs[key]
	if d == nil {
		return fmt.Errorf("%s is not open", key)
	}
	d.close()
	delete(w.docs, key)
	closed()
	return nil
}

// Snapshot is the current version of an open document, nil where it is not open.
func (w *Workspace) Snapshot(key string) *Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.docs[key]; d != nil {
		return d.snap
	}
	return nil
}

// Snapshots are the current versions of all open documents, by key.
func (w *Workspace) Snapshots() []*Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*Snapshot
	for _, key := range slices.Sorted(maps.Keys(w.docs)) {
		out = append(out, w.docs[key].snap)
	}
	return out
}

// Read is a snapshot of a file that is not open, from disk.
func (w *Workspace) Read(a Address) (*Snapshot, error) {
	f, err := regular.Open(a.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", a.Path, maxFile)
	}
	return w.Made(a, string(text)), nil
}

// Made is a snapshot of a text that is in no document, under the choices for an address.
func (w *Workspace) Made(a Address, text string) *Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return newSnapshot(a, 0, source.New(a.Path, text), w.Encoding(), w.choices.of(a), &w.configs)
}

// ConfigChanged forgets the dmir.toml files read so far.
func (w *Workspace) ConfigChanged() {
	w.configs.forget()
	w.configs.check()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.docs {
		w.renew(d)
	}
}

// renew looks at a document again, under the choices of now.
func (w *Workspace) renew(d *document) {
	old := d.snap
	d.snap = newSnapshot(old.Address, old.Version, old.Src, w.Encoding(), w.choices.of(old.Address), &w.configs)
	d.snap.Measured, d.snap.problems = old.Measured, old.problems
	d.deep = nil // of other choices: a rule may be off, or a saving another
	d.touch()
}

// SetRun attaches what a run showed to the text that ran, until that changes:
// its times where it succeeded, its problems where it did not. It reports false
// where that text is no longer current.
func (w *Workspace) SetRun(ran *Snapshot, m *feature.Times, problems []diag.Diagnostic) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.docs[ran.Key]
	if d == nil || d.snap.Src != ran.Src {
		return false
	}
	next := *d.snap
	next.Measured, next.problems = m, problems
	again := len(problems) > 0 || len(d.snap.problems) > 0
	d.snap = &next
	if again {
		d.touch()
	}
	return true
}

// Machines are the built-in ones and those of the dmir.toml files that
// apply to open documents.
func (w *Workspace) Machines() []*machine.Machine {
	all := machine.All()
	for _, s := range w.Snapshots() {
		c := w.configs.forFile(s.base()).conf
		for _, name := range slices.Sorted(maps.Keys(c.Machines)) {
			own := c.Machines[name]
			if i := slices.IndexFunc(all, func(m *machine.Machine) bool { return m.Name == own.Name }); i >= 0 {
				all[i] = own // it replaces the built-in one
			} else {
				all = append(all, own)
			}
		}
	}
	return all
}

// Wait returns when no background work is left, after ctx of New has ended.
func (w *Workspace) Wait() { w.running.Wait() }

// touch asks for a new diagnosis.
func (d *document) touch() {
	if d.cancel != nil {
		d.cancel()
	}
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

func (d *document) close() { d.stop() }
