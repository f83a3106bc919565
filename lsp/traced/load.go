package traced

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"dmir/analysis/attribution"
	"dmir/analysis/cost"
	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/base/regular"
	"dmir/compile/interp"
	"dmir/compile/planned"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/onnx"
	"dmir/dialect/print"
	"dmir/dialect/train"
	"dmir/dialect/types"
	"dmir/lsp/workspace"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Loaded is a trace whose program has been read.
type Loaded struct {
	*attribution.Trace
	Dir      string // the workspace that it is of
	Sources  *attribution.Sources
	Program  *program.Program
	Written  *Side
	Compiled *Side // nil where that is not known (yet)
	Findings []attribution.Finding
	Why      string // why there is no Compiled, or ""

	stamp stamp
}

// Side is what the functions of a program cost in one form.
type Side struct {
	Functions []*attribution.Function
	Rows      []*attribution.Row // of lines
	Total     attribution.Amount
}

// traced is the file at a path of the workspace as it was traced, nil where it was not.
func (l *Loaded) traced(path string) *attribution.TracedFile {
	for i := range l.Files {
		if l.Files[i].Path == path {
			return &l.Files[i]
		}
	}
	return nil
}

// root is a folder with traces.
type root struct {
	dir     string
	checked time.Time
	now     *state
	loading bool
	again   bool // something has changed since loading began
}

// state is what is known of a root. It does not change.
type state struct {
	traces  []*Loaded // the newest first
	problem string
}

func (r *root) state() *state {
	if r == nil {
		return nil
	}
	return r.now
}

// root is that of the file at path: the nearest folder around it with traces, or that names some. nil where there is none.
func (d *Docs) root(path string) *root {
	own := filepath.Dir(path)
	if time.Since(d.none[own]) < age {
		return nil
	}
	for dir := own; ; dir = filepath.Dir(dir) {
		if r := d.roots[dir]; r != nil {
			return r
		}
		if files, _ := descriptions(dir); len(files) > 0 || isFolder(filepath.Join(dir, filepath.FromSlash(attribution.Folder))) {
			r := &root{dir: dir, now: &state{}}
			d.roots[dir] = r
			return r
		}
		if dir == filepath.Dir(dir) {
			d.none[own] = time.Now()
			return nil
		}
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// maxTraces bounds the descriptions of a folder that are read, the newest.
const maxTraces = 32

// descriptions are the traces of dir: in its folder of them, and those that its dmir.toml or pyproject.toml names. problem is what
// is wrong with the names.
func descriptions(dir string) (files []string, problem string) {
	found, _ := filepath.Glob(filepath.Join(escapeGlob(dir), filepath.FromSlash(attribution.Folder), "*.json"))
	files = append(files, found...)
	for _, name := range []string{"dmir.toml", "pyproject.toml"} {
		for _, path := range named(filepath.Join(dir, name)) {
			if !filepath.IsLocal(filepath.FromSlash(path)) {
				problem = fmt.Sprintf("%s names the trace %q, which is not in the workspace", name, path)
				continue
			}
			at := filepath.Join(dir, filepath.FromSlash(path))
			if isFolder(at) {
				more, _ := filepath.Glob(filepath.Join(escapeGlob(at), "*.json"))
				files = append(files, more...)
			} else {
				files = append(files, at)
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files), problem
}

// escapeGlob is a path as a pattern that matches it alone.
func escapeGlob(path string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}

// named are the traces that a configuration names: traces = ["…"], in pyproject.toml below [tool.dmir].
func named(path string) []string {
	f, err := regular.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := regular.ReadAll(f, 64<<10)
	if err != nil {
		return nil
	}
	type own struct {
		Traces []string `toml:"traces"`
	}
	var c struct {
		own
		Tool struct {
			Dmir own `toml:"dmir"`
		} `toml:"tool"`
	}
	if toml.Unmarshal(text, &c) != nil {
		return nil // who writes the file is told so where it is read
	}
	if filepath.Base(path) == "pyproject.toml" {
		return c.Tool.Dmir.Traces
	}
	return c.Traces
}

// stamp tells versions of a description apart.
type stamp struct {
	size int64
	time time.Time
}

func stampOf(path string) (stamp, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return stamp{}, false
	}
	return stamp{info.Size(), info.ModTime()}, true
}

// check loads the traces of r in the background if some are new, have changed, or are gone. d.mu is held.
func (d *Docs) check(r *root) {
	if r.loading {
		r.again = true
		return
	}
	files, problem := descriptions(r.dir)
	known := map[string]*Loaded{}
	for _, l := range r.now.traces {
		known[l.At] = l
	}
	same := problem == r.now.problem || r.now.problem != "" && problem == ""
	n := 0
	for _, f := range files {
		s, ok := stampOf(f)
		if !ok {
			continue
		}
		n++
		same = same && known[f] != nil && known[f].stamp == s
	}
	if same && n == len(known) {
		return
	}
	r.loading = true
	go d.load(r, files, problem, known)
}

// load reads traces, and tells of them when each is there: as written first, as compiled later.
func (d *Docs) load(r *root, files []string, problem string, known map[string]*Loaded) {
	defer func() {
		d.mu.Lock()
		again := r.again
		r.loading, r.again = false, false
		if again {
			d.check(r)
		}
		d.mu.Unlock()
	}()
	var all []*Loaded
	for _, f := range files {
		s, ok := stampOf(f)
		if !ok {
			continue
		}
		if l := known[f]; l != nil && l.stamp == s {
			all = append(all, l)
			continue
		}
		l, err := d.read(f, r.dir)
		if err != nil {
			problem = fmt.Sprintf("%s: %v", filepath.Base(f), err)
			continue
		}
		l.stamp = s
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b *Loaded) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), b.stamp.time.Compare(a.stamp.time), cmp.Compare(a.Name, b.Name))
	})
	all = all[:min(len(all), maxTraces)]
	d.publish(r, &state{all, problem})
	for i, l := range all {
		if l.Compiled != nil || l.Why != "" || d.ctx.Err() != nil {
			continue
		}
		next := *l
		if next.Compiled, next.Findings = l.compiled(d.ctx); next.Compiled == nil {
			next.Why = "it cannot be compiled as it is"
		}
		all = slices.Clone(all)
		all[i] = &next
		d.publish(r, &state{all, problem})
	}
}

