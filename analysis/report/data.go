package report

//go:generate go test -run TestTypeScript -update .

// The kinds of panels.
const (
	KindGraph    = "graph"
	KindRoofline = "roofline"
	KindMemory   = "memory"
	KindMesh     = "mesh"
	KindTimeline = "timeline"
	KindPattern  = "pattern"
	KindDiff     = "diff"
	KindHistory  = "history"
)

// Kinds are the kinds that need one program only. Those of deviceKinds need a function that
// the devices of a mesh run together, KindPattern one with sparse tensors.
var (
	Kinds       = []string{KindGraph, KindRoofline, KindMemory, KindMesh, KindTimeline, KindPattern}
	deviceKinds = []string{KindMesh, KindTimeline}
)

// Data is what one panel shows of one function. Of the fields from Graph to Plans only the
// one that Kind names is set.
type Data struct {
	Kind      string     `json:"kind"`
	Title     string     `json:"title"`     // "@ffn on H200 SXM"
	File      string     `json:"file"`      // as it was given
	Function  string     `json:"function"`  // without "@"; of a diff "" where it shows all
	Functions []Function `json:"functions"` // that the panel could show instead, in the order of the text
	Target    Target     `json:"target"`
	Totals    Totals     `json:"totals"`            // of the function; of a diff those of the new version
	Devices   *Devices   `json:"devices,omitempty"` // of a function that is divided, or that should be
	Groups    *Groups    `json:"groups,omitempty"`  // of a program that was traced from Python
	Unbound   []string   `json:"unbound,omitempty"` // symbols that the numbers depend on
	Stale     string     `json:"stale,omitempty"`   // "of the text before the error in line 3": what keeps the data from being those of now
	Graph     *Graph     `json:"graph,omitempty"`
	Roofline  *Roofline  `json:"roofline,omitempty"`
	Memory    *Memory    `json:"memory,omitempty"`
	Mesh      *Mesh      `json:"mesh,omitempty"`
	Timeline  *Timeline  `json:"timeline,omitempty"`
	Patterns  []Pattern  `json:"patterns,omitempty"`
	Diff      *Diff      `json:"diff,omitempty"`
	History   *History   `json:"history,omitempty"`
	Plans     *Plans     `json:"plans,omitempty"`

	// Undivided is the same panel of the undivided function, where the figures are those of
	// each device and the panel was asked for both.
	Undivided *Data `json:"undivided,omitempty"`
}

// Devices is what of the devices that run a function the figures are of.
type Devices struct {
	Count  int    `json:"count"`  // 1 of a batch that is cut into micro-batches
	Each   bool   `json:"each"`   // the figures are of each device, otherwise of the undivided function
	Label  string `json:"label"`  // "each of 8 devices", "undivided"
	Reason string `json:"reason"` // why it is undivided, where the text divides it
}

// Place is where something stands in the text: a range within one line, its
// numbers from 1 as people count characters, its end exclusive. All are 0 for
// what has no place.
type Place struct {
	Line      int `json:"line"`
	Column    int `json:"column"`
	EndColumn int `json:"end_column"`

	// Origin is the line of the Python program that an op was traced from, "model.py:14 in loss"; "" where it is not known.
	Origin string `json:"origin,omitempty"`
	// InLines and InModules are the groups that an op has a part in, by their numbers in Groups.
	InLines   []int `json:"in_lines,omitempty"`
	InModules []int `json:"in_modules,omitempty"`
}

// Groups are the lines and the modules of the Python program that a function was traced from, the longest first, with what is
// due to each; both add up to the function. An op of several lines is shared among them.
type Groups struct {
	Lines   []Group `json:"lines"`
	Modules []Group `json:"modules"` // none where nothing has a module
}

