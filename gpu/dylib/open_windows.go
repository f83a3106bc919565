//go:build windows && (amd64 || arm64)

package dylib

import (
	"path/filepath"

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
