package export

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/stacks"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// A Source is a program whose text states a plan, and what is known of that besides.
type Source struct {
	Program *program.Program
	Module  *ir.Module
	Func    *ir.Func // the step
	Options plan.Options
	Plan    *plan.Plan                             // that the text was written for; nil: the text's own
	Summary string                                 // of Plan
	Planned string                                 // the file of the program with the plan
	Writes  []string                               // the commands that write it; none: it is there
	Search  func(plan.Setting) (*plan.Plan, error) // the best plan under another setting; nil: none is searched
}

// Stated reports whether fn, a function of m, states a plan: a mesh over which it divides values, or into how many parts it cuts
// its batch.
func Stated(m *ir.Module, fn *ir.Func) bool {
	on, all, problem := shard.Stated(m, fn)
	return problem == nil && on != nil && len(all) > 0 || fn.Op.Int(op.MicrobatchesAttr, 0) > 0 || fn.Op.Attr(op.PipelineAttr) != nil
}

// Read describes the plan that the text of s states. The error is a *plan.Error where the text cannot be divided as it says, or
// that of ctx.
func Read(ctx context.Context, s Source) (*Portable, error) {
	f := s.Program.Cost(s.Func)
	if f == nil {
		return nil, &plan.Error{Code: plan.CodeStep, Msg: "@" + s.Func.Name + " has no body", Help: "name the training step with --func"}
	}
	if !f.DivideUnless(ctx) {
		return nil, ctx.Err()
	}
	_, whole, problem := f.Whole(ctx)
	if problem != nil {
		return nil, &plan.Error{Code: plan.CodeStated, At: problem.At, Msg: problem.Msg, Help: problem.Help}
	}
	r := &reader{
		Source: s, cost: f, whole: whole, on: f.Mesh(),
		p: &Portable{
			Program: s.Program.Src.Path, Planned: s.Planned, Writes: s.Writes, Function: s.Func.Name, Summary: s.Summary, Devices: 1, Target: targetOf(s.Options.Machine),
			Microbatches: int(max(s.Func.Op.Int(op.MicrobatchesAttr, 1), 1)), Pipeline: s.Func.Op.Str(op.PipelineAttr), Chunks: 1, Recompute: plan.None,
		},
	}
	if err := r.cut(); err != nil {
		return nil, err
	}
	if err := r.arguments(); err != nil {
		return nil, err
	}
	r.results()
	r.marks()
	r.axes()
	r.states()
	if err := r.stages(ctx); err != nil {
		return nil, err
	}
	if err := r.predict(ctx); err != nil {
		return nil, err
	}
	r.p.search, r.p.SequenceParallel = s.Search, r.sequenceParallel()
	if r.p.Summary == "" {
		r.p.Summary = r.summary()
	}
	return r.p, nil
}

// targetOf is what an export needs of a machine.
func targetOf(m *machine.Machine) Target {
	t := Target{Name: m.Name, Title: m.Title, PerNode: 1, Memory: m.Memory, CPU: m.CPU}
	for _, l := range m.Joined() {
		if l.Devices > 0 {
			t.PerNode = l.Devices
			break
		}
	}
	return t
}

type reader struct {
	Source
	cost  *cost.Func
	whole *ir.Func // the step as one block
	on    *mesh.Mesh
	grid  *shard.Grid // of on
	names []string    // of the grid's atoms
	p     *Portable
}

// cut finds the axes of the description: those of the mesh, and of one of which the text names parts, these parts.
func (r *reader) cut() (err error) {
	if r.on == nil {
		return nil
	}
	_, stated, _ := shard.Stated(r.Module, r.Func)
	_, inside, _ := shard.Stated(r.Module, r.whole)
	if r.grid, err = shard.NewGrid(r.on, append(stated, inside...)); err != nil {
		return &plan.Error{Code: plan.CodeStated, Msg: err.Error(), Help: "name parts of the axis that divide one another"}
	}
	parts := map[string]int{}
	for _, a := range r.grid.Atoms {
		name := a.Name
		if a.Size > 0 {
			parts[a.Name]++
			for name = fmt.Sprintf("%s_%d", a.Name, parts[a.Name]); slices.ContainsFunc(r.on.Axes, func(x mesh.Axis) bool { return x.Name == name }); {
				name += "_"
			}
		}
		r.names = append(r.names, name)
	}
	return nil
}

