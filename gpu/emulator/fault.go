package emulator

import (
	"fmt"
	"path"
	"strings"
	"time"

	"dmir/gpu/artifact"
)

// Kind is what is wrong.
type Kind string

// The kinds of faults.
const (
	Bounds        Kind = "bounds"        // an index outside of the buffer or array
	Misaligned    Kind = "misaligned"    // several elements at once from an index that is no multiple of their number
	Uninitialised Kind = "uninitialised" // read before anything was written there, or an output that nothing writes
	Overlap       Kind = "overlap"       // the plan has given the bytes to another buffer before the last read
	Race          Kind = "race"          // two threads or two blocks on one element, one writing, in no order
	Divergence    Kind = "divergence"    // a barrier or an operation of a warp that not all threads reach
	Async         Kind = "async"         // the target of an asynchronous copy touched before the wait for it
	Deadlock      Kind = "deadlock"      // all threads wait
	Timeout       Kind = "timeout"
	Crash         Kind = "crash"  // the process died
	Launch        Kind = "launch" // a grid, block or amount of shared memory that no device takes
	Memory        Kind = "memory" // the host has not enough
	Plan          Kind = "plan"   // steps, buffers and kernels that do not fit each other
)

// Fault is an error that the emulator found in a program. Fields that do not apply
// are empty, -1 for numbers, 0 for places.
type Fault struct {
	Kind       Kind
	Step       string // its name
	Kernel     string
	Param      string // of the kernel
	Line       int    // of the artifact's source, 1-based
	File       string // the text that the line stands for, by #line
	SourceLine int    // of File
	Prelude    string // "file:line" of the prelude, where the access stands there
	Block      [3]int
	Thread     int
	Index      int64 // of the element in Param
	Msg        string
}

// Failure reports that the program is wrong, and where, or that memory is short.
func (f *Fault) Failure() artifact.Failure {
	if f.Kind == Memory {
		return artifact.Failure{Reason: artifact.OutOfMemory, File: f.File, Line: f.SourceLine}
	}
	return artifact.Failure{Reason: artifact.Faulted, File: f.File, Line: f.SourceLine, Help: "report it with the file"}
}

// Error describes the fault in one line.
func (f *Fault) Error() string {
	var b strings.Builder
	if f.File != "" && f.SourceLine > 0 {
		fmt.Fprintf(&b, "%s:%d: ", f.File, f.SourceLine)
	}
	fmt.Fprintf(&b, "%s", f.Kind)
	if f.Kernel != "" {
		fmt.Fprintf(&b, " in kernel %s", f.Kernel)
	} else if f.Step != "" {
		fmt.Fprintf(&b, " in step %s", f.Step)
	}
	switch {
	case f.Line > 0:
		fmt.Fprintf(&b, ", line %d", f.Line)
	case f.Prelude != "":
		fmt.Fprintf(&b, ", %s", f.Prelude)
	}
	if f.Kernel != "" {
		fmt.Fprintf(&b, " (block %d,%d,%d, thread %d)", f.Block[0], f.Block[1], f.Block[2], f.Thread)
	}
	if f.Param != "" {
		fmt.Fprintf(&b, ": %s[%d]", f.Param, f.Index)
	}
	fmt.Fprintf(&b, ": %s", f.Msg)
	return b.String()
}

// rawFault is a fault as the process reports it.
type rawFault struct {
	Kind   string
	Step   int
	Param  int
	File   string
	Line   int
	Block  [3]int
	Thread int
	Index  int64
	Msg    string
}

// resolve replaces numbers by names.
func (r *rawFault) resolve(p *artifact.Program, timeout time.Duration) *Fault {
	f := &Fault{Kind: Kind(r.Kind), Block: r.Block, Thread: r.Thread, Index: r.Index, Msg: r.Msg}
	if f.Kind == Timeout && timeout > 0 {
		f.Msg = fmt.Sprintf("it did not end within %s; %s", timeout, r.Msg)
	}
	if f.Kind == Overlap || f.Kind == Uninitialised {
		f.Msg = nameBuffers(f.Msg, p)
	}
	if r.Step < 0 || r.Step >= len(p.Steps) {
		return f
	}
	s := p.Steps[r.Step]
	f.Step = s.Name
	k := p.KernelOf(&s)
	if k == nil {
		return f
	}
	f.Kernel = k.Name
	if r.Param >= 0 && r.Param < len(k.Params) {
		f.Param = k.Params[r.Param].Name
	}
	f.File = p.File
	if len(k.Lines) > 0 {
		f.SourceLine = k.Lines[0]
	}
	name := path.Base(r.File) // some compilers name files with their folder
	if batchName.MatchString(name) {
		name = programName
	}
	switch name {
	case programName:
		f.Line = r.Line
		if file, line := sourcePlace(p.Source, r.Line); line > 0 {
			f.File, f.SourceLine = file, line
		}
	case ".": // nowhere
	default:
		f.Prelude = fmt.Sprintf("%s:%d", name, r.Line)
	}
	return f
}

// nameBuffers replaces "buffer 3" by the buffer's name.
func nameBuffers(msg string, p *artifact.Program) string {
	words := strings.Fields(msg)
	for i := 0; i+1 < len(words); i++ {
		var n int
		if words[i] != "buffer" {
			continue
		}
		if _, err := fmt.Sscanf(words[i+1], "%d", &n); err == nil && n >= 0 && n < len(p.Buffers) {
			words[i+1] = "%" + p.Buffers[n].Name
		}
	}
	return strings.Join(words, " ")
}
