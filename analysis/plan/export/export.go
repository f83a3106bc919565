// Package export writes a plan as files that other tools take: what their own code or launcher needs to divide a
// training step as the plan does. Read describes a plan that a program states as plain data, and a Format writes
// that description for one tool. What a tool cannot express is said in a comment of its file.
package export

import (
	"fmt"
	"slices"

	"dmir/analysis/plan"
	"dmir/dialect/ir"
	"dmir/syntax/diag"
)

// A Portable is a plan without the program that it was made for: names, sizes and numbers.
type Portable struct {
	Program  string   `json:"program"`          // the file that was planned, as the person named it
	Planned  string   `json:"planned"`          // the file of the program with the plan, which dmir runs
	Writes   []string `json:"writes,omitempty"` // the commands that write it; none: it is there
	Function string   `json:"function"`         // the step, without "@"
	Summary  string   `json:"summary"`          // the plan in a line

	Target  Target `json:"target"`
	Devices int    `json:"devices"`
	Axes    []Axis `json:"axes"` // of the mesh, the outermost first

	Arguments   []Array      `json:"arguments"`        // of the step, in order
	Results     []Array      `json:"results"`          // of the step, in order
	Activations []Activation `json:"activations"`      // whose sharding the text states, in the order of the text
	Points      []Point      `json:"points,omitempty"` // the same in the program that was traced, with calls written out; none where that is not known
	Samples     int64        `json:"samples"`          // of a step; 0 where that is not known

	Microbatches int     `json:"microbatches"` // 1: the batch is not cut
	Pipeline     string  `json:"pipeline"`
	Schedule     string  `json:"schedule"` // "" without a pipeline
	Chunks       int     `json:"chunks"`   // stages at each place of the pipeline
	Stages       []Stage `json:"stages"`
	Recompute    string  `json:"recompute"` // plan.None, plan.Selective or plan.Full
	// SequenceParallel: what lies between the contractions of tensor parallelism is divided along the sequence.
	SequenceParallel bool `json:"sequence_parallel"`

	Predicted Predicted `json:"predicted"`

	search func(plan.Setting) (*plan.Plan, error) // nil where the plan was not searched
	loop   *ir.Op                                 // over layers, that the text cuts into stages; nil: none
}

// near is the best plan under a setting, nil where none is searched.
func (p *Portable) near(s plan.Setting) (*plan.Plan, error) {
	if p.search == nil {
		return nil, nil
	}
	return p.search(s)
}

// unequal is the error of a tool whose micro-batches have equally many samples of each of so many devices, where those of p have not;
// else nil.
func (p *Portable) unequal(tool string, devices int) error {
	if all := int64(devices * p.Microbatches); p.Microbatches < 2 || p.Samples == 0 || p.Samples%all == 0 {
		return nil
	}
	return &plan.Error{
		Code: plan.CodeExport, Msg: fmt.Sprintf("the micro-batches of %s have equally many samples, and %d are not divided by %d micro-batches on %s", tool, p.Samples, p.Microbatches, diag.Count(devices, "device")),
		Help: "plan with --microbatches N of a number that divides them",
	}
}

// HasState reports whether the step returns next values of its arguments, so that it can be repeated.
func (p *Portable) HasState() bool {
	return slices.ContainsFunc(p.Results, func(a Array) bool { return a.Next >= 0 })
}

// A Target is the cluster that a plan is for.
type Target struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	PerNode int    `json:"per_node"` // devices that the links inside a machine join
	Memory  int64  `json:"memory"`   // bytes of a device
	CPU     bool   `json:"cpu"`      // devices are processors
}

// A Role is what an axis divides.
type Role string

// The roles of axes.
const (
	Data     Role = "data"     // samples
	Tensor   Role = "tensor"   // parameters, and what is computed with a part of one
	Sequence Role = "sequence" // positions of samples
	Expert   Role = "expert"   // the experts of a mixture
	Pipe     Role = "pipe"     // layers, in stages
	Replica  Role = "replica"  // nothing
)

// An Axis is an axis of the mesh.
type Axis struct {
	Name string `json:"name"`
	Size int    `json:"size"`
	Role Role   `json:"role"`
}

// An Array is an argument or a result of a step.
type Array struct {
	Name  string    `json:"name"` // in the program, without "%"; "" of a result without one
	Path  string    `json:"path"` // what the person calls it: a path in a tree, params['w'], or a name of PyTorch, h.0.weight; Name where that is not known
	Kind  plan.Kind `json:"kind"`
	Batch int       `json:"batch"` // the dimension with samples; negative: none
	Next  int       `json:"next"`  // of a result: the argument whose next value it is; else negative
	Of    int       `json:"of"`    // of a state: the parameter that it belongs to; else negative
	Elem  string    `json:"elem"`  // "f32"
	Shape []int64   `json:"shape"`
	Spec  Spec      `json:"spec"`
	Used  Spec      `json:"used,omitempty"` // of an argument: how ops see it, where that is gathered once for each step
	// Regathered: what devices gather of an argument is freed behind the forward pass and gathered again for the backward pass.
	Regathered bool  `json:"regathered,omitempty"`
	Stages     []int `json:"stages,omitempty"` // of a pipeline, those that use it, in order
	// Stacked: it has an element for each layer, or for several, along its first dimension, of which each stage has its part.
	Stacked bool `json:"stacked,omitempty"`
}

