// Package present shows plans of training steps: as tables and charts on a terminal, as a page, and
// as data for scripts.
package present

import (
	"fmt"
	"strings"

	"dmir/analysis/plan"
	"dmir/analysis/units"
	"dmir/syntax/diag"
)

// none stands where there is nothing to show.
const none = "–"

// seconds is a time as people read it.
func seconds(s float64) string { return units.Time(s * 1e9) }

// number is n with a prefix of SI: "6.74 G".
func number(n int64) string { return units.Count(float64(n)) }

// percent is a fraction.
func percent(f float64) string { return fmt.Sprintf("%.1f %%", f*100) }

// unit is what a step processes: tokens, or samples where it has none.
func unit(r *plan.Result) string {
	if r.Model.Tokens > 0 {
		return "token"
	}
	return "sample"
}

// perSecond is how many tokens, or samples, p processes in a second.
func perSecond(r *plan.Result, p *plan.Plan) float64 {
	switch {
	case r.Model.Tokens > 0:
		return p.Tokens
	case p.Time > 0:
		return float64(r.Model.Samples) / p.Time
	}
	return 0
}

// sent is what a device sends in a step along all axes.
func sent(p *plan.Plan) int64 {
	var n int64
	for _, b := range p.Sent {
		n += b
	}
	return n
}

// Sentence is what p does, in words: "data 8 × tensor 4, optimizer states split over data (ZeRO-1)".
func Sentence(p *plan.Plan) string {
	if len(p.Names) > 0 {
		return strings.Join(p.Names, ", ")
	}
	return Mesh(p)
}

// Mesh is the axes of p that have more than one device.
func Mesh(p *plan.Plan) string {
	var parts []string
	for _, a := range p.Axes {
		if a.Size > 1 {
			parts = append(parts, fmt.Sprintf("%s %d", a.Name, a.Size))
		}
	}
	if parts == nil {
		return "one device"
	}
	return strings.Join(parts, " × ")
}

// schedule is the schedule of p with its stages on each device.
func schedule(p *plan.Plan) string {
	switch {
	case p.Schedule == "":
		return none
	case p.Chunks > 1:
		return fmt.Sprintf("%s %d", p.Schedule, p.Chunks)
	}
	return p.Schedule
}

func count(n int) string {
	if n < 1 {
		n = 1
	}
	return fmt.Sprint(n)
}

// Headline is what a step computes: its size, its work and its batch.
func Headline(r *plan.Result) string {
	parts := []string{number(r.Model.Parameters) + " parameters", units.Work(r.Model.FLOP)}
	if r.Model.Samples > 0 {
		parts = append(parts, number(r.Model.Samples)+" samples")
	}
	if r.Model.Tokens > 1 {
		parts = append(parts, number(r.Model.Tokens)+" tokens")
	}
	if r.Model.Layers > 1 {
		parts = append(parts, fmt.Sprintf("%d equal layers", r.Model.Layers))
	}
	return strings.Join(parts, " · ")
}

// Batch says which arguments of a step have its samples and which are the same for all of them, where it does not follow from
// what the step states and updates; else "".
func Batch(r *plan.Result) string {
	if len(r.Model.Whole) == 0 {
		return ""
	}
	list := func(names []string) string {
		if n := len(names); n > 4 {
			return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), n-3)
		}
		return diag.List(names)
	}
	if len(r.Model.Batch) == 0 {
		return fmt.Sprintf("none was found; if one of %s has samples, name it with --batch", list(r.Model.Whole))
	}
	return fmt.Sprintf("the samples are those of %s, and all share %s; --batch NAMES names others", list(r.Model.Batch), list(r.Model.Whole))
}

// Stages says why a step whose layers are a loop has no stages, where it goes back through that itself; else "".
func Stages(r *plan.Result) string {
	if r.Model.Backward == 0 {
		return ""
	}
	return fmt.Sprintf("none, since the step goes back through its loop of %s itself, as one of JAX does; dmir.trace(..., gradient=\"dmir\") has dmir differentiate the model, and cut the loop", diag.Count(r.Model.Backward, "layer"))
}

// Optimality is a sentence on how far the best plan of r may be from the best of its space: by the model of the search, which
// the figures are not by where the texts of the plans are compiled.
func Optimality(r *plan.Result) string {
	by, and, floor := "", "", ""
	if r.Modelled == "" && len(r.Plans) > 0 {
		by, and = fmt.Sprintf("by the model of the search it takes %s, ", seconds(r.Plans[0].Modelled)), "and "
		if r.Floor > r.Plans[0].Time/10 { // less says nothing
			floor = fmt.Sprintf("; no text takes less than %s, its products at the peak rate of all devices", seconds(r.Floor))
		}
	}
	if r.Gap < 0.0005 {
		return by + and + "no plan of the space takes less" + floor
	}
	if by == "" {
		by = "it takes "
	}
	return fmt.Sprintf("%sat most %.1f %% longer than the best of the space%s", by, r.Gap/(1-r.Gap)*100, floor)
}

// Time is the time of a step with p, as people read it.
func Time(p *plan.Plan) string { return seconds(p.Time) }
