package plan

import (
	"fmt"
	"slices"

	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// A given is what the text states of a plan, which stays.
type given struct {
	mesh *mesh.Mesh // nil: the search chooses one
	axes []Axis     // of it, that divide values
	pipe int
}

// keepStated makes what the text states a condition: its mesh, the shardings of values, micro-batches and schedule.
func (s *search) keepStated() error {
	fn := s.text.Op
	contradicts := func(help, format string, args ...any) error {
		return &Error{Code: CodeStated, Msg: fmt.Sprintf(format, args...), Help: help}
	}
	for _, f := range s.module.Funcs {
		if f.Body != nil && op.Staged(f.Body.Ops) {
			return &Error{Code: CodeStated, At: f.Op, Msg: fmt.Sprintf("@%s states stages of its own, and a plan cuts a step into stages", f.Name), Help: "remove " + op.StageAttr + " and " + op.StagesAttr + " from its ops"}
		}
	}
	f := &s.o.Fix
	if n := fn.Int(op.MicrobatchesAttr, 0); n > 0 {
		if f.Microbatches > 0 && int64(f.Microbatches) != n {
			return contradicts("remove one of them", "@%s states %d micro-batches, and the plan is to have %d", s.text.Name, n, f.Microbatches)
		}
		f.Microbatches = int(n)
	}
	if k := fn.Str(op.ScheduleAttr); k != "" {
		if f.Schedule != "" && f.Schedule != k {
			return contradicts("remove one of them", "@%s states the schedule %s, and the plan is to have %s", s.text.Name, k, f.Schedule)
		}
		f.Schedule = k
	}
	on, _, problem := shard.Stated(s.straight.m, s.fn)
	if problem != nil {
		return &Error{Code: CodeStated, At: problem.At, Msg: problem.Msg, Help: problem.Help}
	}
	if on == nil {
		return nil
	}
	if n := on.Devices(); n != s.o.Devices {
		return contradicts("plan for the devices of the mesh, or remove the shardings",
			"@%s is divided over mesh @%s, which has %s (%s), and the plan is for %d", s.text.Name, on.Name, diag.Count(n, "device"), on, s.o.Devices)
	}
	s.given = given{mesh: on, pipe: 1}
	for _, a := range on.Axes {
		if a.Name == fn.Str(op.PipelineAttr) {
			s.given.pipe = a.Size
			continue
		}
		s.given.axes = append(s.given.axes, Axis{a.Name, a.Size})
	}
	if n := len(s.given.axes); n > maxAxes {
		return contradicts("join axes that divide the same", "mesh @%s has %d axes; a plan keeps at most %d besides that of the pipeline", on.Name, n, maxAxes)
	}
	if f.Pipe > 0 && f.Pipe != s.given.pipe {
		return contradicts(fmt.Sprintf("name the axis of the pipeline with %s = \"pipe\"", op.PipelineAttr), "mesh @%s gives the pipeline %s, and the plan is to have %d", on.Name, diag.Count(s.given.pipe, "stage"), f.Pipe)
	}
	for _, n := range []int{f.Data, f.Tensor} {
		if n > 0 && !slices.ContainsFunc(s.given.axes, func(a Axis) bool { return a.Size == n }) {
			return contradicts("leave the size out, or change the mesh", "mesh @%s has no axis of %s (%s)", on.Name, diag.Count(n, "device"), on)
		}
	}
	return s.fix(s.graph)
}

// fix keeps what the text states of the values of g.
func (s *search) fix(g *graph) error {
	for _, v := range g.values {
		sh := op.StatedSharding(v.v)
		if sh == nil || len(sh.Partial) > 0 {
			continue
		}
		l, ok := s.given.layout(sh)
		if !ok {
			return &Error{Code: CodeStated, Msg: fmt.Sprintf("%s is divided over a part of an axis, or over the axis of the pipeline: %s", v.v.Name, sh.Text()), Help: "name whole axes of the mesh"}
		}
		v.fixed = &l
		s.again[v.v] = op.Regathered(v.v)
	}
	return nil
}

// layout is a sharding of the text; ok is false where it names parts of axes.
func (g *given) layout(s *types.Sharding) (l layout, ok bool) {
	l = allWhole
	for d, split := range s.Dims {
		for _, x := range split.Axes {
			a := slices.IndexFunc(g.axes, func(a Axis) bool { return a.Name == x.Name })
			if a < 0 || x.Size != 0 {
				return l, false
			}
			l[a] = int8(d)
		}
	}
	return l, true
}
