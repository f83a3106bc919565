// Package irtest has checks of programs for tests.
package irtest

import (
	"testing"

	"dmir/dialect/ir"
)

// InOrder checks that the ops of m have places in the text, in its order, on which looking
// for the op at a place depends.
func InOrder(t testing.TB, m *ir.Module) {
	t.Helper()
	var check func(ops []*ir.Op)
	check = func(ops []*ir.Op) {
		last := 0
		for _, o := range ops {
			if o.Span.Start < last || o.Span.Len() == 0 {
				t.Fatalf("%s: %s at %v stands behind an op at %d", m.Src.Path, o.Name, o.Span, last)
			}
			last = o.Span.Start
			for _, r := range o.Regions {
				for _, b := range r.Blocks {
					check(b.Ops)
				}
			}
		}
	}
	check(m.Ops)
}
