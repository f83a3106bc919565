package report

// Mesh is the devices that run a function together, and which piece of each value they have.
type Mesh struct {
	Reason string `json:"reason"` // why the layout of some values is not known; "" where all are
	Name   string `json:"name"`   // "pod"
	Place
	Axes    []MeshAxis   `json:"axes"`
	Devices int          `json:"devices"`
	Shown   int          `json:"shown_devices"` // the first ones, of which the layouts have the pieces
	Local   bool         `json:"local"`         // the text is of one device: its values are its own, no pieces
	Values  []MeshValue  `json:"values"`        // in the order of the text
	Layouts []MeshLayout `json:"layouts"`
}

// MeshAxis is a named axis of a mesh.
type MeshAxis struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// The kinds of values.
const (
	ValueArgument = "argument"
	ValueResult   = "result" // of the function
	ValueInner    = "value"
)

// MeshValue is a tensor of the text; a tuple is one for each of its members.
type MeshValue struct {
	Name  string `json:"name"` // "%h", "%params.0"
	Kind  string `json:"kind"`
	Op    string `json:"op"` // that defines it; "" for an argument
	Class string `json:"class"`
	Type  string `json:"type"` // in short: "64×256 f32"
	Place
	Sharding   string `json:"sharding"` // "{data}·{model}", "{data}·{} Σ{model}"; "whole"
	Stated     bool   `json:"stated"`   // the text states it
	Why        string `json:"why"`      // otherwise: "as %x, by dm.add"; may be ""
	Piece      string `json:"piece"`    // what a device has: "32×256 f32"
	Bytes      *int64 `json:"bytes"`    // of it
	BytesLabel string `json:"bytes_label"`
	Padding    string `json:"padding"` // "dimension 0: 10 in 4 pieces of 3"; "" where there is none
	Partial    string `json:"partial"` // "sum of 4 parts along model"; "" of a value that is reduced
	Layout     int    `json:"layout"`  // index in Layouts, -1 where it is not known
}

// MeshLayout is how the devices have values of one shape and sharding.
type MeshLayout struct {
	Dims   []MeshDim `json:"dims"`
	Pieces int       `json:"pieces"` // different ones; the devices that are left have copies or parts of a reduction
	Piece  []int     `json:"piece"`  // of each shown device, a number that devices with the same elements share
}

// MeshDim is how a dimension is divided.
type MeshDim struct {
	Size  int64      `json:"size"` // in elements; the number of pieces where it is a symbol
	Label string     `json:"label"`
	Axes  string     `json:"axes"`  // "{data}"; "" where it is whole
	Parts []MeshPart `json:"parts"` // that shown devices have
	At    []int      `json:"at"`    // of each shown device, the index in Parts
}

// MeshPart is the elements of a dimension from Start to End.
type MeshPart struct {
	Start   int64  `json:"start"`
	End     int64  `json:"end"`
	Padding int64  `json:"padding"` // elements behind End that fill the piece up
	Label   string `json:"label"`   // "0:32", "1 of 4 of n"
}

// Timeline is when a device computes and when it communicates. All devices run the same
// program, so that it is the timeline of each.
type Timeline struct {
	Reason  string `json:"reason"` // why there are no times: "depends on n"; "" where there are
	Mesh    string `json:"mesh"`   // "pod"
	Devices int    `json:"devices"`
	Bars    []Bar  `json:"bars"` // in the order in which they begin

	// Exposed are the times in which communication runs and no kernel. What loops and calls
	// that are one bar expose inside is not among them.
	Exposed []Interval `json:"exposed"`

	TimeNs       int64    `json:"time_ns"` // where the last bar ends
	TimeLabel    string   `json:"time_label"`
	ComputeNs    int64    `json:"compute_ns"`
	ComputeLabel string   `json:"compute_label"`
	CommNs       int64    `json:"communication_ns"`
	CommLabel    string   `json:"communication_label"`
	ExposedNs    int64    `json:"exposed_ns"`
	ExposedLabel string   `json:"exposed_label"`
	ExposedShare string   `json:"exposed_share_label"` // of the time: "37.1 %"
	Sent         []SentOn `json:"sent"`                // by a device, the axes in the order of their names
	SentLabel    string   `json:"sent_label"`          // the sum
}

// SentOn is what a device sends along axes.
type SentOn struct {
	Axes  string `json:"axes"` // "data", "data,model"
	Bytes int64  `json:"bytes"`
	Label string `json:"label"`
}

// Interval is a stretch of time.
type Interval struct {
	StartNs int64 `json:"start_ns"`
	EndNs   int64 `json:"end_ns"`
}

// The streams of a device.
const (
	StreamCompute = "compute"
	StreamComm    = "communication"
)

// Bar is an op of the program of a device as it runs. A loop is one, and so is a call.
type Bar struct {
	Op     string `json:"op"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	Class  string `json:"class"` // "communication" of collectives
	Stream string `json:"stream"`
	Place         // of the op of the text that it was made of
	Cost
	Interval
	ExposedNs    int64           `json:"exposed_ns"` // of it, in which communication runs and no kernel
	ExposedLabel string          `json:"exposed_label"`
	Share        float64         `json:"time_share"` // of the time
	ShareLabel   string          `json:"time_share_label"`
	Sent         []SentOn        `json:"sent"`
	Comm         *CollectiveInfo `json:"collective"` // of a collective
}

// CollectiveInfo is how a collective is done.
type CollectiveInfo struct {
	Axes        string `json:"axes"`    // "data"
	Devices     int    `json:"devices"` // of a group
	BufferLabel string `json:"buffer_label"`
	Algorithm   string `json:"algorithm"` // "ring"
	Link        string `json:"link"`      // the slowest that it crosses
}
