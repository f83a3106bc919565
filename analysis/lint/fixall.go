package lint

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Fixed is a program after its fixes.
type Fixed struct {
	*program.Program
	Applied []diag.Diagnostic // in the order in which they were applied
	before  *program.Program
}

// maxRounds bounds FixAll: each round applies every fix that touches no other,
// so that a chain of n fusions takes about log n rounds.
const maxRounds = 64

// FixAll applies the fixes of p's findings and diagnostics, the unsafe ones only
// on request, until none is left. load checks a changed text as p was checked. A fix after
// which the program has more errors than before is not kept.
func FixAll(ctx context.Context, p *program.Program, opts Options, unsafe bool, load func(*source.File) *program.Program) *Fixed {
	out := &Fixed{Program: p, before: p}
	refused := map[string]bool{}
	for range maxRounds {
		var round []diag.Diagnostic
		for _, d := range slices.Concat(Run(ctx, out.Program, opts), out.Diags) {
			if opts.Only != "" && d.Code != opts.Only {
				continue
			}
			if len(d.Fixes) > 0 && (d.Fixes[0].Safe || unsafe) && len(d.Fixes[0].Edits) > 0 && !refused[signature(out.Program, d)] {
				round = append(round, d)
			}
		}
		round = disjoint(round, out.Src.Len())
		if len(round) == 0 || ctx.Err() != nil {
			break
		}
		for len(round) > 0 {
			n := len(round)
			next := apply(out.Program, round, load)
			for next == nil && n > 1 { // one of them is bad: try fewer
				n = (n + 1) / 2
				next = apply(out.Program, round[:n], load)
			}
			if next != nil {
				out.Program, out.Applied = next, append(out.Applied, round[:n]...)
				break // the spans of the others have moved
			}
			refused[signature(out.Program, round[0])] = true
			round = round[1:]
		}
	}
	return out
}

// signature identifies d among other findings when its place has moved.
func signature(p *program.Program, d diag.Diagnostic) string {
	return d.Code + d.Message + d.Label + p.Src.Line(p.Src.Pos(d.Span.Start).Line)
}

// disjoint keeps the fixes that touch no place of the text, which has size
// bytes, that an earlier one touches: attentions first, since kernels that take
// some of their ops hide them, then the greater savings.
func disjoint(ds []diag.Diagnostic, size int) []diag.Diagnostic {
	slices.SortStableFunc(ds, func(a, b diag.Diagnostic) int {
		if x, y := a.Code == "DM210", b.Code == "DM210"; x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return cmp.Compare(b.Fixes[0].SavesBytes, a.Fixes[0].SavesBytes)
	})
	var kept []diag.Diagnostic
	taken := make([]bool, size+1) // edits that only meet touch as well
	for _, d := range ds {
		edits := d.Fixes[0].Edits
		if slices.ContainsFunc(edits, func(e diag.Edit) bool {
			return slices.Contains(taken[e.Span.Start:e.Span.End+1], true)
		}) {
			continue
		}
		kept = append(kept, d)
		for _, e := range edits {
			for i := e.Span.Start; i <= e.Span.End; i++ {
				taken[i] = true
			}
		}
	}
	return kept
}

func apply(p *program.Program, ds []diag.Diagnostic, load func(*source.File) *program.Program) *program.Program {
	var edits []diag.Edit
	for _, d := range ds {
		edits = append(edits, d.Fixes[0].Edits...)
	}
	next := load(source.New(p.Src.Path, splice(p.Src.Text(), 0, edits)))
	if errors(next) > errors(p) {
		return nil
	}
	return next
}

func errors(p *program.Program) int {
	n := 0
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			n++
		}
	}
	return n
}

// Summary describes what the fixes saved: "3 fixes, 201 MB and 42.1 µs saved"; where
// sizes are open, as a formula.
func (f *Fixed) Summary() string {
	fixes := "fixes"
	if len(f.Applied) == 1 {
		fixes = "fix"
	}
	if saved := moved(f.before).Sub(moved(f.Program)); len(saved.Symbols()) > 0 {
		return fmt.Sprintf("%d %s, %s saved", len(f.Applied), fixes, units.DimBytes(saved))
	}
	var bytes int64
	var ns float64
	for _, d := range f.Applied {
		bytes += d.Fixes[0].SavesBytes
		ns += d.Fixes[0].SavesNs
	}
	return fmt.Sprintf("%d %s, %s and %s saved", len(f.Applied), fixes, units.Bytes(bytes), units.Time(ns))
}

// Bound is how many kernels the text has that it had not before: each binds the compiler, which had a choice there.
func (f *Fixed) Bound() int { return max(kernels(f.Program)-kernels(f.before), 0) }

func kernels(p *program.Program) int {
	n := 0
	for _, f := range p.Funcs {
		ir.Walk(f.Func.Body.Ops, func(o *ir.Op) bool {
			if o.Name == op.Kernel {
				n++
			}
			return true
		})
	}
	return n
}

// moved is what p's functions move themselves, not by calls.
func moved(p *program.Program) dim.Dim {
	sum := dim.Const(0)
	for _, fn := range p.Funcs {
		for _, e := range fn.Entries {
			if e.Op.Name != op.Call && e.Op.Name != op.Grad {
				sum = sum.Add(e.Moved())
			}
		}
	}
	return sum
}
