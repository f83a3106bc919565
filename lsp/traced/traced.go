// Package traced holds the Python files that an editor has open, and what the traces of their workspace say of them: the cost
// of each line as written and as compiled, found in the background and moved along with edits.
//
// Nothing that a trace names is run or opened here but the program beside its description.
package traced

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"dmir/analysis/attribution"
	"dmir/lsp/workspace"
	"dmir/syntax/source"
)

// Options are what Docs needs of its surroundings.
type Options struct {
	Work *workspace.Workspace
	// Changed is called when what is known of documents has changed. It may call Docs.
	Changed func()
}

// Docs are the open Python files.
type Docs struct {
	ctx  context.Context
	opts Options

	mu    sync.Mutex
	docs  map[string]*document
	roots map[string]*root     // by the folder
	none  map[string]time.Time // folders around which there were no traces, and when
}

type document struct {
	workspace.Address
	version int32
	src     *source.File
	view    *View // of src; nil until it is asked for
}

// New has no documents. Its background work ends with ctx.
func New(ctx context.Context, o Options) *Docs {
	return &Docs{ctx: ctx, opts: o, docs: map[string]*document{}, roots: map[string]*root{}, none: map[string]time.Time{}}
}

// Is reports whether a document is one that this package holds, by its path.
func Is(path string) bool { ext := filepath.Ext(path); return ext == ".py" || ext == ".pyi" }

// Open takes in a document.
func (d *Docs) Open(a workspace.Address, version int32, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.docs[a.Key] = &document{Address: a, version: version, src: source.New(a.Path, text)}
}

// Change applies edits.
func (d *Docs) Change(key string, version int32, edits []workspace.Edit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.docs[key]; x != nil {
		x.src, x.version, x.view = workspace.Edited(x.src, edits, d.opts.Work.Encoding()), version, nil
	}
}

// Close forgets a document.
func (d *Docs) Close(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.docs, key)
}

// Keys are the open documents.
func (d *Docs) Keys() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for key := range d.docs {
		out = append(out, key)
	}
	return out
}

// age is how old what is known of a folder of traces may be: editors do not always tell of new files.
const age = 2 * time.Second

// View is what is known of an open document now, nil where it is not open.
func (d *Docs) View(key string) *View {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.docs[key]
	if x == nil {
		return nil
	}
	r := d.root(x.Path)
	if r != nil && time.Since(r.checked) > age {
		r.checked = time.Now()
		d.check(r)
	}
	if x.view == nil || x.view.of != r.state() {
		x.view = newView(x, r)
	}
	return x.view
}

// Recheck looks for new traces.
func (d *Docs) Recheck() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.none)
	for _, r := range d.roots {
		d.check(r)
	}
}

// View is what traces say of a version of a document. It does not change.
type View struct {
	workspace.Address
	Version int32
	Src     *source.File
	Trace   *Loaded // the newest that names the document, nil where there is none
	Others  []string
	Problem string // why there is no trace although there should be one, or ""
	Older   bool   // the document has changed since it was traced

	of    *state
	file  *attribution.File
	now   []int // line of the text for each line that was traced, from 1; 0: it has changed
	lines map[int]*Line
}

// Line is what is due to a line.
type Line struct {
	N        int // in the text now, from 1
	Written  *attribution.Row
	Compiled *attribution.Row // nil where that is not known (yet)
}

func newView(x *document, r *root) *View {
	v := &View{Address: x.Address, Version: x.version, Src: x.src, of: r.state()}
	if r == nil {
		return v
	}
	v.Problem = v.of.problem
	rel, err := filepath.Rel(r.dir, x.Path)
	if err != nil {
		return v
	}
	rel = filepath.ToSlash(rel)
	for _, l := range v.of.traces {
		f := l.traced(rel)
		if f == nil {
			continue
		}
		if v.Trace != nil {
			v.Others = append(v.Others, l.Trace.Name)
			continue
		}
		v.Trace, v.Older = l, !f.Is(x.src.Text())
	}
	if v.Trace == nil {
		return v
	}
	v.file = v.Trace.Sources.File(v.Trace.traced(rel).Name)
	v.now = identity(len(v.file.Lines))
	if v.Older {
		text := x.src.Text()
		v.now = attribution.MapLines(v.file.Lines, attribution.Lines(text))
	}
	v.lines = map[int]*Line{}
	add := func(rows []*attribution.Row, put func(*Line, *attribution.Row)) {
		for _, row := range rows {
			if row.File == nil || row.File.Path != v.file.Path || row.Line >= len(v.now) || v.now[row.Line] == 0 {
				continue
			}
			n := v.now[row.Line]
			if v.lines[n] == nil {
				v.lines[n] = &Line{N: n}
			}
			put(v.lines[n], row)
		}
	}
	add(v.Trace.Written.Rows, func(l *Line, r *attribution.Row) { l.Written = r })
	if v.Trace.Compiled != nil {
		add(v.Trace.Compiled.Rows, func(l *Line, r *attribution.Row) { l.Compiled = r })
	}
	return v
}

func identity(n int) []int {
	out := make([]int, n+1)
	for i := range out {
		out[i] = i
	}
	return out
}

// Line is what is due to line n of the text, from 1; nil where that is nothing, or not known because the line has changed.
func (v *View) Line(n int) *Line { return v.lines[n] }

// Lines are those with a cost, in any order.
func (v *View) Lines() []*Line {
	out := make([]*Line, 0, len(v.lines))
	for _, l := range v.lines {
		out = append(out, l)
	}
	return out
}

// Now is where line n of the file as it was traced is in the text, 0 where it has changed.
func (v *View) Now(n int) int {
	if n < 1 || n >= len(v.now) {
		return 0
	}
	return v.now[n]
}

// Scope is a function or a class of the text, with the sum of what its lines cost.
type Scope struct {
	attribution.Scope
	Line              int // in the text now, from 1
	Written, Compiled attribution.Row
}

// Scopes are the functions and classes whose lines cost something, in the order of the text.
func (v *View) Scopes() []Scope {
	if v.file == nil {
		return nil
	}
	var out []Scope
	sum := func(in attribution.Scope, s *Side) (r attribution.Row) {
		if s == nil {
			return r
		}
		for _, row := range s.Rows {
			if row.File != nil && row.File.Path == v.file.Path && in.Line <= row.Line && row.Line <= in.End {
				r.Add(row)
			}
		}
		return r
	}
	for _, in := range v.file.Scopes() {
		x := Scope{Scope: in, Line: v.Now(in.Line), Written: sum(in, v.Trace.Written), Compiled: sum(in, v.Trace.Compiled)}
		if x.Line > 0 && (x.Written.Amount != attribution.Amount{}) {
			out = append(out, x)
		}
	}
	return out
}
