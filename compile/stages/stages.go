// Package stages is the pass that splits a training step by the stages of a pipeline: from a straight-line
// function of whole tensors, whose ops state their stage and micro-batch, it makes a function for each position
// along the pipeline's axis of the mesh. Its ops stand in the order of the schedule, and what crosses from
// device to device is sent behind the task that makes it and received before the first one that needs it.
//
// A task is the ops of a kind of one stage and micro-batch (pipelining.Task). Backward ops are those that
// op.BackwardAttr marks, and those computed from them; of these the schedules that split weight gradients off
// take as Weight what no other stage waits for. Ops of no micro-batch run before the first task where one needs
// them, else after the last, and so do sums of gradients that a later stage takes from an earlier one,
// as those of tied weights. What is cheap and needs arguments and constants alone is computed on each
// device that uses it.
package stages

import (
	"errors"
	"slices"

	"dmir/analysis/pipelining"
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Codes are the reasons why a step is not split by stages.
var Codes = diag.Register([]diag.Code{
	{Code: "DM836", Name: "against-the-stages", Doc: "The stages of a pipeline run one after the other: a forward pass needs no values of later stages, and what a device needs is sent before it waits for it in the order of the schedule. Ops inside control flow belong to the stage of the op around them.", Help: "give the op the stage of what it needs, or a later one"},
	{Code: "DM835", Name: "no-pipeline", Doc: "`dm.pipeline` of a step names an axis of the mesh along which its stages lie, which divides no tensor, and `dm.schedule` their schedule. The stages are numbered from 0, each has ops, and there are as many as the schedule puts on the devices of the axis: one on each, two for zb-v, any number for interleaved.", Help: "change the stages of the ops (`dm.stage`) or the size of the axis"},
})

// Pass splits a function with op.PipelineAttr that several devices run.
func Pass() pass.Pass {
	return pass.Pass{Name: "pipeline", Summary: "a function for the devices of each stage, in the order of the schedule", Run: run}
}

func run(u *pass.Unit) error {
	if u.Options.Devices == 0 || u.Func.Op.Attr(op.PipelineAttr) == nil || u.Func.Body == nil || op.PerDevice(u.Func.Op) {
		return nil
	}
	s := &splitter{unit: u, fn: u.Func, body: u.Func.Body}
	for _, step := range []func() error{s.mesh, s.label, s.shape, s.pieces, s.kinds} {
		if err := step(); err != nil {
			return err
		}
	}
	s.place()
	if err := s.owned(); err != nil {
		return err
	}
	s.crossings()
	if err := s.acyclic(); err != nil {
		return err
	}
	parts, err := s.build()
	if err != nil {
		return err
	}
	u.Module.RemoveFunc(u.Func.Name)
	u.Func = s.stacked.join(u.Func, parts)
	for _, p := range parts {
		for n := 2; !u.Module.AddFunc(p.Func); n++ {
			p.Func.Name += "_"
			p.Func.Op.SetAttr("sym_name", types.Str(p.Func.Name))
		}
		u.Module.Ops = append(u.Module.Ops, p.Func.Op)
	}
	u.Parts = parts
	return nil
}

// splitter splits one function.
type splitter struct {
	unit   *pass.Unit
	fn     *ir.Func
	body   *ir.Block
	on     *mesh.Mesh
	axis   types.Axis
	values *shard.Values // nil: the text divides nothing

	stacked        stacked
	devices        int
	micro          int
	stages         int
	schedule       pipelining.Schedule
	sizes          pipelining.Shape
	order          [][]pipelining.Task
	before, behind int // positions before and behind the tasks of a device

	ops     []*node // without the return
	of      map[*ir.Op]*node
	users   []map[int]bool // by argument: the devices that use it
	returns [][]int        // by result: the devices that return it
	cross   []*crossing
}

// node is what is known of an op.
type node struct {
	op       *ir.Op
	index    int
	stage    int  // -1: not known yet
	micro    int  // -1: of no micro-batch
	free     bool // computed on each device that uses it
	constant bool // needs no arguments
	back     bool // of a derivative, or computed from one
	late     bool // needs the backward pass of an earlier stage
	kind     pipelining.Kind
	uses     []*node // the ops that it reads results of
	// places are where the op runs: by device the position in its order, or -1.
	places []int
}

// device is where the op runs, of one that is not free.
func (s *splitter) device(n *node) int { return pipelining.Device(s.schedule, s.sizes, n.stage) }

// mesh finds the mesh, its axis and the layouts of the values.
func (s *splitter) mesh() error {
	f := s.fn
	op.ShardingsInTypes(f)
	axis := types.TextOf(f.Op.Attr(op.PipelineAttr))
	s.axis = types.Axis{Name: axis}
	values, problem := shard.Propagate(s.unit.Module, f)
	if problem != nil {
		at := problem.At
		if at == nil {
			at = f.Op
		}
		e := pass.Errorf(at, "DM831", "%s", problem.Msg)
		if problem.Help != "" {
			e.Help = problem.Help
		}
		return e
	}
	s.values = values
	if s.on, problem = shard.MeshOf(s.unit.Module, f); problem != nil || s.on == nil || s.on.Size(s.axis) == 0 {
		return pass.Errorf(f.Op, "DM835", "no mesh of @%s has the axis %q, along which its stages lie", f.Name, axis)
	}
	s.devices = s.on.Size(s.axis)
	return s.undivided()
}

// undivided checks that no value is divided along the pipeline.
func (s *splitter) undivided() error {
	if s.values == nil {
		return nil
	}
	along := func(v *ir.Value) bool {
		found := false
		if sh, _ := s.values.Sharding(v); sh != nil {
			sh.Axes(func(a types.Axis) { found = found || a.Name == s.axis.Name })
		}
		return found
	}
	if i := slices.IndexFunc(s.fn.Args, along); i >= 0 {
		return pass.Errorf(s.fn.Op, "DM835", "%s is divided along %s, and along this axis lie the stages of the pipeline", s.fn.Args[i].Name, s.axis.Name)
	}
	for _, o := range s.body.Ops {
		for _, r := range o.Results {
			if along(r) {
				return pass.Errorf(o, "DM835", "%s is divided along %s, and along this axis lie the stages of the pipeline", r.Name, s.axis.Name)
			}
		}
	}
	return nil
}

// shape finds the order of the tasks.
func (s *splitter) shape() error {
	f := s.fn
	s.schedule = pipelining.Schedule(types.TextOf(f.Op.Attr(op.ScheduleAttr)))
	if s.schedule == "" {
		s.schedule = pipelining.OneFOneB
	}
	if s.stages%s.devices != 0 {
		return pass.Errorf(f.Op, "DM835", "@%s has %s, which the %s along %s do not divide evenly", f.Name,
			diag.Count(s.stages, "stage"), diag.Count(s.devices, "device"), s.axis.Name)
	}
	s.sizes = pipelining.Shape{Devices: s.devices, Chunks: s.stages / s.devices, Micro: s.micro}
	var err error
	s.order, err = pipelining.Order(s.schedule, s.sizes)
	if err == nil {
		return nil
	}
	e := pass.Errorf(f.Op, "DM835", "%s", err)
	var known *pipelining.Error
	if errors.As(err, &known) && known.Help != "" {
		e.Help = known.Help
	}
	return e
}
