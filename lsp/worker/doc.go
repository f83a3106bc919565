// Package worker runs functions in a separate process, so that a program
// that takes all memory, loops, or brings down its executor takes nothing else
// with it. The process is the dmir binary under a hidden subcommand. It reads
// one request from its standard input, as one line of JSON, and writes lines of
// JSON: progress while it runs, and the result last. It ends when its input
// does, so that it never outlives who started it.
package worker

import (
	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/syntax/diag"
)

// The kinds of requests.
const (
	KindRun     = "run"     // results; the kind of a request that names none
	KindProfile = "profile" // results, and what each kernel took or moved
	KindCompile = "compile" // no results: the program as text at every stage
	KindPlan    = "plan"    // no results: how to divide a training step over devices
)

// Request describes what to do with a function.
type Request struct {
	Kind        string           `json:"kind,omitempty"`
	Path        string           `json:"path"` // as shown in messages
	Text        string           `json:"text"`
	Func        string           `json:"func"`   // without "@"
	Device      string           `json:"device"` // "auto", "reference", "emulator", "cuda"
	Seed        int64            `json:"seed"`   // of the inputs
	Bind        map[string]int64 `json:"bind,omitempty"`
	F32Products string           `json:"f32_products,omitempty"`
	Machine     *machine.Machine `json:"machine,omitempty"` // what predictions are for; nil: the default
	Code        bool             `json:"code,omitempty"`    // of KindCompile: machine code too, where a CUDA compiler is
	Devices     int              `json:"devices,omitempty"` // of KindPlan
	Memory      int64            `json:"memory,omitempty"`  // of KindPlan: bytes of a device; 0: the machine's
}

// Progress is how far a function has run.
type Progress struct {
	Done  int `json:"done"` // parts of Total, in expected time
	Total int `json:"total"`
	Line  int `json:"line"` // 1-based, of the op that was reached

	Note string `json:"note,omitempty"` // what is done where it is no op's turn
}

// Output is one result of the function.
type Output struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Summary string `json:"summary"` // its values in a few words
}

// OpTime is how long one op took, over all its executions.
type OpTime struct {
	Line int   `json:"line"` // 1-based
	Ns   int64 `json:"ns"`
}

// Result is what came of a request.
type Result struct {
	OK        bool     `json:"ok"`
	Device    string   `json:"device"`
	Title     string   `json:"title,omitempty"` // what people call the device
	Why       string   `json:"why,omitempty"`   // why that device was taken
	ElapsedNs int64    `json:"elapsed_ns"`
	Results   []Output `json:"results"`
	Ops       []OpTime `json:"ops"`
	Kernels   []Kernel `json:"kernels,omitempty"` // in the order in which they run
	Build     *Build   `json:"build,omitempty"`   // of KindCompile
	Plans     *Plans   `json:"plans,omitempty"`   // of KindPlan
	// Foreign is set if the device is another machine than the one that times are
	// predicted for, so that the two cannot be compared.
	Foreign bool `json:"foreign,omitempty"`

	Message string `json:"message"` // what went wrong; one sentence
	Code    string `json:"code,omitempty"`
	Start   int    `json:"start"` // where, in bytes of the text; End 0 is nowhere
	End     int    `json:"end"`
}

// Kernel is one step of a compiled function: a launch, or a fill with zeros.
type Kernel struct {
	Name         string  `json:"name"`            // of the step
	Class        string  `json:"class,omitempty"` // of the kernel, or "copy"; "" for a fill
	Lines        []int   `json:"lines"`           // of the program, 1-based, that it came from
	Runs         int64   `json:"runs,omitempty"`  // how often it runs, as far as is known: in a loop, in a branch; figures are those of all runs
	First        int     `json:"first,omitempty"` // its lines in the CUDA text, 1-based; 0 if that was not requested
	Last         int     `json:"last,omitempty"`
	PredictedNs  float64 `json:"predicted_ns"`
	RoofNs       float64 `json:"roof_ns"`               // predicted, without the launch: what roofline bound
	MeasuredNs   float64 `json:"measured_ns,omitempty"` // 0: not measured
	ReadBytes    int64   `json:"read_bytes"`
	WrittenBytes int64   `json:"written_bytes"`
	Counted      bool    `json:"counted,omitempty"` // the device has counted bytes, which are
	CountedBytes int64   `json:"counted_bytes,omitempty"`
	Differs      string  `json:"differs,omitempty"` // why these are others than predicted, where that is known
	Registers    int     `json:"registers,omitempty"`
	SharedBytes  int     `json:"shared_bytes,omitempty"`
	SpillBytes   int     `json:"spill_bytes,omitempty"` // of each thread, written and read
}

// Build is a compiled function as text, and what it costs.
type Build struct {
	Arch     string  `json:"arch"`
	Compiler string  `json:"compiler,omitempty"` // of the machine code; "" where there is none
	NoCode   string  `json:"no_code,omitempty"`  // why there is none although it was requested
	Stages   []Stage `json:"stages"`             // the function after each pass
	CUDA     string  `json:"cuda"`
	PTX      string  `json:"ptx,omitempty"`

	AsWrittenBytes int64 `json:"as_written_bytes"` // moved by the ops of the text; -1 where that is not known
	MinimumBytes   int64 `json:"minimum_bytes"`
	MovedBytes     int64 `json:"moved_bytes"` // by the kernels
	WorkspaceBytes int64 `json:"workspace_bytes"`
}

// Stage is the function after one pass, as text that can be parsed.
type Stage struct {
	Pass string `json:"pass"`
	Text string `json:"text"`
	Ns   int64  `json:"ns"` // that the pass took
}

// Plans are the plans of a training step, with the edits that write each into the text.
type Plans struct {
	Result *plan.Result `json:"result"`
	Edits  [][]Edit     `json:"edits"`
}

// Edit replaces bytes of the text.
type Edit struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Text  string `json:"text"`
}

// message is a line that the worker writes; one of its fields is set.
type message struct {
	Progress *Progress `json:"progress,omitempty"`
	Result   *Result   `json:"result,omitempty"`
}

// Codes of what the process itself can do wrong; `dmir explain` lists them
// beside those of the executor.
const (
	CodeDied    = "DM720"
	CodeTimeout = "DM721"
	CodeDiffers = "DM723"
	CodeSpills  = "DM724"
)

// Codes documents them.
var Codes = diag.Register([]diag.Code{
	{Code: CodeDied, Name: "worker-died", Doc: "The process that ran the function ended without a result: it crashed, was killed (for example because memory ran out), or wrote invalid output.", Help: "bind smaller sizes, or run it on the command line to see more: dmir run"},
	{Code: CodeDiffers, Name: "prediction-differs", Doc: "A kernel took over a quarter more or less time than the cost model predicts for the machine that times are computed for.", Help: "if it took more, the kernel does not reach the machine's peaks; if less, the machine's figures are too low and can be corrected in dmir.toml"},
	{Code: CodeSpills, Name: "registers-spilled", Doc: "The machine code of a kernel spills registers to memory, because a thread has too few. It is correct, but slower than predicted.", Help: "a smaller kernel, or two in its place, may need fewer"},
	{Code: CodeTimeout, Name: "run-timeout", Doc: "The run took longer than the editor waits and was stopped.", Help: "run it on the command line, which waits: dmir run"},
})
