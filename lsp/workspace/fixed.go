package workspace

import (
	"context"

	"dmir/analysis/lint"
)

// Fixed is the text after all safe fixes, also where linting is switched off.
func (s *Snapshot) Fixed(ctx context.Context) string {
	return lint.FixAll(ctx, s.Program(), s.rules(), false, s.load().again).Src.Text()
}
