package workspace

import (
	"context"
	"slices"

	"dmir/analysis/config"
	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/lsp/feature"
	"dmir/syntax/diag"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// Snapshot is one version of one document under one set of choices. It never
// changes and is safe for concurrent use. What is known about it is seen
// through a View.
type Snapshot struct {
	Address
	Version  int32
	Src      *source.File
	Encoding source.Encoding
	Settings Settings
	Measured *feature.Times // times of the last run of this very text, nil where none

	problems []diag.Diagnostic // of the last run
	analysis *analysis
	number   int // of the version in analysis
	findings *findings
}

func newSnapshot(a Address, version int32, src *source.File, enc source.Encoding, set Settings, configs *configs) *Snapshot {
	s := &Snapshot{Address: a, Version: version, Src: src, Encoding: enc, Settings: set, findings: newFindings()}
	s.analysis = newAnalysis(a, src, set, configs)
	return s
}

// edited is the snapshot of the next version of the text.
func (s *Snapshot) edited(version int32, src *source.File, steps []step) *Snapshot {
	next := &Snapshot{Address: s.Address, Version: version, Src: src, Encoding: s.Encoding, Settings: s.Settings, findings: newFindings(), analysis: s.analysis}
	next.number = s.analysis.add(steps)
	return next
}

// View is the analysis of a snapshot under a read lock. It must not be used after the
// lock was released.
type View struct {
	*Snapshot
	l *loaded
}

// Hold returns a view of s and the function that releases it; ok is false if a newer
// version of the document has been analysed. A goroutine holds one view of a document
// at a time.
func (s *Snapshot) Hold() (v *View, release func(), ok bool) {
	l, release, ok := s.analysis.hold(s.number)
	if !ok {
		return nil, nil, false
	}
	return &View{s, l}, release, true
}

// With calls look with a view of s; it returns false if there is none.
func (s *Snapshot) With(look func(*View)) bool {
	v, release, ok := s.Hold()
	if !ok {
		return false
	}
	defer release()
	look(v)
	return true
}

// Program is the analysed text: its tree, ops, cost and cheap diagnostics.
func (v *View) Program() *program.Program { return v.l.prog }

// Kept is what was shown of functions before they had an error.
func (v *View) Kept() *feature.Kept { return &v.analysis.kept }

// Names are the definitions and uses of names in the text.
func (v *View) Names() *scope.Index { return v.Program().Names() }

// Config is the dmir.toml that applies, empty where there is none.
func (v *View) Config() *config.Config { return v.l.conf }

// Cheap are the diagnostics of syntax, names, types and cost, and of the last run.
func (v *View) Cheap() []diag.Diagnostic {
	return slices.Concat(v.l.choices, v.problems, v.l.prog.Diags)
}

// Superseded reports whether the document has a newer version, which waits for
// those who look at this one.
func (v *View) Superseded() bool {
	select {
	case <-v.Newer():
		return true
	default:
		return false
	}
}

// Newer is closed once the document has a newer version than s.
func (s *Snapshot) Newer() <-chan struct{} { return s.analysis.newer(s.number) }

// Findings are the deep diagnostics: the findings of lint, with their fixes.
// None where linting is switched off, or where ctx ends or a newer version comes
// first.
func (v *View) Findings(ctx context.Context) []diag.Diagnostic {
	if !v.Settings.Lint {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-v.Newer():
			cancel()
		case <-ctx.Done():
		}
	}()
	return v.findings.get(ctx, func() []diag.Diagnostic { return lint.Run(ctx, v.Program(), v.reported()) })
}

// KnownFindings are the Findings where they are there already, none where it
// would take time to have them.
func (v *View) KnownFindings() []diag.Diagnostic {
	if !v.Settings.Lint {
		return nil
	}
	select {
	case v.findings.busy <- struct{}{}:
		defer func() { <-v.findings.busy }()
		return v.findings.list
	default:
		return nil
	}
}

// findings are computed once for a text, unless the caller cancels.
type findings struct {
	busy chan struct{} // holds one token while someone computes
	done bool
	list []diag.Diagnostic
}

func newFindings() *findings { return &findings{busy: make(chan struct{}, 1)} }

func (f *findings) get(ctx context.Context, compute func() []diag.Diagnostic) []diag.Diagnostic {
	select {
	case f.busy <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	defer func() { <-f.busy }()
	if !f.done {
		list := compute()
		if ctx.Err() != nil {
			return nil
		}
		f.list, f.done = list, true
	}
	return f.list
}

func (v *View) rules() lint.Options {
	c := v.Config()
	return lint.Options{Select: c.Lint.Select, Ignore: c.Lint.Ignore}
}

// reported are the rules, without hints where those are not to be shown.
func (v *View) reported() lint.Options {
	opts, c := v.rules(), v.Config()
	opts.NoHints = !v.Settings.LintHints || c.Lint.Hints != nil && !*c.Lint.Hints
	return opts
}

// FixAll is the text after all safe fixes of errors and warnings; ok is false where
// there are none. What the compiler does by itself is not written into the text.
func (v *View) FixAll(ctx context.Context) (text string, ok bool) {
	opts := v.rules()
	opts.NoHints = true
	return v.fix(ctx, opts, false)
}

// FixAllOf is the text after all fixes of one code, the unsafe ones too; ok is
// false where there are none.
func (v *View) FixAllOf(ctx context.Context, code string) (text string, ok bool) {
	opts := v.rules()
	opts.Only = code
	return v.fix(ctx, opts, true)
}

func (v *View) fix(ctx context.Context, opts lint.Options, unsafe bool) (text string, ok bool) {
	if !v.Settings.Lint {
		return "", false
	}
	fixed := lint.FixAll(ctx, v.Program(), opts, unsafe, v.l.again)
	return fixed.Src.Text(), len(fixed.Applied) > 0
}
