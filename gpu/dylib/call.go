//go:build (linux || darwin || windows) && (amd64 || arm64)

package dylib

import "github.com/ebitengine/purego"

func register(fn any, addr uintptr) { purego.RegisterFunc(fn, addr) }

// Call calls the function. What pointers among the arguments point to stays where it is until it returns.
//
//go:uintptrescapes
func (f Func) Call(args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(uintptr(f), args...)
	return r
}

// Callback returns the address at which C code can call fn, a Go function with
// C-compatible arguments and results. A process has a limited number of callbacks and
// never frees them: create each once.
func Callback(fn any) uintptr { return purego.NewCallback(fn) }
