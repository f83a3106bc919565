//go:build windows && (amd64 || arm64)

package dylib

import (
	"path/filepath"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/windows"
)

func open(path string) (uintptr, error) {
	var flags uintptr = windows.LOAD_LIBRARY_SEARCH_DEFAULT_DIRS
	if filepath.IsAbs(path) { // what it loads itself lies beside it
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

// Callback gives a Go function of C-compatible arguments and results the address
// that C code calls it at. The number of callbacks of a process is limited and
// none is ever freed: make each once.
func Callback(fn any) uintptr { return purego.NewCallback(fn) }
