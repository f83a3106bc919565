package feature

import (
	"dmir/analysis/program"
	"dmir/analysis/report"
	"dmir/compile/patterns"
	"dmir/dialect/ir"
)

// pictureText is which elements v stores, a sparse value, in characters that every editor shows; "" where the text does not say.
func pictureText(p *program.Program, v *ir.Value) string {
	f := holds(p, v)
	if f == nil {
		return ""
	}
	x := patterns.OfValue(f.Func, v, p.Bind)
	if x == nil {
		return ""
	}
	if x.Reason != "" {
		return "\n" + escape("no picture: "+x.Reason) + "\n"
	}
	return "\n" + escape(x.From) + "\n\n```text\n" + patterns.Braille(x) + "```\n"
}

// Pictures gives those of the sparse tensors of a function of p, for a panel.
func Pictures(p *program.Program) func(*ir.Func) []report.PatternAt {
	return func(fn *ir.Func) []report.PatternAt { return patterns.Of(fn, p.Bind, nil) }
}