// named are atoms of the grid by their names.
func (r *reader) named(atoms []int) []string {
	out := make([]string, 0, len(atoms))
	for _, i := range atoms {
		out = append(out, r.names[i])
	}
	return out
}

// arguments are those of the step. A sharding is that of the text, else that which follows from it.
func (r *reader) arguments() error {
	kinds, err := plan.Arguments(r.Module, r.Func, r.Options)
	if err != nil {
		return err
	}
	for i, v := range r.whole.Args {
		a := Array{Name: strings.TrimPrefix(v.Name, "%"), Kind: plan.Other, Batch: -1, Next: -1, Of: -1}
		a.Path = a.Name
		if named := r.Func.Args; len(named) == len(r.whole.Args) && named[i].Loc != nil && named[i].Loc.Kind == loc.Name {
			a.Path = named[i].Loc.Text
		}
		if i < len(kinds) {
			a.Kind, a.Batch = kinds[i].Kind, kinds[i].Batch
		}
		r.shape(&a, v.Tensor())
		a.Spec = r.spec(op.StatedSharding(v), len(a.Shape))
		if d, _ := r.cost.Divide(); d != nil && op.StatedSharding(v) == nil {
			if t, _ := op.GlobalType(d.Fn.Op, "arg_attrs", i); t != nil {
				a.Spec = r.spec(t.At.Shard, len(a.Shape))
			}
		}
		if r.Plan != nil && i < len(r.Plan.Used) && r.Plan.Used[i] != nil {
			if used := r.spec(r.Plan.Used[i], len(a.Shape)); fmt.Sprint(used) != fmt.Sprint(a.Spec) {
				a.Used = used
			}
		}
		a.Regathered = r.Plan != nil && i < len(r.Plan.Regathered) && r.Plan.Regathered[i] || op.Regathered(v)
		if a.Kind == plan.Samples && a.Batch < len(a.Shape) {
			r.p.Samples = a.Shape[a.Batch]
		}
		r.p.Arguments = append(r.p.Arguments, a)
	}
	return nil
}

// shape is the element type and the sizes of t.
func (r *reader) shape(a *Array, t *types.Tensor) {
	if t == nil {
		return
	}
	a.Elem, a.Shape = t.Elem.String(), []int64{}
	for _, d := range t.Shape {
		n, _ := d.Int()
		a.Shape = append(a.Shape, n)
	}
}

// spec is a sharding of an array of a rank.
func (r *reader) spec(s *types.Sharding, rank int) Spec {
	out := make(Spec, rank)
	for d := range out {
		out[d] = []string{}
	}
	if r.grid != nil && s != nil && len(s.Dims) <= rank {
		for d, atoms := range r.grid.Layout(s, rank).Dims {
			out[d] = r.named(atoms)
		}
	}
	return out
}

// results are those of the step; the next value of an argument is divided as that.
func (r *reader) results() {
	state := op.State(r.whole.Op)
	stated := op.ResultShardings(r.whole)
	for i, t := range r.whole.Results {
		a := Array{Kind: plan.Other, Batch: -1, Next: -1, Of: -1}
		if name, ok := op.SignatureAttr(r.whole.Op, "res_attrs", i, op.NameAttr).(types.Str); ok {
			a.Name, a.Path = string(name), string(name)
		}
		tensor, _ := t.(*types.Tensor)
		r.shape(&a, tensor)
		a.Spec = r.spec(nil, len(a.Shape))
		if i < len(stated) && len(stated[i]) == 1 {
			a.Spec = r.spec(stated[i][0], len(a.Shape))
		}
		if d, _ := r.cost.Divide(); d != nil {
			if t, _ := op.GlobalType(d.Fn.Op, "res_attrs", i); t != nil {
				a.Spec = r.spec(t.At.Shard, len(a.Shape))
			}
		}
		if i < len(state) && state[i] >= 0 && state[i] < len(r.p.Arguments) {
			from := r.p.Arguments[state[i]]
			if a.Name != "" && from.Path == from.Name { // a name of PyTorch may be none in the dialect: 0.weight
				from.Path = a.Name
				r.p.Arguments[state[i]].Path = a.Name
			}
			a.Next, a.Kind = state[i], from.Kind
			a.Path = from.Path
			if a.Name == "" {
				a.Name = from.Name
			}
		}
		r.p.Results = append(r.p.Results, a)
	}
}

