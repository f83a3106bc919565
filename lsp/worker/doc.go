// Package worker runs functions in a process of its own, so that a program
// that takes all memory, loops, or brings down its executor takes nothing else
// with it. The process is the dmir binary under a hidden subcommand. It reads
// one request from its standard input, as one line of JSON, and writes lines of
// JSON: progress while it runs, and the result last. It ends when its input
// does, so that it never outlives who started it.
package worker

import "dmir/syntax/diag"

// Request says what to run.
type Request struct {
	Path   string           `json:"path"` // as shown in messages
	Text   string           `json:"text"`
	Func   string           `json:"func"`   // without "@"
	Device string           `json:"device"` // "auto" or "reference"
	Seed   int64            `json:"seed"`   // of the inputs
	Bind   map[string]int64 `json:"bind,omitempty"`
}

// Progress is told while a function runs.
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

// Result is what came of a run.
type Result struct {
	OK        bool     `json:"ok"`
	Device    string   `json:"device"`
	ElapsedNs int64    `json:"elapsed_ns"`
	Results   []Output `json:"results"`
	Ops       []OpTime `json:"ops"`

	Message string `json:"message"` // what went wrong; one sentence
	Code    string `json:"code,omitempty"`
	Start   int    `json:"start"` // where, in bytes of the text; End 0 is nowhere
	End     int    `json:"end"`
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
)

// Codes documents them.
var Codes = []diag.Code{
	{Code: CodeDied, Name: "worker-died", Doc: "Functions run in a process of their own. It ended without a result: it crashed, was killed, as the system does where memory runs out, or wrote what it should not have.", Help: "bind smaller sizes, or run it on the command line to see more: dmir run"},
	{Code: CodeTimeout, Name: "run-timeout", Doc: "The run took longer than the editor waits and was stopped.", Help: "run it on the command line, which waits: dmir run"},
}
