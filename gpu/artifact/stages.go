package artifact

import (
	"reflect"
	"slices"
)

// Stage is what the devices of one position along the axis of a pipeline run. A program in stages has no
// steps: it describes the arguments and the results, which its stages have some of.
type Stage struct {
	Program *Program
	// Inputs and Outputs are, by those of Program without positions, their numbers in the program in stages.
	Inputs, Outputs []int
}

// Of is what the device runs.
func (p *Program) Of(device int) Stage {
	if p.Stages != nil {
		return p.Stages[p.Divided.along(device)]
	}
	return Stage{p, numbersTo(p.Given()), numbersTo(len(p.Outputs))}
}

func numbersTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// along is the position of a device along the axis of the pipeline.
func (d *Distribution) along(device int) int {
	stride := 1
	for _, a := range slices.Backward(d.Axes) {
		if a.Name == d.Pipeline {
			return device / stride % a.Size
		}
		stride *= a.Size
	}
	return 0
}

// Parts are the programs that devices run: p itself, or its stages.
func (p *Program) Parts() []*Program {
	if p.Stages == nil {
		return []*Program{p}
	}
	var out []*Program
	for _, s := range p.Stages {
		out = append(out, s.Program)
	}
	return out
}

// InStages puts the programs of all positions along an axis together. The first is that of position 0, and an
// argument that none of them has is one of unused, by its number.
func InStages(name, axis string, stages []Stage, unused map[int]Buffer) *Program {
	first := stages[0].Program
	p := &Program{Name: name, File: first.File, Target: first.Target, Stages: stages}
	d := *first.Divided
	d.Pipeline, d.Inputs, d.Outputs, d.Positions = axis, nil, nil, nil
	p.Divided = &d
	inputs, outputs := map[int]Buffer{}, map[int]Buffer{}
	wholes := [2]map[int]*Whole{{}, {}}
	for i, b := range unused {
		inputs[i] = b
	}
	for _, s := range stages {
		q := s.Program
		p.Workspace = max(p.Workspace, q.Workspace)
		for i, n := range s.Inputs {
			inputs[n], wholes[0][n] = q.Buffers[q.Inputs[i]], q.Divided.Inputs[i]
		}
		for i, n := range s.Outputs {
			b, view := q.Buffers[q.Outputs[i]], q.ResultView(i)
			b.Shape, b.Order = view.Shape, view.Order
			outputs[n], wholes[1][n] = b, q.Divided.Outputs[i]
		}
	}
	add := func(of map[int]Buffer, kind Kind) (list []int) {
		for i := range len(of) {
			b := of[i]
			p.Workspace = max(p.Workspace, b.Bytes)
			list = append(list, len(p.Buffers))
			p.Buffers = append(p.Buffers, Buffer{Name: b.Name, Elem: b.Elem, Shape: b.Shape, Order: b.Order, Kind: kind, Bytes: b.Bytes, First: -1})
		}
		return list
	}
	p.Inputs, p.Outputs = add(inputs, Input), add(outputs, Output)
	for i := range p.Inputs {
		d.Inputs = append(d.Inputs, wholes[0][i])
	}
	for i := range p.Outputs {
		d.Outputs = append(d.Outputs, wholes[1][i])
	}
	return p
}

// stages checks the programs of all positions, and that they have the arguments and results that p says.
func (c *checker) stages() {
	p := c.p
	size := 0
	if p.Divided != nil {
		for _, a := range p.Divided.Axes {
			if a.Name == p.Divided.Pipeline {
				size = a.Size
			}
		}
	}
	if size != len(p.Stages) {
		c.errorf("%d stages along an axis of %d devices", len(p.Stages), size)
		return
	}
	if len(p.Steps) > 0 || len(p.Kernels) > 0 || len(p.Images) > 0 || len(p.Variants) > 0 || len(p.Divided.Positions) > 0 {
		c.errorf("a program in stages has no steps, kernels, images, variants or positions of its own")
		return
	}
	made := make([]bool, len(p.Outputs))
	for at, s := range p.Stages {
		c.stage(at, s, made)
	}
	for i, ok := range made {
		if !ok {
			c.errorf("no stage has output %d", i)
		}
	}
}

func (c *checker) stage(at int, s Stage, made []bool) {
	p, q := c.p, s.Program
	bad := func(format string, args ...any) { c.errorf("stage %d: "+format, append([]any{at}, args...)...) }
	switch {
	case len(q.Stages) > 0:
		bad("is in stages itself")
		return
	case q.Divided == nil || q.Divided.Mesh != p.Divided.Mesh || !slices.Equal(q.Divided.Axes, p.Divided.Axes):
		bad("is for other devices")
		return
	case q.Target != p.Target:
		bad("is for the target %q", q.Target)
		return
	}
	if err := q.Check(); err != nil {
		bad("%w", firstOf(err))
		return
	}
	if len(s.Inputs) != q.Given() || len(s.Outputs) != len(q.Outputs) {
		bad("numbers of %d inputs and %d outputs, and there are %d and %d", len(s.Inputs), len(s.Outputs), q.Given(), len(q.Outputs))
		return
	}
	same := func(what string, list, of, own []int, wholes, theirs []*Whole, shape func(i int) []int64) bool {
		seen := map[int]bool{}
		for i, n := range list {
			if n < 0 || n >= len(of) || seen[n] {
				bad("%s %d has the number %d of %d", what, i, n, len(of))
				return false
			}
			seen[n] = true
			x, y := &p.Buffers[of[n]], &q.Buffers[own[i]]
			if x.Elem != y.Elem || !slices.Equal(x.Shape, shape(i)) || !reflect.DeepEqual(wholes[n], theirs[i]) {
				bad("%s %s has another type", what, y.Name)
				return false
			}
		}
		return true
	}
	if !same("input", s.Inputs, p.Inputs, q.Inputs, p.Divided.Inputs, q.Divided.Inputs, func(i int) []int64 { return q.Buffers[q.Inputs[i]].Shape }) ||
		!same("output", s.Outputs, p.Outputs, q.Outputs, p.Divided.Outputs, q.Divided.Outputs, func(i int) []int64 { return q.ResultView(i).Shape }) {
		return
	}
	for i, n := range s.Outputs {
		made[n] = true
		want := p.Carried(n)
		if in := q.Carried(i); in >= 0 && s.Inputs[in] != want || in < 0 && want >= 0 && slices.Contains(s.Inputs, want) {
			bad("output %d is the state of another input", i)
		}
	}
}
