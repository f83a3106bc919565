package program

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// ErrorsOf are the errors that keep fn of m from running: all but those inside
// functions that fn does not call, directly or through others. An error that
// lies in no function counts, because it may be about any of them.
func (p *Program) ErrorsOf(m *ir.Module, fn *ir.Func) []diag.Diagnostic {
	called := calledBy(m, fn)
	var elsewhere []source.Span // in textual order
	for _, mod := range p.Modules {
		for _, f := range mod.Funcs {
			if !called[f] {
				elsewhere = append(elsewhere, f.Op.Span)
			}
		}
	}
	var errs []diag.Diagnostic
	for _, d := range p.Diags {
		if d.Severity != diag.Error {
			continue
		}
		i, found := slices.BinarySearchFunc(elsewhere, d.Span.Start, func(s source.Span, at int) int { return s.Start - at })
		if !found {
			i--
		}
		if i < 0 || d.Span.End > elsewhere[i].End {
			errs = append(errs, d)
		}
	}
	return errs
}

// calledBy is fn and every function of m that it leads to.
func calledBy(m *ir.Module, fn *ir.Func) map[*ir.Func]bool {
	called := map[*ir.Func]bool{fn: true}
	for work := []*ir.Func{fn}; len(work) > 0; {
		f := work[len(work)-1]
		work = work[:len(work)-1]
		ir.Walk([]*ir.Op{f.Op}, func(o *ir.Op) bool {
			if callee := m.Func(o.Str("callee")); callee != nil && !called[callee] {
				called[callee] = true
				work = append(work, callee)
			}
			return true
		})
	}
	return called
}
