package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmir/analysis/plan"
)

// The lines of a page between which its table is.
const (
	begin = "<!-- published -->"
	end   = "<!-- /published -->"
)

// table is the results as Markdown.
func table(rows []Row) string {
	var b strings.Builder
	b.WriteString("| run | devices | published plan | published | predicted | error | best plan found | its time |\n|---|--:|---|--:|--:|--:|---|--:|\n")
	var errs []float64
	for i, r := range rows {
		predicted, off, best, its := "–", "–", "–", "–"
		if r.Fixed != nil {
			predicted = seconds(r.Fixed.Time)
		}
		if e, ok := r.Error(); ok {
			off = percent(e)
			errs = append(errs, e)
		}
		if r.Best != nil {
			best, its = describe(r.Best), seconds(r.Best.Time)
		}
		fmt.Fprintf(&b, "| %d. %s | %d | %s | %s | %s | %s | %s | %s |\n",
			i+1, r.Run.Name, r.Run.Devices, r.Run.Plan.describe(), seconds(r.Published), predicted, off, best, its)
	}
	b.WriteString("\n" + spread(errs) + "\n\n| run | parameters | source | compared with | notes |\n|--:|--:|---|---|---|\n")
	for i, r := range rows {
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", i+1, billions(r.Parameters), r.Run.Source, r.Run.Checked, strings.Join(r.notes(), ". "))
	}
	return b.String()
}

// spread describes the errors of the predictions.
func spread(errs []float64) string {
	if len(errs) == 0 {
		return "No step was predicted with its published plan."
	}
	slices.Sort(errs)
	log := 0.0
	for _, e := range errs {
		log += math.Log1p(e)
	}
	return fmt.Sprintf("Errors of %d predictions: from %s to %s, median %s; the geometric mean of predicted by published is %.2f.",
		len(errs), percent(errs[0]), percent(errs[len(errs)-1]), percent((errs[(len(errs)-1)/2]+errs[len(errs)/2])/2), math.Exp(log/float64(len(errs))))
}

// notes are what a reader must know of a row.
func (r Row) notes() (notes []string) {
	if r.Run.Note != "" {
		notes = append(notes, r.Run.Note)
	}
	if r.FixedWhy != "" {
		notes = append(notes, "No prediction: "+cell(r.FixedWhy))
	}
	if r.BestWhy != "" {
		notes = append(notes, "No plan: "+cell(r.BestWhy))
	}
	return notes
}

// cell is text for a cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

func (p Plan) describe() string {
	return detailed(several(p.setting().Axes()), p.Schedule, p.Chunks, p.Microbatches, p.Recompute, p.States == "split")
}

func describe(p *plan.Plan) string {
	return detailed(several(p.Axes), p.Schedule, p.Chunks, p.Microbatches, p.Recompute, false)
}

// several are the axes with several devices.
func several(axes []plan.Axis) (out []string) {
	for _, a := range axes {
		if a.Size > 1 {
			out = append(out, fmt.Sprintf("%s %d", a.Name, a.Size))
		}
	}
	return out
}

// detailed is the axes of a plan and what else is known of it.
func detailed(axes []string, schedule string, chunks, micro int, recompute string, split bool) string {
	if len(axes) == 0 {
		axes = []string{"one device"}
	}
	parts := []string{strings.Join(axes, " × ")}
	if schedule != "" {
		if chunks > 1 {
			schedule += fmt.Sprintf(" of %d chunks", chunks)
		}
		parts = append(parts, schedule)
	}
	if micro > 1 {
		parts = append(parts, fmt.Sprintf("%d micro-batches", micro))
	}
	if recompute != "" && recompute != "none" {
		parts = append(parts, recompute+" recomputation")
	}
	if split {
		parts = append(parts, "states split")
	}
	return strings.Join(parts, ", ")
}

// seconds is a time of a step with three digits.
func seconds(s float64) string {
	digits := 0
	for x := s; x < 100 && digits < 6; x *= 10 {
		digits++
	}
	return fmt.Sprintf("%.*f s", digits, s)
}

func percent(e float64) string { return fmt.Sprintf("%+.0f %%", 100*e) }

func billions(n int64) string { return fmt.Sprintf("%.1fB", float64(n)/1e9) }