// Group is a line or a module.
type Group struct {
	Name       string  `json:"name"`   // "model.py:14", "h.0.attn"; "" for what has none
	Detail     string  `json:"detail"` // the text of the line, the class of the module
	TimeNs     int64   `json:"time_ns"`
	TimeLabel  string  `json:"time_label"`
	Share      float64 `json:"time_share"` // of the function's
	FLOPLabel  string  `json:"flop_label"`
	Moved      int64   `json:"moved_bytes"`
	MovedLabel string  `json:"moved_label"`
	Held       int64   `json:"held_bytes"` // by its values at the peak of memory
	HeldLabel  string  `json:"held_label"`
	Shared     bool    `json:"shared"` // it shares ops or kernels with others
}

// Function is a function that the panel could show.
type Function struct {
	Name string `json:"name"`
	Place
	MovedLabel string `json:"moved_label"`
	TimeLabel  string `json:"time_label"`
}

// Target is the machine that times are predicted for.
type Target struct {
	Name           string  `json:"name"`  // "h200"
	Title          string  `json:"title"` // "H200 SXM"
	Bandwidth      float64 `json:"bandwidth_bytes_per_s"`
	BandwidthLabel string  `json:"bandwidth_label"`
	Reach          float64 `json:"reach_bytes_per_s"` // that kernels reach of it, by which times are predicted
	ReachLabel     string  `json:"reach_label"`       // "4.30 of 4.80 TB/s"
	Memory         int64   `json:"memory_bytes"`      // 0 where not known
	MemoryLabel    string  `json:"memory_label"`
	Peaks          []Peak  `json:"peaks"` // fastest first
}

// Peak is the highest rate of a unit on an element type.
type Peak struct {
	Unit  string  `json:"unit"` // "tensor core", on processors "contraction", or "vector"
	Elem  string  `json:"elem"` // "f16"
	Rate  float64 `json:"flop_per_s"`
	Label string  `json:"label"` // "989 TFLOP/s"
}

// Cost is what an op, a kernel or a function costs.
type Cost struct {
	FLOP           *int64   `json:"flop"`
	FLOPLabel      string   `json:"flop_label"`
	Read           *int64   `json:"read_bytes"`
	ReadLabel      string   `json:"read_label"`
	Written        *int64   `json:"written_bytes"`
	WrittenLabel   string   `json:"written_label"`
	Moved          *int64   `json:"moved_bytes"`
	MovedLabel     string   `json:"moved_label"`
	TimeNs         *int64   `json:"time_ns"`
	TimeLabel      string   `json:"time_label"`
	Bound          string   `json:"bound"`                   // "compute", "memory", "L2", "latency", "launch", "tail", "network"; "" where no time is taken or known
	Intensity      *float64 `json:"intensity_flop_per_byte"` // null where nothing moves or it is not known
	IntensityLabel string   `json:"intensity_label"`         // "" where null

	// Why is the terms that the time comes from, one to a line, the largest
	// first, each with the machine's figure: "34.4 GFLOP / 788 TFLOP/s = 43.6 µs",
	// "50.3 MB / 4.80 TB/s = 10.5 µs", "launch 600 ns in a graph"; none where no time is
	// taken or known.
	Why []string `json:"why,omitempty"`
}

// Totals are the sums of a function.
type Totals struct {
	Cost
	Minimum      *int64 `json:"minimum_bytes"`
	MinimumLabel string `json:"minimum_label"`
	Waste        *int64 `json:"waste_bytes"`
	WasteLabel   string `json:"waste_label"`
	Peak         *int64 `json:"peak_bytes"` // of device memory, by liveness
	PeakLabel    string `json:"peak_label"`
	Ops          int    `json:"ops"`         // entries, those inside kernels included
	UnknownOps   int    `json:"unknown_ops"` // of which nothing is counted
}

// Graph is the movement graph of a function. It is nested: an edge joins two
// nodes of the same group, or a group and a node right inside it. What enters a
// group is one edge to the group and, inside it, edges from the group to the
// nodes that use it; what leaves it is an edge from the node to the group and
// edges from the group to its users. So every group can be laid out for itself,
// and be drawn closed by leaving out what is inside it.
type Graph struct {
	Nodes []Node `json:"nodes"` // a group stands before what is in it
	Edges []Edge `json:"edges"`
}

