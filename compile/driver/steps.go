package driver

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"dmir/compile/distribute"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/flatten"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
	"dmir/gpu/collective"
	"dmir/gpu/device"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Steps runs a function again and again with the state of the run before:
// results with the attribute dm.state are its arguments in the next step. It is used by
// one goroutine at a time and must be closed.
type Steps struct {
	Device   string
	Why      string            // why this device
	Peak     int64             // bytes of the plan on a device, else of live tensors in the steps so far
	Copied   int64             // bytes of state that a device copies after each step; the rest is written in place
	Warnings []diag.Diagnostic // about the program's text, from compiling it

	results []string // names
	sparse  []sparseResult
	state   []int // by result the argument that it becomes, -1 for none
	run     stepper
	asked   agreement
}

// stepper is a kind of device.
type stepper interface {
	// step runs once on args, of which those that are nil stay as they are, and
	// returns the results that are not state.
	step(ctx context.Context, args []*tensor.Tensor) ([]*tensor.Tensor, error)
	// current is the state by result, nil for the others.
	current(ctx context.Context) ([]*tensor.Tensor, error)
	// process connects this process with others that run the steps too; nil: there are none.
	process() collective.Comm
	close() error
}

// Open prepares the steps of the job's function: it chooses the device and
// compiles.
func Open(ctx context.Context, j Job) (*Steps, error) {
	j, err := j.roomy(ctx, nil)
	if err != nil {
		return nil, err
	}
	flat, _ := flatten.Func(j.Fn)
	s := &Steps{results: outputNames(j.Fn, len(flat.Results)), state: op.State(flat.Op), sparse: sparseResults(j.Fn, j.sizes())}
	if d, err := j.compiles(); j.together() && (d != nil || err != nil) {
		if err != nil {
			return nil, err
		}
		p, warnings, err := j.build(ctx, d)
		s.Warnings = warnings
		if err != nil {
			return nil, err
		}
		return s, s.join(ctx, d, p, j.On, j.pieces(), j.Progress, j.Module.Src, j.sparsely)
	}
	if j.together() {
		t, err := j.team(ctx)
		if err != nil {
			return nil, err
		}
		s.Device, s.Why = "reference", j.On.why(t.Mesh)
		s.run = &togetherSteps{team: t, state: s.state, peak: &s.Peak, job: j}
		return s, nil
	}
	done, why, err := onDevice(ctx, j, func(d device.Device) error { return s.compile(ctx, d, j) })
	if err != nil {
		return nil, err
	}
	s.Why = why
	if !done {
		s.Device = "reference"
		s.run = &reference{job: j, state: s.state, peak: &s.Peak}
	}
	return s, nil
}

// compile builds the job's function for d and loads it there.
func (s *Steps) compile(ctx context.Context, d device.Device, j Job) error {
	p, warnings, err := j.build(ctx, d)
	s.Warnings = warnings
	if err != nil {
		return err
	}
	return s.load(ctx, d, p, device.Options{Progress: j.Progress}, j.Module.Src)
}

// OpenArtifact prepares the steps of a compiled program on d, which reports its
// progress if it is slow.
func OpenArtifact(ctx context.Context, d device.Device, p *artifact.Program, progress func(device.Progress)) (*Steps, error) {
	s := &Steps{state: p.State, sparse: sparseOf(p)}
	for i := range p.Own() {
		s.results = append(s.results, p.Result(i))
	}
	return s, s.load(ctx, d, p, device.Options{Progress: progress}, nil)
}

// OpenTogether is OpenArtifact on several devices, of which d is the first.
func OpenTogether(ctx context.Context, d device.Device, p *artifact.Program, on Distribution, pieces map[int]PieceReader, progress func(device.Progress)) (*Steps, error) {
	s := &Steps{state: p.State, sparse: sparseOf(p)}
	for i := range p.Own() {
		s.results = append(s.results, p.Result(i))
	}
	return s, s.join(ctx, d, p, on, pieces, progress, nil, nil)
}

func (s *Steps) join(ctx context.Context, d device.Device, p *artifact.Program, on Distribution, pieces map[int]PieceReader, progress func(device.Progress), src *source.File, sparsely func(*distribute.Layout)) error {
	m, err := on.join(ctx, d, p, sparsely)
	if err != nil {
		return err
	}
	s.Device, s.Why, s.Peak = d.Name(), on.why(m.Mesh), p.Workspace
	s.run, err = m.open(ctx, device.Options{Progress: progress}, pieces, func(err error) error { return placed(err, src) })
	return err
}

func (s *Steps) load(ctx context.Context, d device.Device, p *artifact.Program, o device.Options, src *source.File) error {
	session, err := device.Open(ctx, d, p, o)
	if err != nil {
		return err
	}
	s.Device, s.Peak = d.Name(), p.Workspace
	for i := range p.Outputs {
		if in := p.Carried(i); in >= 0 && p.Outputs[i] != p.Inputs[in] {
			s.Copied += p.Buffers[p.Inputs[in]].Size()
		}
	}
	s.run = &compiledSteps{p: p, session: session, src: src}
	return nil
}

// HasState reports whether a result of the function is the state of the next step.
func HasState(state []int) bool {
	for _, n := range state {
		if n >= 0 {
			return true
		}
	}
	return false
}

// Names are the results' names.
func (s *Steps) Names() []string { return s.results }

// Step runs the function once. In the first step args are all arguments, in later
// ones those that change; a nil one is the state, or as it was. It returns the
// results that are not state.
func (s *Steps) Step(ctx context.Context, args []*tensor.Tensor) ([]Output, error) {
	outs, err := s.run.step(ctx, args)
	if err != nil {
		return nil, err
	}
	return s.named(outs), nil
}

