//go:build windows && (amd64 || arm64)

package dylib

import (
	"path/filepath"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/windows"
)

func open(path string) (uintptr, error) {
	var flags uintptr = windows.LOAD_LIBRARY_SEARCH_DEFAULT_DIRS
	if filepath.IsAbs(path) { // so that it finds libraries beside it
		flags |= windows.LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR
	}
	h, err := windows.LoadLibraryEx(path, 0, flags)
	return uintptr(h), err
}

func openGlobal(path string) (uintptr, error) { return open(path) } // one table of names for all

func lookup(handle uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(handle), name)
}

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