// The kinds of nodes.
const (
	NodeArgument = "argument" // of the function
	NodeResult   = "result"   // of the function
	NodeOp       = "op"
	NodeCall     = "call"   // of another function, whose costs it has
	NodeKernel   = "kernel" // a group: its nodes compute and move nothing
	NodeLoop     = "loop"   // a group: its costs are those of its nodes, Trips times
	NodeBranch   = "branch" // a group: its costs are those of the nodes in the arm that counts
	NodeOpaque   = "opaque" // an unknown op; a group where it has regions
)

// Node is an op that costs something or may, a group of such ops, or an argument
// or a result of the function. The moved bytes of the nodes outside any group
// add up to the function's.
type Node struct {
	ID     int    `json:"id"`     // its index in Nodes
	Parent int    `json:"parent"` // the group it is in, -1 for none
	Kind   string `json:"kind"`
	Op     string `json:"op"`     // "dm.einsum"; the name of a phase, a stack, a layer, a module or a rule; "" for arguments and results
	Result string `json:"result"` // "%h", "%q, %k"; an argument's own name; what is returned
	Detail string `json:"detail"` // what sets it apart: "bln,nu->blu", "@callee", "f16 → f32"; may be ""
	Type   string `json:"type"`   // of its first result, in short: "8×512×1024 f16"
	Class  string `json:"class"`  // "contraction", "normalization", "elementwise", "movement"; "unknown"; "" for arguments and results
	Region string `json:"region"` // of the group it is in: "condition", "body", "then", "else"; "" in a kernel
	Idle   bool   `json:"idle"`   // it is in an arm that does not count
	Rank   int    `json:"rank"`   // among the nodes of its group: edges go from lower to higher rank, those marked Back apart
	Trips  *int64 `json:"trips"`  // of a loop; null where not known or no loop
	Place
	Cost
	TripsLabel string  `json:"trips_label"` // "×100", "×trips"; "" for what is no loop
	Heavy      bool    `json:"heavy"`       // it is on the path of the function that takes longest, or holds a node that is
	Share      float64 `json:"time_share"`  // of the function's time, 0 to 1, of a node outside any group; 0 where not known
}

// Edge is a value on its way.
type Edge struct {
	From       int    `json:"from"`
	To         int    `json:"to"`
	Value      string `json:"value"`           // "%h"
	Outer      string `json:"outer,omitempty"` // over the border of a call: what the value is called outside
	Type       string `json:"type"`            // in short: "8×512×1024 f16"
	Size       *int64 `json:"size_bytes"`
	SizeLabel  string `json:"size_label"`
	Moved      *int64 `json:"moved_bytes"` // what To reads of it from memory; 0 inside a kernel, to a view and to a result
	MovedLabel string `json:"moved_label"`
	Back       bool   `json:"back"` // into the next round of a loop
	Place             // where the value is defined
	Heavy      bool   `json:"heavy"` // between nodes of the path that takes longest
}

// Roofline is the ops of a function under the roofs of the machine, both axes
// logarithmic: intensity in FLOP/B to the right, FLOP/s upwards.
type Roofline struct {
	Roofs []Roof  `json:"roofs"` // of the units and element types that the function uses, the highest first
	Dots  []Dot   `json:"dots"`
	Rest  []Dot   `json:"rest"` // without a place on the axes, with the Reason
	MinX  float64 `json:"min_x"`
	MaxX  float64 `json:"max_x"` // powers of ten that hold all dots and ridges
	MinY  float64 `json:"min_y"`
	MaxY  float64 `json:"max_y"`
}

// Roof is min(Rate, intensity × Bandwidth).
type Roof struct {
	Unit       string  `json:"unit"`
	Elem       string  `json:"elem"`
	Rate       float64 `json:"flop_per_s"`
	Label      string  `json:"label"`               // "989 TFLOP/s"
	Ridge      float64 `json:"ridge_flop_per_byte"` // where the two lines meet
	RidgeLabel string  `json:"ridge_label"`         // "206 FLOP/B"
}

