package native

import (
	"fmt"
	"regexp"
	"strconv"

	"dmir/gpu/artifact"
)

// ErrForeign reports that a program is not run because it was not compiled by this
// user on this machine: its code would run in this process.
var ErrForeign error = &artifact.ForeignError{Would: "the CPU would run its code with your permissions"}

// CompileError holds clang's messages about a program's text.
type CompileError struct {
	Compiler string
	Output   string
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("%s does not compile the program: %s", e.Compiler, firstLine([]byte(e.Output)))
}

// Failure reports that the compiler rejects the text.
func (e *CompileError) Failure() artifact.Failure {
	f := artifact.Failure{Reason: artifact.Rejected, Compiler: "clang"}
	if m := place.FindStringSubmatch(e.Output); m != nil {
		f.File = kernelsFile
		f.Line, _ = strconv.Atoi(m[1])
	}
	return f
}

// place is where in the IR an error is.
var place = regexp.MustCompile(regexp.QuoteMeta(kernelsFile) + `:(\d+):\d+: error:`)

// MemoryError reports that there is not enough memory to load a program.
type MemoryError struct{ Text string }

func (e *MemoryError) Error() string { return e.Text }

// Failure reports that memory is short.
func (*MemoryError) Failure() artifact.Failure { return artifact.Failure{Reason: artifact.OutOfMemory} }

// Fault is the failure of a kernel by an invalid operation, such as an access outside
// of its buffers.
type Fault struct {
	Step   string // of the program; empty for a copy of an input or an output
	Kernel string
	File   string // and the lines of it that the step came from
	Lines  []int
	Text   string // what happened
}

func (f *Fault) Error() string {
	if len(f.Lines) > 0 {
		return fmt.Sprintf("%s:%d: %s", f.File, f.Lines[0], f.Text)
	}
	return f.Text
}

// Failure reports that a kernel failed, and the line that it came from.
func (f *Fault) Failure() artifact.Failure {
	out := artifact.Failure{Reason: artifact.Faulted, File: f.File, Help: "report it with the file"}
	if len(f.Lines) > 0 {
		out.Line = f.Lines[0]
	}
	return out
}