// Current is the state after the last step, as the results that it was.
func (s *Steps) Current(ctx context.Context) ([]Output, error) {
	outs, err := s.run.current(ctx)
	if err != nil {
		return nil, err
	}
	return s.named(outs), nil
}

// agreement is when the processes of a run agree whether it goes on.
type agreement struct {
	step, at, next int // the step to be made; before which they last agreed, and agree next
	since          time.Time
}

// agreeEvery is about how often they do. It is short beside the time that a launcher leaves between the signals that ask
// for an end and enforce it.
const agreeEvery = 250 * time.Millisecond

// Ends reports whether the run ends before the next step, which is asked before each. stop is that this process was told
// to: where others run the steps too, all of them then end before the same one, and have the same state.
func (s *Steps) Ends(ctx context.Context, stop bool) (bool, error) {
	c := s.run.process()
	if c == nil {
		return stop, nil
	}
	a := &s.asked
	a.step++
	if a.step <= a.next {
		return false, nil
	}
	took := time.Duration(0)
	if a.at > 0 {
		took = time.Since(a.since) / time.Duration(a.step-a.at)
	}
	buf := make([]byte, 16) // whether to stop, and how long a step took
	if stop {
		buf[0] = 1
	}
	binary.LittleEndian.PutUint64(buf[8:], uint64(took))
	if err := c.AllReduce(ctx, collective.Everyone(c), collective.Max, "i64", buf); err != nil {
		return false, err
	}
	a.next = a.step
	if a.at > 0 {
		each := max(time.Duration(binary.LittleEndian.Uint64(buf[8:])), agreeEvery>>20)
		a.next += int(agreeEvery / each)
	}
	a.at, a.since = a.step, time.Now()
	return binary.LittleEndian.Uint64(buf) > 0, nil
}

// Failed is err, for which this process does not go on: others that run the steps too are told, and end.
func (s *Steps) Failed(err error) error {
	if c := s.run.process(); c != nil {
		return collective.Report(c, err)
	}
	return err
}

// Close frees what the steps hold.
func (s *Steps) Close() error { return s.run.close() }

func (s *Steps) named(ts []*tensor.Tensor) []Output {
	var out []Output
	for i, t := range ts {
		if t != nil && i < len(s.results) {
			out = append(out, Output{Name: s.results[i], Type: t.Type(), Tensor: t})
		}
	}
	return out
}

// reference runs steps on the reference executor.
type reference struct {
	job   Job
	state []int
	args  []*tensor.Tensor
	peak  *int64
}

func (r *reference) step(ctx context.Context, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if r.args == nil {
		r.args = make([]*tensor.Tensor, len(args))
	}
	for i, t := range args {
		if t != nil {
			r.args[i] = t
		}
	}
	res, err := interp.Run(ctx, r.job.Module, r.job.Fn, r.args, interp.Options{Bind: r.job.Program.Bind})
	if err != nil {
		return nil, err
	}
	*r.peak = max(*r.peak, res.Peak)
	for i, in := range r.state {
		if in >= 0 {
			r.args[in], res.Outputs[i] = res.Outputs[i], nil
		}
	}
	return res.Outputs, nil
}

func (r *reference) current(context.Context) ([]*tensor.Tensor, error) {
	out := make([]*tensor.Tensor, len(r.state))
	for i, in := range r.state {
		if in >= 0 {
			out[i] = r.args[in]
		}
	}
	return out, nil
}

func (r *reference) process() collective.Comm { return nil }

func (r *reference) close() error { return nil }

// compiledSteps runs steps of a compiled program.
type compiledSteps struct {
	p       *artifact.Program
	session device.Session
	src     *source.File // the text, nil where it is not there
}

func (l *compiledSteps) step(ctx context.Context, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	in := make([][]byte, len(args))
	for i, t := range args {
		if t != nil {
			in[i] = packed(l.p, i, t)
		}
	}
	got, err := l.session.Step(ctx, in)
	if err != nil {
		return nil, err
	}
	outs, err := Unpack(l.p, got)
	if err == nil && len(l.p.Checks) > 0 {
		err = l.checked(ctx, outs)
	}
	return l.tensors(outs, false), err
}

// checked compares the results of a step, among them those that are state, which
// stay on the device.
func (l *compiledSteps) checked(ctx context.Context, outs []Output) error {
	var state []*tensor.Tensor
	if slices.ContainsFunc(l.p.Checks, func(c artifact.Check) bool { return l.p.Carried(c.Got) >= 0 || l.p.Carried(c.Want) >= 0 }) {
		var err error
		if state, err = l.current(ctx); err != nil {
			return err
		}
	}
	all := slices.Clone(outs)
	for i, t := range state {
		if t != nil {
			all[i].Tensor = t
		}
	}
	return placed(expected(l.p, all), l.src)
}

func (l *compiledSteps) current(ctx context.Context) ([]*tensor.Tensor, error) {
	got, err := l.session.State(ctx)
	if err != nil {
		return nil, err
	}
	outs, err := Unpack(l.p, got)
	return l.tensors(outs, true), err
}

// tensors are the results that are state, or those that are not.
func (l *compiledSteps) tensors(outs []Output, state bool) []*tensor.Tensor {
	ts := make([]*tensor.Tensor, len(outs))
	for i, o := range outs {
		if (l.p.Carried(i) >= 0) == state {
			ts[i] = o.Tensor
		}
	}
	return ts
}

func (l *compiledSteps) process() collective.Comm { return nil }

func (l *compiledSteps) close() error { return l.session.Close() }