// marks are the values whose sharding the text states in its bodies, of the step and of the functions that it calls, and what it
// says is computed again.
func (r *reader) marks() {
	seen := map[*ir.Func]bool{}
	var visit func(f *ir.Func)
	visit = func(f *ir.Func) {
		if f == nil || f.Body == nil || seen[f] {
			return
		}
		seen[f] = true
		ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
			if again := recomputed(o); again == plan.Full || again != plan.None && r.p.Recompute == plan.None {
				r.p.Recompute = again
			}
			for _, v := range o.Results {
				s := op.StatedSharding(v)
				if s == nil {
					continue
				}
				a := Array{}
				r.shape(&a, v.Tensor())
				r.p.Activations = append(r.p.Activations, Activation{
					Name: strings.TrimPrefix(v.Name, "%"), Function: f.Name, Line: r.line(o), Where: whereOf(o),
					Elem: a.Elem, Shape: a.Shape, Spec: r.spec(s, len(a.Shape)),
				})
			}
			if o.Name == op.Call || o.Name == op.Grad {
				visit(r.Module.Func(o.Str("callee")))
			}
			return true
		})
	}
	visit(r.Func)
	r.points()
	if r.Plan != nil {
		r.p.Recompute = r.Plan.Recompute
	}
}

// recomputed is what the text says is computed again of o: of a call all, of a loop over layers all, or all but contractions.
func recomputed(o *ir.Op) string {
	marked := o.Attr(op.RecomputeAttr) != nil
	switch {
	case marked && o.Name == op.Call, o.Attr(op.StagesAttr) != nil && op.Str(o, "save") == "carries":
		return plan.Full
	case marked, o.Attr(op.StagesAttr) != nil:
		return plan.Selective
	}
	return plan.None
}

// points finds the marked values among the operations of the program that was traced.
func (r *reader) points() {
	count := map[string]int{}
	of := func(w Where, shape []int64) string {
		return fmt.Sprint(w.File, ":", w.Line, w.Back, path.Base(w.Scope), shape)
	}
	ir.Walk(r.whole.Body.Ops, func(o *ir.Op) bool {
		if len(o.Results) != 1 || o.Results[0].Tensor() == nil || o.Loc == nil {
			return true
		}
		w, a := whereOf(o), Array{}
		if r.shape(&a, o.Results[0].Tensor()); w.File == "" {
			return true
		}
		k := of(w, a.Shape)
		if s := op.StatedSharding(o.Results[0]); s != nil {
			r.p.Points = append(r.p.Points, Point{Where: w, Shape: a.Shape, Nth: count[k], Spec: r.spec(s, len(a.Shape))})
		}
		count[k]++
		return true
	})
	for i, p := range r.p.Points {
		r.p.Points[i].Of = count[of(p.Where, p.Shape)]
	}
}

// sequenceParallel reports whether a tensor axis divides values between contractions along their second dimension, behind that with the
// samples.
func (r *reader) sequenceParallel() bool {
	if r.Plan != nil {
		return r.Plan.SequenceParallel
	}
	return slices.ContainsFunc(r.p.Activations, func(a Activation) bool {
		return len(a.Spec) == 3 && slices.ContainsFunc(a.Spec[1], func(name string) bool {
			x := r.p.Axis(name)
			return x != nil && x.Role == Tensor
		})
	})
}

func (r *reader) line(o *ir.Op) int {
	line, _ := r.Program.Src.Human(o.Span.Start)
	return line
}

