package feature

import (
	"dmir/analysis/program"
	"dmir/analysis/report"
	"dmir/compile/patterns"
	"dmir/dialect/ir"
)

// Pictures gives those of the sparse tensors of a function of p, for a panel.
func Pictures(p *program.Program) func(*ir.Func) []report.PatternAt {
	return func(fn *ir.Func) []report.PatternAt { return patterns.Of(fn, p.Bind, nil) }
}
