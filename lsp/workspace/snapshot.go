package workspace

import (
	"slices"

	"dmir/analysis/config"
	"dmir/analysis/program"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Snapshot is one version of one document under one set of choices. It never
// changes, is safe for concurrent use, and computes what is asked of it once.
type Snapshot struct {
	URI      string
	Version  int32
	Src      *source.File
	Encoding source.Encoding
	Settings Settings
	Measured *Measured         // times of the last run of this very text, nil where none
	problems []diag.Diagnostic // of the last run

	load func() *loaded
}

type loaded struct {
	prog  *program.Program
	conf  *config.Config
	diags []diag.Diagnostic // about the choices, not about the text
}

// Measured are the times of one run.
type Measured struct {
	Func      string
	Device    string
	ElapsedNs int64
	Ops       map[int]int64 // nanoseconds by 1-based line of the op
}

// Program is the analysed text: its tree, ops, cost and cheap diagnostics.
func (s *Snapshot) Program() *program.Program { return s.load().prog }

// Config is the dmir.toml that applies, empty where there is none.
func (s *Snapshot) Config() *config.Config { return s.load().conf }

// Cheap are the diagnostics of syntax, names, types and cost, and of the last run.
func (s *Snapshot) Cheap() []diag.Diagnostic {
	l := s.load()
	return slices.Concat(l.diags, l.prog.Diags, s.problems)
}

// with is the same text under other choices, or after an edit.
func newSnapshot(uri string, version int32, src *source.File, enc source.Encoding, set Settings, cache *parse.Cache, configs *configs) *Snapshot {
	s := &Snapshot{URI: uri, Version: version, Src: src, Encoding: enc, Settings: set}
	s.load = once(func() *loaded { return load(src, set, cache, configs) })
	return s
}
