package workspace

import (
	"context"

	"dmir/analysis/lint"
)

// Fixed is the text after all safe fixes, also where linting is switched off.
func (v *View) Fixed(ctx context.Context) string {
	return lint.FixAll(ctx, v.Program(), v.rules(), false, v.l.again).Src.Text()
}

// Apart is s with a separate analysis: for work on a large text that takes so
// long that the edits of its document must not wait for it.
func (w *Workspace) Apart(s *Snapshot) *Snapshot {
	apart := newSnapshot(s.Address, s.Version, s.Src, s.Encoding, s.Settings, &w.configs)
	apart.Measured, apart.problems = s.Measured, s.problems
	return apart
}