// Dot is an op that takes time; a kernel is one.
type Dot struct {
	Op     string `json:"op"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	Class  string `json:"class"`
	Place
	Cost
	Roof          int      `json:"roof"`                // index in Roofs of the one it is under, -1 for none
	Achieved      *float64 `json:"achieved_flop_per_s"` // predicted: FLOP / time
	AchievedLabel string   `json:"achieved_label"`
	RoofShare     float64  `json:"roof_share"` // achieved of what the roof allows at its intensity, 0 to 1
	RoofLabel     string   `json:"roof_label"` // "62.1 %"
	Share         float64  `json:"time_share"` // of the function's time, with Runs
	ShareLabel    string   `json:"time_share_label"`
	Runs          int64    `json:"runs"`   // how often it runs, more than once in a loop; its costs are those of one run
	Reason        string   `json:"reason"` // of those in Rest: "computes nothing", "moves nothing", "depends on n", "not known"
}

// Memory is a plan of device memory: which buffer lies where, and when. Its
// horizontal axis is the time of the steps (or their number), its vertical one
// the address.
type Memory struct {
	Reason   string   `json:"reason"` // why there is no plan: "depends on n"; "" where there is one
	Buffers  []Buffer `json:"buffers"`
	Steps    []Step   `json:"steps"`
	Duration int64    `json:"duration_ns"` // where the last step ends; 0 where times are not known

	Peak       int64  `json:"peak_bytes"` // of the plan: the highest address in use
	PeakLabel  string `json:"peak_label"`
	Bound      int64  `json:"bound_bytes"` // what any plan needs: the most bytes live at once
	BoundLabel string `json:"bound_label"`
	Over       int64  `json:"over_bytes"` // Peak − Bound
	OverLabel  string `json:"over_label"`
	OverShare  string `json:"over_share_label"` // of Bound: "0.4 %"
	PeakStep   int    `json:"peak_step"`        // the first step at which Bound is live
	PeakNs     int64  `json:"peak_ns"`          // where that step starts
}

// The kinds of buffers.
const (
	BufferArgument = "argument" // there throughout
	BufferResult   = "result"   // there to the end
	BufferValue    = "value"
	BufferCall     = "call" // what a called function needs beyond its arguments and results
)

// Buffer is a stretch of memory and the time for which it is taken.
type Buffer struct {
	ID     int      `json:"id"` // its index in Buffers
	Kind   string   `json:"kind"`
	Name   string   `json:"name"`   // of the value it was taken for: "%h"
	Values []string `json:"values"` // all that lie in it, views and updates in place among them
	Op     string   `json:"op"`     // that took it; "" for an argument
	Class  string   `json:"class"`
	Type   string   `json:"type"`
	Place
	First      int    `json:"first_step"`
	Last       int    `json:"last_step"` // inclusive
	StartNs    int64  `json:"start_ns"`
	EndNs      int64  `json:"end_ns"`
	Offset     int64  `json:"offset_bytes"` // the address, from 0
	OffsetText string `json:"offset_label"`
	Bytes      int64  `json:"bytes"`
	BytesLabel string `json:"bytes_label"`
	AtPeak     bool   `json:"at_peak"` // live at PeakStep
}

// Step is an op as it runs; the ops in a loop and in both arms of a branch are
// steps of their own, those in a kernel are not.
type Step struct {
	Op     string `json:"op"`
	Result string `json:"result"`
	Class  string `json:"class"`
	Place
	StartNs   int64  `json:"start_ns"`
	EndNs     int64  `json:"end_ns"` // of all rounds, in a loop
	TimeLabel string `json:"time_label"`
	Live      int64  `json:"live_bytes"`
	LiveLabel string `json:"live_label"`
}

// Diff is what a new version of a file moves, computes, takes and holds beside
// an old one.
type Diff struct {
	Old       string         `json:"old"` // what the versions are called: a path, "git:HEAD~1", "saved"
	New       string         `json:"new"`
	Same      bool           `json:"same"`      // no function differs
	Functions []FunctionDiff `json:"functions"` // the new version's in its order, then those that are gone
	Breaches  []Breach       `json:"breaches"`  // null where nothing is gated

	// In an editor, where the versions can be chosen; empty elsewhere.
	Base     string   `json:"base,omitempty"`     // the choice of the old version
	Version  string   `json:"version,omitempty"`  // the choice of the new version
	Bases    []Choice `json:"bases,omitempty"`    // for the old version
	Versions []Choice `json:"versions,omitempty"` // for the new version
	Reason   string   `json:"reason,omitempty"`   // why there is no comparison; "" where there is one
}

// Choice is a version of a document that a diff can compare.
type Choice struct {
	Value string `json:"value"` // "saved", "git:HEAD", "after-fuse", "text", a path
	Label string `json:"label"`
	Group string `json:"group"`
}

// Breach is what keeps a new version from passing as a gate.
type Breach struct {
	Function string `json:"function"`
	Place
	Grown   bool   `json:"grown"` // beyond the old version; otherwise beyond the function's own budget
	Open    bool   `json:"open"`  // whether it is beyond depends on sizes that are not bound
	Message string `json:"message"`
}

// The statuses of functions and ops.
const (
	StatusSame    = "same"
	StatusChanged = "changed"
	StatusAdded   = "added"
	StatusRemoved = "removed"
	StatusFused   = "fused"   // an op that is in a kernel of the new version
	StatusUnfused = "unfused" // an op that was in a kernel of the old version
)

// FunctionDiff is one function. An added one has no old numbers, a removed one
// no new ones.
type FunctionDiff struct {
	Name     string   `json:"name"`
	OldName  string   `json:"old_name"` // where it was called otherwise
	Status   string   `json:"status"`
	Place             // in the new version
	OldPlace Place    `json:"old_place"`
	FLOP     Delta    `json:"flop"`
	Read     Delta    `json:"read_bytes"`
	Written  Delta    `json:"written_bytes"`
	Moved    Delta    `json:"moved_bytes"`
	Minimum  Delta    `json:"minimum_bytes"`
	Waste    Delta    `json:"waste_bytes"`
	Peak     Delta    `json:"peak_bytes"`
	Sent     Delta    `json:"sent_bytes"` // by a device of a mesh to others
	Time     Delta    `json:"time_ns"`
	SameOps  int      `json:"same_ops"` // that are left out of Ops
	Ops      []OpDiff `json:"ops"`      // that differ, in the order of the new text; removed ones where they stood
}

// OpDiff is an op or kernel that differs. Those in kernels, which move nothing,
// are not compared one by one.
type OpDiff struct {
	Status    string `json:"status"`
	Op        string `json:"op"`     // "dm.add"; of the old version where it is gone
	OldOp     string `json:"old_op"` // where it was another
	Result    string `json:"result"`
	OldResult string `json:"old_result"` // where it was called otherwise
	Class     string `json:"class"`
	Depth     int    `json:"depth"` // 1 in a loop or branch, and so on
	Note      string `json:"note"`  // "into kernel at line 8" of a fused op, "from kernel at line 8" of an unfused one; mostly ""
	Place            // in the new version
	OldPlace  Place  `json:"old_place"`
	FLOP      Delta  `json:"flop"`
	Read      Delta  `json:"read_bytes"`
	Written   Delta  `json:"written_bytes"`
	Moved     Delta  `json:"moved_bytes"`
	Time      Delta  `json:"time_ns"`
}

// At is the line of the version that o has costs in, the new one where both do.
func (o OpDiff) At() int {
	if o.Status == StatusRemoved || o.Status == StatusFused {
		return o.OldPlace.Line
	}
	return o.Line
}

// Delta is a quantity in both versions. What is null is a formula, not known,
// or absent because the function or op is; the label is "" where it is absent.
type Delta struct {
	Old          *int64 `json:"old"`
	New          *int64 `json:"new"`
	Change       *int64 `json:"change"` // New − Old, an absent one being 0
	OldLabel     string `json:"old_label"`
	NewLabel     string `json:"new_label"`
	ChangeLabel  string `json:"change_label"`  // "+33.6 MB", "−12.3 µs", "0" where equal, a formula "+4*n B"
	PercentLabel string `json:"percent_label"` // "+28.7 %" of Old; "" where there is no Old or no change
}
