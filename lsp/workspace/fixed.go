package workspace

import (
	"context"

	"dmir/analysis/lint"
)

// Fixed is the text after all safe fixes, also where linting is switched off.
func (v *View) Fixed(ctx context.Context) string {
	return lint.FixAll(ctx, v.Program(), v.rules(), false, v.l.again).Src.Text()
}
