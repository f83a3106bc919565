package workspace

import (
	"context"
	"slices"
	"sync"

	"dmir/analysis/config"
	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/lsp/feature"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// Snapshot is one version of one document under one set of choices. It never
// changes, is safe for concurrent use, and computes what is asked of it once.
type Snapshot struct {
	Address
	Version  int32
	Src      *source.File
	Encoding source.Encoding
	Settings Settings
	Measured *feature.Times // times of the last run of this very text, nil where none

	problems []diag.Diagnostic // of the last run
	load     func() *loaded
	findings *findings
}

// loaded is what a snapshot computes.
type loaded struct {
	prog    *program.Program
	conf    *config.Config
	choices []diag.Diagnostic // what is wrong with the settings
	again   func(*source.File) *program.Program
}

func newSnapshot(a Address, version int32, src *source.File, enc source.Encoding, set Settings, cache *parse.Cache, configs *configs) *Snapshot {
	s := &Snapshot{Address: a, Version: version, Src: src, Encoding: enc, Settings: set, findings: &findings{busy: make(chan struct{}, 1)}}
	s.load = sync.OnceValue(func() *loaded { return load(a, src, set, cache, configs) })
	return s
}

func load(a Address, src *source.File, set Settings, cache *parse.Cache, configs *configs) *loaded {
	l := &loaded{conf: configs.forFile(a.base())}
	target, ok := l.conf.Machine(set.Target)
	if !ok {
		target, _ = l.conf.Machine("")
		l.choices = append(l.choices, unknownTarget(set.Target, l.conf, target.Name))
	}
	opts := program.Options{Target: target, Bind: set.Bind, Config: l.conf}
	l.again = func(src *source.File) *program.Program { return program.Load(src, opts) }
	cached := opts
	cached.Cache = cache
	l.prog = program.Load(src, cached)
	return l
}

// Program is the analysed text: its tree, ops, cost and cheap diagnostics.
func (s *Snapshot) Program() *program.Program { return s.load().prog }

// Names are the names of the text and what they stand for.
func (s *Snapshot) Names() *scope.Index { return s.Program().Names() }

// Config is the dmir.toml that applies, empty where there is none.
func (s *Snapshot) Config() *config.Config { return s.load().conf }

// Cheap are the diagnostics of syntax, names, types and cost, and of the last run.
func (s *Snapshot) Cheap() []diag.Diagnostic {
	l := s.load()
	return slices.Concat(l.choices, l.prog.Diags, s.problems)
}

// Findings are the deep diagnostics: the findings of lint, with their fixes.
// None where linting is switched off or ctx ends first.
func (s *Snapshot) Findings(ctx context.Context) []diag.Diagnostic {
	if !s.Settings.Lint {
		return nil
	}
	return s.findings.get(ctx, func() []diag.Diagnostic { return lint.Run(ctx, s.Program(), s.rules()) })
}

// KnownFindings are the Findings where they are there already, none where it
// would take time to have them.
func (s *Snapshot) KnownFindings() []diag.Diagnostic {
	if !s.Settings.Lint {
		return nil
	}
	select {
	case s.findings.busy <- struct{}{}:
		defer func() { <-s.findings.busy }()
		return s.findings.list
	default:
		return nil
	}
}

// findings are computed once for a text, unless whoever asked gave up.
type findings struct {
	busy chan struct{} // holds one token while someone computes
	done bool
	list []diag.Diagnostic
}

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

func (s *Snapshot) rules() lint.Options {
	c := s.Config()
	return lint.Options{Select: c.Lint.Select, Ignore: c.Lint.Ignore}
}

// FixAll is the text after all safe fixes; ok is false where there are none.
func (s *Snapshot) FixAll(ctx context.Context) (text string, ok bool) {
	return s.fix(ctx, s.rules(), false)
}

// FixAllOf is the text after all fixes of one code, the unsafe ones too; ok is
// false where there are none.
func (s *Snapshot) FixAllOf(ctx context.Context, code string) (text string, ok bool) {
	opts := s.rules()
	opts.Only = code
	return s.fix(ctx, opts, true)
}

func (s *Snapshot) fix(ctx context.Context, opts lint.Options, unsafe bool) (text string, ok bool) {
	if !s.Settings.Lint {
		return "", false
	}
	fixed := lint.FixAll(ctx, s.Program(), opts, unsafe, s.load().again)
	return fixed.Src.Text(), len(fixed.Applied) > 0
}