// whereOf is the place that o was traced from.
func whereOf(o *ir.Op) (w Where) {
	for _, part := range loc.Parts(o.Loc) {
		t := loc.TraceOf(part.Loc)
		w.Scope, w.Back = strings.Join(t.Scopes, "/"), t.Backward()
		if len(t.Frames) > 0 {
			w.File, w.Line = t.Frames[0].File, t.Frames[0].Line
		}
		if part.Costs {
			return w
		}
	}
	return w
}

// axes are those of the mesh, with what each divides.
func (r *reader) axes() {
	if r.on == nil {
		return
	}
	r.p.Devices = r.on.Devices()
	for _, a := range r.on.Axes {
		if a.Size == 1 {
			r.p.Axes = append(r.p.Axes, Axis{a.Name, 1, r.role(a.Name)})
		}
		for i, atom := range r.grid.Atoms {
			if atom.Name == a.Name {
				r.p.Axes = append(r.p.Axes, Axis{r.names[i], r.grid.Sizes[i], r.role(r.names[i])})
			}
		}
	}
}

// role is what an axis divides: by its name where the planner gives that name to one, else by what lies along it.
func (r *reader) role(name string) Role {
	if name == r.p.Pipeline {
		return Pipe
	}
	for _, known := range []Role{Data, Tensor, Sequence, Expert, Pipe, Replica} {
		if strings.TrimRight(name, "2") == string(known) {
			return known
		}
	}
	divides := func(k plan.Kind, batch bool) bool {
		return slices.ContainsFunc(r.p.Arguments, func(a Array) bool {
			d := a.Spec.Along(name)
			return a.Kind == k && d >= 0 && (d == a.Batch) == batch
		})
	}
	switch {
	case divides(plan.Samples, true):
		return Data
	case divides(plan.Parameter, false):
		return Tensor
	case divides(plan.Samples, false):
		return Sequence
	case divides(plan.State, false):
		return Data
	case slices.ContainsFunc(r.p.Activations, func(a Activation) bool { return a.Spec.Along(name) >= 0 }):
		return Tensor
	}
	return Replica
}

// stages are the parts of the pipeline, and which of them use an argument. Of a loop over layers that is cut into stages, the
// arguments with an element for each layer are used in pieces.
func (r *reader) stages(ctx context.Context) error {
	if r.p.Pipeline == "" || r.on == nil {
		return nil
	}
	pipe := 1
	if a := r.p.Axis(r.p.Pipeline); a != nil {
		pipe = a.Size
	}
	r.p.Schedule = r.Func.Op.Str(op.ScheduleAttr)
	if r.p.Schedule == "" {
		r.p.Schedule = op.Schedule1F1B
	}
	m, whole, layers := r.Module, r.whole, 0
	loop, n, problem := stacks.Stated(m, r.Func)
	if loop != nil && problem == nil {
		trips, _ := op.Trips(loop.Op)
		all, _ := trips.Int()
		r.p.loop, layers = loop.Op, int(all)
		m, whole, problem = r.cost.Cut(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case problem != nil:
		return &plan.Error{Code: plan.CodeStated, At: problem.At, Msg: problem.Msg, Help: problem.Help}
	}
	begins := map[int64]*ir.Op{}
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		for _, o := range f.Body.Ops {
			if n, ok := op.StageOf(o); ok && begins[n] == nil {
				begins[n] = o
			}
		}
	}
	count := 1
	for n := range begins {
		count = max(count, int(n)+1)
	}
	r.p.Chunks = max(count/pipe, 1)
	for k := range count {
		st := Stage{Place: place(k, pipe, r.p.Schedule)}
		if each := op.StageLayers(layers, max(n, 1)); layers > 0 {
			st.Layers = max(0, min(each, layers-k*each))
		}
		o := begins[int64(k)]
		if loop != nil && k > 0 {
			o = loop.Op
		}
		if o != nil {
			st.Line, st.Begins = r.line(o), whereOf(o)
		}
		if r.Plan != nil && k < len(r.Plan.Stages) {
			st.Layers = r.Plan.Stages[k].Layers
		}
		r.p.Stages = append(r.p.Stages, st)
	}
	places, _ := stacks.Places(whole.Op, "arg_attrs", ir.Types(whole.Args))
	for i, v := range whole.Args {
		a := &r.p.Arguments[places[i].Whole]
		a.Stages = slices.Compact(slices.Sorted(slices.Values(append(a.Stages, stagesOf(v)...))))
		a.Stacked = places[i].Piece >= 0
	}
	for i, a := range r.p.Arguments { // an optimizer is where its parameter is
		if len(a.Stages) == 0 && a.Of >= 0 {
			r.p.Arguments[i].Stages = r.p.Arguments[a.Of].Stages
		}
	}
	for i := range r.p.Results {
		if from := r.p.Results[i].Next; from >= 0 {
			r.p.Results[i].Stages, r.p.Results[i].Stacked = r.p.Arguments[from].Stages, r.p.Arguments[from].Stacked
		}
	}
	return nil
}

