package lint

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Fixed is a program after its fixes.
type Fixed struct {
	*program.Program
	Applied []diag.Diagnostic // in the order in which they were applied
}

// maxRounds bounds FixAll: each round applies every fix that touches no other,
// so that a chain of n fusions takes about log n rounds.
const maxRounds = 64

// FixAll applies the fixes of p's findings and diagnostics, the unsafe ones only
// on request, until none is left. load checks a changed text as p was checked. A fix after
// which the program has more errors than before is not kept.
func FixAll(ctx context.Context, p *program.Program, opts Options, unsafe bool, load func(*source.File) *program.Program) *Fixed {
	out := &Fixed{Program: p}
	refused := map[string]bool{}
	for range maxRounds {
		var round []diag.Diagnostic
		for _, d := range slices.Concat(Run(ctx, out.Program, opts), out.Diags) {
			if len(d.Fixes) > 0 && (d.Fixes[0].Safe || unsafe) && len(d.Fixes[0].Edits) > 0 && !refused[d.Code+d.Message] {
				round = append(round, d)
			}
		}
		round = disjoint(round)
		if len(round) == 0 || ctx.Err() != nil {
			break
		}
		if next := apply(out.Program, round, load); next != nil {
			out.Program, out.Applied = next, append(out.Applied, round...)
			continue
		}
		for _, d := range round {
			if next := apply(out.Program, []diag.Diagnostic{d}, load); next != nil {
				out.Program, out.Applied = next, append(out.Applied, d)
				break // the spans of the others have moved
			}
			refused[d.Code+d.Message] = true
		}
	}
	return out
}

// disjoint keeps the fixes that touch no place that an earlier one touches,
// the greater savings first.
func disjoint(ds []diag.Diagnostic) []diag.Diagnostic {
	slices.SortStableFunc(ds, func(a, b diag.Diagnostic) int {
		return cmp.Compare(b.Fixes[0].SavesBytes, a.Fixes[0].SavesBytes)
	})
	var kept []diag.Diagnostic
	var taken []source.Span // sorted, disjoint
	for _, d := range ds {
		free := true
		for _, e := range d.Fixes[0].Edits {
			i, _ := slices.BinarySearchFunc(taken, e.Span.Start, func(s source.Span, at int) int { return cmp.Compare(s.End, at) })
			if i < len(taken) && taken[i].Start <= e.Span.End {
				free = false
				break
			}
		}
		if !free {
			continue
		}
		kept = append(kept, d)
		for _, e := range d.Fixes[0].Edits {
			taken = append(taken, e.Span)
		}
		slices.SortFunc(taken, func(a, b source.Span) int { return cmp.Compare(a.Start, b.Start) })
	}
	return kept
}

func apply(p *program.Program, ds []diag.Diagnostic, load func(*source.File) *program.Program) *program.Program {
	var edits []diag.Edit
	for _, d := range ds {
		edits = append(edits, d.Fixes[0].Edits...)
	}
	next := load(source.New(p.Src.Path, splice(p.Src.Text, 0, edits)))
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

// Summary says what the fixes saved: "3 fixes, 201 MB and 42.1 µs saved".
func (f *Fixed) Summary() string {
	var bytes int64
	var ns float64
	for _, d := range f.Applied {
		bytes += d.Fixes[0].SavesBytes
		ns += d.Fixes[0].SavesNs
	}
	fixes := "fixes"
	if len(f.Applied) == 1 {
		fixes = "fix"
	}
	return fmt.Sprintf("%d %s, %s and %s saved", len(f.Applied), fixes, units.Bytes(bytes), units.Time(ns))
}