// Bytes are those that a device holds of a, whose axes have the sizes of p.
func (p *Portable) Bytes(a Array, element int64) int64 {
	n := element
	for d, size := range a.Shape {
		parts := int64(1)
		if d < len(a.Spec) {
			parts = int64(p.Parts(a.Spec[d]))
		}
		n *= (size + parts - 1) / parts
	}
	return n
}

// A Spec is, for each dimension of an array, the axes that divide it, the outermost first.
type Spec [][]string

// Whole reports whether every device has all of the array.
func (s Spec) Whole() bool {
	return !slices.ContainsFunc(s, func(axes []string) bool { return len(axes) > 0 })
}

// Along is the dimension that an axis divides, negative if it divides none.
func (s Spec) Along(axis string) int {
	return slices.IndexFunc(s, func(axes []string) bool { return slices.Contains(axes, axis) })
}

// Axis is the axis called name, nil if there is none.
func (p *Portable) Axis(name string) *Axis {
	for i := range p.Axes {
		if p.Axes[i].Name == name {
			return &p.Axes[i]
		}
	}
	return nil
}

// Size is the number of devices along all axes with a role, 1 where there are none.
func (p *Portable) Size(r Role) int {
	n := 1
	for _, a := range p.Axes {
		if a.Role == r {
			n *= a.Size
		}
	}
	return n
}

// Parts is into how many parts axes divide a dimension.
func (p *Portable) Parts(axes []string) int {
	n := 1
	for _, name := range axes {
		if a := p.Axis(name); a != nil {
			n *= a.Size
		}
	}
	return n
}

// StatesSplit reports whether most bytes of the optimizer's states lie over axes of samples that their parameters are whole
// along (ZeRO-1); ParametersSplit, whether most of the parameters do (ZeRO-3, FSDP).
func (p *Portable) StatesSplit() bool     { return p.split(plan.State) }
func (p *Portable) ParametersSplit() bool { return p.split(plan.Parameter) }

// ParametersRegathered reports whether most bytes of the parameters are gathered again for the backward pass (ZeRO-3).
func (p *Portable) ParametersRegathered() bool {
	return p.most(plan.Parameter, func(a *Array) bool { return a.Regathered })
}

func (p *Portable) split(k plan.Kind) bool {
	return p.most(k, func(a *Array) bool {
		return slices.ContainsFunc(p.Axes, func(x Axis) bool { return x.Role == Data && x.Size > 1 && a.Spec.Along(x.Name) >= 0 })
	})
}

// most reports whether most elements of the arguments of a kind are in those of which is holds.
func (p *Portable) most(k plan.Kind, is func(a *Array) bool) bool {
	var all, some int64
	for i := range p.Arguments {
		a := &p.Arguments[i]
		if a.Kind != k {
			continue
		}
		n := int64(1)
		for _, size := range a.Shape {
			n *= size
		}
		all += n
		if is(a) {
			some += n
		}
	}
	return some*2 > all
}

// An Activation is a value between arguments and results whose sharding the text states.
type Activation struct {
	Name     string  `json:"name"`     // in the program, without "%"
	Function string  `json:"function"` // that it stands in, without "@"
	Line     int     `json:"line"`     // of the program
	Where    Where   `json:"where"`
	Elem     string  `json:"elem"`
	Shape    []int64 `json:"shape"`
	Spec     Spec    `json:"spec"`
}

// Where is a place in the program that was traced.
type Where struct {
	File  string `json:"file"` // "" where that is not known
	Line  int    `json:"line"`
	Scope string `json:"scope"` // the path of modules or scopes around it: "h.0/attn"
	Back  bool   `json:"back"`  // it is of the backward pass
}

// A Point is an operation of the person's program whose value the plan divides: which of those that look alike.
type Point struct {
	Where Where   `json:"where"` // Scope ends with the name of the operation
	Shape []int64 `json:"shape"`
	Nth   int     `json:"nth"` // from 0, in the order in which the program computes
	Of    int     `json:"of"`  // how many there are of this operation, line, pass and shape
	Spec  Spec    `json:"spec"`
}

// A Stage is a part of a pipeline.
type Stage struct {
	Place  int   `json:"place"`  // along the axis of the pipeline
	Layers int   `json:"layers"` // equal layers that it has; 0 where that is not known
	Line   int   `json:"line"`   // of the program at which it begins
	Begins Where `json:"begins"`
}

// Predicted is what the plan's step takes by the model.
type Predicted struct {
	Seconds     float64      `json:"seconds"` // 0 where that is not known
	Memory      int64        `json:"memory"`  // bytes of the device that holds most; 0 where that is not known
	Sent        int64        `json:"sent"`    // bytes that a device sends in a step; negative where that is not known
	Collectives []Collective `json:"collectives"`
}

// A Collective is all collectives of one kind along the same axes in a step.
type Collective struct {
	Kind  string   `json:"kind"`  // as XLA and NCCL call it: "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "send"
	Axes  []string `json:"axes"`  // along which the devices of a group lie
	Count int64    `json:"count"` // how often it runs
	Bytes int64    `json:"bytes"` // that a device sends
}

// Named are the arrays of a kind.
func Named(list []Array, k plan.Kind) []Array {
	var out []Array
	for _, a := range list {
		if a.Kind == k {
			out = append(out, a)
		}
	}
	return out
}