// place is where stage k of a schedule lies along an axis of p devices.
func place(k, p int, schedule string) int {
	if schedule == op.ScheduleZBV {
		return min(k, 2*p-1-k)
	}
	return k % p
}

// stagesOf are the stages of the ops that use v, of values made of v where an op has no stage.
func stagesOf(v *ir.Value) []int {
	found := map[int]bool{}
	flow(v, func(v *ir.Value) (next []*ir.Value) {
		for _, u := range v.Uses {
			if n, ok := op.StageOf(u.Op); ok {
				found[int(n)] = true
			} else {
				next = append(next, u.Op.Results...)
			}
		}
		return next
	})
	return slices.Sorted(maps.Keys(found))
}

// flow visits v, the values that visit gives for it, those for these and so on, each once.
func flow(v *ir.Value, visit func(v *ir.Value) (next []*ir.Value)) {
	seen := map[*ir.Value]bool{}
	for queue := []*ir.Value{v}; len(queue) > 0; queue = queue[1:] {
		if v := queue[0]; !seen[v] {
			seen[v] = true
			queue = append(queue, visit(v)...)
		}
	}
}

// states finds the parameter of each state: that whose gradient, or whose next value, is made with it, of one shape.
func (r *reader) states() {
	next := map[*ir.Value]int{} // of what the step returns, the parameter whose next value it is
	ret := r.whole.Body.Terminator()
	for i, a := range r.p.Results {
		if a.Next >= 0 && i < len(ret.Operands) && a.Kind == plan.Parameter {
			next[ret.Operands[i]] = a.Next
		}
	}
	for i, a := range r.p.Arguments {
		if a.Kind == plan.State {
			r.p.Arguments[i].Of = r.parameterOf(r.whole.Args[i], next)
		}
	}
}

// parameterOf follows what is made of v, a state, by values of its shape, to the next value of a parameter.
func (r *reader) parameterOf(v *ir.Value, next map[*ir.Value]int) int {
	if v.Tensor() == nil || v.Tensor().Rank() == 0 {
		return -1
	}
	shape, of := fmt.Sprint(v.Tensor().Shape), -1
	flow(v, func(v *ir.Value) (made []*ir.Value) {
		if of >= 0 || v.Tensor() == nil || fmt.Sprint(v.Tensor().Shape) != shape {
			return nil
		}
		if at, ok := next[v]; ok {
			of = at
			return nil
		}
		for _, u := range v.Uses {
			made = append(made, u.Op.Results...)
		}
		return made
	})
	return of
}

// summary is the plan in a line, from what the text states.
func (r *reader) summary() string {
	var parts []string
	var sizes []string
	for _, a := range r.p.Axes {
		sizes = append(sizes, fmt.Sprintf("%s %d", a.Name, a.Size))
	}
	if len(sizes) > 0 {
		parts = append(parts, strings.Join(sizes, " × "))
	}
	if n := len(r.p.Stages); n > 0 {
		parts = append(parts, fmt.Sprintf("%s, schedule %s", diag.Count(n, "stage"), r.p.Schedule))
	}
	if r.p.Microbatches > 1 {
		parts = append(parts, fmt.Sprintf("%d micro-batches", r.p.Microbatches))
	}
	if r.p.Recompute != plan.None {
		parts = append(parts, r.p.Recompute+" recomputation")
	}
	return strings.Join(parts, ", ")
}
