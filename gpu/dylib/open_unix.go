//go:build (linux || darwin) && (amd64 || arm64)

package dylib

import "github.com/ebitengine/purego"

func open(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func openGlobal(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
}

func lookup(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }

func register(fn any, addr uintptr) { purego.RegisterFunc(fn, addr) }

// Callback gives a Go function of C-compatible arguments and results the address
// that C code calls it at. The number of callbacks of a process is limited and
// none is ever freed: make each once.
func Callback(fn any) uintptr { return purego.NewCallback(fn) }
