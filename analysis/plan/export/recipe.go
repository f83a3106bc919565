package export

import (
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/plan"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

// A recipe is a plan by the sizes that training frameworks take: how many devices lie along each kind of parallelism. What of the
// plan it lacks is in notes.
type recipe struct {
	p                                   *Portable
	tool                                string
	data, tensor, context, expert, pipe int // devices; data has those along expert too
	copies                              int // of data: along axes over which no parameter and no state lies in pieces
	chunks, micro                       int
	schedule, recompute                 string
	states, parameters, sequence        bool // split over data; between contractions split along the sequence
	again                               bool // parameters are gathered again for the backward pass
	notes                               []string
	changed                             bool // the tool runs another plan
}

// recipeOf is p for a tool that has one axis of each kind and none along which nothing is divided.
func recipeOf(p *Portable, tool string) *recipe {
	r := &recipe{
		p: p, tool: tool, data: p.Size(Data), tensor: p.Size(Tensor), context: p.Size(Sequence), expert: p.Size(Expert), pipe: p.Size(Pipe),
		copies: 1, chunks: p.Chunks, micro: p.Microbatches, schedule: p.Schedule, recompute: p.Recompute,
		states: p.StatesSplit(), parameters: p.ParametersSplit(), again: p.ParametersRegathered(), sequence: p.SequenceParallel && p.Size(Tensor) > 1,
	}
	if n := p.Size(Replica); n > 1 {
		r.lack("%d devices that compute the same: these divide samples instead", n)
		r.data *= n
		r.copies *= n
	}
	for _, a := range p.Axes {
		if a.Role == Data && !slices.ContainsFunc(p.Arguments, func(x Array) bool {
			return (x.Kind == plan.Parameter || x.Kind == plan.State) && x.Spec.Along(a.Name) >= 0
		}) {
			r.copies *= a.Size
		}
	}
	for _, role := range []Role{Tensor, Sequence, Expert} {
		var along []string
		for _, a := range p.Axes {
			if a.Role == role && a.Size > 1 {
				along = append(along, fmt.Sprintf("%s %d", comment(a.Name), a.Size))
			}
		}
		if len(along) > 1 {
			r.lack("%d axes of %s parallelism, %s: here they are one", len(along), role, diag.List(along))
		}
	}
	if r.expert > 1 {
		r.note("Along the axis of experts %s divides samples outside of the experts.", tool)
		r.data *= r.expert
	}
	r.layout()
	return r
}

// note says something of the file, lack what of the plan the tool has not.
func (r *recipe) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *recipe) lack(format string, args ...any) {
	r.note("Not expressed: "+format+".", args...)
	r.changed = true
}

// layout compares what parameters and states the plan divides with what recipes do: tensor parallelism divides the matrices of
// layers, along one dimension each, and nothing else.
func (r *recipe) layout() {
	var odd []string
	for _, a := range r.p.Arguments {
		if a.Kind != plan.Parameter {
			continue
		}
		dims := map[int]bool{}
		for d, axes := range a.Spec {
			for _, name := range axes {
				if x := r.p.Axis(name); x != nil && x.Role == Tensor {
					dims[d] = true
				}
			}
		}
		if len(dims) > 1 {
			odd = append(odd, comment(a.Path))
		}
	}
	if len(odd) > 0 {
		r.lack("parameters that tensor axes divide along two dimensions (%s)", some(odd))
	}
	if r.tensor > 1 {
		r.note("Which dimension of a matrix tensor parallelism divides, %s's own layers decide.", r.tool)
	}
}

// some are the first names of a list, and how many there are besides.
func some(list []string) string {
	const most = 3
	if len(list) <= most {
		return diag.List(list)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// each is the samples of a micro-batch on a device. Where they do not divide into as many micro-batches as the plan has, there are as
// many as divide.
func (r *recipe) each() int64 {
	if r.p.Samples == 0 {
		return 0
	}
	for m := r.micro; m > 1; m-- {
		if r.p.Samples%int64(m*r.data) == 0 {
			if m != r.micro {
				r.lack("%d micro-batches of samples that these devices do not divide: here they are %d", r.micro, m)
				r.micro = m
			}
			return r.p.Samples / int64(m*r.data)
		}
	}
	if r.micro > 1 {
		r.lack("%d micro-batches of samples that these devices do not divide: here they are one", r.micro)
		r.micro = 1
	}
	return max(r.p.Samples/int64(r.data), 1)
}

// schedules keeps the schedule if the tool has it. Else it takes 1F1B, with as many stages on a device where the tool interleaves them.
func (r *recipe) schedules(has ...string) {
	if r.schedule == "" || slices.Contains(has, r.schedule) {
		return
	}
	to := op.Schedule1F1B
	if r.chunks > 1 && slices.Contains(has, op.ScheduleInterleaved) {
		to = op.ScheduleInterleaved
	} else {
		r.chunks = 1
	}
	r.lack("schedule %s: here it is %s", r.schedule, to)
	r.schedule = to
}

// unequal reports whether stages have different numbers of layers, or how many they have is not known.
func (r *recipe) unequal() (unequal, known bool) {
	for _, s := range r.p.Stages {
		unequal = unequal || s.Layers != r.p.Stages[0].Layers
		known = s.Layers > 0
	}
	return unequal, known
}

// setting is what the planner is asked for to cost what the tool runs.
func (r *recipe) setting() plan.Setting {
	s := plan.Setting{Data: r.data, Pipe: r.pipe, Microbatches: r.micro, Recompute: r.recompute, States: plan.StatesWhole}
	switch {
	case r.context == 1 && r.expert == 1:
		s.Tensor = r.tensor
	case r.expert == 1:
		s.Context, s.Tensor = r.context, r.tensor
	default:
		s.Data, s.Expert = s.Data/r.expert, r.expert
	}
	if r.pipe > 1 {
		s.Chunks, s.Schedule = r.chunks, r.schedule
	}
	if r.states {
		s.States = plan.StatesSplit
	}
	switch {
	case r.parameters && r.again:
		s.States = plan.StatesParameters
	case r.parameters:
		s.States = ""
	}
	return s
}

// finish is the text in front of a file: of which plan it is, how it is used, what it lacks, and what the tool's nearest plan takes.
func (r *recipe) finish(usage ...string) []string {
	out := append(heading(r.p), "")
	out = append(out, usage...)
	if len(r.notes) > 0 {
		out = append(append(out, ""), r.notes...)
	}
	if !r.changed {
		return out
	}
	return append(out, nearest(r.p, r.tool, r.setting()))
}

// yamlString is s as a string of YAML: one of Python in double quotes is one of YAML.
func yamlString(s string) string { return pyString(s) }
