package artifact

import "errors"

// Failure is why a program could not be compiled or run, in terms common to all back
// ends. Their errors return it by a method Failure.
type Failure struct {
	Reason   Reason
	Err      error  // what the back end reports
	Help     string // what to do; may be empty
	Arch     string // of UnknownArch
	Compiler string // of Rejected, for people: "the CUDA compiler"
	File     string // of Faulted and Rejected: the text and the line in it, 1-based
	Line     int    // 0: no place is known
}

// Reason is the kind of a Failure.
type Reason int

// The reasons.
const (
	MissingTool Reason = iota + 1 // a compiler or another tool is not installed
	UnknownArch                   // no code is made for this architecture
	Rejected                      // the compiler does not accept the program's text
	Faulted                       // a kernel performed an invalid operation
	OutOfMemory                   // the host has not enough memory
	Untrusted                     // the program is Foreign and would run as a program of the user's
)

// ForeignError reports that a Foreign program is not run.
type ForeignError struct {
	Would string // what would happen: "the emulator would run its C++ code with your permissions"
}

func (e *ForeignError) Error() string {
	return "was not compiled by this user on this machine, and " + e.Would
}

// Failure reports that the program is not trusted.
func (*ForeignError) Failure() Failure { return Failure{Reason: Untrusted} }

// FailureOf is the failure of err or of an error that it wraps.
func FailureOf(err error) (f Failure, ok bool) {
	var e interface {
		error
		Failure() Failure
	}
	if !errors.As(err, &e) {
		return Failure{}, false
	}
	f = e.Failure()
	f.Err = e
	return f, true
}