func (d *Docs) publish(r *root, s *state) {
	d.mu.Lock()
	r.now = s
	d.mu.Unlock()
	if d.ctx.Err() == nil {
		d.opts.Changed()
	}
}

// read is the trace that path describes, of the workspace dir, as written.
func (d *Docs) read(path, dir string) (*Loaded, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, attribution.MaxDescription))
	if err != nil {
		return nil, err
	}
	t, err := attribution.ReadTrace(path, data)
	if err != nil {
		return nil, err
	}
	l := &Loaded{Trace: t, Dir: dir, Sources: &attribution.Sources{Root: dir, Trace: t}}
	if l.Program, err = d.program(t); err != nil {
		return nil, err
	}
	if err := firstError(t, l.Program); err != nil {
		return nil, err
	}
	var funcs []*cost.Func
	for _, f := range l.Program.Funcs {
		if !f.Func.Private {
			funcs = append(funcs, f)
		}
	}
	if l.Written, err = l.side(funcs); err != nil {
		return nil, err
	}
	return l, nil
}

// program is that of a trace under the settings that apply there.
func (d *Docs) program(t *attribution.Trace) (*program.Program, error) {
	path := t.ProgramPath()
	a := workspace.Address{Key: path, URI: path, Path: path}
	snap, err := d.opts.Work.Read(a)
	if err != nil {
		var gone *os.PathError
		if errors.As(err, &gone) {
			err = fmt.Errorf("its program %s cannot be read: %w", filepath.Base(path), gone.Err)
		}
		return nil, err
	}
	if isMade(t) {
		text, err := d.model(t, snap.Src)
		if err != nil {
			return nil, err
		}
		snap = d.opts.Work.Made(a, text)
	}
	var p *program.Program
	snap.With(func(v *workspace.View) { p = v.Program() })
	if p == nil {
		return nil, errors.New("its program cannot be analysed")
	}
	return p, nil
}

