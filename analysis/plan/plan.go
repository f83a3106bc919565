// Package plan finds how to divide a training step over the devices of a cluster: data, tensor,
// sequence, expert, optimizer-state and pipeline parallelism together, for the least predicted time of a step
// under the memory of a device. It says how far its answer may be from the best one.
//
// Read search.go first: Search goes from the program to a Result. A graph (graph.go) is the
// step as nodes and values, with one of equal layers in a row for all of them (repeat.go,
// straight.go); of one with sparse tensors there are several, which divide others of them by rows
// (form.go). On the grid of a setting, a mesh and what the pipeline does on it (settings.go), a
// model (model.go) has a variable for each node, whose choices are the strategies of its op (strategy.go), and
// links between them, priced by layouts (layout.go, between.go, convert.go), and bounded by what devices hold (held.go); package solve finds the
// cheapest choices and a bound. What they make of a step, its stages, time and memory by the
// model, is in evaluate.go and schedule.go; look (search.go) tries more and more recomputation. Which settings are looked at, and
// which are given up by what they take at least (apart.go; of pipelines pace.go and paths.go), explore.go decides. What
// comes of a setting is a candidate; price.go ranks the first candidates by their texts as compiled, and
// write.go states a plan in the program's text.
package plan

import (
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/pipelining"
	"dmir/base/milp"
	"dmir/base/work"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Options are what to plan for.
type Options struct {
	Machine *machine.Machine // a cluster
	Devices int
	Memory  int64            // bytes of a device; 0: the machine's
	Bind    map[string]int64 // sizes of symbols
	Batch   []string         // the arguments with the samples of a step; empty: they are found
	Top     int              // how many plans to give; 0: ten
	Fix     Setting          // what is given and not searched
	Limit   time.Duration    // of the search: then the best plan until then is the answer, with a bound of all; 0: none
	MILP    milp.Solver      // asked where the planner's own search takes long; nil: none
	// Price gives the figures of a plan's text; nil: plans have those of the model by which they are searched, and Unpriced says why.
	Price    Price
	Unpriced string
	// Progress is called while the search runs, from one goroutine at a time.
	Progress func(done, total int)
	// Work counts the ops that are read and the strategies that are priced; nil unless a test counts.
	Work *work.Counts
}

// A Setting is the part of a plan that decides its mesh and schedule. What is 0 or empty is searched.
type Setting struct {
	// Devices along each axis. Context and Expert are the same third one; the name says what it divides, see graph.allowed. Where
	// one of them is 1, none is searched.
	Data, Context, Expert, Tensor, Pipe int
	Chunks                              int // stages on each device of the pipeline
	Microbatches                        int
	Schedule                            string
	Recompute                           string // "none", "selective" or "full"
	States                              string // "whole": optimizer states lie as their parameters; "split": they are divided over data; "parameters": parameters too, which each pass of a micro-batch gathers
}

// The values of Setting.States.
const (
	StatesWhole = "whole"
	StatesSplit = "split"
	// StatesParameters is ZeRO-3.
	StatesParameters = "parameters"
)

// A Result is the plans found for a function, the best one first.
type Result struct {
	Function string  `json:"function"`
	Target   string  `json:"target"`
	Devices  int     `json:"devices"`
	Limit    int64   `json:"memory_limit_bytes"` // of a device
	Model    Model   `json:"model"`
	Plans    []*Plan `json:"plans"`
	Searched int     `json:"searched"` // settings that were looked at
	Bound    float64 `json:"bound_s"`  // no plan of the space takes less by the search's model
	Gap      float64 `json:"gap"`      // (best − bound) / best, by the model
	Floor    float64 `json:"floor_s"`  // the products of the step at the peak rate of all devices: no text takes less
	// Modelled is why the figures of the plans are those of the model and not of their texts as compiled; "" where they are these.
	Modelled string `json:"modelled,omitempty"`
	src      *source.File
	Elapsed  float64 `json:"elapsed_s"` // of the search
}

// A Model is what the step computes.
type Model struct {
	Parameters int64   `json:"parameters"`
	FLOP       float64 `json:"flop"` // of a step, without recomputation
	Samples    int64   `json:"samples"`
	Tokens     int64   `json:"tokens"`
	Layers     int     `json:"layers"` // equal ones, in a row
	// Batch are the arguments with the samples of a step, as "%x" or "%x (dimension 1)"; Whole those that may have been meant to have
	// some: nothing says that they are no data.
	Batch []string `json:"batch,omitempty"`
	Whole []string `json:"whole,omitempty"`
	// Backward is how many layers a loop has through which the step goes back itself, as one of JAX does: it has no stages. 0: none.
	Backward int `json:"backward,omitempty"`
}

// An Axis is an axis of the mesh of a plan.
type Axis struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// A Plan is one way to divide the step.
type Plan struct {
	Axes         []Axis   `json:"axes"`  // the outermost first
	Names        []string `json:"names"` // "data 8 × tensor 4", "optimizer states split over data (ZeRO-1)"
	Stages       []Stage  `json:"stages"`
	Chunks       int      `json:"chunks"`
	Microbatches int      `json:"microbatches"`
	Schedule     string   `json:"schedule"`  // "" without a pipeline
	Recompute    string   `json:"recompute"` // "none", "selective", "full"
	// SequenceParallel: tensor parallelism divides normalizations along the sequence.
	SequenceParallel bool                 `json:"sequence_parallel"`
	Time             float64              `json:"time_s"`
	Modelled         float64              `json:"modelled_s"` // Time by the model of the search
	Compute          float64              `json:"compute_s"`  // of the device that computes longest
	Exposed          float64              `json:"exposed_s"`  // communication that nothing hides
	Bubble           float64              `json:"bubble"`     // fraction of the step in which the pipeline waits
	Tokens           float64              `json:"tokens_per_s"`
	MFU              float64              `json:"model_flop_utilization"`
	Memory           Memory               `json:"memory"`     // of the device that holds most
	Sent             map[string]int64     `json:"sent_bytes"` // by a device in a step, by axes
	Objective        float64              `json:"objective_s"`
	Bound            float64              `json:"bound_s"` // of all plans with these axes, micro-batches and schedule
	Values           []Value              `json:"values"`
	Timeline         *pipelining.Timeline `json:"timeline,omitempty"` // of a pipeline
	Used             []*types.Sharding    `json:"-"`                  // how ops see each tensor of the arguments: as it lies, or gathered once for each step
	Regathered       []bool               `json:"-"`                  // of each of them: it is gathered again for the backward pass
	edits            func() []diag.Edit
	Why              string `json:"why,omitempty"` // against the best plan: what it loses, and where
}

// A Stage is what the devices at one place of the pipeline run.
type Stage struct {
	Line     int     `json:"line"` // of the file at which it begins
	Layers   int     `json:"layers"`
	Forward  float64 `json:"forward_s"` // for one micro-batch
	Backward float64 `json:"backward_s"`
	Weight   float64 `json:"weight_s"`   // the part of Backward that is the gradient of weights
	Transfer float64 `json:"transfer_s"` // of what it sends on
	Once     float64 `json:"once_s"`     // for each step: gradients reduced, parameters updated
	Memory   int64   `json:"memory_bytes"`
}

// Memory is what a device holds at the peak of a step.
type Memory struct {
	Parameters  int64 `json:"parameters_bytes"`
	Gradients   int64 `json:"gradients_bytes"`
	States      int64 `json:"optimizer_states_bytes"`
	Activations int64 `json:"activations_bytes"`
	Working     int64 `json:"working_bytes"`
	Total       int64 `json:"total_bytes"`
}

// A Value is how a plan divides a value of the text.
type Value struct {
	Name     string      `json:"name"` // "%w1"
	Line     int         `json:"line"`
	Sharding string      `json:"sharding"` // "{}, {tensor}"
	Span     source.Span `json:"-"`
}

// An Error is why there is no plan.
type Error struct {
	Code      string // one of Codes
	At        *ir.Op // nil: the function
	Msg, Help string
}

func (e *Error) Error() string { return e.Msg }
