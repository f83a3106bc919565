package cost

import (
	"fmt"
	"strings"

	"dmir/analysis/units"
	"dmir/dialect/op"
)

// countedReport is what was counted of f's sparse arguments.
func (f *Func) countedReport() (out []CountedReport) {
	for i, v := range f.Func.Args {
		c := op.CountedArg(f.Func, i)
		if c == nil {
			continue
		}
		r := CountedReport{
			Argument: strings.TrimPrefix(v.Name, "%"), File: c.File, Stored: c.Stored,
			Rows: c.Rows, Empty: c.Empty, Median: c.Median, Longest: c.Longest, Blocks: c.Blocks,
		}
		for _, l := range c.Levels {
			r.Touched = append(r.Touched, l.Profile.By[0].Touched)
		}
		out = append(out, r)
	}
	return out
}

// counted is what was counted of f's sparse arguments, a line for each.
func (f *Func) counted() (lines []string) {
	for _, r := range f.countedReport() {
		name, _, _ := strings.Cut(r.Argument, ".") // of a component that tools show
		n := func(x int64) string { return units.Count(float64(x)) }
		text := fmt.Sprintf("%%%s from %s: %s stored in %s rows, the median row %s, the longest %s", name, r.File, n(r.Stored), n(r.Rows), n(r.Median), n(r.Longest))
		if r.Empty > 0 {
			text += ", " + n(r.Empty) + " empty"
		}
		if k := len(r.Touched); k > 0 {
			text += fmt.Sprintf("; %s coordinates touched", n(r.Touched[k-1]))
		}
		if r.Blocks > 0 {
			text += fmt.Sprintf("; %s of each block of %d × %d that has any", units.Percent(float64(r.Stored), float64(r.Blocks*op.CountedBlock*op.CountedBlock)), op.CountedBlock, op.CountedBlock)
		}
		lines = append(lines, text)
	}
	return lines
}