// Made reports whether the program that is analysed is a text that is in no file, made of that of the trace.
func (l *Loaded) Made() bool { return isMade(l.Trace) }

func isMade(t *attribution.Trace) bool {
	return filepath.Ext(t.ProgramPath()) == ".onnx" || t.Trained()
}

// model is the program of a trace as text: of a model in ONNX, or of the step that trains a model.
func (d *Docs) model(t *attribution.Trace, src *source.File) (text string, err error) {
	path := t.ProgramPath()
	var spec *train.Spec
	if t.Trained() {
		if spec, err = train.ReadJSON(t.Train); err != nil {
			return "", err
		}
	}
	if filepath.Ext(path) != ".onnx" {
		var p *program.Program
		if text, _, p, err = program.Trained(src, program.Options{Arrays: tensor.In(filepath.Dir(path))}, spec, "", print.Locations); err == nil && text == "" {
			if err = firstError(t, p); err == nil {
				err = fmt.Errorf("its program %s is no model in StableHLO", t.Program)
			}
		}
		return text, err
	}
	opts := onnx.Options{
		Dir: filepath.Dir(path), File: path, Locations: true,
		Evaluate: func(f *ir.Func) ([]*types.Dense, error) { return interp.Literals(d.ctx, f) },
	}
	const beside = "weights.npz"
	data := []byte(src.Text())
	if spec == nil {
		text, _, err = onnx.Text(path, data, opts, beside)
	} else {
		text, _, err = onnx.TrainText(path, data, opts, spec, beside)
	}
	return text, err
}

// firstError is the first error in the program of a trace; nil where there is none.
func firstError(t *attribution.Trace, p *program.Program) error {
	if i := slices.IndexFunc(p.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }); i >= 0 {
		line, _ := p.Src.Human(p.Diags[i].Span.Start)
		return fmt.Errorf("%s:%d: %s", t.Program, line, p.Diags[i].Message)
	}
	return nil
}

func (l *Loaded) side(funcs []*cost.Func) (*Side, error) {
	s := &Side{}
	for _, f := range funcs {
		x, err := attribution.Of(f, l.Program.Target, nil)
		if err != nil {
			return nil, fmt.Errorf("@%s: %w", f.Func.Name, err)
		}
		s.Functions = append(s.Functions, x)
		s.Total = s.Total.Plus(x.Total)
	}
	l.Sources.Look(s.Functions...)
	for _, x := range s.Functions {
		s.Rows = append(s.Rows, x.Rows(attribution.ByLine, l.Sources)...)
	}
	return s, nil
}

// mostCompiled bounds the ops of a program that is compiled in the background.
const mostCompiled = 20_000

// compiled is what l's functions cost as they are compiled, nil where they cannot be, and what lint finds in them.
func (l *Loaded) compiled(ctx context.Context) (*Side, []attribution.Finding) {
	p := l.Program
	n := 0
	for _, m := range p.Modules {
		ir.Walk(m.Ops, func(*ir.Op) bool { n++; return true })
	}
	if n > mostCompiled {
		return nil, nil
	}
	text := p
	if p.Imported {
		written, err := print.Sections(p.Modules, print.Locations)
		if err != nil {
			return nil, nil
		}
		text = program.Load(source.New(p.Src.Path, written), program.Options{Target: p.Target, F32Products: p.F32Products, Bind: p.Bind, Config: p.Config, Arrays: p.Arrays})
	}
	findings := l.Sources.Findings(text, lint.Run(ctx, text, lint.Options{Select: p.Config.Lint.Select, Ignore: p.Config.Lint.Ignore}))
	var funcs []*cost.Func
	for _, f := range p.Funcs {
		if f.Func.Private {
			continue
		}
		g, err := planned.Cost(ctx, p, f.Func, p.Target)
		if err != nil {
			return nil, findings
		}
		funcs = append(funcs, g)
	}
	s, err := l.side(funcs)
	if err != nil {
		return nil, findings
	}
	return s, findings
}

// In reports whether a folder has traces.
func In(dir string) bool {
	files, _ := descriptions(dir)
	return len(files) > 0
}
